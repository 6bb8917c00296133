"""Sockets read together: links first, packets processed once, in order, none of closed sockets."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections import Counter
from contextlib import closing
from types import SimpleNamespace

import pytest

from fared.daemon.loop import burst
from fared.daemon.loop.burst import Burst
from fared.daemon.loop.portions import Portion
from fared.daemon.loop.repeated_hellos import RepeatedHellos
from fared.kernel.packet_sockets import fullness
from fared.protocols.igp import events as igp
from fared.protocols.igp.events import PacketReceived, PacketsReceived
from fared.router.events import To
from tests.waiting import loop_until


def each(portions: list[Portion]) -> list[To]:
    """The packets that were passed on, one by one."""
    return [To(proto, packet) for proto, packets in portions for packet in igp.each(packets)]


class Watched:
    """A burst over socket pairs; a byte written to one is a packet of its interface."""

    def __init__(self) -> None:
        self.handed: list[tuple[list[To], float]] = []
        self.burst = Burst(self.hand_on)
        self.open: set[int] = set()
        self.kind = socket.SOCK_STREAM
        self.burst.io = {"ospf": self.open}
        self.ends: dict[int, tuple[socket.socket, socket.socket]] = {}

    def hand_on(self, portions: list[Portion], arrived: float) -> None:
        self.handed.append((each(portions), arrived))

    def add(self, ifindex: int) -> None:
        near, _ = self.ends[ifindex] = socket.socketpair(type=self.kind)
        self.open.add(ifindex)
        self.burst.add_reader(near, self.read, ifindex)

    def read(self, ifindex: int) -> None:
        data = self.ends[ifindex][0].recv(100)
        self.burst.take("ospf", PacketReceived(ifindex, 10, 20, data))

    def write(self, ifindex: int, data: bytes) -> None:
        self.ends[ifindex][1].send(data)

    def payloads(self) -> list[list[bytes]]:
        return [[packet.event.payload for packet in packets] for packets, _ in self.handed]

    def close(self) -> None:
        for near, far in self.ends.values():
            self.burst.remove_reader(near)
            near.close()
            far.close()


@pytest.fixture
async def watched():
    with closing(Watched()) as made:
        yield made


async def one_turn() -> None:
    """Let the loop poll its sockets once."""
    turned = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0, turned.set_result, None)
    await turned


async def test_one_wakeup_reads_all_readable_sockets_in_order_and_passes_packets_on_once(watched):
    began = asyncio.get_running_loop().time()
    for ifindex in (3, 1, 2):
        watched.add(ifindex)
    watched.write(2, b"b")
    watched.write(3, b"a")
    await one_turn()
    assert watched.payloads() == [[b"a", b"b"]]
    ((packets, arrived),) = watched.handed
    assert packets[0] == To("ospf", PacketReceived(3, 10, 20, b"a"))
    assert began <= arrived <= asyncio.get_running_loop().time()
    watched.write(1, b"c")
    await one_turn()
    assert watched.payloads() == [[b"a", b"b"], [b"c"]]


async def test_readers_are_called_until_all_sockets_are_empty(watched):
    """A reader takes one packet at a time, from each socket in turn."""
    watched.kind = socket.SOCK_DGRAM
    for ifindex in (1, 2):
        watched.add(ifindex)
        for data in (b"a", b"b", b"c"):
            watched.write(ifindex, data)
    watched.write(1, b"d")
    await one_turn()
    assert watched.payloads() == [[b"a", b"a", b"b", b"b", b"c", b"c", b"d"]]


async def test_a_reader_added_first_is_called_before_any_packet_is_passed_on(watched):
    """Links come before packets, though their message arrives last."""
    called: list[str] = []
    links, kernel = watched.ends[0] = socket.socketpair()
    watched.burst.add_reader(links, lambda: called.append(f"{links.recv(9)}, {watched.handed}"))
    watched.add(1)
    watched.write(1, b"packet")
    kernel.send(b"down")
    await one_turn()
    assert called == ["b'down', []"]
    assert watched.payloads() == [[b"packet"]]


async def test_packets_of_an_interface_that_went_down_before_processing_are_dropped(
    watched,
):
    """Its socket was closed in the same wakeup: they are not counted as errors."""
    for ifindex in (1, 2):
        watched.add(ifindex)
        watched.write(ifindex, b"%d" % ifindex)
    watched.add(3)
    watched.write(3, b"down")
    watched.burst.remove_reader(watched.ends[3][0])
    watched.burst.add_reader(watched.ends[3][0], lambda: watched.open.discard(1))
    await one_turn()
    assert watched.payloads() == [[b"2"]]


async def test_a_reader_that_fails_does_not_keep_others_from_being_read(watched):
    caught: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: caught.append(context))
    watched.add(1)
    watched.add(2)
    near = watched.ends[1][0]
    watched.burst.remove_reader(near)
    watched.burst.add_reader(near, lambda: near.recv(9) and [].pop())
    watched.write(1, b"bad")
    watched.write(2, b"good")
    await one_turn()
    assert watched.payloads() == [[b"good"]]
    assert isinstance(caught[0]["exception"], IndexError)


async def test_a_reader_that_another_one_removed_is_not_called(watched):
    watched.add(1)
    watched.add(2)
    first, second = watched.ends[1][0], watched.ends[2][0]
    watched.burst.remove_reader(first)
    watched.burst.remove_reader(second)
    watched.burst.add_reader(first, lambda: first.recv(9) and watched.burst.remove_reader(second))
    watched.burst.add_reader(second, watched.read, 2)
    watched.write(1, b"close")
    watched.write(2, b"unread")
    await one_turn()
    assert watched.handed == []
    watched.burst.add_reader(second, watched.read, 2)
    await one_turn()
    assert watched.payloads() == [[b"unread"]]


async def test_a_burst_ended_early_is_processed_once(watched):
    watched.burst.io = {"ospf": {1}}
    watched.burst.take("ospf", PacketReceived(1, 10, 20, b"a", 1))
    watched.burst.end()
    watched.burst.end()
    assert watched.payloads() == [[b"a"]]


HELLO = b"hello"


@pytest.fixture
async def busy(watched):
    """A burst whose packets take a millisecond each, by the loop's own clock."""
    loop = asyncio.get_running_loop()
    real, lag = loop.time, 0.0

    def hand_on(portions: list[Portion], arrived: float) -> None:
        nonlocal lag
        watched.hand_on(portions, arrived)
        lag += 0.001 * len(each(portions))

    loop.time = lambda: real() + lag
    watched.burst._hand_on = hand_on
    watched.burst.hellos = {"ospf": lambda packet: packet.payload.startswith(HELLO)}
    watched.kind = socket.SOCK_DGRAM
    yield watched
    loop.time = real


def fill(watched: Watched, packets: int) -> None:
    watched.open.add(1)
    for number in range(packets):
        watched.burst.take("ospf", PacketReceived(1, 10, 20, b"%d" % number))


async def test_a_long_burst_is_passed_on_in_slices_between_which_the_loop_goes_on(busy):
    fill(busy, 1000)
    turns: list[int] = []
    busy.burst.end()
    while sum(map(len, busy.payloads())) < 1000:
        await one_turn()
        turns.append(len(busy.handed))
    sizes = [len(payloads) for payloads in busy.payloads()]
    assert sizes[0] == 512  # the time of a packet is not known yet
    assert all(16 <= size <= 25 for size in sizes[1:-1])
    assert len(turns) >= len(sizes) // 2  # a turn awaited here is two of the loop
    assert [p for payloads in busy.payloads() for p in payloads] == [b"%d" % n for n in range(1000)]


async def test_of_costly_packets_only_a_few_are_passed_on_whole(busy):
    fill(busy, 512)
    busy.burst.end()  # now the time of a packet is known: 20 take as long as a slice should
    for packets, whole in ((16, True), (40, False)):
        fill(busy, packets)
        busy.burst.end()
        assert (len(busy.payloads()[-1]) == packets) is whole
        await drained(busy)


async def test_where_each_turn_computes_routes_a_slice_takes_as_long(busy):
    """Not less and less, because the time of few packets includes that of the routes."""
    hand_on, computing = busy.burst._hand_on, 0.05
    loop = asyncio.get_running_loop()

    def computed(portions: list[Portion], arrived: float) -> float:
        hand_on(portions, arrived)
        before = loop.time
        loop.time = lambda: before() + computing
        return computing

    busy.burst._hand_on = computed
    fill(busy, 1000)
    busy.burst.end()
    await drained(busy)
    sizes = [len(payloads) for payloads in busy.payloads()]
    assert all(45 <= size <= 60 for size in sizes[1:-1])


async def drained(busy: Watched) -> list[bytes]:
    """The payloads in the order in which they were passed on."""
    while busy.burst.waiting or busy.burst._urgent:
        await one_turn()
    return [payload for payloads in busy.payloads() for payload in payloads]


async def test_a_repeated_hello_does_not_wait_for_the_packets_before_it(busy):
    busy.add(2)
    busy.burst.take("ospf", PacketReceived(2, 10, 20, HELLO))
    fill(busy, 1000)
    busy.burst.end()
    busy.write(2, HELLO)
    await one_turn()
    assert busy.payloads()[1][0] == HELLO


async def test_a_repeated_hello_alone_is_passed_on_after_one_look_at_the_sockets(busy):
    busy.add(2)
    busy.burst.take("ospf", PacketReceived(2, 10, 20, HELLO))
    busy.burst.end()
    looks, epoll = [], busy.burst._epoll
    busy.burst._epoll = SimpleNamespace(poll=lambda wait: looks.append(wait) or epoll.poll(wait))
    busy.write(2, HELLO)
    cost = busy.burst._cost
    busy.burst._readable()
    assert busy.payloads() == [[HELLO], [HELLO]]
    assert looks == [0]
    assert busy.burst._cost == cost
    busy.burst._epoll = epoll


async def test_a_hello_that_says_something_new_follows_what_its_sender_sent_before(busy):
    """The last hello of a neighbor that leaves must not overtake the LSAs that it flushes."""
    busy.add(2)
    busy.burst.take("ospf", PacketReceived(1, 10, 20, HELLO))
    fill(busy, 100)
    for payload in (b"hello, leaving", b"hello, leaving", HELLO):
        busy.burst.take("ospf", PacketReceived(1, 10, 20, payload))
    busy.burst.end()
    payloads = await drained(busy)
    assert payloads[-3:] == [b"hello, leaving", b"hello, leaving", HELLO]
    # all has been passed on: the next equal one may overtake again
    fill(busy, 100)
    busy.burst.take("ospf", PacketReceived(1, 10, 20, HELLO))
    busy.burst.end()
    assert (await drained(busy))[-101] == HELLO


async def test_after_a_new_hello_equal_ones_overtake_though_the_queue_is_never_empty(busy):
    """While a large database is loaded, packets wait for many seconds."""
    busy.add(2)
    fill(busy, 1000)
    busy.burst.take("ospf", PacketReceived(1, 10, 20, HELLO))
    while not any(HELLO in payloads for payloads in busy.payloads()):
        fill(busy, 50)
        busy.burst.end()
    busy.burst.take("ospf", PacketReceived(1, 10, 20, HELLO))
    before = len(busy.payloads())
    busy.burst.end()
    assert busy.payloads()[before][0] == HELLO
    await drained(busy)


def test_the_last_hellos_of_a_thousand_neighbors_are_remembered():
    repeated = RepeatedHellos()
    hellos = [PacketReceived(at, 10 + at, 20, HELLO) for at in range(1000)]
    for _ in range(3):  # those that were displaced find another place
        for hello in hellos:
            repeated.overtakes("ospf", hello, waits=False)
    assert all(repeated.overtakes("ospf", hello, waits=True) for hello in hellos)


def test_a_sender_that_takes_the_place_of_another_has_not_sent_its_hello():
    """Else the first hello of a neighbor might overtake the LSAs that it flushed before."""
    repeated = RepeatedHellos()
    hellos = [PacketReceived(1, at, 20, HELLO) for at in range(50_000)]
    assert not any(repeated.overtakes("ospf", hello, waits=False) for hello in hellos)
    assert not any(repeated.overtakes("isis", hello, waits=True) for hello in hellos)


async def test_senders_of_hellos_are_not_remembered_without_limit(busy):
    for source in range(10_000):
        busy.burst.take("ospf", PacketReceived(1, source, 20, HELLO))
    repeated = busy.burst._repeated
    assert len(repeated._senders) == len(repeated._digests) == 8192


async def test_sockets_are_not_read_while_too_many_packets_wait(busy):
    busy.add(2)
    fill(busy, 10_000)
    busy.write(2, b"later")
    await one_turn()
    assert busy.ends[2][0].recv(10, socket.MSG_PEEK) == b"later"
    while sum(map(len, busy.payloads())) < 10_001:
        await one_turn()
    assert busy.payloads()[-1][-1] == b"later"


async def test_while_too_many_packets_wait_hellos_are_read_in_each_turn(busy):
    """Those that have sockets of their own: four seconds without one end an adjacency."""
    turns: list[int] = []
    busy.burst._receive_hellos = lambda: turns.append(len(busy.handed))
    fill(busy, 10_000)
    busy.burst.end()
    while busy.burst.waiting > 8192:
        await one_turn()
    assert turns
    assert turns == list(range(1, len(turns) + 1))


async def test_packets_read_together_keep_their_order_and_their_hellos_overtake(busy):
    busy.open |= {1, 2}
    busy.burst.take("ospf", PacketReceived(2, 10, 20, HELLO))
    packets = [PacketReceived(1, 10, 20, b"%d" % number) for number in range(100)]
    busy.burst.take_all("ospf", packets[:50], hellos=False)
    busy.burst.take_all("ospf", [*packets[50:], PacketReceived(2, 10, 20, HELLO)], hellos=True)
    busy.burst.end()
    assert await drained(busy) == [HELLO, HELLO, *(packet.payload for packet in packets)]
    assert busy.burst.taken == 102
    assert busy.burst._size == 0


def run(packets: list[PacketReceived]) -> list[PacketsReceived]:
    """The same as one input."""
    return [PacketsReceived(1, 10, 20, tuple([packet.payload for packet in packets]))]


@pytest.mark.parametrize("together", [1, 7, 16, 700])
async def test_slices_are_of_one_size_however_packets_were_read(busy, together):
    """What was read together is divided where a slice ends."""
    busy.open |= {1, 2}
    packets = [PacketReceived(1, 10, 20, b"%d" % number) for number in range(1400)]
    for start in range(0, len(packets), together):
        busy.burst.take_all("ospf", packets[start : start + together], hellos=False)
    busy.burst.end()
    assert await drained(busy) == [packet.payload for packet in packets]
    sizes = [len(payloads) for payloads in busy.payloads()]
    assert sizes[0] == 512
    assert all(16 <= size <= 25 for size in sizes[1:-1])
    assert (busy.burst.waiting, busy.burst._size) == (0, 0)
    assert not busy.burst._portions


@pytest.mark.parametrize("together", [2, 16, 32])
async def test_of_copies_that_came_together_a_slice_has_twice_as_many(busy, together):
    """Even of these it has not all that wait: others may take longer than those before."""
    busy.open |= {1, 2}
    packets = [PacketReceived(1, 10, 20, b"%d" % number) for number in range(4000)]
    read = [run(packets[start : start + together]) for start in range(0, len(packets), together)]
    busy.burst.take_all("ospf", list(itertools.chain(*read[:4])), hellos=False)
    for some in read[4:]:
        busy.burst.take_all("ospf", some, hellos=False)
    assert busy.burst.taken == busy.burst.waiting == len(packets)
    busy.burst.end()
    assert await drained(busy) == [packet.payload for packet in packets]
    assert len(busy.payloads()[0]) == 1024
    assert (busy.burst.waiting, busy.burst._size) == (0, 0)
    assert not busy.burst._portions


async def test_a_turn_reads_no_more_once_a_slice_waits_and_time_has_passed(busy, monkeypatch):
    """The rest waits in the buffers of the sockets, and the loop goes on."""
    monkeypatch.setattr(burst, "_READING", 0.0)
    reads = []

    def read(ifindex: int) -> None:
        reads.append(busy.ends[ifindex][0].recv(1))
        busy.burst.take_all("ospf", [PacketReceived(ifindex, 10, 20, b"x")] * 200, hellos=False)

    busy.read = read
    busy.add(1)
    for _ in range(100):
        busy.write(1, b"x")
    busy.burst._readable()
    assert len(reads) == 3
    assert busy.handed


@pytest.mark.parametrize("shape", [list, run])
async def test_of_packets_read_together_those_without_room_are_dropped(flooded, shape):
    fill(flooded, 8192)
    packets = shape([PacketReceived(1, 10, 20, b"update")] * 20)
    flooded.burst.catch_up(lambda: flooded.burst.take_all("ospf", packets, hellos=False))
    assert flooded.dropped == {b"updat": 20}


class Flooded(Watched):
    """A burst over UDP sockets of small buffers, whose readers take one packet at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.dropped: Counter[bytes] = Counter()
        self.burst = Burst(
            self.hand_on,
            lambda proto, packet: self.dropped.update([packet.payload[:5]]),
        )
        self.burst.io = {"ospf": self.open}
        self.burst.hellos = {"ospf": lambda packet: packet.payload.startswith(HELLO)}

    def add(self, ifindex: int) -> None:
        near, far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        near.bind(("127.0.0.1", 0))
        near.setblocking(False)
        near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 200_000)
        far.connect(near.getsockname())
        self.ends[ifindex] = near, far
        self.open.add(ifindex)
        self.burst.add_reader(near, self.read, ifindex)

    def flood(self, ifindex: int, part: float) -> int:
        """Fill a buffer to this part; return with how many packets."""
        for number in itertools.count(1):
            self.write(ifindex, b"update%d" % number)
            if fullness(self.ends[ifindex][0]) > part:
                return number
        raise AssertionError


@pytest.fixture
async def flooded():
    with closing(Flooded()) as made:
        made.add(1)
        made.add(2)
        yield made


async def test_a_socket_that_would_overflow_is_read_and_only_its_hellos_are_kept(
    flooded, monkeypatch
):
    """Nothing is dropped of a socket whose buffer has room."""
    monkeypatch.setattr(burst, "_SLICE", 10.0)  # a busy machine may take more than 20 ms
    fill(flooded, 9000)
    flooded.write(2, b"later")
    flooded.write(1, HELLO + b" of a neighbor")
    sent = flooded.flood(1, 0.8)
    flooded.burst._readable()
    assert fullness(flooded.ends[1][0]) <= 0.25
    assert sent / 2 < flooded.dropped[b"updat"] < sent
    assert flooded.dropped.keys() == {b"updat"}
    whole = 9000 + 2 + sent - flooded.dropped.total()
    await loop_until(lambda: sum(map(len, flooded.payloads())) == whole)
    payloads = await drained(flooded)
    assert HELLO + b" of a neighbor" in payloads
    assert b"later" in payloads


async def test_where_there_is_no_room_only_sockets_that_hold_packets_are_looked_at(
    flooded, monkeypatch
):
    looked: list[socket.socket] = []
    monkeypatch.setattr(burst, "fullness", lambda sock: looked.append(sock) or 0.0)
    fill(flooded, 9000)
    flooded.write(2, b"later")
    flooded.burst._readable()
    assert looked == [flooded.ends[2][0]]


async def test_a_socket_that_is_nearly_full_loses_nothing_while_there_is_room_for_packets(flooded):
    sent = flooded.flood(1, 0.8)
    flooded.burst._readable()
    await loop_until(lambda: sum(map(len, flooded.payloads())) == sent)
    assert not flooded.dropped


async def test_hellos_that_are_kept_without_room_are_not_kept_without_limit(flooded):
    fill(flooded, 8192 + 4096)
    flooded.write(1, HELLO + b" of a neighbor")
    flooded.flood(1, 0.8)
    flooded.burst._readable()
    assert flooded.dropped[HELLO] == 1
    assert not flooded.burst._repeated._waiting


async def test_what_waits_takes_about_a_second(busy):
    """Of packets that take a millisecond each, sockets are read again when a thousand wait."""
    busy.add(2)
    fill(busy, 1600)
    busy.burst.end()
    busy.write(2, b"later")
    await one_turn()
    assert busy.ends[2][0].recv(10, socket.MSG_PEEK) == b"later"
    while busy.burst.waiting > 990:
        await one_turn()
    await one_turn()
    assert (await drained(busy))[-1] == b"later"


async def test_packets_that_are_added_one_by_one_wait_together(busy):
    """A list and an object for each would take as much memory as the packets."""
    busy.open |= {1, 2}
    fill(busy, 600)
    for number in (1, 2, 2, 1):
        busy.burst.take("ospf", PacketReceived(number, 10, 20, b"x"))
    assert [len(one.packets) for one in busy.burst._portions] == [512, 92]
    assert busy.burst._size == sum(one.size for one in busy.burst._portions)
    busy.burst.end()
    assert len(await drained(busy)) == busy.burst.taken == 604


async def test_without_readers_what_waits_is_dropped(busy):
    busy.add(2)
    fill(busy, 1000)
    busy.burst.end()
    busy.burst.remove_reader(busy.ends[2][0])
    before = len(busy.handed)
    await one_turn()
    assert len(busy.handed) == before
    busy.burst.add_reader(busy.ends[2][0], busy.read, 2)


@pytest.mark.parametrize("size", [5, 9000])
async def test_what_is_read_to_catch_up_again_and_again_does_not_pile_up(flooded, size: int):
    """A daemon without CPU time is late at every turn; hellos are kept all the same."""
    packet = PacketReceived(1, 10, 20, b"update".ljust(size, b"."))

    def read() -> None:
        for number in range(3000):
            flooded.burst.take("ospf", packet)
            if number % 1000 == 0:
                flooded.burst.take("ospf", PacketReceived(1, number, 20, HELLO + b"%d" % number))

    flooded.burst.catch_up(read)
    for _ in range(10):
        flooded.burst.catch_up(read)
        waiting = each([(one.proto, one.packets) for one in flooded.burst._portions])
        assert len(waiting) == flooded.burst.waiting <= 8192 + 4096
        assert sum(len(one.event.payload) for one in waiting) <= 33 << 20
    assert flooded.dropped.keys() == {b"updat"}
    assert flooded.dropped.total() > 11 * 3000 - 8192 - 11 * 512
