"""What two descriptions of one router differ in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fared.core.ids import NodeId, ipv4_prefix
from fared.ted.compare import Difference, difference
from fared.ted.model import NodeBlock, PathType, PrefixAttachment

LOOPBACK = PrefixAttachment(ipv4_prefix(0x0A000001, 32), 0, PathType.INTRA_AREA)
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


def test_a_description_told_again_is_no_news():
    """Other arrays with the same numbers, unknown ones (NaN) included."""
    again = replace(BLOCK, capacities=BLOCK.capacities.copy(), availables=BLOCK.availables.copy())
    assert difference(BLOCK, again) is Difference.NONE
    assert difference(None, None) is Difference.NONE


@pytest.mark.parametrize(
    "change",
    [
        {"capacities": np.array([1e9, 2e9])},
        {"availables": np.array([5e8, np.nan])},
        {"hostname": "leaf1"},
        {"prefixes": (replace(LOOPBACK, capacity=1e9),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_capacities_and_names_are_details(change):
    """What leaves every path where it is needs no SPF."""
    assert difference(BLOCK, replace(BLOCK, **change)) is Difference.DETAILS


@pytest.mark.parametrize(
    "change",
    [
        {"neighbors": np.array([2, 4], np.int64)},
        {"metrics": np.array([10, 20], np.int64)},
        {"local_ids": np.array([1, 3], np.int64)},
        {"prefixes": (replace(LOOPBACK, metric=1),)},
        {"prefixes": ()},
        {"transit": False},
    ],
    ids=lambda change: next(iter(change)),
)
def test_links_prefixes_and_roles_are_its_shape(change):
    """What can move a path is told as such, and so is a router that came or went."""
    assert difference(BLOCK, replace(BLOCK, **change)) is Difference.SHAPE
    assert difference(BLOCK, None) is difference(None, BLOCK) is Difference.SHAPE
