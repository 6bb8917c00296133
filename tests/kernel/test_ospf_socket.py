"""OSPF datagrams between two namespaces, malformed ones included."""

import select
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import parse_dotted
from fared.core.links import InterfaceAddress
from fared.kernel import on_link, packet_sockets
from fared.kernel.ospf_socket import (
    ALL_DR_ROUTERS,
    ALL_SPF_ROUTERS,
    OspfSockets,
    strip_ipv4_header,
)
from fared.protocols.igp.events import PacketReceived, SendPacket, Unicasts
from fared.protocols.ospf.packet.packets import PacketType
from tests.kernel.netns import inside, run
from tests.waiting import loop_until


@pytest.fixture
async def ends(namespaces):
    """Sockets at both ends of two links, and what each received."""
    left, right = namespaces.add(), namespaces.add()
    links = [namespaces.pair(left, right, f"e{n}", n) for n in range(2)]
    made = []
    for side, name in enumerate((left, right)):
        got = []
        sockets = OspfSockets(lambda packets, _, got=got: got.extend(packets))
        with inside(name):
            for link in links:
                sockets.open(link[side])
        made.append((sockets, got))
    yield made, links, (left, right)
    for sockets, _ in made:
        sockets.close_all()


@pytest.mark.netns
async def test_multicast_arrives_at_the_other_end_of_its_link_only(ends):
    ((a, a_got), (b, b_got)), ((a0, b0), (a1, b1)), _ = ends
    payload = bytes(range(256)) * 5
    await loop_until(lambda: a.send(SendPacket(a1, ALL_SPF_ROUTERS, payload)) or b_got)
    assert b_got[0] == PacketReceived(b1, parse_dotted("10.0.1.1"), ALL_SPF_ROUTERS, payload, 1)
    b.send(SendPacket(b0, ALL_DR_ROUTERS, b"x"))
    await loop_until(lambda: a_got)
    assert a_got == [PacketReceived(a0, parse_dotted("10.0.0.2"), ALL_DR_ROUTERS, b"x", 1)]
    assert {got.ifindex for got in b_got} == {b1}


@pytest.mark.netns
async def test_unicast_arrives_and_many_packets_are_drained(ends):
    ((a, _), (_, b_got)), ((a0, _), _), _ = ends
    for n in range(200):
        a.send(SendPacket(a0, parse_dotted("10.0.0.2"), struct.pack("!I", n)))
    await loop_until(lambda: len(b_got) == 200)
    assert [struct.unpack("!I", got.payload)[0] for got in b_got] == list(range(200))
    assert a.counters["sent"] == 200


@pytest.mark.netns
async def test_a_neighbor_with_a_smaller_mtu_receives_packets_in_fragments_of_it(ends):
    """The kernel fragments at the MTU of our end of the link alone."""
    ((a, _), (_, b_got)), ((a0, b0), _), (left, _) = ends
    run("ip link set e0 mtu 9000", left)
    payload = bytes(range(256)) * 16
    a.send(SendPacket(a0, ALL_SPF_ROUTERS, payload))
    for destination in (ALL_SPF_ROUTERS, parse_dotted("10.0.0.2")):
        a.send(SendPacket(a0, destination, payload, ttl=255, mtu=1500))
    a.send(SendPacket(a0, ALL_SPF_ROUTERS, b"whole", mtu=1500))
    await loop_until(lambda: len(b_got) == 3)
    sender = parse_dotted("10.0.0.1")
    assert b_got == [
        PacketReceived(b0, sender, ALL_SPF_ROUTERS, payload, 255),
        PacketReceived(b0, sender, parse_dotted("10.0.0.2"), payload, 255),
        PacketReceived(b0, sender, ALL_SPF_ROUTERS, b"whole", 1),
    ]


OURS, THEIRS, ELSEWHERE = map(parse_dotted, ("10.0.0.2", "10.0.0.1", "10.0.1.1"))
LINK = (InterfaceAddress(4, OURS, 31, peer=THEIRS),)


@pytest.fixture
def no_samples(monkeypatch):
    """The kernel refuses all that it should, without one in a thousand."""
    never = (*on_link._SAMPLED[:2], (on_link.EQUAL, 0, 1, on_link.SAMPLE))
    monkeypatch.setattr(on_link, "_SAMPLED", never)


async def passed(ends, unicasts, ttls, source=0):
    """The TTLs of unicasts that pass, of those sent to a socket that is to receive ``unicasts``."""
    ((a, _), (b, b_got)), ((a0, b0), _), _ = ends
    b.open(b0, unicasts)
    for ttl in ttls:
        a.send(SendPacket(a0, OURS, b"unicast", source=source, ttl=ttl))
    a.send(SendPacket(a0, ALL_SPF_ROUTERS, b"the last"))
    await loop_until(lambda: any(got.payload == b"the last" for got in b_got))
    found = [got.ttl for got in b_got if got.payload == b"unicast"]
    b_got.clear()
    return found


@pytest.mark.netns
@pytest.mark.usefixtures("no_samples")
async def test_the_kernel_refuses_unicasts_that_a_router_can_have_forwarded(ends):
    """Those with another TTL, to another address, or from a source that is not on the link."""
    here, ttls = Unicasts((OURS,), (255,), LINK), (1, 2, 63, 64, 254, 255)
    assert await passed(ends, here, ttls) == [255]
    assert await passed(ends, Unicasts((OURS,), (1, 255), LINK), ttls) == [1, 255]
    assert await passed(ends, Unicasts((OURS,), (255,)), ttls, source=ELSEWHERE) == [255]
    assert await passed(ends, here, ttls, source=ELSEWHERE) == []
    assert await passed(ends, Unicasts((ELSEWHERE,), (255,), LINK), ttls) == []
    assert await passed(ends, None, ttls) == list(ttls)


@pytest.mark.netns
async def test_one_refused_packet_in_a_thousand_passes_so_that_a_flood_is_told(ends):
    few = await passed(ends, Unicasts((OURS,), (255,), LINK), (64,) * on_link.SAMPLE * 20)
    assert 0 < len(few) < on_link.SAMPLE


@pytest.mark.netns
async def test_a_link_with_more_addresses_than_a_filter_holds_is_filtered_by_ttl(ends):
    many = tuple(range(1000))
    assert 255 in await passed(ends, Unicasts(many, (255,), LINK * 1000), (64, 255))


@pytest.mark.netns
async def test_packets_that_the_kernel_dropped_are_counted(ends):
    ((a, _), (b, b_got)), ((a0, b0), _), _ = ends
    (sock,) = b._sockets[b0]
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)
    for _ in range(1000):
        a.send(SendPacket(a0, ALL_SPF_ROUTERS, bytes(1000)))
    await loop_until(lambda: b.counters["receive-overflow"])
    b.receive_all()
    a.send(SendPacket(a0, ALL_SPF_ROUTERS, b"tells what was dropped before it"))
    await loop_until(lambda: b.counters["receive-overflow"] + len(b_got) == 1001)


@pytest.mark.netns
@pytest.mark.parametrize("destination", [ALL_SPF_ROUTERS, parse_dotted("10.0.0.2")])
async def test_packets_go_no_farther_than_the_link_unless_their_ttl_is_told(ends, destination):
    """RFC 2328 appendix A.1: TTL 1, for unicasts on LANs, too; 255 with TTL security."""
    ((a, _), (_, b_got)), ((a0, _), _), _ = ends
    a.send(SendPacket(a0, destination, b"on the link"))
    a.send(SendPacket(a0, destination, b"secured", ttl=255))
    a.send(
        SendPacket(a0, destination, b"from an address", source=parse_dotted("10.0.1.1"), ttl=255)
    )
    a.send(SendPacket(a0, destination, b"on the link again"))
    await loop_until(lambda: len(b_got) == 4)
    assert [(got.ttl, got.payload) for got in b_got] == [
        (1, b"on the link"),
        (255, b"secured"),
        (255, b"from an address"),
        (1, b"on the link again"),
    ]


@pytest.mark.netns
async def test_nothing_of_another_link_arrives_while_the_socket_opens(namespaces, monkeypatch):
    """A raw socket hears all interfaces until it is bound to its own; none of that is passed on.

    A hello taken for one of this link would make a neighbor that is not there, and turn the real
    one away until the dead interval has passed.
    """
    left, right = namespaces.add(), namespaces.add()
    (a0, b0), (a1, b1) = [namespaces.pair(left, right, f"e{n}", n) for n in range(2)]
    b = OspfSockets(lambda *_: None)
    with inside(right):
        b.open(b0)
        b.open(b1)
    got = []
    a = OspfSockets(lambda packets, _, got=got: got.extend(packets))

    class Unlucky(socket.socket):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            for _ in range(3):
                b.send(SendPacket(b0, ALL_SPF_ROUTERS, b"for the first link"))
            assert select.select([self], [], [], 5.0)[0]

    with inside(left):
        a.open(a0)
        monkeypatch.setattr("fared.kernel.ospf_socket.socket.socket", Unlucky)
        a.open(a1)
    b.send(SendPacket(b1, ALL_SPF_ROUTERS, b"for the second"))
    await loop_until(lambda: len(got) >= 4)
    assert [(one.ifindex, one.payload) for one in got if one.ifindex == a1] == [
        (a1, b"for the second")
    ]
    for sockets in (a, b):
        sockets.close_all()


@pytest.mark.netns
async def test_a_failure_to_send_is_counted_not_raised(ends):
    ((a, _), _), ((a0, _), _), (left, _) = ends
    a.send(SendPacket(999, ALL_SPF_ROUTERS, b""))
    run("ip link set e0 down", left)
    a.send(SendPacket(a0, ALL_SPF_ROUTERS, b"x"))
    assert a.counters["send-error-ENOTCONN"] == 1
    assert sum(n for key, n in a.counters.items() if key.startswith("send-error")) == 2


@pytest.mark.netns
async def test_opening_on_a_vanished_interface_is_counted(namespaces):
    name = namespaces.add()
    sockets = OspfSockets(lambda *_: None)
    with inside(name):
        sockets.open(4242)
    assert sockets.counters["open-error-ENODEV"] == 1


def header(length: int, total: int, protocol: int = 89) -> bytes:
    words = bytes(length - 20)
    return (
        struct.pack("!BBHHHBBHII", 0x40 | length // 4, 0, total, 0, 0, 1, protocol, 0, 1, 2) + words
    )


def test_the_ip_header_is_removed_with_its_options_and_the_padding_behind():
    found = strip_ipv4_header(header(24, 27) + b"abc" + b"padding")
    assert (found.source, found.destination, found.ttl, found.payload) == (1, 2, 1, b"abc")


@pytest.mark.parametrize("data", [b"", header(20, 19), header(20, 90), header(20, 20, 6)])
def test_lengths_that_do_not_add_up_are_refused(data):
    assert strip_ipv4_header(data) is None


@given(st.binary(max_size=80))
def test_no_bytes_break_the_header_check(data):
    strip_ipv4_header(data)


def test_the_types_of_packets_have_the_names_of_the_counters():
    for kind in PacketType:
        assert OspfSockets.kind(bytes((2, kind))) == kind.label
    assert [OspfSockets.kind(data) for data in (b"", b"\2", b"\2\x09")] == ["unknown"] * 3


@pytest.mark.netns
async def test_hellos_have_a_socket_of_their_own_while_the_other_is_crowded(ends, monkeypatch):
    """None is lost with the rest, and they come before what waits; later all is in order again."""
    monkeypatch.setattr(packet_sockets, "_TOGETHER_AFTER", 0.2)
    ((a, _), (b, b_got)), ((a0, b0), _), (_, right) = ends
    open_hellos = b._open_hellos

    def open_there(ifindex: int):
        with inside(right):
            return open_hellos(ifindex)

    monkeypatch.setattr(b, "_open_hellos", open_there)

    def send(kind: int, count: int, size: int = 1000) -> None:
        for n in range(count):
            a.send(SendPacket(a0, ALL_SPF_ROUTERS, struct.pack("!BBH", 2, kind, n) + bytes(size)))

    (sock,) = b._sockets[b0]
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)
    send(4, 500)
    await loop_until(lambda: b.counters["hellos-apart"] == 1)
    send(4, 500)
    overflows = b.counters["receive-overflow"]
    send(1, 20, 40)
    before = len(b_got)
    (apart,) = b._apart[b0]
    assert select.select([apart], [], [], 5.0)[0]
    b._receive(b0, sock, 16)
    kinds = [got.payload[1] for got in b_got[before:]]
    hellos = kinds.index(4)
    assert hellos >= 1
    assert kinds == [1] * hellos + [4] * 16
    await loop_until(lambda: not b._apart)
    assert b.counters["receive-overflow"] > overflows
    assert sum(got.payload[1] == 1 for got in b_got) == 20
    before = len(b_got)
    send(4, 1, 40)
    send(1, 1, 40)
    send(4, 1, 40)
    await loop_until(lambda: len(b_got) == before + 3)
    assert [got.payload[1] for got in b_got[before:]] == [4, 1, 4]
    assert b.counters["hellos-apart"] == 1
