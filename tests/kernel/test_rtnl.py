"""Messages packed and read by hand are those that pyroute2 builds and understands."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroute2.netlink import ctrlmsg
from pyroute2.netlink.generic.ethtool import ethtool_linkmode_msg
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from fared.core.ids import FAMILY_IPV4
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
    assert rtnl.all_addresses() == encoded(ifaddrmsg())
    assert rtnl.queues() == encoded(tcmsg())
    assert rtnl.queues(7) == encoded(tcmsg(), index=7)


def test_ethtool_is_looked_up_as_pyroute2_does():
    attrs = [("CTRL_ATTR_FAMILY_NAME", "ethtool")]
    assert rtnl.ethtool_family() == encoded(ctrlmsg(), cmd=3, version=1, attrs=attrs)


def test_the_numbers_of_ethtool_are_read_from_what_pyroute2_packs():
    names = ("other", 8), ("monitor", 9)
    groups = [
        {"attrs": [("CTRL_ATTR_MCAST_GRP_ID", number), ("CTRL_ATTR_MCAST_GRP_NAME", name)]}
        for name, number in names
    ]
    attrs = [("CTRL_ATTR_FAMILY_NAME", "ethtool"), ("CTRL_ATTR_FAMILY_ID", 0x1234)]
    body = encoded(ctrlmsg(), attrs=[*attrs, ("CTRL_ATTR_MCAST_GROUPS", groups)])
    assert (rtnl.read_family(body), rtnl.read_monitor_group(body)) == (0x1234, 9)
    body = encoded(ctrlmsg(), attrs=[("CTRL_ATTR_MCAST_GROUPS", groups[:1])])
    assert (rtnl.read_family(body), rtnl.read_monitor_group(body)) == (None, None)


@pytest.mark.parametrize(
    ("given", "address", "peer"),
    [
        ({"IFA_ADDRESS": "10.0.0.1", "IFA_LOCAL": "10.0.0.1"}, "10.0.0.1", None),
        ({"IFA_ADDRESS": "10.0.0.2", "IFA_LOCAL": "10.0.0.1"}, "10.0.0.1", "10.0.0.2"),
        ({"IFA_ADDRESS": "2001:db8::1"}, "2001:db8::1", None),
    ],
)
def test_addresses_are_read_from_what_pyroute2_packs(given, address, peer):
    near, far = ip_address(address), ip_address(peer) if peer else None
    family = socket.AF_INET if near.version == FAMILY_IPV4 else socket.AF_INET6
    fields = {"family": int(family), "prefixlen": 24, "flags": 0x80, "index": 7}
    read = rtnl.read_address(encoded(ifaddrmsg(), **fields, attrs=list(given.items())))
    assert read == (7, family, 24, 0x80, int(near), far and int(far))
    wide = [*given.items(), ("IFA_FLAGS", 0x280)]
    assert rtnl.read_address(encoded(ifaddrmsg(), **fields, attrs=wide)).flags == 0x280
    assert rtnl.read_address(encoded(ifaddrmsg(), **fields | {"family": 7})) is None


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
    rtnl.read_address(body)
    for head in (b"", bytes.fromhex("010200000600010010000000"), bytes.fromhex("01020000")):
        rtnl.read_family(head + body)
        rtnl.read_monitor_group(head + body)
