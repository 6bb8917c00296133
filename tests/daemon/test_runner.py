"""The pump and the clock: after a stop, a process reads queued packets before timers expire."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from fared.daemon.loop import periodic
from fared.daemon.loop.runner import LATE, Runner
from fared.paths.fib.model import DeleteRoute, Member, OperationResult, PutGroup
from fared.protocols.igp.events import CloseInterface, OpenInterface, PacketReceived, SendPacket
from fared.router import events
from tests.daemon.pump import Pair

DEAD = 4.0


@pytest.fixture(params=["ospf", "isis"])
def pair(request) -> Pair:
    pair = Pair(request.param)
    pair.await_up(15)
    pair.run(3)
    for process in (pair.left, pair.right):
        process.changes.clear()
    return pair


def sleep(pair: Pair, seconds: float) -> None:
    """Suspend the left process for some time, as SIGSTOP does."""
    pair.left.asleep = True
    pair.run(seconds)
    pair.left.asleep = False


def test_a_neighbor_whose_hellos_are_unread_is_kept(pair):
    """The stop exceeds the own dead interval but not the neighbor's: the adjacency stays up."""
    left, right = pair.left, pair.right
    for _ in range(2000):  # until the right has received a hello clearly later than the left has
        if right.dead_in() - left.dead_in() > LATE + 0.15:
            break
        pair.run(0.05)
    sleep(pair, left.dead_in() + LATE + 0.05)
    assert left.dead_in() < -LATE
    assert right.up()
    assert left.waiting
    pair.run(10)
    assert left.up()
    assert left.changes == right.changes == []
    assert left.said.count("loop-was-away") == 1


def test_after_a_long_stop_the_neighbors_packets_decide_and_not_the_own_timer(pair):
    """Queued hellos show that the neighbor ended the adjacency; it is up again in round trips."""
    left, right = pair.left, pair.right
    sleep(pair, 30)
    assert not right.up()
    pair.run(0.0)
    assert "InactivityTimer" not in {reason for _, reason in left.changes}
    assert "holding time expired" not in {reason for _, reason in left.changes}
    assert pair.await_up(2.0) < 0.1


def test_packets_that_arrive_while_others_are_read_late_are_read_before_timers_run(pair):
    """Without CPU time, to read what waits takes as long as a dead interval."""
    left = pair.left
    read, reads = left.runner._catch_up, []

    def slowly() -> None:
        read()
        reads.append(pair.clock.now)
        if len(reads) == 1:
            sleep(pair, DEAD + LATE)

    left.runner._catch_up = slowly
    sleep(pair, left.loop.due() - pair.clock.now + LATE + 0.05)
    pair.run(0.0)
    assert len(reads) == 2
    reasons = {reason for _, reason in left.changes}
    assert not reasons & {"InactivityTimer", "holding time expired"}


def test_a_hello_that_says_nothing_new_is_processed_without_a_turn(monkeypatch):
    pair = Pair("ospf")
    pair.await_up(15)
    pair.run(20)
    left, turns = pair.left, []
    take = left.runner.router.take_outputs
    monkeypatch.setattr(left.runner.router, "take_outputs", lambda: turns.append(1) or take())
    while not left.waiting:
        pair.clock.now = min(process.loop.due() for process in (left, pair.right))
        pair.right.loop.fire()
        left.loop.fire()
    turns.clear()
    due = left.loop.due()
    left.read()
    assert turns == []
    assert left.dead_in() == pytest.approx(DEAD)
    assert left.loop.due() == due
    pair.run(20)
    assert turns
    assert left.up()


def test_a_quiet_router_has_ticks_for_its_hellos_only(pair, monkeypatch):
    """Inactivity timers and holding times are checked with hellos."""
    left, sent = pair.left, []
    send = left.runner._io[left.protocol].send
    io = SimpleNamespace(send=lambda packet: sent.append(pair.clock.now) or send(packet))
    monkeypatch.setitem(left.runner._io, left.protocol, io)
    ticks = []
    left.runner._on_tick = ticks.append
    pair.run(60)
    assert len(ticks) > 50
    assert ticks == sent


def test_periodic_jobs_share_the_wakeups_of_hellos(monkeypatch):
    pair = Pair("ospf")
    pair.await_up(15)
    pair.run(20)
    left, ran = pair.left, []
    monkeypatch.setattr(periodic.asyncio, "get_running_loop", lambda: left.loop)
    jobs = periodic.Periodic(lambda _: contextlib.nullcontext())
    for name, interval in (("load", 1.0), ("lag", 1.0), ("speed", 5.0)):
        jobs.every(interval, name, lambda: ran.append(pair.clock.now))
    ticks = []
    left.runner._on_tick = lambda now: ticks.append(now) or jobs.share(now)
    pair.run(15)  # the hello interval is shorter: their times meet
    ran.clear()
    pair.run(60)
    assert len(ran) > 2 * 60
    assert set(ran) <= set(ticks)


@pytest.mark.parametrize("protocol", ["ospf", "isis"])
def test_reports_come_after_packets_and_operations_on_the_kernel(protocol):
    """The log of a neighbor does not delay the packets and routes of the same turn."""
    pair, turns = Pair(protocol), []
    runner = pair.left.runner
    flush, send, apply = runner.flush, runner._io[protocol].send, runner._table.apply
    runner.flush = lambda: turns.append([]) or flush()
    runner._io[protocol].send = lambda packet: turns[-1].append("now") or send(packet)
    runner._table.apply = lambda operations: turns[-1].append("now") or apply(operations)
    runner.observers.append(lambda _: turns[-1].append("report"))
    pair.await_up(15)
    pair.run(3)
    assert any({"now", "report"} <= set(turn) for turn in turns)
    assert all(turn == sorted(turn) for turn in turns)


def test_timers_a_little_late_are_no_gap(pair):
    sleep(pair, 0.4)
    pair.run(5)
    assert "loop-was-away" not in pair.left.said
    assert pair.left.changes == []


class Recorded:
    """A router that returns these outputs, with sockets and a kernel that record their calls."""

    settled = False
    seconds_computing = 0.0

    def __init__(self, *outputs: events.Output) -> None:
        self.calls: list[tuple[str, int]] = []
        self._left = [list(outputs)]
        log = SimpleNamespace(debug=lambda *_, **__: None, warning=lambda *_, **__: None)
        read_links = lambda: self.calls.append(("read links", 0))  # noqa: E731
        runner = Runner(self, self, {"ospf": self}, log, read_links=read_links)
        runner.feed("input")

    def handle(self, event: object, _now: float) -> None:
        """Accept anything."""
        if isinstance(event, events.FibApplied):
            self.calls.append(("answer", len(event.results)))

    def detected(self, _seconds: float) -> None:
        """Accept any age."""

    def take_outputs(self) -> list[events.Output]:
        return self._left.pop() if self._left else []

    def next_deadline(self) -> None:
        """Never."""

    def apply(self, operations: tuple[DeleteRoute, ...]) -> list[OperationResult]:
        self.calls.append(("apply", len(operations)))
        return [OperationResult(operation) for operation in operations]

    def open(self, ifindex: int, _unicasts: object = None) -> None:
        self.calls.append(("open", ifindex))

    def close(self, ifindex: int) -> None:
        self.calls.append(("close", ifindex))

    def send(self, packet: SendPacket) -> None:
        self.calls.append(("send", packet.ifindex))


def of(*made: SendPacket | OpenInterface | CloseInterface) -> list[events.Output]:
    return [events.From("ospf", output) for output in made]


def packet(ifindex: int) -> SendPacket:
    return SendPacket(ifindex, 0xE0000005, b"", 0, 1)


async def test_sockets_of_a_lost_link_are_closed_after_its_loss_is_flooded_and_programmed():
    write = events.ApplyFib((DeleteRoute((4, 0, 24)),), "loss")
    runs = Recorded(*of(CloseInterface(7), packet(8)), write)
    assert runs.calls == [("send", 8), ("apply", 1), ("answer", 1), ("close", 7)]


@pytest.mark.parametrize("replace", [True, False])
async def test_links_are_read_before_a_rewritten_group_counts_as_such(replace):
    """The kernel may have removed the group and its routes with a link, and then made a new one."""
    group = PutGroup(5, (Member(1, 1),), replace)
    runs = Recorded(events.ApplyFib((DeleteRoute((4, 0, 24)), group), "update"))
    read = [("read links", 0)] if replace else []
    assert runs.calls == [("apply", 2), *read, ("answer", 2)]


async def test_sockets_are_closed_before_they_are_opened_again_or_written_to():
    runs = Recorded(*of(CloseInterface(7), OpenInterface(7), packet(7)))
    assert runs.calls == [("close", 7), ("open", 7), ("send", 7)]
    runs = Recorded(*of(CloseInterface(7), packet(7), packet(8)))
    assert runs.calls == [("close", 7), ("send", 7), ("send", 8)]


class Careless(Recorded):
    """A router that fails at some packets of those that arrived together."""

    def receive(self, proto: str, packets: Iterator[PacketReceived], _now: float) -> None:
        for one in packets:
            self.calls.append((proto, one.ifindex))
            if one.ifindex % 2:
                raise ValueError(one.ifindex)


async def test_an_exception_costs_one_packet_of_those_that_arrived_together():
    router = Careless()
    log = SimpleNamespace(**dict.fromkeys(("debug", "error", "warning"), lambda *_, **__: None))
    runner = Runner(router, router, {"ospf": router}, log)
    arrived = [PacketReceived(number, 0, 0, b"") for number in range(5)]
    runner.receive([("ospf", arrived[:2]), ("ospf", arrived[2:3]), ("isis", arrived[3:])], 0.0)
    assert router.calls == [("ospf", 0), ("ospf", 1), ("ospf", 2), ("isis", 3), ("isis", 4)]
    assert runner.defence.counts == {"handle": 2}
