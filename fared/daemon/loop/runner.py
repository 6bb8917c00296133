"""Connects one router to sockets, netlink, the loop's clock and timers.

The router decides, and this module executes. Everything runs on one thread in one event loop: a
packet, the operations on the kernel that follow from it, and their answers are processed within one
callback. Packets and operations on the kernel come before reports (log, metrics, systemd), which
are due once the router has no more outputs. An unexpected exception is contained where it is raised
(``defence``): one output or one input is lost, but an operation on the kernel is always answered.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Protocol, get_args

from fared.core.bfd import BfdWanted
from fared.core.ids import format_node
from fared.core.streams import StreamOutput
from fared.daemon.loop.defence import Defence, Guard
from fared.daemon.loop.rate_limited import RateLimitedLog
from fared.kernel.errors import PrivilegeError
from fared.paths.fib.model import ForwardingTable, OperationResult, PutGroup
from fared.protocols.igp import events as igp
from fared.router import events
from fared.router.router import Router

Observer = Callable[[events.Output], None]
_PENALTY = 1.0
"""Seconds before a failed tick is repeated, since its deadline stays in the past."""


LATE = 0.5
"""A timer later than so many seconds lets packets be read first."""
_CAUGHT_UP = 3
"""How often they are read if that takes as long, and more packets arrive meanwhile."""
_PROTO, _PACKETS = itemgetter(0), itemgetter(1)
_SERVED = (BfdWanted, *get_args(StreamOutput))


class PacketIo(Protocol):
    """Sends the packets of one protocol."""

    def open(self, ifindex: int, unicasts: igp.Unicasts | None) -> None:
        """Open the interface's sockets and join the groups of the protocol; idempotent.

        They receive ``unicasts`` only.
        """

    def close(self, ifindex: int) -> None:
        """Close the interface's sockets."""

    def send(self, packet: igp.SendPacket) -> None:
        """Send one packet; a failure is counted, not raised."""


class Runner:
    """Feeds inputs to the router and executes its outputs.

    ``catch_up`` reads and feeds all queued packets. It is called when the loop was delayed: the
    process was stopped, the machine was suspended or short of CPU, or one turn took long. The
    router's timers have advanced, but queued packets have not been read: if timers ran first,
    InactivityTimer would end adjacencies whose hellos have all arrived.
    """

    def __init__(
        self,
        router: Router,
        table: ForwardingTable,
        io: Mapping[str, PacketIo],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        *,
        catch_up: Callable[[], None] = lambda: None,
        on_refusal: Callable[[], None] = lambda: None,
        read_links: Callable[[], object] = lambda: None,
        on_tick: Callable[[float], None] = lambda _: None,
        wants_debug: Callable[[], bool] = lambda: True,
        defence: Defence | None = None,
    ) -> None:
        """``io`` is by protocol; ``defence`` receives unexpected exceptions.

        ``on_refusal`` is called when the kernel refused something, ``read_links`` when a group was
        rewritten, before the router learns of it; ``on_tick`` with the time of each tick, after it:
        other work can share the wakeup. ``wants_debug``: whether anybody wants the log of level
        debug: a line that nobody wants costs time, too, just when a change reaches the kernel.
        """
        self.router = router
        self.defence = defence or Defence(log)
        self._on_refusal, self._read_links, self._on_tick = on_refusal, read_links, on_tick
        self._wants_debug = wants_debug
        self._services: dict[type, Callable[..., None]] = {}
        self._flushing = self._failed = self._begun = False
        self._not_before = 0.0
        self._closing: dict[tuple[str, int], None] = {}
        # "drain" is a turn of the router: logs and metrics have it by this name
        self._guards = {
            name: Guard(partial(self._router_failed, name)) for name in ("handle", "drain", "tick")
        }
        self._guard_output = Guard(self._output_failed)
        self._guard_apply = self.defence.guard("apply")
        self._applying = 0.0
        """Seconds in which the kernel was written to."""
        self.counts: Counter[str] = Counter()
        self.after_flush: Callable[[], None] | None = None
        """Called when all outputs have been executed."""
        self.observers: list[Observer] = []
        """They are passed all reports: outputs that are neither sent nor applied."""
        self._table = table
        self._io = io
        self._log = log
        self._catch_up = catch_up
        self._was_away = RateLimitedLog(log.warning, "loop-was-away")
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: float | None = None

    def serve(self, output: type, service: Callable[..., None]) -> None:
        """Have a service execute outputs of a type from now on, which feeds its answers later.

        It gets an ``ApplySpray`` or ``ApplyBier``, or the protocol and what it wants of BFD or of
        streams.
        """
        self._services[output] = service

    def feed(self, *inputs: events.Input) -> None:
        """Pass inputs to the router, then execute all outputs."""
        self.feed_all(inputs)

    def feed_all(self, inputs: Iterable[events.Input]) -> None:
        """Like ``feed``: a burst is handled first and computed once."""
        self.take(inputs)
        self.flush()

    def take(self, inputs: Iterable[events.Input]) -> None:
        """Pass inputs to the router; the next ``flush`` executes the outputs."""
        now = self._loop.time()
        guard = self._guards["handle"]
        for event in inputs:
            with guard:
                self.router.handle(event, now)

    def receive(
        self, portions: Iterable[tuple[str, Iterable[igp.Received]]], arrived: float
    ) -> float:
        """Pass packets that ``arrived`` together to the router, then execute all outputs.

        Return the seconds in which routes were computed and written to the kernel.
        """
        router, now, guard = self.router, self._loop.time(), self._guards["handle"]
        router.detected(now - arrived)
        before = router.seconds_computing + self._applying
        for proto, some in groupby(portions, _PROTO):
            left = chain.from_iterable(map(_PACKETS, some))
            while True:
                try:
                    router.receive(proto, left, now)
                    break
                except Exception as error:  # noqa: BLE001 - as ``with guard``, in two calls less
                    guard.contain(error)
        self.flush()
        return router.seconds_computing + self._applying - before

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def flush(self) -> None:
        """Execute all outputs; a nested call does nothing, because the outer one continues."""
        if self._flushing:
            return
        if self.router.settled:
            self.router.detected(0.0)
            if self.defence.failures:
                self.defence.router_worked()
            self._flushed()
            return
        self._flushing = True
        reports: list[events.Output] = []
        try:
            with self._guards["drain"]:
                while not self.router.settled and (outputs := self.router.take_outputs()):
                    for output in outputs:
                        with self._guard_output:
                            if not self._carry_out(output):
                                reports.append(output)
            with self._guard_output:
                self._close_interfaces()
        finally:
            self._flushing = False
            for output in reports:
                with self._guard_output:
                    self._report(output)
        self._begun = True
        if not self._failed:
            self.defence.router_worked()
        self._failed = False
        self._flushed()
        self._arm()

    def _flushed(self) -> None:
        if self.after_flush is not None:
            with self._guard_output:
                self.after_flush()

    def _router_failed(self, where: str, error: Exception) -> None:
        if isinstance(error, PrivilegeError) and not self._begun:
            raise error
        self._failed = True
        self.defence.router_failed(where, error)

    def _output_failed(self, error: Exception) -> None:
        """Continue, unless the process lacks a capability. Raises PrivilegeError then."""
        if isinstance(error, PrivilegeError) and not self._begun:
            raise error
        self.defence.caught("output", error)

    def _carry_out(self, output: events.Output) -> bool:
        """Execute an output that the network waits for; False: it is a report."""
        match output:
            case events.From(proto, igp.SendPacket() as packet):
                if (proto, packet.ifindex) in self._closing:
                    self._close_interfaces()
                self._io[proto].send(packet)
            case events.ApplyFib():
                self._apply(output)
            case events.ApplySpray() | events.ApplyBier():
                self._served(output)
            case events.From(proto, igp.OpenInterface(ifindex, unicasts)):
                self._close_interfaces()
                self._io[proto].open(ifindex, unicasts)
            case events.From(proto, igp.CloseInterface(ifindex)):
                self._closing[proto, ifindex] = None
            case events.From(proto, event) if isinstance(event, _SERVED):
                self._served(event, proto)
            case _:
                return False
        return True

    def _served(self, output: object, *proto: str) -> None:
        service = self._services.get(type(output))
        if service is not None:
            service(*proto, output)

    def _close_interfaces(self) -> None:
        """Close sockets, last of all: to leave their groups the kernel takes its RTNL lock.

        A lost link holds that lock for milliseconds, while the loss is to be flooded.
        """
        closing, self._closing = self._closing, {}
        for proto, ifindex in closing:
            self._io[proto].close(ifindex)

    def _report(self, output: events.Output) -> None:
        """Log an output, and pass it to the observers."""
        match output:
            case events.From(proto, igp.AdjacencyChanged() as change):
                self._log_neighbor(proto, change)
            case igp.LogRecord(level, event, fields):
                getattr(self._log, level)(event, **fields)
            case events.StageReached(stage, seconds):
                self._log.info("stage-reached", stage=stage, seconds=round(seconds, 3))
        for observer in self.observers:
            observer(output)

    def _apply(self, request: events.ApplyFib) -> None:
        """Write to the kernel, and give the router the results, whatever happens."""
        started = time.perf_counter()
        results: tuple[OperationResult, ...] = ()
        with self._guard_apply:
            results = tuple(self._table.apply(request.operations))
        if self._guard_apply.raised is not None:  # the router needs an answer
            words = str(self._guard_apply.raised)
            results = tuple(OperationResult(o, errno.EIO, words) for o in request.operations)
        seconds = time.perf_counter() - started
        if any(result.error for result in results):
            self._on_refusal()
        elif any(type(one) is PutGroup and one.replace for one in request.operations):
            # With a lost link the kernel may have removed such a group and its routes silently; it
            # has then made a new one, without routes. The link's message is there already.
            self._read_links()
        for result in results:
            kind = "ok" if result.error == 0 else "error"
            self.counts[f"{type(result.operation).__name__}/{kind}"] += 1
        if self._wants_debug():
            milliseconds, cause = seconds * 1e3, request.cause
            self._log.debug(
                "fib-applied", operations=len(results), milliseconds=milliseconds, cause=cause
            )
        self._applying += seconds
        self.router.handle(events.FibApplied(request, results, seconds), self._loop.time())

    def _log_neighbor(self, proto: str, change: igp.AdjacencyChanged) -> None:
        log = self._log.info if change.gained_or_lost else self._log.debug
        level = {} if change.level is None else {"routing_level": change.level}
        log(
            "neighbor-changed",
            proto=proto,
            interface=change.interface,
            neighbor=format_node(change.neighbor),
            **level,
            previous=change.previous,
            state=change.state,
            reason=change.reason,
        )

    def _arm(self) -> None:
        """Keep one timer, at the router's next deadline."""
        deadline = self.router.next_deadline()
        if deadline is not None:
            deadline = max(deadline, self._not_before)
        if self._timer is not None:
            if deadline is not None and self._timer_at == deadline:
                return
            self._timer.cancel()
            self._timer = None
        if deadline is not None:
            self._timer_at = deadline
            self._timer = self._loop.call_at(deadline, self._tick)

    def _tick(self) -> None:
        """Fire the router's timers; after a stall, first process what arrived meanwhile."""
        self._timer = None
        assert self._timer_at is not None
        late = self._loop.time() - self._timer_at
        if late > LATE:
            self._was_away(seconds=round(late, 3))
            for _ in range(_CAUGHT_UP):
                began = self._loop.time()
                self._catch_up()
                if self._loop.time() - began <= LATE:
                    break
        guard, now = self._guards["tick"], self._loop.time()
        with guard:
            self.router.tick(now)
        if guard.raised is not None:
            self._not_before = self._loop.time() + _PENALTY
        self.flush()
        self._on_tick(now)
