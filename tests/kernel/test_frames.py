"""Many frames read by one system call, of a real kernel: their bytes, order, limits and errors."""

import errno
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.kernel.frames import Frames
from fared.kernel.isis_socket import IsisSockets, frame, strip_ethernet_header
from fared.protocols.igp.events import PacketReceived, each
from fared.protocols.isis.ids import ALL_ISS
from fared.protocols.isis.pdu.model import PduType
from tests.kernel.netns import inside, packet_socket, run
from tests.waiting import loop_until

PDU = b"\x83\x1b\x01\x00"
INDEX = st.integers(0, 3)


def pdu(kind: PduType, size: int, number: int = 0) -> bytes:
    return (PDU + bytes((kind,)) + number.to_bytes(4, "big")).ljust(size, b".")


@pytest.fixture
def pair():
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    near.setblocking(False)
    with near, far:
        yield near, far


def contents(frames: Frames, lengths: list[int]) -> list[bytes]:
    return [frames.whole(slot, length) for slot, length in enumerate(lengths)]


def test_one_call_reads_what_has_arrived_in_order_as_many_as_there_are_slots(pair):
    near, far = pair
    sent = [bytes((number,)) * number for number in range(1, 8)]
    for data in sent:
        far.send(data)
    frames = Frames(4, 100, 2)
    assert contents(frames, frames.read(near, 99)) == sent[:4]
    assert contents(frames, frames.read(near, 2)) == sent[4:6]
    assert contents(frames, frames.read(near, 99)) == sent[6:]
    with pytest.raises(BlockingIOError):
        frames.read(near, 99)


def test_what_does_not_fit_into_a_slot_is_cut_off_and_spares_the_next(pair):
    near, far = pair
    for data in (b"a" * 150, b"b" * 100, b"c"):
        far.send(data)
    frames = Frames(4, 98, 2)
    assert contents(frames, frames.read(near, 4)) == [b"a" * 100, b"b" * 100, b"c"]


def test_behind_a_frame_there_are_zeros_whatever_was_there_before(pair):
    near, far = pair
    frames = Frames(4, 10, 2)
    for length in (12, 7, 1, 9, 2, 12, 3):
        far.send(b"x" * length)
        assert frames.read(near, 4) == [length]
        assert frames.memory == (b"x" * max(0, length - 2)).ljust(40, b"\0")


def test_an_error_of_the_socket_is_raised_with_its_number(pair):
    near, _ = pair
    near.close()
    with pytest.raises(OSError, match="descriptor") as raised:
        Frames(4, 98, 2).read(near, 4)
    assert raised.value.errno == errno.EBADF


class Receiver:
    """The sockets of one end of a veth, and a packet socket at the other."""

    def __init__(self, raw: socket.socket, name: str, far: str, ifindex: int, ours: int) -> None:
        self.raw, self.name, self.far, self.ifindex = raw, name, far, ifindex
        self.reads: list[tuple[list[PacketReceived], bool]] = []
        self.sockets = IsisSockets(lambda *read: self.reads.append(read))
        with inside(name):
            self.sockets.open(ifindex)
        self.plain = self.sockets._sockets[ifindex][0]

    def send(self, payload: bytes, source: int = 2) -> None:
        self.raw.send(frame(source.to_bytes(6, "big"), ALL_ISS, payload))

    async def begin(self) -> None:
        """Wait until frames arrive: before it has seen the carrier, the kernel drops them."""
        first, last = pdu(PduType.L2_LSP, 40), pdu(PduType.L2_LSP, 41)
        await loop_until(lambda: self.send(first) or self.got)
        self.send(last)
        await loop_until(lambda: self.got[-1].payload == last)
        self.reads.clear()
        self.sockets.counters.clear()

    @property
    def got(self) -> list[PacketReceived]:
        return [packet for packets, _ in self.reads for packet in each(packets)]


@pytest.fixture
async def receiver(namespaces):
    far, name = namespaces.add(), namespaces.add()
    theirs, ours = namespaces.pair(far, name, "e0", 0)
    with packet_socket(far, "e0") as raw:
        made = Receiver(raw, name, far, ours, theirs)
        await made.begin()
        yield made
        made.sockets.close_all()


@pytest.mark.netns
async def test_frames_of_different_senders_and_lengths_are_told_apart(receiver):
    sent = [
        (source, pdu(kind, size, number))
        for number in range(3)
        for source in (2, 3)
        for size in (20, 900, 1497)
        for kind in (PduType.L2_LSP, PduType.L2_PSNP)
    ]
    for source, payload in sent:
        receiver.send(payload, source)
    await loop_until(lambda: len(receiver.got) == len(sent))
    ifindex = receiver.ifindex
    assert receiver.got == [PacketReceived(ifindex, source, ALL_ISS, data) for source, data in sent]
    assert receiver.sockets.counters == {"received": len(sent)}
    assert len(receiver.reads) == 2  # 32 at a time
    assert not any(hellos for _, hellos in receiver.reads)


@pytest.mark.netns
async def test_equal_pdus_are_one_object_and_unequal_ones_of_one_instance_are_told_apart(receiver):
    """An LSP comes from all neighbors; its id, number and checksum do not say all."""
    base = pdu(PduType.L2_LSP, 900, 1)
    sent = [base, base[:-1] + b"!", base, base + b"+", base[:30], base[:24], base]
    for number, payload in enumerate(sent):
        receiver.send(payload, number)
    await loop_until(lambda: len(receiver.got) == len(sent))
    for source in (8, 9, 8, 9, 8, 9, 8):
        receiver.send(base, source)
    await loop_until(lambda: len(receiver.got) == len(sent) + 7)
    assert [packet.payload for packet in receiver.got] == [*sent, *[base] * 7]
    assert all(type(packet.payload) is bytes for packet in receiver.got)
    assert len({id(packet.payload) for packet in receiver.got[-3:]}) == 1


@pytest.mark.netns
async def test_a_read_with_a_hello_says_so(receiver):
    for kind in (PduType.L2_LSP, PduType.P2P_HELLO, PduType.P2P_HELLO):
        receiver.send(pdu(kind, 900))
    await loop_until(lambda: len(receiver.got) == 3)
    receiver.send(pdu(PduType.P2P_HELLO, 900))
    await loop_until(lambda: len(receiver.got) == 4)
    receiver.send(pdu(PduType.L2_LSP, 900))
    await loop_until(lambda: len(receiver.got) == 5)
    assert [hellos for _, hellos in receiver.reads] == [True, True, False]


@pytest.mark.netns
async def test_a_truncated_frame_is_malformed_though_it_came_whole_before(receiver):
    """It is not completed with what was in its place before."""
    whole = frame(bytes(6), ALL_ISS, pdu(PduType.L2_LSP, 900))
    receiver.raw.send(whole)
    await loop_until(lambda: receiver.got)
    for data in (whole[:-1], whole[:21], whole[:18], whole):
        receiver.raw.send(data)
    await loop_until(lambda: len(receiver.got) == 2)
    assert receiver.got[0].payload == receiver.got[1].payload == whole[17:]
    assert receiver.sockets.counters == {"received": 2, "malformed": 3}


@pytest.mark.netns
async def test_a_frame_with_a_vlan_tag_is_not_for_this_interface(receiver):
    tagged = frame(bytes(6), ALL_ISS, pdu(PduType.L2_LSP, 100))
    receiver.raw.send(tagged[:12] + bytes.fromhex("81000007") + tagged[12:])
    receiver.send(pdu(PduType.L2_LSP, 900))
    await loop_until(lambda: receiver.got)
    assert [len(packet.payload) for packet in receiver.got] == [900]
    assert receiver.sockets.counters == {"received": 1}


@pytest.mark.netns
async def test_frames_that_find_the_buffer_full_are_counted(receiver):
    receiver.plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    for number in range(500):
        receiver.send(pdu(PduType.L2_LSP, 1400, number))
    await loop_until(lambda: receiver.sockets.counters["receive-overflow"])
    found = receiver.sockets.counters
    await loop_until(lambda: found["received"] + found["receive-overflow"] == 500)
    numbers = [int.from_bytes(packet.payload[5:9], "big") for packet in receiver.got]
    assert numbers == sorted(numbers)


@pytest.mark.netns
async def test_an_interface_that_goes_down_is_counted_and_what_came_before_is_read(receiver):
    for number in range(20):
        receiver.send(pdu(PduType.L2_LSP, 900, number))
    run("ip link set e0 down", receiver.name)
    # each of both sockets learns of it once
    await loop_until(lambda: receiver.sockets.counters["receive-error-ENETDOWN"] == 2)
    await loop_until(lambda: len(receiver.got) == 20)
    run("ip link set e0 up", receiver.name)
    again = pdu(PduType.L2_LSP, 900, 20)
    await loop_until(lambda: receiver.send(again) or again in [one.payload for one in receiver.got])
    assert receiver.sockets.counters["receive-error-ENETDOWN"] == 2


@pytest.mark.netns
async def test_pdus_are_not_remembered_without_limit(receiver):
    for number in range(1000):
        receiver.send(pdu(PduType.L2_LSP, 40, number))
        if number % 100 == 99:
            await loop_until(lambda number=number: len(receiver.got) == number + 1)
    assert 0 < len(receiver.sockets._pdus) <= 32
    numbers = [int.from_bytes(packet.payload[5:9], "big") for packet in receiver.got]
    assert numbers == list(range(1000))
    receiver.sockets.forget_senders()
    assert not receiver.sockets._pdus


LSPS = tuple(pdu(PduType.L2_LSP, 30 + number, number) for number in range(4))
OTHERS = (pdu(PduType.P2P_HELLO, 40), pdu(PduType.L2_PSNP, 40), LSPS[0][:-1] + b"!", LSPS[1][:24])
ONE = st.tuples(st.sampled_from((*LSPS, *OTHERS)), st.integers(-30, 3))
RUN = st.builds(lambda at, number: [(lsp, 0) for lsp in LSPS[at : at + number]], *[INDEX] * 2)


@given(st.lists(st.tuples(INDEX, st.one_of(RUN, st.lists(ONE, max_size=3))), max_size=12))
async def test_frames_that_are_read_together_are_what_each_of_them_is_alone(reads):
    """Copies in the same and another order, cut off and padded, of senders in any order."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    near.setblocking(False)
    with near, far:
        sockets = IsisSockets(lambda *_: None)
        sockets._sockets[1] = (near,)
        for source, parts in reads:
            sent = [frame(bytes([source] * 6), ALL_ISS, data) for data, _ in parts]
            cut = [
                one[: len(one) + more] if more < 0 else one + bytes(more)
                for one, (_, more) in zip(sent, parts, strict=True)
            ]
            for one in cut:
                far.send(one)
            packets, number, hellos = sockets._arrived(1, near, 64)
            whole = [found for one in cut if (found := strip_ethernet_header(one)) is not None]
            packets = list(each(packets))
            assert [(one.source, one.destination, one.payload) for one in packets] == whole
            assert number == len(cut)
            assert hellos == any(sockets.is_hello(one) for one in packets)
