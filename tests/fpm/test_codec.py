"""Routes in FPM: byte for byte as measured with ``fpmsyncd``, and as its double reads them."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import ADDRESS_BITS, FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.core.wire import DecodeError
from fared.fpm.decode import Ack, ack_in
from fared.fpm.encode import FpmEncoder, InlineHop, RouteForm, inline_hops, scaled
from fared.fpm.frames import FrameReader, frames
from fared.paths.fib.model import FibState, Member
from tests.fpm.fpmsyncd import Fpmsyncd

PROTOCOL, METRIC = 188, 20
ENCODER = FpmEncoder(PROTOCOL, {FAMILY_IPV4: METRIC, FAMILY_IPV6: METRIC})
NAMES = {10: "Ethernet0", 11: "Ethernet4", 30: "PortChannel1", 2: "eth0"}
DISCARD = (InlineHop((0, FAMILY_IPV4, 0, False), 1),)


def _prefix(text: str) -> Prefix:
    network = ipaddress.ip_network(text)
    return Prefix(network.version, int(network.network_address), network.prefixlen)


def _hop(ifindex: int, gateway: str, weight: int = 1) -> InlineHop:
    address = ipaddress.ip_address(gateway)
    return InlineHop((ifindex, address.version, int(address), False), weight)


P1 = _prefix("10.1.0.0/16")
TWO = (_hop(10, "10.0.0.1", 1), _hop(11, "10.0.0.3", 2))
SIX = (_hop(10, "fe80::1", 3), _hop(30, "fe80::2", 7))
E1 = """01010054 50000000180001050000000000000000 0210000000bc000100000000 080001000a010000
    0800060014000000 24000980 100000010a000000080005000a000001 100000020b000000080005000a000003"""
E2 = """01010040 3c0000001800010500000000000000000210000000bc000100000000 080001000a030000
    0800060014000000 080005000a000001 080004000a000000"""
E3 = """01010078 740000001800010500000000000000000a30000000bc000100000000
    1400010020010db8000100000000000000000000 0800060014000000 3c000980
    1c0000030a00000014000500fe800000000000000000000000000001
    1c0000071e00000014000500fe800000000000000000000000000002"""
E4 = """01010030 2c0000001900010400000000000000000210000000bc000000000000 080001000a010000
    0800060014000000"""
ECHO = """0101005c 580000001800010400000000000000000210000000bc000100400000 08000f0000000000
    080001000a010000 0800060014000000
    24000980 100000010a000000080005000a000001 100000020b000000080005000a000003"""
SUCCESS = """01010030 2c0000001800010400000000000000000210000000bcfd0100400000
    08000f0000000000 080001000a460000"""


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (ENCODER.put(P1, TWO), E1),
        (ENCODER.put(_prefix("10.3.0.0/16"), (_hop(10, "10.0.0.1"),)), E2),
        (ENCODER.put(_prefix("2001:db8:1::/48"), SIX), E3),
        (ENCODER.delete(P1), E4),
    ],
)
def test_bytes_are_those_that_fpmsyncd_took(message: bytes, expected: str) -> None:
    assert b"".join(frames([message])) == bytes.fromhex(expected)


def _acks(data: bytes) -> list[Ack | None]:
    return [ack_in(message) for message in FrameReader().feed(data)]


@pytest.mark.parametrize(("data", "prefix"), [(ECHO, "10.1.0.0/16"), (SUCCESS, "10.70.0.0/16")])
def test_recorded_acknowledgements_name_their_route(data: str, prefix: str) -> None:
    assert _acks(bytes.fromhex(data)) == [Ack(_prefix(prefix), 0, PROTOCOL)]


def test_double_acknowledges_with_the_recorded_bytes() -> None:
    peer = Fpmsyncd(NAMES, {PROTOCOL: "ospf"})
    client = peer.connect()
    for byte in bytes.fromhex(E1):
        peer.send(client, bytes([byte]))
    assert client.read() == bytes.fromhex(ECHO)
    row = {"nexthop": "10.0.0.1,10.0.0.3", "ifname": "Ethernet0,Ethernet4", "weight": "1,2"}
    assert peer.rows == {"10.1.0.0/16": {**row, "protocol": "ospf"}}


def test_a_request_is_no_acknowledgement() -> None:
    assert _acks(bytes.fromhex(E1) + bytes.fromhex(E4)) == [None, None]


def test_a_route_of_another_form_leaves_no_field_behind() -> None:
    peer = Fpmsyncd(NAMES)
    client = peer.connect()
    changes = [(None, DISCARD), (RouteForm.BLACKHOLE, TWO), (RouteForm.UNICAST, DISCARD)]
    for before, hops in changes:
        peer.send(client, b"".join(frames(ENCODER.change(P1, before, hops))))
        fields = {"blackhole"} if hops is DISCARD else {"nexthop", "ifname", "weight"}
        assert set(peer.rows["10.1.0.0/16"]) == fields | {"protocol"}
    peer.send(client, b"".join(frames([ENCODER.put(P1, TWO)])))
    assert "blackhole" in peer.rows["10.1.0.0/16"], "the double shows what the deletion is for"
    peer.send(client, b"".join(frames(ENCODER.change(P1, RouteForm.UNICAST, None))))
    assert peer.rows == {}


def test_ipv4_by_an_ipv6_next_hop_and_without_gateway() -> None:
    peer = Fpmsyncd(NAMES)
    hops = (_hop(10, "fe80::1", 4), _hop(11, "0.0.0.0", 5))
    peer.send(peer.connect(), b"".join(frames([ENCODER.put(_prefix("10.9.0.1/32"), hops)])))
    assert peer.rows["10.9.0.1"]["nexthop"] == "fe80::1,0.0.0.0"
    assert peer.rows["10.9.0.1"]["weight"] == "4,5"


def test_weights_of_groups_are_scaled_to_one_byte() -> None:
    assert scaled([1, 255]) == [1, 255]
    assert scaled([1, 30000, 60000]) == [1, 128, 255]
    hops = {1: TWO[0].hop, 2: TWO[1].hop}
    state = FibState(nexthops=hops, groups={9: (Member(1, 510), Member(2, 1020))})
    assert inline_hops(state, 9) == (InlineHop(hops[1], 128), InlineHop(hops[2], 255))
    assert inline_hops(state, 2) == (InlineHop(hops[2], 1),)


@pytest.mark.parametrize("weights", [(), (0, 1), (256, 1)])
def test_other_weights_are_refused(weights: tuple[int, ...]) -> None:
    hops = [InlineHop(TWO[0].hop, weight) for weight in weights]
    with pytest.raises(ValueError, match="weights of"):
        ENCODER.put(P1, hops)


def test_a_frame_is_filled_and_never_overfull() -> None:
    message = ENCODER.put(P1, TWO)
    packed = list(frames([message] * 1000))
    assert [len(frame) for frame in packed[:-1]] == [4 + 204 * 80] * 4
    assert len([m for f in packed for m in FrameReader().feed(f)]) == 1000
    with pytest.raises(ValueError, match="fits into no frame"):
        list(frames([bytes(16384)]))


BROKEN = ["02010004", "01000004", "01010003", "01014004", "0101000800000000", E1[:8] + "ff" * 80]


@pytest.mark.parametrize("data", BROKEN)
def test_broken_frames_are_refused(data: str) -> None:
    with pytest.raises(DecodeError):
        FrameReader().feed(bytes.fromhex(data))


def test_a_broken_frame_deafens_the_double() -> None:
    peer = Fpmsyncd(NAMES)
    client = peer.connect()
    peer.send(client, bytes.fromhex("01010003") + bytes.fromhex(E1))
    assert (peer.rows, client.read()) == ({}, b"")
    peer.close(client)
    peer.send(peer.connect(), bytes.fromhex(E1))
    assert list(peer.rows) == ["10.1.0.0/16"]


def test_the_double_stops_reading_while_acknowledgements_are_unread() -> None:
    peer = Fpmsyncd(NAMES, buffer=200)
    client = peer.connect()
    prefixes = [Prefix(FAMILY_IPV4, 0x0A000000 + (i << 8), 24) for i in range(10)]
    for prefix in prefixes:
        peer.send(client, b"".join(frames([ENCODER.put(prefix, TWO)])))
    assert len(peer.rows) == 3
    acks: list[Ack | None] = []
    while data := client.read():
        acks += _acks(data)
        peer.run()
    assert [ack.prefix for ack in acks if ack] == prefixes


E5_HOP = """01010034 300000006800010500000000000000000200bc0000000000 0800010001000000
    080006000a000001 080005000a000000"""
E5_GROUP = """01010038 340000006800010500000000000000000000bc0000000000 0800010064000000
    1400020001000000 00000000 02000000 02000000"""
E5_ROUTE = """01010038 340000001800010500000000000000000210000000bc000100000000
    080001000a1e0000 0800060014000000 08001e0064000000"""


def test_groups_of_the_double_and_why_routes_go_inline() -> None:
    peer = Fpmsyncd(NAMES)
    client = peer.connect()
    first = bytes.fromhex(E5_HOP)
    second = bytearray(first)
    second[32], second[43], second[48] = 2, 3, 11
    peer.send(client, bytes.fromhex(E5_ROUTE))
    assert peer.rows == {}, "a route before its group is dropped"
    assert _acks(client.read()) == [Ack(_prefix("10.30.0.0/16"), 0, PROTOCOL)], "but acknowledged"
    peer.send(client, first + bytes(second) + bytes.fromhex(E5_GROUP) + bytes.fromhex(E5_ROUTE))
    assert peer.groups[100]["weight"] == "1,3"
    assert peer.groups[100]["nexthop"] == "10.0.0.1,10.0.0.3"
    assert peer.rows["10.30.0.0/16"] == {"nexthop_group": "100", "protocol": "0xbc"}
    peer.send(client, b"".join(frames([ENCODER.put(_prefix("10.30.0.0/16"), TWO)])))
    assert {"nexthop", "nexthop_group"} < set(peer.rows["10.30.0.0/16"]), "both forms"


def test_tables_and_interfaces_that_lose_a_route() -> None:
    peer = Fpmsyncd(NAMES)
    client = peer.connect()
    main = bytearray.fromhex(E1)
    main[24] = 254
    peer.send(client, bytes(main))
    assert (peer.rows, client.read()) == ({}, b"")
    for ifindex, rows in ((10, 1), (2, 0)):
        peer.send(client, b"".join(frames([ENCODER.put(P1, (_hop(ifindex, "10.0.0.1"),))])))
        assert (len(peer.rows), len(_acks(client.read()))) == (rows, 1)
    peer.send(client, b"".join(frames([ENCODER.put(P1, (_hop(99, "10.0.0.1"),))])))
    assert peer.rows["10.1.0.0/16"]["ifname"] == "unknown"


def test_a_second_client_is_never_read_and_reset_with_the_first() -> None:
    peer = Fpmsyncd(NAMES)
    first, second = peer.connect(), peer.connect()
    peer.send(second, bytes.fromhex(E1))
    assert peer.rows == {}
    peer.close(first)
    assert peer.connections == []


def test_suppression_acknowledges_after_success_only() -> None:
    peer = Fpmsyncd(NAMES, suppress=True)
    client = peer.connect()
    peer.send(client, bytes.fromhex(E1))
    assert client.read() == b""
    peer.succeed(PROTOCOL, "10.70.0.0/16")
    assert client.read() == bytes.fromhex(SUCCESS)


@st.composite
def _routes(draw: st.DrawFn) -> tuple[Prefix, tuple[InlineHop, ...]]:
    family = draw(st.sampled_from([FAMILY_IPV4, FAMILY_IPV6]))
    length = draw(st.integers(0, ADDRESS_BITS[family]))
    network = draw(st.integers(0, (1 << length) - 1)) << (ADDRESS_BITS[family] - length)
    gateway = st.integers(0, (1 << ADDRESS_BITS[family]) - 1)
    hop = st.tuples(st.sampled_from([10, 11, 30]), st.just(family), gateway, st.just(False))
    hops = draw(st.lists(st.builds(InlineHop, hop, st.integers(1, 255)), min_size=1, max_size=9))
    if len(hops) == 1:
        hops = [InlineHop(hops[0].hop, 1)]
    return Prefix(family, network, length), tuple(hops)


@given(_routes(), st.integers(1, 40))
def test_any_route_arrives_and_is_acknowledged(
    route: tuple[Prefix, tuple[InlineHop, ...]], piece: int
) -> None:
    prefix, hops = route
    peer, reader = Fpmsyncd(NAMES), FrameReader()
    client = peer.connect()
    peer.send(client, b"".join(frames([ENCODER.put(prefix, hops)])))
    (row,) = peer.rows.values()
    assert row["weight"] == ",".join([str(weight) for _, weight in hops])
    assert row["ifname"] == ",".join([NAMES[hop[0]] for hop, _ in hops])
    acks: list[Ack | None] = []
    while data := client.read(piece):
        acks += [ack_in(message) for message in reader.feed(data)]
    assert acks == [Ack(prefix, 0, PROTOCOL)]
