"""Interfaces put together from messages, without a kernel."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroute2.netlink.rtnl import (
    RTM_DELADDR,
    RTM_DELLINK,
    RTM_DELQDISC,
    RTM_NEWADDR,
    RTM_NEWLINK,
    RTM_NEWQDISC,
    RTM_NEWTCLASS,
    TC_H_ROOT,
)

from fared.core.link_facts import PlatformLink
from fared.kernel.linktable import LinkTable
from fared.kernel.netlink import attribute, attributes, messages, u32_attribute
from fared.kernel.rtnl import read_queue

UP = 0x1 | 0x40 | 0x10000
MAC = 0x02000A000001


def link(name=b"e0", flags=UP, family=0, kind=1):
    head = struct.pack("=BBHiII", family, 0, kind, 3, flags, 0)
    hardware = attribute(1, MAC.to_bytes(6, "big"))
    return head + hardware + attribute(3, name + b"\0") + u32_attribute(4, 1500)


def address(last, flags=0, family=2, width=4, base=10 << 24, *, length=24):
    head = struct.pack("=BBBBI", family, length, flags & 0xFF, 0, 3)
    raw = (base | last).to_bytes(width, "big")
    return head + attribute(1, raw) + attribute(2, raw) + u32_attribute(8, flags)


def test_up_means_administratively_up_with_carrier():
    table = LinkTable()
    for flags, up in ((UP, True), (0x1, False), (0x1 | 0x10000, False), (UP & ~1, False)):
        assert table.take(RTM_NEWLINK, link(flags=flags)).ifindex == 3
        assert table.links[3].up is up


def test_a_name_that_is_not_utf8_is_shown_all_the_same():
    table = LinkTable()
    table.take(RTM_NEWLINK, link(name=b"e\xff"))
    assert table.links[3].name == "e\ufffd"


@pytest.mark.parametrize(("kind", "wanted"), [(1, MAC), (32, 0), (768, 0), (772, 0)])
def test_only_ethernet_has_a_mac_address(kind, wanted):
    """InfiniBand, tunnels and the loopback interface have something else, or nothing."""
    table = LinkTable()
    table.take(RTM_NEWLINK, link(kind=kind))
    assert table.links[3].hardware_address == wanted


def queue(kind, options):
    head = struct.pack("=BBHiIII", 0, 0, 0, 3, 0x10000, TC_H_ROOT, 0)
    return head + attribute(1, kind + b"\0") + attribute(2, options)


@pytest.mark.parametrize(("name", "size", "wide"), [(b"tbf", 36, 4), (b"htb", 44, 6)])
def test_rates_beyond_the_32_bit_field_are_read_from_another(name, size, wide):
    """34 Gbit/s is where it is full."""
    parameters = attribute(1, struct.pack("=8xI", 0xFFFFFFFF).ljust(size, b"\0"))
    rate = attribute(wide, struct.pack("=Q", 50_000_000_000))
    assert read_queue(queue(name, parameters)).rate == 0xFFFFFFFF
    assert read_queue(queue(name, parameters + rate)).rate == 50e9


def test_a_queue_that_does_not_shape_has_no_rate():
    assert read_queue(queue(b"fq_codel", b"")).rate is None


def test_a_bridge_speaking_of_its_port_is_not_the_port():
    table = LinkTable()
    assert table.take(RTM_NEWLINK, link(family=7)) is None
    assert table.links == {}


def test_secondary_addresses_come_after_primary_ones():
    table = LinkTable()
    table.take(RTM_NEWLINK, link())
    table.take(RTM_NEWADDR, address(1, flags=1))
    table.take(RTM_NEWADDR, address(2))
    assert [a.address & 0xFF for a in table.links[3].ipv4()] == [2, 1]
    table.take(RTM_DELADDR, address(2))
    assert [a.address & 0xFF for a in table.links[3].ipv4()] == [1]


def test_without_its_prefix_route_an_address_leads_to_no_network():
    table = LinkTable()
    table.take(RTM_NEWLINK, link())
    table.take(RTM_NEWADDR, address(1))
    table.take(RTM_NEWADDR, address(2, flags=0x200))
    assert [a.routed for a in table.links[3].ipv4()] == [True, False]


def test_a_tentative_ipv6_address_is_no_address_yet():
    table = LinkTable()
    table.take(RTM_NEWLINK, link())
    table.take(RTM_NEWADDR, address(1, flags=0x40, family=10, width=16))
    assert table.links[3].addresses == ()
    table.take(RTM_NEWADDR, address(1, family=10, width=16))
    assert len(table.links[3].addresses) == 1


@pytest.mark.parametrize(
    ("flags", "usable"),
    [(0x80, True), (0xC0, False), (0x80 | 0x08, False), (0x40 | 0x04, True), (0, True)],
)
def test_a_link_local_address_counts_once_it_is_known_to_be_ours_alone(flags, usable):
    """Tentative and duplicate ones do not, optimistic ones do (RFC 4429 §3.3)."""
    table = LinkTable()
    table.take(RTM_NEWLINK, link())
    table.take(RTM_NEWADDR, address(9, family=10, width=16, base=0x20010DB8 << 96))
    assert table.links[3].link_local() is None
    wide = {"family": 10, "width": 16, "base": 0xFE80 << 112}
    table.take(RTM_NEWADDR, address(1, flags=flags, **wide))
    found = table.links[3].link_local()
    assert (found is not None) is usable
    table.take(RTM_DELADDR, address(1, **wide))
    assert table.links[3].link_local() is None


def test_a_removed_link_takes_its_addresses_along():
    table = LinkTable()
    table.take(RTM_NEWLINK, link())
    table.take(RTM_NEWADDR, address(1))
    table.take(RTM_DELLINK, link())
    assert table.links == {}
    table.take(RTM_NEWADDR, address(1))
    table.take(RTM_NEWLINK, link())
    assert table.links[3].addresses == ()


@pytest.mark.parametrize("length", [33, 255])
def test_an_address_with_a_longer_prefix_than_it_has_bits_is_ignored(length: int):
    """Its network could not be computed."""
    table = LinkTable()
    table.take(RTM_NEWLINK, link())
    table.take(RTM_NEWADDR, address(1, length=length))
    assert table.links[3].addresses == ()


KINDS = [RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR, RTM_DELADDR, RTM_NEWQDISC, RTM_DELQDISC]


@given(st.lists(st.tuples(st.sampled_from([*KINDS, RTM_NEWTCLASS]), st.binary(max_size=90))))
def test_no_bytes_break_it(received):
    table = LinkTable()
    table.take(RTM_NEWLINK, link())
    for kind, body in received:
        table.take(kind, body)


@given(st.sampled_from([link(), address(1)]), st.integers(0, 60), st.binary(max_size=4))
def test_no_damaged_message_breaks_it(body, cut, tail):
    table = LinkTable()
    table.take(RTM_NEWLINK, link())
    for kind in KINDS:
        table.take(kind, body[:cut] + tail)


@given(st.binary(max_size=200))
def test_attributes_and_messages_stay_within_their_bounds(data):
    assert all(len(value) <= len(data) for value in attributes(data).values())
    assert all(len(body) <= len(data) for *_, body in messages(data))


def test_the_platform_knows_better_than_the_kernel_and_the_kernel_what_it_does_not_know():
    known = {}
    table = LinkTable(known.get)
    table.take(RTM_NEWLINK, link())
    table.set_speed(3, 1.25e9)
    assert (table.links[3].speed, table.links[3].up) == (1.25e9, True)
    known["e0"] = PlatformLink(speed=5e10, down=True)
    assert [taken.ifindex for taken in table.rebuild()] == [3]
    assert (table.links[3].speed, table.links[3].up) == (5e10, False)
    assert table.rebuild() == []
    known["e0"] = PlatformLink()
    table.set_speed(3, 2.5e9)
    assert (table.links[3].speed, table.links[3].up) == (2.5e9, True)


def test_a_platform_never_brings_up_what_is_down_in_the_kernel():
    table = LinkTable(lambda _: PlatformLink(down=False))
    table.take(RTM_NEWLINK, link(flags=0x1))
    assert not table.links[3].up
