"""Comparison of two descriptions of one router."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from fared.core.ids import NodeId, ipv4_prefix
from fared.paths.ted.compare import same_block
from fared.paths.ted.model import NodeBlock, PathType, PrefixReachability

LOOPBACK = PrefixReachability(ipv4_prefix(0x0A000001, 32), 0, PathType.INTRA_AREA)
BLOCK = NodeBlock(
    node=NodeId(1),
    neighbors=np.array([2, 3], np.int64),
    metrics=np.array([10, 10], np.int64),
    capacities=np.array([1e9, np.nan]),
    availables=np.array([np.nan, np.nan]),
    local_ids=np.array([1, 2], np.int64),
    remote_ids=np.array([0, 0], np.int64),
    prefixes=(LOOPBACK,),
    transit=True,
    hostname="L1",
)


def test_descriptions_with_the_same_numbers_are_equal():
    """Other arrays, unknown capacities (NaN) included."""
    again = replace(BLOCK, capacities=BLOCK.capacities.copy(), availables=BLOCK.availables.copy())
    assert same_block(BLOCK, again)
    assert same_block(None, None)


@pytest.mark.parametrize(
    "change",
    [
        {"capacities": np.array([1e9, 2e9])},
        {"availables": np.array([5e8, np.nan])},
        {"hostname": "leaf1"},
        {"prefixes": (replace(LOOPBACK, capacity=1e9),)},
        {"neighbors": np.array([2, 4], np.int64)},
        {"metrics": np.array([10, 20], np.int64)},
        {"local_ids": np.array([1, 3], np.int64)},
        {"prefixes": (replace(LOOPBACK, metric=1),)},
        {"prefixes": ()},
        {"transit": False},
        {"is_asbr": True},
    ],
    ids=str,
)
def test_anything_else_is_a_change(change):
    assert not same_block(BLOCK, replace(BLOCK, **change))
    assert not same_block(BLOCK, None)
    assert not same_block(None, BLOCK)
