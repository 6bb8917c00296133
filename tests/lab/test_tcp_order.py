"""Reordering of TCP from the kernel's accounts, beside what ``ss`` printed at the same moment.

``tests/data/tcp/sprayed.json``: one CUBIC connection of 20 MB from h1 to h2, sprayed packet by
packet over paths of 1:5:5:5 (containerlab/clos3.clab.yml, MTU 9000, Linux 6.18); of both ends the
``struct tcp_info``, ``ss -Htin``, and /proc/net/snmp and netstat from before and after.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.tcp_order import (
    TcpInfo,
    TcpOrder,
    decode,
    increments,
    order_between,
    order_of,
    parse_counters,
)

RECORDED = Path(__file__).parents[1] / "data" / "tcp" / "sprayed.json"


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(RECORDED.read_text("utf-8"))
    return document


def info(recorded: dict[str, Any], end: str) -> TcpInfo:
    return decode(bytes.fromhex(recorded[end]["tcp_info"]))


def printed(recorded: dict[str, Any], end: str, name: str) -> int:
    """A field of ss, which omits those that are zero."""
    found = re.search(rf" {name}:(?:\d+/)?(\d+)", recorded[end]["ss"])
    return int(found[1]) if found else 0


def test_the_account_of_a_connection_says_what_ss_prints(recorded: dict[str, Any]):
    for end in ("sender", "receiver"):
        found = info(recorded, end)
        assert found.total_retrans == printed(recorded, end, "retrans")
        assert found.data_segs_in == printed(recorded, end, "data_segs_in")
        assert found.dsack_dups == printed(recorded, end, "dsack_dups")
        assert found.reord_seen == printed(recorded, end, "reord_seen")
        assert found.rcv_ooopack == printed(recorded, end, "rcv_ooopack")
    assert info(recorded, "sender").reordering == printed(recorded, "sender", "reordering")


def test_the_order_of_a_connection_joins_both_ends(recorded: dict[str, Any]):
    """No packet was lost: the receiver had each of the 264 already."""
    one = info(recorded, "sender"), info(recorded, "receiver")
    order = order_of([one])
    assert order == TcpOrder(2501, 697, events=973, extent=15, retransmitted=264, spurious=264)
    assert order.ratio == pytest.approx(697 / 2501)
    twice = order_of([one, one])
    assert (twice.segments, twice.spurious, twice.extent) == (5002, 528, 15)


def test_the_counters_of_the_hosts_tell_the_same(recorded: dict[str, Any]):
    """A host counts its acknowledgments too, and connecting: a few segments more."""

    def grown(end: str) -> dict[str, int]:
        before, after = (
            {**parse_counters(at["snmp"]), **parse_counters(at["netstat"])}
            for at in (recorded[end]["before"], recorded[end]["after"])
        )
        return increments(before, after)

    order = order_between(grown("sender"), grown("receiver"))
    assert (order.retransmitted, order.spurious) == (264, 264)
    assert order.out_of_order == pytest.approx(697, abs=5)
    assert order.segments == pytest.approx(2501, abs=5)
    assert order.extent is None
    assert order.events > 0


def test_a_kernel_without_these_fields_is_an_error():
    with pytest.raises(LabError, match=r"Linux 5\.4"):
        decode(bytes(192))


def test_without_segments_nothing_is_out_of_order():
    assert order_of([]) == TcpOrder(0, 0, events=0, extent=None, retransmitted=0, spurious=0)
    assert order_of([]).ratio == 0.0
