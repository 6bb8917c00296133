"""The session with one neighbor: it connects, resolves collisions, and tells what happens.

Bytes go in, bytes come out. Neither waits without bound: ``reads`` tells whether more bytes of a
stream are taken, and ``send`` refuses messages that the neighbor does not read. Whoever pauses a
session (a routing table that is full of work) stops it from reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from fared.core.streams import (
    CloseStream,
    Connect,
    SendStream,
    StreamClosed,
    StreamId,
    StreamOpened,
    StreamReceived,
    StreamSent,
    unanswered,
)
from fared.core.timers import Timer
from fared.protocols.bgp.packet.capabilities import RestartFlags
from fared.protocols.bgp.packet.codec import encode_notification
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.messages import MessageType, RouteRefresh, Update
from fared.protocols.bgp.packet.notification import (
    Fault,
    hard_reset,
    notification,
    with_text,
)
from fared.protocols.bgp.session.connection import MOST_WAITING, BgpConnection, Surroundings
from fared.protocols.bgp.session.events import (
    Input,
    MessageRejected,
    NeighborSettings,
    RefreshRequested,
    RoomToSend,
    SessionDown,
    SessionEstablished,
    UpdateReceived,
)
from fared.protocols.bgp.session.fsm import BgpState, SessionEvent
from fared.protocols.bgp.session.opening import coding_of
from fared.protocols.igp.counters import PacketCounters

_LONGEST_PAUSE: Final = 60.0
_STABLE: Final = 60.0
"""Seconds after which a session that was up counts as one that works."""
_COLLISION: Final = "the neighbor has opened another connection, which stays"


class BgpSession:
    """The session with the neighbor ``peer``, a number by which events name it."""

    def __init__(
        self,
        process: Surroundings,
        peer: int,
        settings: NeighborSettings,
        counters: PacketCounters | None = None,
    ) -> None:
        self.process, self.peer, self.settings = process, peer, settings
        self.counters = counters or PacketCounters()
        self.paused = False
        self.reason = ""
        """Why it is not up, in words; the last reason if it is."""
        self.since = process.now
        """When it was established, or ended."""
        self._main = BgpConnection(self)
        self._second: BgpConnection | None = None
        self._pending: StreamId | None = None
        self._number = self._failures = 0
        self._wanted = self._refused = False
        self._timer: Timer | None = None
        """Of the next attempt: ConnectRetryTimer, in Idle IdleHoldTimer."""

    @property
    def state(self) -> BgpState:
        """The state of the connection that is ahead."""
        second = BgpState.IDLE if self._second is None else self._second.state
        return max(self._main.state, second)

    @property
    def coding(self) -> Coding:
        """How messages for the neighbor are encoded, while it is established."""
        assert self._main.agreed is not None
        return coding_of(self.settings, self._main.agreed)

    @property
    def dead_at(self) -> float | None:
        """When an established session ends if nothing is heard; None: it does not."""
        return self._main.dead_at if self.state is BgpState.ESTABLISHED else None

    @property
    def again_at(self) -> float | None:
        """When the next attempt begins; None: none is planned."""
        return self._timer.deadline if self._timer is not None and self._timer.active else None

    # -- what the engine asks for -----------------------------------------------------------

    def start(self) -> None:
        """Begin; in Idle, at once."""
        self._wanted = True
        self.process.timers.cancel(self._timer)
        event = SessionEvent.PASSIVE_START if self.settings.passive else SessionEvent.START
        self._main.fire(event)

    def stop(self, text: str = "", fault: Fault = Fault.ADMINISTRATIVE_SHUTDOWN) -> None:
        """End the session, and stay Idle; ``text`` is for the operator of the neighbor."""
        self._wanted = False
        self.end(fault, "shut down here", text)
        self.process.timers.cancel(self._timer)
        self._abandon()

    def end(self, fault: Fault, reason: str, text: str = "") -> None:
        """End the connections with a Cease; without ``stop`` the session begins again later."""
        texts = (Fault.ADMINISTRATIVE_SHUTDOWN, Fault.ADMINISTRATIVE_RESET)
        note = with_text(fault, text) if fault in texts else notification(fault)
        second = self._second
        if second is not None:
            second.fire(SessionEvent.STOP, reason, note)
        main = self._main
        # RFC 8538 §3: otherwise the neighbor would keep the routes
        known = main.agreed is not None and _notifies(main)
        main.fire(SessionEvent.STOP, reason, hard_reset(note) if known else note)

    def send(self, message: bytes) -> bool:
        """Send a message of an established session; False: not now, RoomToSend tells when."""
        main = self._main
        if main.state is not BgpState.ESTABLISHED:
            return False
        if main.unsent and main.unsent + len(message) > MOST_WAITING:
            self._refused = True
            return False
        main.send(message)
        return True

    def reads(self, stream: StreamId) -> bool:
        """Whether bytes of a stream are taken: if not, nobody should read it."""
        found = self._of(stream)
        return found is not None and found.reads

    def reading(self) -> Iterator[tuple[StreamId, bool]]:
        """Yield the streams that are open, and whether bytes of each are taken."""
        for one in (self._main, self._second):
            if one is not None and one.stream is not None:
                yield one.stream, one.reads

    def pause(self, *, paused: bool) -> None:
        """Process no messages, or go on."""
        self.paused = paused
        for one in (self._main, self._second):
            if one is not None and not paused:
                one.work()

    # -- what the edge tells ----------------------------------------------------------------

    def handle(self, event: Input) -> None:
        """Process an input."""
        if isinstance(event, StreamOpened):
            self._opened(event.stream)
            return
        found = self._of(event.stream)
        if isinstance(event, StreamClosed) and event.stream == self._pending:
            self._pending = None
            if self._main.state is BgpState.CONNECT:
                self._main.fire(SessionEvent.STREAM_CLOSED, event.reason)
        if found is None:
            return
        match event:
            case StreamReceived():
                found.receive(event.data)
            case StreamSent():
                found.sent(event.count)
            case StreamClosed():
                found.fire(SessionEvent.STREAM_CLOSED, event.reason)

    def _of(self, stream: StreamId) -> BgpConnection | None:
        for one in (self._main, self._second):
            if one is not None and one.stream == stream:
                return one
        return None

    def _opened(self, stream: StreamId) -> None:
        if not stream.passive:
            if stream != self._pending:
                self.process.emit(CloseStream(stream))
                return
            self._pending = None
        main = self._main
        if main.state is BgpState.IDLE:
            # RFC 4271 §8.2.2: Idle refuses connections
            self.process.emit(CloseStream(stream))
        elif main.stream is None:
            main.opened(stream)
        elif main.state is BgpState.ESTABLISHED and not self._restarts(main, stream):
            # RFC 4271 §6.8: a session that is established stays
            note = notification(Fault.CONNECTION_COLLISION_RESOLUTION)
            self.counters.sent[MessageType.NOTIFICATION.label] += 1
            self.process.emit(SendStream(stream, encode_notification(note)))
            self.process.emit(CloseStream(stream))
        else:
            if self._second is not None:
                self._dump(self._second)
            self._second = BgpConnection(self, BgpState.CONNECT)
            self._second.opened(stream)

    @staticmethod
    def _restarts(main: BgpConnection, stream: StreamId) -> bool:
        """Whether a new connection means that the neighbor has restarted (RFC 4724 §4.2)."""
        return stream.passive and main.agreed is not None and main.agreed.restart is not None

    # -- what connections tell --------------------------------------------------------------

    def connect(self, connection: BgpConnection) -> None:
        """Open a connection; if it takes too long, another one (RFC 4271 §8.2.2, event 9)."""
        del connection
        self._abandon()
        self._number += 1
        self._pending = StreamId(self.peer, passive=False, number=self._number)
        self.process.emit(Connect(self._pending, self.settings.transport))
        self._arm(self.settings.connect_retry, self._retry)

    def listen(self, connection: BgpConnection) -> None:
        """Wait for the neighbor to connect, and try again after a while."""
        if connection is self._second or self._second is not None:
            self._forget(connection)
            return
        self.reason = connection.reason
        if not self.settings.passive:
            self._arm(self.settings.connect_retry, self._retry)

    def _arm(self, seconds: float, action: Callable[[], None]) -> None:
        self.process.timers.cancel(self._timer)
        # RFC 4271 §10
        seconds *= 0.75 + 0.25 * self.process.rng.random()
        self._timer = self.process.timers.arm(self.process.now + seconds, action)

    def _retry(self) -> None:
        if self._pending is not None:
            self.reason = unanswered(self.settings.transport)
        self._main.fire(SessionEvent.CONNECT_RETRY)

    def _abandon(self) -> None:
        """Give up a connection that is not open yet."""
        if self._pending is not None:
            self.process.emit(CloseStream(self._pending))
            self._pending = None

    def collides(self, connection: BgpConnection, identifier: int, number: int) -> bool:
        """Decide which of two connections stays (RFC 4271 §6.8); whether this one was closed."""
        other = self._second if connection is self._main else self._main
        if other is None or other.state < BgpState.OPEN_CONFIRM:
            return False
        assert connection.stream is not None
        assert other.stream is not None
        if other.state is BgpState.ESTABLISHED:
            keep = self._restarts(other, connection.stream)
        elif other.stream.passive == connection.stream.passive:
            # the neighbor has given up the older one
            keep = True
        else:
            # that of the higher identifier; RFC 6286 §2.3: of equal ones, the higher AS
            ours = (self.settings.identifier, self.settings.local_as) > (identifier, number)
            keep = connection.stream.passive is not ours
        self._dump(other if keep else connection)
        return not keep

    def _dump(self, connection: BgpConnection) -> None:
        note = notification(Fault.CONNECTION_COLLISION_RESOLUTION)
        connection.fire(SessionEvent.COLLISION, _COLLISION, note)

    def established(self, connection: BgpConnection) -> None:
        """Tell that routes may be exchanged."""
        assert connection.agreed is not None
        other = self._second if connection is self._main else self._main
        self._main, self._second = connection, None
        if other is not None and other is not connection:
            self._dump(other)
        self._abandon()
        self.process.timers.cancel(self._timer)
        self.since, self._refused = self.process.now, False
        self.process.emit(SessionEstablished(self.peer, connection.agreed))

    def deliver(self, message: Update | RouteRefresh) -> None:
        """Pass a message on."""
        if isinstance(message, Update):
            self.process.emit(UpdateReceived(self.peer, message))
        else:
            self.process.emit(RefreshRequested(self.peer, message))

    def rejected(self, kind: str, code: int) -> None:
        """Tell that a message ends the session."""
        self.process.emit(MessageRejected(self.peer, kind, code))

    def room(self) -> None:
        """Tell that messages are taken again, if one was refused."""
        if self._refused:
            self._refused = False
            self.process.emit(RoomToSend(self.peer))

    def ended(self, connection: BgpConnection, was: BgpState, event: SessionEvent) -> None:
        """Tell why, and begin again after a while, which grows if it fails again and again."""
        up = was is BgpState.ESTABLISHED
        if connection not in (self._main, self._second):
            return
        if up or self._second is None:
            self.reason = connection.reason
            keeps = up and _keeps_routes(connection, event)
            self.process.emit(SessionDown(self.peer, connection.reason, up, keeps))
        if self._second is not None:
            self._forget(connection)
            return
        lasted = up and self.process.now - self.since >= _STABLE
        if lasted or (up and event is SessionEvent.STREAM_CLOSED):
            self._failures = 0
        self.since = self.process.now
        if self._wanted:
            pause = min(_LONGEST_PAUSE, self.settings.connect_retry * 2**self._failures)
            self._failures += event is not SessionEvent.COLLISION
            self._abandon()
            self._arm(pause, self.start)

    def _forget(self, connection: BgpConnection) -> None:
        """Go on with the other connection."""
        if connection is self._main and self._second is not None:
            self._main = self._second
        self._second = None


def _notifies(connection: BgpConnection) -> bool:
    """Whether routes are kept after a NOTIFICATION, too (RFC 8538 §2): both sides say so."""
    restart = None if connection.agreed is None else connection.agreed.restart
    return restart is not None and bool(restart.flags & RestartFlags.NOTIFICATION)


def _keeps_routes(connection: BgpConnection, event: SessionEvent) -> bool:
    """Whether the neighbor goes on forwarding while its session is down."""
    if connection.agreed is None or connection.agreed.restart is None:
        return False
    if event in (SessionEvent.STREAM_CLOSED, SessionEvent.COLLISION):
        return True
    note = connection.note
    hard = note is not None and note.kind == Fault.HARD_RESET.value
    return _notifies(connection) and not hard
