"""Connects a session of FPM to its peer: sockets, time and the log around ``fared.fpm``.

The peer is read always, since it stops to read when its acknowledgements are not taken. A peer that
does not read holds up nothing: a portion is written only while the transport's buffer is below its
limit, and changes meanwhile coalesce in the session. Writing begins in a turn of its own, after the
one in which the kernel was written and a change was flooded.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from fared.config import Config
from fared.config.fpm import Fpm
from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6
from fared.core.links import Link
from fared.daemon.loop.defence import Defence
from fared.daemon.loop.rate_limited import RateLimitedLog
from fared.fpm.session import FpmSession
from fared.paths.fib.planner import FibPlanner

RETRY = 1.0
"""Seconds between two attempts to connect."""
_CONNECT_WITHIN = 5.0
_PREPARED_WITHIN = 1.0
_WATCH_EVERY = 1.0
_SLOW_AFTER = 5.0
"""Seconds without room in the buffer after which a peer is called slow."""
_PORTION, _MOST_BUFFERED = 1 << 16, 1 << 18
"""Bytes written in one turn of the loop, and those that wait for the peer."""
_STOPPED = "stopped"
_END_WITHIN = 3.0
"""Seconds in which the peer takes the last messages."""


class FpmService(asyncio.Protocol):
    """One session, from ``start`` to ``stop``.

    ``replayed`` is set while the present connection has been sent all routes.
    """

    def __init__(
        self,
        config: Config,
        planner: Callable[[], FibPlanner],
        links: Callable[[], Mapping[int, Link]],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        defence: Defence,
    ) -> None:
        """``config`` has a section ``fib: fpm``."""
        fib = config.fib
        assert fib.fpm is not None
        self.peer: Fpm = fib.fpm
        self._planner, self._links, self._log = planner, links, log
        self._guard = defence.guard("fpm")
        self.session = FpmSession(
            fib.protocol,
            {FAMILY_IPV4: fib.metric, FAMILY_IPV6: fib.metric},
            wanted=lambda: planner().installed,
            names=self._name,
        )
        self.replayed = asyncio.Event()
        self.connected_at: float | None = None
        """Unix time of the present connection; None: there is none."""
        self._transport: asyncio.Transport | None = None
        self.lost = asyncio.Event()
        """Set from the loss of a connection to the next attempt."""
        self.warm_restart: str | None = None
        """How far a warm restart of SONiC is; None: it is unknown."""
        self._full_since: float | None = None
        self._pump_due = False
        self._reason = ""
        self._began = 0.0
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        warn = log.warning
        self._not_connected = RateLimitedLog(warn, "fpm-not-connected")
        self._slow = RateLimitedLog(warn, "fpm-peer-slow")
        self._overdue = RateLimitedLog(warn, "fpm-not-acknowledged")
        self._withheld = RateLimitedLog(warn, "fpm-next-hops-withheld")
        self._too_long = RateLimitedLog(warn, "fpm-route-too-long")

    @property
    def address(self) -> str:
        """The peer's address and port."""
        host = self.peer.address
        return f"[{host}]:{self.peer.port}" if ":" in host else f"{host}:{self.peer.port}"

    @property
    def slow(self) -> bool:
        """Whether the peer takes no more bytes now."""
        return self._full_since is not None

    def _name(self, ifindex: int) -> str | None:
        link = self._links().get(ifindex)
        return None if link is None else link.name

    # -- from start to stop -------------------------------------------------------------------

    def start(self, prepared: asyncio.Event | None = None) -> None:
        """Connect, and again whenever the connection is lost; wait a second for ``prepared``."""
        loop = asyncio.get_running_loop()
        self._planner().take_touched()
        self._task = loop.create_task(self._run(prepared))
        self._timer = loop.call_later(_WATCH_EVERY, self._watch)

    def stop(self) -> None:
        """End the connection; rows stay."""
        for running in (self._task, self._timer):
            if running is not None:
                running.cancel()
        self._task = self._timer = None
        self._planner().ignore_touched()
        if self._transport is not None:
            self._reason = _STOPPED
            self._transport.close()

    async def finish(self) -> None:
        """Let the peer take what is left, within a few seconds."""
        self.pull()
        loop = asyncio.get_running_loop()
        ends = loop.time() + _END_WITHIN
        while self._transport is not None and loop.time() < ends:
            if self._nothing_left():
                return
            await asyncio.sleep(0.01)

    @property
    def sent_all(self) -> bool:
        """Whether the peer has taken all routes."""
        return self.replayed.is_set() and self._nothing_left()

    def _nothing_left(self) -> bool:
        if self._transport is None or self.session.has_output():
            return False
        return not self._transport.get_write_buffer_size()

    async def _run(self, prepared: asyncio.Event | None) -> None:
        if prepared is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(prepared.wait(), _PREPARED_WITHIN)
        while True:
            try:
                await asyncio.wait_for(self._connect(), _CONNECT_WITHIN)
            except OSError as error:  # TimeoutError is one
                why = error.strerror or str(error) or "no answer"
                effect = "the switch keeps the routes that it has"
                self._not_connected(address=self.address, error=why, effect=effect)
            else:
                await self.lost.wait()
            await asyncio.sleep(RETRY)

    async def _connect(self) -> None:
        self.lost.clear()
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, self.peer.address, self.peer.port)

    # -- the connection -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with a replay."""
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=_MOST_BUFFERED)
        self._transport, self.connected_at = transport, time.time()
        self._began, self._reason, self._full_since = _now(), "", None
        self._log.info("fpm-connected", address=self.address)
        self._planner().take_touched()
        self.session.connected(_now())
        self._pump_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """Connect again soon."""
        self.session.lost()
        self.replayed.clear()
        self._transport, self.connected_at, self._full_since = None, None, None
        reason = self._reason or (str(exc) if exc else "closed by the peer")
        if reason is not _STOPPED:
            self._log.warning("fpm-lost", address=self.address, reason=reason)
        self.lost.set()

    def data_received(self, data: bytes) -> None:
        """Take acknowledgements."""
        with self._guard:
            self._close_for(self.session.received(data, _now()))

    def pause_writing(self) -> None:
        """Write no more: the peer does not take what is in the buffer."""
        self._full_since = _now()

    def resume_writing(self) -> None:
        """Go on writing."""
        self._full_since = None
        self._pump_soon()

    def _close_for(self, fault: str) -> None:
        if fault and self._transport is not None:
            self._reason = fault
            self._transport.abort()  # what the peer has not taken is of no use

    # -- writing ------------------------------------------------------------------------------

    def pull(self) -> None:
        """Take over what has changed in the planner's table."""
        touched = self._planner().take_touched()
        if touched:
            self.session.touch(touched)
            self._pump_soon()

    def pump(self) -> None:
        """Write soon what the session was told otherwise (``inherit``, ``bury``)."""
        self._pump_soon()

    def _pump_soon(self) -> None:
        if not self._pump_due and self._transport is not None:
            self._pump_due = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._pump_due = False
        if self._transport is None or self.slow or self._transport.is_closing():
            return
        session = self.session
        with self._guard:
            data = session.writable(_PORTION, _now())
            if data:
                self._transport.write(data)
        if session.replayed and not self.replayed.is_set():
            self.replayed.set()
            seconds = round(_now() - self._began, 3)
            self._log.info("fpm-replayed", routes=len(session.rows.announced), seconds=seconds)
        if session.has_output():
            self._pump_soon()

    # -- time ---------------------------------------------------------------------------------

    def _watch(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_WATCH_EVERY, self._watch)
        with self._guard:
            session, now = self.session, _now()
            self.pull()
            session.links_changed()
            self._close_for(session.tick(now))
            self._pump_soon()
            self._report(now)

    def _report(self, now: float) -> None:
        session = self.session
        if self._full_since is not None and now - self._full_since >= _SLOW_AFTER:
            waiting, seconds = session.waiting, round(now - self._full_since, 1)
            self._slow(address=self.address, seconds=seconds, waiting=waiting)
        overdue = list(session.acks.overdue(now)) if session.state != "down" else []
        tables = (
            (self._overdue, overdue),
            (self._withheld, session.withheld),
            (self._too_long, session.too_long),
        )
        for tell, prefixes in tables:
            if prefixes:
                tell(routes=len(prefixes), prefix=str(next(iter(prefixes))))


def _now() -> float:
    return asyncio.get_running_loop().time()
