"""Identifiers: integers inside, dotted text at the edge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import (
    NETWORK_NODE,
    Prefix,
    dotted,
    format_address,
    format_node,
    ipv4_prefix,
    length_mask,
    mask_length,
    parse_area,
    parse_dotted,
    parse_prefix,
)


def test_router_ids_are_written_as_operators_do():
    assert dotted(0x0AFF0001) == "10.255.0.1"
    assert parse_dotted("10.255.0.1") == 0x0AFF0001


@given(st.integers(0, 0xFFFFFFFF))
def test_dotted_and_back(value):
    assert parse_dotted(dotted(value)) == value


@pytest.mark.parametrize("text", ["", "1.2.3", "1.2.3.256", "a.b.c.d", "1.2.3.4.5", "::1"])
def test_not_a_dotted_quad(text):
    with pytest.raises(ValueError):
        parse_dotted(text)


@pytest.mark.parametrize(
    ("text", "area"),
    [("0.0.0.0", 0), ("0.0.1.0", 256), ("51", 51), (7, 7), ("4294967295", 2**32 - 1)],
)
def test_areas_dotted_or_plain(text, area):
    assert parse_area(text) == area


@pytest.mark.parametrize("text", [-1, 2**32, "4294967296", "backbone", ""])
def test_not_an_area(text):
    with pytest.raises(ValueError):
        parse_area(text)


def test_transit_networks_are_told_from_routers():
    assert format_node(0x0A000001) == "10.0.0.1"
    assert format_node(NETWORK_NODE | 0x0A000001) == "net:10.0.0.1"


@pytest.mark.parametrize("length", range(33))
def test_masks_and_lengths(length):
    assert mask_length(length_mask(length)) == length


@pytest.mark.parametrize("mask", [0xFF00FF00, 1, 0x7FFFFFFF])
def test_a_mask_with_holes_has_no_length(mask):
    assert mask_length(mask) is None


def test_prefixes_lose_their_host_bits():
    prefix = ipv4_prefix(parse_dotted("10.0.2.77"), 24)
    assert str(prefix) == "10.0.2.0/24"
    assert prefix == parse_prefix("10.0.2.77/24")
    assert prefix.contains(parse_dotted("10.0.2.255"))
    assert not prefix.contains(parse_dotted("10.0.3.0"))
    assert dotted(prefix.mask) == "255.255.255.0"


def test_default_and_host_routes():
    assert str(ipv4_prefix(0x0A000001, 0)) == "0.0.0.0/0"
    assert str(parse_prefix("10.0.0.1")) == "10.0.0.1/32"


def test_ipv6_prefixes():
    prefix = parse_prefix("2001:db8:1::7/48")
    assert (prefix.family, prefix.length) == (6, 48)
    assert str(prefix) == "2001:db8:1::/48"
    assert format_address(6, prefix.network) == "2001:db8:1::"
    assert prefix.contains(prefix.network + 1)
    assert min(prefix, Prefix(4, 0, 0)).family == 4
