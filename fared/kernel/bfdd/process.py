"""The loop: packets and requests are read before timers run, so that none counts as missing."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable

from fared.core.rng import Rng
from fared.kernel.bfdd.link import DaemonLink
from fared.kernel.bfdd.sockets import TTL, Sender, read_all, receiving_socket
from fared.protocols.bfd.messages import (
    REPORTED_AT_ONCE,
    VERSION,
    Ask,
    CloseSession,
    Greeting,
    OpenSession,
    Ready,
    Report,
    SessionKey,
    SessionReport,
    StateChange,
    Trouble,
)
from fared.protocols.bfd.session import BfdSession
from fared.protocols.bfd.sessions import Sessions

_RETRY = 2.0
"""Seconds until a receiving socket that could not be opened is tried again."""
_SILENT = 60.0
"""Seconds in which a failure to send is logged once."""


class BfdProcess:
    """Sessions, their sockets, and the link to the daemon."""

    def __init__(
        self, link: DaemonLink, rng: Rng, clock: Callable[[], float], priority: str
    ) -> None:
        self._link, self._rng, self._clock = link, rng, clock
        self._sessions = Sessions(rng, self)
        self._senders: dict[SessionKey, Sender] = {}
        self._receivers: dict[int, socket.socket | None] = {}
        """By length of the addresses; None: to be tried again."""
        self._retry_at = 0.0
        self._quiet_until = 0.0
        self._running = True
        self._selector = selectors.DefaultSelector()
        self._selector.register(link.sock, selectors.EVENT_READ, self._requests)
        link.send(Ready(VERSION, priority))

    def run(self) -> None:
        """Run until the daemon ends; neighbors are told that this is no failure of the path."""
        sessions, clock, select = self._sessions, self._clock, self._selector.select
        while self._running:
            deadline = sessions.next_deadline()
            if None in self._receivers.values():
                deadline = min(self._retry_at, deadline or self._retry_at)
            for ready, mask in select(None if deadline is None else max(0.0, deadline - clock())):
                ready.data(mask)
            sessions.tick(clock())
            if None in self._receivers.values() and clock() >= self._retry_at:
                self._open_receivers()
            self._watch_link()
        sessions.leave(clock())

    # -- the daemon -------------------------------------------------------------------------

    def _watch_link(self) -> None:
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._link.blocked else 0)
        if self._selector.get_key(self._link.sock).events != wanted:
            self._selector.modify(self._link.sock, wanted, self._requests)

    def _requests(self, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            self._link.flush()
        if mask & selectors.EVENT_READ:
            for request in self._link.requests():
                if self._running:
                    self._answer(request)
            self._running &= not self._link.closed

    def _answer(self, request: object) -> None:
        match request:
            case None:
                self._trouble("error", "bfd-message-refused")
            case Greeting(version) if version != VERSION:
                self._trouble("error", "bfd-version", daemon=version, process=VERSION)
                self._running = False
            case OpenSession():
                self._open(request)
            case CloseSession(key):
                self._sessions.close(key, self._clock())
            case Ask():
                self._report()

    def _open(self, request: OpenSession) -> None:
        key = request.key
        size = len(key.remote)
        if size not in self._receivers:
            self._receivers[size] = None
            self._open_receivers()
        sender = self._senders.get(key)
        wanted = (request.interface, request.local)
        if sender is None or (sender.interface, sender.local) != wanted:
            if sender is not None:
                sender.close()
            self._senders[key] = Sender(key.ifindex, *wanted, key.remote, self._rng)
        accepted = self._sessions.open(key, request.settings, self._clock(), request.discriminators)
        if not accepted:
            self.closed(key)
            self._trouble("error", "bfd-too-many-sessions", interface=request.interface)

    def _open_receivers(self) -> None:
        for size, sock in self._receivers.items():
            if sock is not None:
                continue
            self._retry_at = self._clock() + _RETRY
            try:
                opened = self._receivers[size] = receiving_socket(size)
            except OSError as error:
                family = "ipv4" if size == 4 else "ipv6"
                self._trouble(
                    "error", "bfd-socket", family=family, error=error.strerror or str(error)
                )
            else:
                self._selector.register(opened, selectors.EVENT_READ, self._reader(opened))

    def _reader(self, sock: socket.socket) -> Callable[[int], None]:
        return lambda _: read_all(sock, self._received)

    def _report(self) -> None:
        now = self._clock()
        items = self._sessions.items()
        counters = dict(self._sessions.counters)
        for at in range(0, max(1, len(items)), REPORTED_AT_ONCE):
            part = items[at : at + REPORTED_AT_ONCE]
            reports = tuple(self._session_report(key, session, now) for key, session in part)
            last = at + REPORTED_AT_ONCE >= len(items)
            self._link.send(Report(reports, counters, last))

    def _session_report(self, key: SessionKey, session: BfdSession, now: float) -> SessionReport:
        return SessionReport(
            key=key,
            state=session.state,
            remote_state=session.remote_state,
            diagnostic=session.diagnostic,
            remote_diagnostic=session.remote_diagnostic,
            local_discr=session.local_discr,
            remote_discr=session.remote_discr,
            source_port=self._senders[key].source_port,
            since=now - session.since,
            transmit_interval=session.transmit_interval,
            detection_time=session.detection_time,
            remote_min_tx=session.remote_min_tx,
            remote_min_rx=session.remote_min_rx,
            remote_mult=session.remote_mult,
            counters=session.counters,
        )

    def _trouble(self, level: str, event: str, **fields: str | int) -> None:
        self._link.send(Trouble(level, event, fields))

    # -- packets ----------------------------------------------------------------------------

    def _received(self, ifindex: int, source: bytes, ttl: int, payload: bytes) -> None:
        # RFC 5881 §5: without authentication a packet with another TTL must be discarded; here
        # all are, since neighbors are on the link and send 255
        if ttl != TTL:
            self._sessions.reject("ttl", ifindex, source, self._clock())
        else:
            self._sessions.receive(ifindex, source, payload, self._clock())

    # -- SessionPort ------------------------------------------------------------------------

    def send(self, key: SessionKey, payload: bytes) -> None:
        """Send a packet of a session; a failure is logged once a minute."""
        try:
            self._senders[key].send(payload)
        except OSError as error:
            now = self._clock()
            if now >= self._quiet_until:
                self._quiet_until = now + _SILENT
                name = self._senders[key].interface
                self._trouble("warning", "bfd-not-sent", interface=name, error=str(error))

    def changed(self, key: SessionKey, session: BfdSession) -> None:
        """Report the state of a session to the daemon."""
        self._link.send(
            StateChange(
                key,
                session.state,
                session.remote_state,
                session.diagnostic,
                session.remote_diagnostic,
                session.local_discr,
                session.remote_discr,
                session.remote_independent,
            )
        )

    def closed(self, key: SessionKey) -> None:
        """Close the socket of a session."""
        sender = self._senders.pop(key, None)
        if sender is not None:
            sender.close()

    def discarded(self, reason: str, ifindex: int, source: bytes, effect: str) -> None:
        """Log a discarded packet."""
        family = socket.AF_INET if len(source) == 4 else socket.AF_INET6
        fields: dict[str, str | int] = {
            "reason": reason,
            "ifindex": ifindex,
            "source": socket.inet_ntop(family, source),
        }
        if effect:
            fields["effect"] = effect
        self._link.send(Trouble("warning", "bfd-discarded", fields))
