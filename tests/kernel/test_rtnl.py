"""Messages packed and read by hand are those that pyroute2 builds and understands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroute2.netlink.generic.ethtool import ethtool_linkmode_msg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from fared.kernel import rtnl
from fared.kernel.netlink import HEADER

MBIT = 1e6 / 8


def encoded(message, **fields):
    for name, value in fields.items():
        message[name] = value
    message.encode()
    return bytes(message.data[HEADER.size :])


def header(*attributes):
    return [("ETHTOOL_A_LINKMODES_HEADER", {"attrs": list(attributes)})]


def test_links_and_queues_are_asked_for_as_pyroute2_does():
    assert rtnl.all_links() == encoded(ifinfmsg())
    assert rtnl.queues() == encoded(tcmsg())
    assert rtnl.queues(7) == encoded(tcmsg(), index=7)


@pytest.mark.parametrize("ifindex", [None, 7])
def test_link_modes_are_asked_for_as_pyroute2_does(ifindex):
    device = [] if ifindex is None else [("ETHTOOL_A_HEADER_DEV_INDEX", ifindex)]
    attrs = header(*device, ("ETHTOOL_A_HEADER_FLAGS", 1))
    message = encoded(ethtool_linkmode_msg(), cmd=4, version=1, attrs=attrs)
    assert rtnl.link_modes(ifindex) == message


@pytest.mark.parametrize(
    ("speed", "known"), [(400_000, True), (1, True), (0, False), (0xFFFFFFFF, False)]
)
def test_a_speed_is_read_from_what_pyroute2_packs(speed, known):
    attrs = header(("ETHTOOL_A_HEADER_DEV_INDEX", 3), ("ETHTOOL_A_HEADER_DEV_NAME", "swp1"))
    attrs += [("ETHTOOL_A_LINKMODES_AUTONEG", 1), ("ETHTOOL_A_LINKMODES_SPEED", speed)]
    body = encoded(ethtool_linkmode_msg(), cmd=4, version=1, attrs=attrs)
    assert rtnl.read_speed(body) == ((3, speed * MBIT) if known else None)


def test_an_answer_without_a_speed_says_nothing():
    attrs = header(("ETHTOOL_A_HEADER_DEV_INDEX", 3))
    assert rtnl.read_speed(encoded(ethtool_linkmode_msg(), cmd=4, version=1, attrs=attrs)) is None


@given(st.binary(max_size=80))
def test_any_bytes_are_a_message_or_none(body):
    """Whoever sends them: decoding never raises."""
    rtnl.read_speed(body)
    rtnl.read_queue(body)
    rtnl.read_queue(bytes(20) + body)
    for head in (b"", bytes.fromhex("010200000600010010000000"), bytes.fromhex("01020000")):
        rtnl.read_family(16, head + body)
        rtnl.read_monitor_group(16, head + body)
