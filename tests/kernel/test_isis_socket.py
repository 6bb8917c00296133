"""IS-IS frames between two namespaces: their receivers, their maximum length, and drops."""

import asyncio
import socket
import struct
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.kernel import packet_sockets
from fared.kernel.isis_socket import (
    ETHERTYPE_LLC,
    LLC,
    IsisSockets,
    frame,
    strip_ethernet_header,
)
from fared.protocols.igp.events import PacketReceived, SendPacket, each
from fared.protocols.isis.ids import ALL_ISS, ALL_L1_ISS, ALL_L2_ISS
from fared.protocols.isis.pdu.model import PduType
from tests.kernel.netns import inside, packet_socket, run
from tests.waiting import loop_until

ISIS = b"\x83"
"""What every PDU begins with."""


class End:
    """One side of the links: its sockets, what they received, and its MAC addresses."""

    def __init__(self, name: str, indexes: list[int]) -> None:
        self.name, self.indexes = name, indexes
        self.got = []
        self.sockets = IsisSockets(lambda packets, _: self.got.extend(each(packets)))
        with inside(name):
            for ifindex in indexes:
                self.sockets.open(ifindex)
        self.macs = [self.mac(f"e{n}") for n in range(len(indexes))]

    def mac(self, interface: str) -> int:
        text = run(f"ip -o link show dev {interface}", self.name)
        return int(text.split("link/ether ")[1][:17].replace(":", ""), 16)

    def send(self, link: int, destination: int, payload: bytes) -> None:
        self.sockets.send(SendPacket(self.indexes[link], destination, payload))


@pytest.fixture
async def ends(namespaces):
    """Two namespaces joined by e0 (MTU 1500) and e1 (MTU 9000)."""
    left, right = namespaces.add(), namespaces.add()
    pairs = [namespaces.pair(left, right, f"e{n}", n, mtu) for n, mtu in enumerate((1500, 9000))]
    made = [End(name, [pair[side] for pair in pairs]) for side, name in enumerate((left, right))]
    yield made
    for end in made:
        end.sockets.close_all()


@pytest.mark.netns
@pytest.mark.parametrize("group", [ALL_L1_ISS, ALL_L2_ISS, ALL_ISS])
async def test_a_pdu_arrives_with_the_sender_and_the_group_it_was_sent_to(ends, group):
    a, b = ends
    a.send(1, group, ISIS + b"hello")
    await loop_until(lambda: b.got)
    assert b.got == [PacketReceived(b.indexes[1], a.macs[1], group, ISIS + b"hello")]
    assert a.got == []


@pytest.mark.netns
async def test_the_largest_pdu_of_an_ethernet_frame_is_1497_bytes(ends):
    a, b = ends
    largest = ISIS + bytes(range(256)) * 5 + bytes(216)
    assert len(largest) == 1497
    a.send(0, ALL_ISS, largest)
    a.send(0, ALL_ISS, largest + b"x")
    await loop_until(lambda: b.got)
    assert b.got[0].payload == largest
    assert a.sockets.counters["send-error-EMSGSIZE"] == 1


@pytest.mark.netns
async def test_jumbo_frames_carry_pdus_of_up_to_the_mtu(ends):
    """Hellos are padded to the MTU, so that a link of which the ends disagree never comes up."""
    a, b = ends
    for size in (1498, 1536, 8997, 8998):
        a.send(1, ALL_L2_ISS, ISIS.ljust(size, b"."))
    await loop_until(lambda: len(b.got) == 3)
    assert [len(received.payload) for received in b.got] == [1498, 1536, 8997]
    assert a.sockets.counters["send-error-EMSGSIZE"] == 1


@pytest.mark.netns
async def test_frames_of_other_protocols_and_for_others_are_not_delivered(ends):
    a, b = ends
    own, there = a.macs[0].to_bytes(6, "big"), b.macs[0]
    foreign = [
        frame(own, 0x0180C2000000, b"")[:14] + b"\x42\x42\x03" + bytes(35),  # spanning tree
        frame(own, ALL_ISS, b"\x82" + bytes(30)),  # ES-IS
        frame(own, ALL_ISS, b"\x81" + bytes(30)),  # CLNP
        frame(own, there ^ 2, ISIS + b"of somebody else"),
        frame(own, ALL_ISS, ISIS + bytes(9))[:14] + b"\xfe\xfe\xbf\x83" + bytes(9),  # XID
    ]
    with packet_socket(a.name, "e0") as raw:
        for data in foreign:
            raw.send(data)
        raw.send(frame(own, there, ISIS + b"wanted"))
    await loop_until(lambda: b.got)
    assert b.got == [PacketReceived(b.indexes[0], a.macs[0], there, ISIS + b"wanted")]
    assert b.sockets.counters == {"received": 1}


@pytest.mark.netns
async def test_the_padding_of_a_short_frame_is_no_part_of_the_pdu(ends):
    """Network cards make every frame at least 60 bytes long; veth does not."""
    a, b = ends
    with packet_socket(a.name, "e0") as raw:
        raw.send(frame(a.macs[0].to_bytes(6, "big"), ALL_ISS, ISIS + b"csnp").ljust(60, b"\0"))
        raw.send(frame(a.macs[0].to_bytes(6, "big"), ALL_ISS, ISIS + bytes(40))[:30])
        raw.send(frame(a.macs[0].to_bytes(6, "big"), ALL_ISS, ISIS + b"end"))
    await loop_until(lambda: len(b.got) == 2)
    assert [received.payload for received in b.got] == [ISIS + b"csnp", ISIS + b"end"]
    assert b.sockets.counters["malformed"] == 1


@pytest.mark.netns
async def test_many_pdus_are_drained_in_order(ends):
    a, b = ends
    for n in range(300):
        a.send(0, ALL_ISS, ISIS + struct.pack("!I", n))
    await loop_until(lambda: len(b.got) == 300)
    assert [struct.unpack("!I", received.payload[1:])[0] for received in b.got] == list(range(300))
    assert a.sockets.counters["sent"] == 300


@pytest.mark.netns
async def test_a_new_hardware_address_is_used_at_once(ends):
    a, b = ends
    run("ip link set e0 address 02:00:00:00:00:07", a.name)
    a.send(0, ALL_ISS, ISIS)
    await loop_until(lambda: b.got)
    assert b.got[0].source == 0x020000000007


@pytest.mark.netns
async def test_failures_are_counted_not_raised(ends):
    a, b = ends
    a.sockets.send(SendPacket(999, ALL_ISS, ISIS))
    run("ip link set e0 down", a.name)
    a.send(0, ALL_ISS, ISIS)
    assert a.sockets.counters["send-error-ENOTCONN"] == 1
    assert a.sockets.counters["send-error-ENETDOWN"] == 1
    run("ip link set e0 up", a.name)
    await loop_until(lambda: a.send(0, ALL_ISS, ISIS) or b.got)


@pytest.mark.netns
async def test_a_callback_may_close_the_socket_it_was_called_from(ends):
    """Nothing is read from it after what was read together."""
    a, b = ends

    def close(packets: list[PacketReceived], hellos: bool) -> None:
        b.got.extend(each(packets))
        b.sockets.close(packets[0].ifindex)

    b.sockets._callback = close
    for _ in range(100):
        a.send(0, ALL_ISS, ISIS)
    a.send(1, ALL_ISS, ISIS)
    await loop_until(lambda: len({packet.ifindex for packet in b.got}) == 2)
    assert Counter(packet.ifindex for packet in b.got) == {b.indexes[0]: 32, b.indexes[1]: 1}
    assert b.sockets.counters == {"received": 33}


@pytest.mark.netns
async def test_interfaces_that_are_gone_or_not_ethernet_are_counted(namespaces):
    sockets = IsisSockets(lambda *_: None)
    with inside(namespaces.add()):
        sockets.open(4242)
        sockets.open(1)
    assert sockets.counters == {"open-error-ENODEV": 1, "open-error-EPROTONOSUPPORT": 1}


def header(length: int) -> bytes:
    return bytes(6) + bytes(6) + struct.pack("!H", length)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        header(3) + LLC[:2],
        header(2) + LLC,
        header(5) + LLC + b"a",
        header(4) + b"\xfe\xfe\x04a",
        header(0x0800) + LLC + b"abc",
    ],
)
def test_lengths_and_types_that_do_not_add_up_are_refused(data):
    assert strip_ethernet_header(data) is None


@given(st.integers(0, (1 << 48) - 1), st.integers(0, 9000))
def test_what_is_framed_is_found_again(destination, size):
    payload = ISIS.ljust(size, b".")
    data = frame(bytes(range(6)), destination, payload)
    assert strip_ethernet_header(data) == (0x000102030405, destination, payload)
    kind = struct.unpack_from("!H", data, 12)[0]
    assert kind == (len(payload) + 3 if len(payload) <= 1497 else ETHERTYPE_LLC)


@given(st.binary(max_size=80))
def test_no_bytes_break_the_header_check(data):
    strip_ethernet_header(data)


def test_the_types_of_pdus_have_the_names_of_the_counters():
    for kind in PduType:
        assert IsisSockets.kind(bytes((0x83, 27, 1, 0, kind))) == kind.label
    assert [IsisSockets.kind(data) for data in (b"", b"\x83\x1b\1\0\x1f")] == ["unknown"] * 2


@pytest.mark.netns
async def test_hellos_have_sockets_of_their_own_while_another_is_crowded(ends, monkeypatch):
    """On either kind of frame; later all PDUs are in order again."""
    monkeypatch.setattr(packet_sockets, "_TOGETHER_AFTER", 0.2)
    a, b = ends
    open_hellos = b.sockets._open_hellos

    def open_there(ifindex: int):
        with inside(b.name):
            return open_hellos(ifindex)

    monkeypatch.setattr(b.sockets, "_open_hellos", open_there)

    def send(kind: int, count: int, size: int = 1000) -> None:
        for _ in range(count):
            a.send(1, ALL_ISS, ISIS + bytes((27, 1, 0, kind)) + bytes(size))

    plain, _ = b.sockets._sockets[b.indexes[1]]
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)
    send(PduType.L2_LSP, 500)
    await loop_until(lambda: b.sockets.counters["hellos-apart"] == 1)
    send(PduType.L2_LSP, 500)
    hellos = (PduType.L1_LAN_HELLO, PduType.L2_LAN_HELLO, PduType.P2P_HELLO)
    for kind in hellos:
        send(kind, 2)
        send(kind, 1, 8000)
    await loop_until(lambda: not b.sockets._apart)
    kinds = Counter(packet.payload[4] for packet in b.got)
    assert kinds[PduType.L2_LSP] < 1000
    assert [kinds[kind] for kind in hellos] == [3, 3, 3]
    before = len(b.got)
    for kind in (PduType.L2_LSP, PduType.P2P_HELLO, PduType.L2_LSP):
        send(kind, 1)
    await loop_until(lambda: len(b.got) == before + 3)
    assert b.sockets.counters["hellos-apart"] == 1


def spacious(b: End) -> None:
    """Open sockets for hellos in the namespace of this end."""
    open_hellos = b.sockets._open_hellos

    def open_there(ifindex: int):
        with inside(b.name):
            return open_hellos(ifindex)

    b.sockets._open_hellos = open_there


def frames(a: End, kind: int, count: int) -> None:
    for _ in range(count):
        a.send(1, ALL_ISS, ISIS + bytes((27, 1, 0, kind)) + bytes(1000))


@pytest.mark.netns
async def test_sockets_for_hellos_are_opened_once_and_receive_nothing_between(ends, monkeypatch):
    """To close one takes ten milliseconds, and all interfaces are crowded at the same time."""
    monkeypatch.setattr(packet_sockets, "_TOGETHER_AFTER", 0.1)
    a, b = ends
    spacious(b)
    opened = []
    for turn in range(1, 4):
        b.sockets._separate(b.indexes[1])
        opened.append(b.sockets._apart[b.indexes[1]])
        frames(a, PduType.P2P_HELLO, 1)
        await loop_until(lambda turn=turn: len(b.got) == 2 * turn - 1)
        await loop_until(lambda: not b.sockets._apart)
        frames(a, PduType.P2P_HELLO, 1)
        await loop_until(lambda turn=turn: len(b.got) == 2 * turn)
    assert opened[0] == opened[1] == opened[2]
    b.sockets.close(b.indexes[1])
    assert all(sock.fileno() < 0 for sock in opened[0])


async def unread(a: End, b: End, *kinds: int) -> None:
    """Send a frame of each kind; wait until the sockets of ``b`` hold them, which nobody reads."""
    ifindex = b.indexes[1]
    sockets = (*b.sockets._sockets[ifindex], *b.sockets._apart.get(ifindex, ()))
    for sock in sockets:
        asyncio.get_running_loop().remove_reader(sock)

    def held() -> int:
        return sum(packet_sockets._memory(sock)[0] for sock in sockets)

    for kind in kinds:
        before = held()
        frames(a, kind, 1)
        await loop_until(lambda before=before: held() > before)


@pytest.mark.netns
async def test_after_a_delay_the_hellos_of_a_crowded_interface_are_read_and_not_all_packets(ends):
    """All packets once, to find the hellos among them: later hellos are in other sockets."""
    a, b = ends
    spacious(b)
    sockets = b.sockets
    sockets._sockets[b.indexes[1]][0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)
    kinds = [PduType.L2_LSP] * 20 + [PduType.P2P_HELLO]
    await unread(a, b, *kinds)
    sockets.receive_all()
    assert [packet.payload[4] for packet in b.got] == kinds
    b.got.clear()
    await unread(a, b, *kinds)
    sockets.receive_all()
    assert [packet.payload[4] for packet in b.got] == [PduType.P2P_HELLO]


@pytest.mark.netns
async def test_hellos_apart_are_read_before_other_packets_if_there_are_any(ends, monkeypatch):
    a, b = ends
    spacious(b)
    sockets, ifindex, reads = b.sockets, b.indexes[1], []
    sockets._separate(ifindex)
    plain, read = sockets._sockets[ifindex][0], sockets._read
    await unread(a, b, PduType.L2_LSP)
    monkeypatch.setattr(
        sockets, "_read", lambda at, sock, most: reads.append(sock) or read(at, sock, most)
    )
    sockets._receive(ifindex, plain, 16)
    assert reads == [plain]
    await unread(a, b, PduType.L2_LSP, PduType.P2P_HELLO)
    sockets._receive(ifindex, plain, 16)
    assert reads == [plain, sockets._apart[ifindex][0], plain]
    kinds = [packet.payload[4] for packet in b.got]
    assert kinds == [PduType.L2_LSP, PduType.P2P_HELLO, PduType.L2_LSP]


@pytest.mark.netns
async def test_hellos_alone_are_read_where_other_packets_have_to_wait(ends, monkeypatch):
    a, b = ends
    spacious(b)
    sockets, ifindex = b.sockets, b.indexes[1]
    sockets._sockets[ifindex][0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)
    sockets.receive_hellos()
    assert ifindex not in sockets._apart
    await unread(a, b, PduType.L2_LSP, PduType.L2_LSP)
    sockets.receive_hellos()
    reads, read = [], sockets._read
    monkeypatch.setattr(
        sockets, "_read", lambda at, sock, most: reads.append(sock) or read(at, sock, most)
    )
    sockets.receive_hellos()
    assert reads == []
    await unread(a, b, PduType.P2P_HELLO)
    sockets.receive_hellos()
    assert reads == [sockets._apart[ifindex][0]]
    assert [packet.payload[4] for packet in b.got] == [PduType.P2P_HELLO]
