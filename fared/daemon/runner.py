"""The pump between one router and the world: sockets, netlink, the loop's clock and timers.

The router decides, this module carries out. Everything runs on one thread of one event loop:
a packet in, the whole way to the kernel, and the answers, happen within one callback.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from fared.core.ids import dotted, format_system_id
from fared.fib.model import ForwardingTable
from fared.isis import events as isis
from fared.ospf import events as ospf
from fared.router import events
from fared.router.router import Router

Observer = Callable[[events.Output], None]


class PacketSockets(Protocol):
    """Where OSPF packets go out and, by callback, come in."""

    def open(self, ifindex: int) -> None:
        """Open the interface's socket and join AllSPFRouters."""

    def close(self, ifindex: int) -> None:
        """Close the interface's socket."""

    def send(self, ifindex: int, destination: int, payload: bytes, source: int = 0) -> None:
        """Send one packet; a failure is counted, not raised."""


class FrameSockets(Protocol):
    """Where IS-IS PDUs go out and, by callback, come in."""

    def open(self, ifindex: int) -> None:
        """Open the interface's sockets and join the groups of IS-IS."""

    def close(self, ifindex: int) -> None:
        """Close the interface's sockets."""

    def send(self, ifindex: int, destination: int, payload: bytes) -> None:
        """Send one PDU to a MAC address; a failure is counted, not raised."""


class Runner:
    """Feeds inputs to the router and carries out its outputs."""

    def __init__(
        self,
        router: Router,
        table: ForwardingTable,
        sockets: PacketSockets,
        frames: FrameSockets,
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
    ) -> None:
        self.router = router
        self.counts: Counter[str] = Counter()
        self.observers: list[Observer] = []
        self._table = table
        self._sockets = sockets
        self._frames = frames
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: float | None = None

    def feed(self, *inputs: events.Input) -> None:
        """Hand inputs to the router, then do all that follows from them."""
        self.feed_all(inputs)

    def feed_all(self, inputs: Iterable[events.Input]) -> None:
        """Like ``feed``: a burst is handled first and worked out once."""
        now = self._loop.time()
        for event in inputs:
            self.router.handle(event, now)
        self._flush()

    def stop(self) -> None:
        """No more timers."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flush(self) -> None:
        while outputs := self.router.drain():
            for output in outputs:
                self._carry_out(output)
        self._arm()

    def _carry_out(self, output: events.Output) -> None:
        match output:
            case ospf.SendPacket(ifindex, destination, payload, source):
                self._sockets.send(ifindex, destination, payload, source)
            case events.ApplyFib():
                self._apply(output)
            case isis.SendPdu(ifindex, destination, payload):
                self._frames.send(ifindex, destination, payload)
            case _:
                self._follow(output)
        for observer in self.observers:
            observer(output)

    def _follow(self, output: events.Output) -> None:
        """Carry out what is rare: sockets come and go, and what is worth a line in the log."""
        match output:
            case ospf.JoinGroup(ifindex):
                self._sockets.open(ifindex)
            case ospf.LeaveGroup(ifindex):
                self._sockets.close(ifindex)
            case isis.OpenCircuit(ifindex):
                self._frames.open(ifindex)
            case isis.CloseCircuit(ifindex):
                self._frames.close(ifindex)
            case ospf.LogRecord(level, event, fields):
                getattr(self._log, level)(event, **fields)
            case ospf.NeighborChanged():
                self._log_neighbor(output)
            case isis.AdjacencyChanged():
                self._log_adjacency(output)
            case events.StageReached(stage, seconds):
                self._log.info("stage-reached", stage=stage, seconds=round(seconds, 3))

    def _apply(self, request: events.ApplyFib) -> None:
        started = time.perf_counter()
        results = tuple(self._table.apply(request.operations))
        seconds = time.perf_counter() - started
        for result in results:
            kind = "ok" if result.error == 0 else "error"
            self.counts[f"{type(result.operation).__name__}/{kind}"] += 1
        self._log.debug(
            "fib-applied", operations=len(results), milliseconds=seconds * 1e3, cause=request.cause
        )
        self.router.handle(events.FibApplied(request, results, seconds), self._loop.time())

    def _log_neighbor(self, change: ospf.NeighborChanged) -> None:
        important = "Full" in (change.previous, change.state)
        log = self._log.info if important else self._log.debug
        log(
            "neighbor-changed",
            interface=change.interface,
            neighbor=dotted(change.router_id),
            previous=change.previous,
            state=change.state,
            reason=change.reason,
        )

    def _log_adjacency(self, change: isis.AdjacencyChanged) -> None:
        important = "Up" in (change.previous, change.state)
        log = self._log.info if important else self._log.debug
        log(
            "adjacency-changed",
            interface=change.interface,
            neighbor=format_system_id(change.system_id),
            routing_level=change.level,
            previous=change.previous,
            state=change.state,
            reason=change.reason,
        )

    def _arm(self) -> None:
        """Keep one timer, at the router's next deadline."""
        deadline = self.router.next_deadline()
        if self._timer is not None:
            if deadline is not None and self._timer_at == deadline:
                return
            self._timer.cancel()
            self._timer = None
        if deadline is not None:
            self._timer_at = deadline
            self._timer = self._loop.call_at(deadline, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.router.tick(self._loop.time())
        self._flush()
