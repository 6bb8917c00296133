"""The first configuration of a router, from the interfaces of its machine."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.config import load
from fared.config.template import links_guessed, template
from fared.core.links import InterfaceAddress, Link, PresentLink

ROLES = ("leaf", "spine", "superspine")
PROTOCOLS = ("ospf", "isis", "bgp")


def v4(text):
    address, _, length = text.partition("/")
    value = int.from_bytes(bytes(map(int, address.split("."))), "big")
    return InterfaceAddress(4, value, int(length))


def port(name, *addresses, up=True, speed=50e9, loopback=False, mac=0, **facts):
    given = tuple(map(v4, addresses))
    link = Link(7, name, up, 9000, given, loopback, speed, hardware_address=mac)
    return PresentLink(link, **facts)


LO = port("lo", "127.0.0.1/8", "10.255.0.11/32", loopback=True, speed=None)
LEAF = [
    LO,
    port("eth0", "172.20.0.5/24", default_route=True),
    port("swp1", "10.1.0.0/31"),
    port("swp2", speed=None),
    port("swp3", "10.1.0.4/30", up=False),
    port("swp4", up=False),
    port("swp5", "10.0.5.1/24"),
    port("swp6", member=True),
    port("vlan10", "10.0.1.1/24", kind="vlan"),
    port("br0", "10.0.2.1/24", kind="bridge"),
    port("docker0", "172.17.0.1/16", kind="bridge"),
    port("wg0", "10.9.0.1/24", kind="wireguard"),
]


def interfaces(text):
    """The interfaces of the file that form adjacencies, and those that form none."""
    config = load(text)
    (section,) = config.protocols.values()
    entries = dict(section.every_interface())
    links = {name for name, entry in entries.items() if entry.expects_neighbors}
    return links, set(entries) - links


@pytest.mark.parametrize("proto", PROTOCOLS)
def test_links_hosts_and_what_is_neither_are_told_apart(proto):
    text = template("leaf", proto, "leaf1", LEAF)
    links, passive = interfaces(text)
    assert links == {"swp1", "swp2", "swp3"}
    assert passive == {"lo", "swp5", "vlan10", "br0"}
    out = {"eth0", "swp4", "swp6", "docker0", "wg0"}
    kept = re.findall(r"^ *# (\w+): \{.*\} ", text, re.MULTILINE)
    assert {name for name in kept if name != "flooding"} == out
    assert links_guessed("leaf", proto, LEAF) == 3


@pytest.mark.parametrize("proto", PROTOCOLS)
def test_a_spine_has_no_hosts_on_its_cables(proto):
    links, passive = interfaces(template("spine", proto, "spine1", LEAF))
    assert links == {"swp1", "swp2", "swp3", "swp5", "vlan10"}
    assert passive == {"lo", "br0"}


def test_the_router_is_named_by_its_loopback_in_both_protocols():
    assert load(template("leaf", "ospf", "x", LEAF)).router_id == 0x0AFF000B
    assert "net: 49.0001.0102.5500.0011.00" in template("leaf", "isis", "x", LEAF)


def test_leaves_have_an_as_each_and_spines_share_one():
    """RFC 7938 §5.2: a leaf tells its own networks, a spine passes on what it hears."""
    leaf, other = (load(template(role, "bgp", "x", LEAF)).bgp for role in ("leaf", "spine"))
    assert (leaf.as_, other.as_) == (4_200_000_011, 65000)
    assert (leaf.neighbors["swp1"].export, other.neighbors["swp1"].export) == (("own",), ("all",))


def test_without_an_address_the_file_says_what_to_do_and_a_mac_names_the_router():
    bare = [port("lo", loopback=True), port("swp1", mac=0x020000000001)]
    assert "ip address add 10.255.0.1/32 dev lo" in template("leaf", "ospf", "x", bare)
    assert "net: 49.0001.0200.0000.0001.00" in template("leaf", "isis", "x", bare)
    # OSPF borrows the address of the loopback for a link without one, IS-IS needs none
    assert interfaces(template("leaf", "ospf", "x", bare))[0] == set()
    assert interfaces(template("leaf", "isis", "x", bare))[0] == {"swp1"}


def test_links_whose_capacity_the_kernel_does_not_tell_are_listed_for_it():
    text = template("leaf", "ospf", "x", LEAF)
    assert "#   swp2: {bandwidth: 100G}" in text
    assert "swp1: {bandwidth" not in text
    filled = text.replace("# interfaces:", "interfaces:").replace("#   swp2:", "  swp2:")
    assert load(filled).interfaces["swp2"].bandwidth == 12.5e9


@pytest.mark.parametrize("proto", PROTOCOLS)
def test_an_interface_that_was_left_out_takes_part_without_its_mark(proto):
    text = template("leaf", proto, "x", LEAF).replace("# eth0: {", "eth0: {")
    assert "eth0" in interfaces(text)[0]


addresses = st.builds(InterfaceAddress, st.just(4), st.integers(0, 2**32 - 1), st.integers(0, 32))
addresses |= st.builds(
    InterfaceAddress, st.just(6), st.integers(0, 2**128 - 1), st.integers(0, 128)
)
links = st.builds(
    Link,
    st.just(7),
    st.text(max_size=15).map(lambda name: "".join(name.split()).replace("/", "")),
    st.booleans(),
    st.just(1500),
    st.lists(addresses, max_size=3).map(tuple),
    st.just(False),
    st.none() | st.just(1.25e9),
)
kinds = st.sampled_from(("", "veth", "bridge", "dummy", "vlan", "ifb")) | st.text(max_size=4)
ports = st.builds(PresentLink, links, kinds, st.booleans(), st.booleans())


@given(
    st.sampled_from(ROLES),
    st.sampled_from(PROTOCOLS),
    st.text(max_size=20),
    st.lists(ports, max_size=6, unique_by=lambda item: item.link.name),
)
def test_the_file_loads_whatever_the_interfaces_are(role, proto, hostname, present):
    """Names, kinds and host names may hold anything that the kernel permits, and more."""
    load(template(role, proto, hostname, [LO, *present]))


def test_a_name_beyond_the_basic_plane_is_escaped_as_yaml_does():
    """Not as JSON does, in two halves; Python does not call the character printable."""
    port = PresentLink(Link(7, "\U0001b170", True, 1500, (), False, None), "", False, False)
    load(template("leaf", "ospf", "", [LO, port]))
