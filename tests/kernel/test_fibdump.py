"""Routes as the kernel dumps them: the quick way to read ours gives what their attributes say."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fared.core.ids import ADDRESS_BITS, FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.kernel.fibdump import FibReading, RoutePlace
from fared.kernel.netlink import attribute, u32_attribute
from fared.kernel.rtnetlink import (
    AF,
    BYTES,
    NHMSG,
    RTA_DST,
    RTA_NH_ID,
    RTA_PRIORITY,
    RTA_TABLE,
    RTM_NEWNEXTHOP,
    RTM_NEWROUTE,
    RTMSG,
    route_body,
)
from fared.paths.fib.settings import FibSettings

SETTINGS = FibSettings()
PLACE = RoutePlace(254, 201, {FAMILY_IPV4: 20, FAMILY_IPV6: 30})
RTA_CACHEINFO, RTA_PREF = 12, 20


def prefixes(family: int) -> st.SearchStrategy[Prefix]:
    bits = ADDRESS_BITS[family]
    whole = st.tuples(st.integers(0, (1 << bits) - 1), st.integers(0, bits))
    return whole.map(lambda one: Prefix(family, one[0] >> bits - one[1] << bits - one[1], one[1]))


PREFIXES = prefixes(FAMILY_IPV4) | prefixes(FAMILY_IPV6)
USUAL = {"tos": 0, "protocol": PLACE.protocol, "table": PLACE.table, "metric": 20}
FIELDS = st.fixed_dictionaries(
    {
        "tos": st.sampled_from([0, 0, 0, 16]),
        "protocol": st.sampled_from([PLACE.protocol, PLACE.protocol, 4]),
        "table": st.sampled_from([254, 254, 255, 1000, SETTINGS.id_base]),
        "metric": st.sampled_from([20, 30, 30, 40]),
    }
)


def dumped(prefix: Prefix, *, tos: int, protocol: int, table: int, metric: int) -> bytes:
    """A route as the kernel dumps it."""
    family = prefix.family
    small = table if table < 256 else 252  # RT_TABLE_COMPAT
    head = RTMSG.pack(AF[family], prefix.length, 0, tos, small, protocol, 0, 1, 0)
    network = prefix.network.to_bytes(BYTES[family], "big")
    parts = [
        u32_attribute(RTA_TABLE, table),
        attribute(RTA_DST, network) if prefix.length else b"",
        u32_attribute(RTA_PRIORITY, metric),
        u32_attribute(RTA_NH_ID, SETTINGS.id_base + 3),
    ]
    if family == FAMILY_IPV6:
        parts += [attribute(RTA_CACHEINFO, bytes(32)), attribute(RTA_PREF, b"\0")]
    return head + b"".join(parts)


def told(bodies: list[bytes]) -> list[object]:
    reading = FibReading(PLACE, SETTINGS, blocked=[Prefix(FAMILY_IPV4, 0, 0)])
    for body in bodies:
        reading.take(RTM_NEWROUTE, body)
    return [reading.state.routes, reading.leftovers, reading.holders, reading.marks]


def as_by_attributes(bodies: list[bytes]) -> list[object]:
    with patch.object(FibReading, "_take_plain_route", lambda *_: False):
        return told(bodies)


DAMAGE = st.none() | st.tuples(st.integers(1, RTMSG.size - 1), st.integers(1, 255))


@given(st.lists(st.tuples(PREFIXES, FIELDS, DAMAGE), max_size=6))
@example([(Prefix(FAMILY_IPV4, 10 << 24, 8), USUAL | {"tos": 16}, None)])
def test_any_route_is_read_as_by_its_attributes(routes):
    """Whatever its header says; a route with a TOS is no route of ours."""
    bodies = []
    for prefix, fields, damage in routes:
        body = bytearray(dumped(prefix, **fields))
        if damage is not None:
            body[damage[0]] = damage[1]
        bodies.append(bytes(body))
    assert told(bodies) == as_by_attributes(bodies)


ELSEWHERE = RTMSG.pack(AF[FAMILY_IPV4], 24, 0, 0, 100, PLACE.protocol, 0, 1, 0)
"""A route of a former run in another table, which is deleted."""


@pytest.mark.parametrize("network", [b"", bytes([10]), bytes([10, 0, 1, 0, 0]), bytes(16)])
def test_a_route_whose_destination_has_another_size_is_ignored(network: bytes):
    """A deletion of it could not be packed."""
    routes, leftovers, *_ = told([ELSEWHERE + attribute(RTA_DST, network)])
    assert (routes, leftovers) == ({}, [])
    assert len(told([ELSEWHERE + attribute(RTA_DST, bytes([10, 0, 1, 0]))])[1]) == 1


ATTRIBUTES = st.lists(st.tuples(st.integers(0, 31), st.binary(max_size=20)), max_size=6)
HEADS = st.tuples(*[st.integers(0, 255)] * 8) | st.just((2, 24, 0, 0, 100, PLACE.protocol, 0, 1))


@given(HEADS, ATTRIBUTES, st.binary(max_size=6), st.integers(0, 90))
def test_no_entry_breaks_a_reading(head, found, tail, cut):
    """Whatever it says; what is read of it can be written."""
    reading = FibReading(PLACE, SETTINGS, blocked=[Prefix(FAMILY_IPV4, 0, 0)])
    rest = b"".join(attribute(kind, value) for kind, value in found) + tail
    reading.take(RTM_NEWROUTE, (RTMSG.pack(*head, 0) + rest)[:cut])
    reading.take(RTM_NEWNEXTHOP, (NHMSG.pack(*head[:4], 0) + rest)[:cut])
    for prefix, object_id in reading.state.routes.items():
        route_body(prefix, PLACE.table, PLACE.protocol, 20, object_id)
    for _, family, gateway, _ in reading.state.nexthops.values():
        gateway.to_bytes(BYTES[family], "big")
