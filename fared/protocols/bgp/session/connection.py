"""One connection with a neighbor: its state, its stream, its timers (RFC 4271 §8).

A session has one, or two while a collision lasts. Messages are read in portions: what a neighbor
sends in one piece is processed in several turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from fared.core.rng import Rng
from fared.core.streams import CloseStream, ReadStream, SendStream, StreamId
from fared.core.timers import Timer, TimerQueue
from fared.protocols.bgp.packet.codec import (
    KEEPALIVE,
    Decoder,
    decode_open,
    encode_notification,
    encode_open,
)
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.framing import MAX_EXTENDED, TYPE_AT, Framer
from fared.protocols.bgp.packet.messages import (
    Keepalive,
    MessageType,
    OpenMessage,
    RouteRefresh,
    Update,
)
from fared.protocols.bgp.packet.notification import Fault, MessageError, Notification, notification
from fared.protocols.bgp.session.events import Agreed, NeighborSettings, Output
from fared.protocols.bgp.session.fsm import (
    SESSION_TABLE,
    BgpState,
    SessionAction,
    SessionEvent,
)
from fared.protocols.bgp.session.opening import agree, coding_of, make_open
from fared.protocols.igp.counters import PacketCounters

OPENING_HOLD_TIME: Final = 240.0
"""RFC 4271 §8.2.2: the large hold time until an OPEN has come."""
SEND_HOLD_TIME: Final = 480.0
"""RFC 9687 §4: eight minutes, or twice the hold time, whichever is more."""
PORTION: Final = 100
"""Messages that are processed at once."""
_PORTION_BYTES: Final = 65536
MOST_WAITING: Final = 262144
"""Octets that wait to be read, or to be sent, before no more are taken."""
_LOOK: Final = 1.0
"""Seconds before the hold time is over at which it is looked whether anything has come."""
_EARLIEST: Final = 0.75
"""Part of an interval after which a KEEPALIVE may be sent."""
_OUT_OF_TURN: Final[Mapping[BgpState, Fault]] = MappingProxyType(
    {
        BgpState.OPEN_SENT: Fault.UNEXPECTED_MESSAGE_IN_OPENSENT,
        BgpState.OPEN_CONFIRM: Fault.UNEXPECTED_MESSAGE_IN_OPENCONFIRM,
        BgpState.ESTABLISHED: Fault.UNEXPECTED_MESSAGE_IN_ESTABLISHED,
    }
)
_LABELS: Final = {kind.value: kind.label for kind in MessageType}
_EVENTS: Final[Mapping[type, SessionEvent]] = MappingProxyType(
    {
        Keepalive: SessionEvent.KEEPALIVE,
        Update: SessionEvent.UPDATE,
        RouteRefresh: SessionEvent.REFRESH,
        OpenMessage: SessionEvent.OPEN,
    }
)


class Surroundings(Protocol):
    """Time, timers, randomness and outputs: those of a ``Process``."""

    @property
    def now(self) -> float:
        """The time."""

    @property
    def timers(self) -> TimerQueue:
        """Its timers."""

    @property
    def rng(self) -> Rng:
        """Its source of randomness."""

    def emit(self, output: Output) -> None:
        """Append an output."""


class ConnectionOwner(Protocol):
    """The session: what it decides for its connections, and hears of them."""

    process: Surroundings
    settings: NeighborSettings
    paused: bool
    counters: PacketCounters

    def connect(self, connection: BgpConnection) -> None:
        """Open a connection, and try again later."""

    def listen(self, connection: BgpConnection) -> None:
        """Wait for a connection, and try again later."""

    def collides(self, connection: BgpConnection, identifier: int, number: int) -> bool:
        """Decide which connection stays, when an OPEN came; whether this one was closed."""

    def established(self, connection: BgpConnection) -> None:
        """The state Established begins."""

    def deliver(self, message: Update | RouteRefresh) -> None:
        """Pass a message on."""

    def rejected(self, kind: str, code: int) -> None:
        """A message ends the session; its type is empty if it is none."""

    def room(self) -> None:
        """The neighbor has read what was sent."""

    def ended(self, connection: BgpConnection, was: BgpState, event: SessionEvent) -> None:
        """The connection is Idle; its ``reason`` tells why."""


class BgpConnection:
    """One connection. ``agreed`` and ``note`` are known once an OPEN, or a NOTIFICATION, came."""

    def __init__(self, owner: ConnectionOwner, state: BgpState = BgpState.IDLE) -> None:
        self._owner, self._process = owner, owner.process
        self.state = state
        self.stream: StreamId | None = None
        self.agreed: Agreed | None = None
        self.note: Notification | None = None
        """What the neighbor, or this router, closed it with."""
        self.reason = ""
        self.unsent = 0
        self.framer = Framer()
        self._decoder = Decoder(Coding())
        self._hold_time, self._heard_at, self._sent_at = 0.0, 0.0, 0.0
        self._hold: Timer | None = None
        self._looked = False
        self._keepalive: Timer | None = None
        self._send_hold: Timer | None = None
        self._work: Timer | None = None
        self._message: Update | RouteRefresh | None = None
        self._kind = ""
        """The type of the last message."""

    @property
    def dead_at(self) -> float | None:
        """When the hold time ends if nothing is heard; None: it never does."""
        return self._heard_at + self._hold_time if self._hold_time else None

    # -- the table --------------------------------------------------------------------------

    def fire(self, event: SessionEvent, reason: str = "", note: Notification | None = None) -> None:
        """Run an event through the table; with the reason, and the NOTIFICATION, if it ends."""
        transition = SESSION_TABLE.find(self.state, event)
        if transition is None or transition.target is None or transition.action is None:
            return
        was, self.state = self.state, transition.target
        action = transition.action
        if action is SessionAction.OUT_OF_TURN:
            note = notification(_OUT_OF_TURN[was])
            reason = f"a message of it came out of turn, in {was.label}"
            self._owner.rejected(self._kind, note.code)
        if self.state in (BgpState.IDLE, BgpState.ACTIVE) and reason:
            self.reason = reason
        if self.state is BgpState.IDLE:
            self.note = note
            if event is not SessionEvent.NOTIFICATION and note is not None:
                self.send(encode_notification(note))
            self._release(closed=event is SessionEvent.STREAM_CLOSED)
            self._owner.ended(self, was, event)
            return
        _ACTIONS[action](self)

    def _release(self, *, closed: bool) -> None:
        for timer in (self._hold, self._keepalive, self._send_hold, self._work):
            self._process.timers.cancel(timer)
        stream, self.stream = self.stream, None
        if stream is not None and not closed:
            self._process.emit(CloseStream(stream))

    def _connect(self) -> None:
        self._owner.connect(self)

    def _listen(self) -> None:
        self._release(closed=True)
        self._owner.listen(self)

    def _deliver(self) -> None:
        self._heard_at = self._process.now
        message, self._message = self._message, None
        if message is not None:
            self._owner.deliver(message)

    # -- opening ----------------------------------------------------------------------------

    def opened(self, stream: StreamId) -> None:
        """Take a stream that is open."""
        self.stream, self.framer, self.unsent = stream, Framer(), 0
        self.agreed, self._message, self._decoder = None, None, Decoder(Coding())
        self.fire(SessionEvent.STREAM_OPENED)

    def _send_open(self) -> None:
        self._start_hold(OPENING_HOLD_TIME)
        self.send(encode_open(make_open(self._owner.settings)))

    def _take_open(self, message: OpenMessage) -> None:
        settings = self._owner.settings
        agreed = agree(settings, message)
        if self._owner.collides(self, agreed.identifier, agreed.number):
            return
        self.agreed = agreed
        # RFC 8654 §4: we have advertised it; whether it has counts for what it is sent
        self.framer.limit = MAX_EXTENDED
        self._decoder = Decoder(coding_of(settings, agreed))
        self.fire(SessionEvent.OPEN)

    def _confirm(self) -> None:
        assert self.agreed is not None
        self._start_hold(self.agreed.hold_time)
        self._send_keepalive()

    def _establish(self) -> None:
        self._heard()
        self._owner.established(self)

    # -- receiving --------------------------------------------------------------------------

    @property
    def reads(self) -> bool:
        """Whether bytes are taken from the stream."""
        return self.framer.waiting < MOST_WAITING and not self._owner.paused

    def receive(self, data: bytes) -> None:
        """Take bytes, and process the first messages."""
        self.framer.feed(data)
        if self._work is None or not self._work.active:
            self.work()

    def work(self) -> None:
        """Process a portion of the messages that are there; the others later."""
        end = self.framer.waiting - _PORTION_BYTES
        for _ in range(PORTION):
            # in Idle and Active there is no stream any more
            if self._owner.paused or self.stream is None or not self._one():
                return
            if self.framer.waiting < end:
                break
        self._process.timers.cancel(self._work)
        if self.stream is not None and self.framer.ready:
            self._work = self._process.timers.arm(self._process.now, self.work)

    def _one(self) -> bool:
        """Process one message; False if none is complete."""
        self._kind = ""
        try:
            found = self.framer.next()
            if found is None:
                return False
            kind, data = found
            self._kind = _LABELS[kind]
            self._owner.counters.received[self._kind] += 1
            if kind == MessageType.OPEN and self.state is BgpState.OPEN_SENT:
                self._take_open(decode_open(data))
                return True
            self._take(kind, data)
        except MessageError as error:
            opening = self.state is BgpState.OPEN_SENT
            self._owner.rejected(self._kind, error.notification.code)
            what = error.what if opening else f"a message of it is malformed: {error.what}"
            self.fire(SessionEvent.BAD_MESSAGE, what, error.notification)
        return True

    def _take(self, kind: int, data: bytes) -> None:
        if self.state is not BgpState.ESTABLISHED and kind == MessageType.UPDATE:
            # not decoded: nothing is agreed on
            self.fire(SessionEvent.UPDATE)
            return
        message = self._decoder.decode(kind, data)
        if isinstance(message, Notification):
            self.fire(SessionEvent.NOTIFICATION, f"it closed the session: {message.words}", message)
            return
        if isinstance(message, Update | RouteRefresh):
            self._message = message
        self.fire(_EVENTS[type(message)])

    # -- timers -----------------------------------------------------------------------------

    def _heard(self) -> None:
        self._heard_at = self._process.now

    def _start_hold(self, seconds: float) -> None:
        self._process.timers.cancel(self._hold)
        self._hold_time, self._looked = seconds, False
        self._heard()
        if seconds:
            first = self._process.now + seconds - self._look
            self._hold = self._process.timers.arm(first, self._hold_due)

    @property
    def _look(self) -> float:
        return min(_LOOK, self._hold_time / 3)

    def _hold_due(self) -> None:
        """End, unless anything was heard; what is busy with others may not have read all yet."""
        now, arm = self._process.now, self._process.timers.arm
        # what waits here has been heard, and while nothing is read nothing can be
        if self.framer.ready or not self.reads:
            self._heard_at = now
        due = self._heard_at + self._hold_time
        if due - self._look > now:
            self._looked = False
            self._hold = arm(due - self._look, self._hold_due)
            return
        if not self._looked and self.stream is not None:
            self._looked = True
            self._process.emit(ReadStream(self.stream, wanted=True))
            self._hold = arm(max(due, now + self._look / 2), self._hold_due)
            return
        what = f"nothing was heard of it for {self._hold_time:g} s"
        self.fire(SessionEvent.HOLD_EXPIRED, what, notification(Fault.HOLD_TIMER_EXPIRED))

    def _send_keepalive(self) -> None:
        # a neighbor that does not read needs no more of them
        if self.unsent < MOST_WAITING:
            self.send(KEEPALIVE)
        interval = self.agreed.keepalive if self.agreed is not None else 0.0
        if interval:
            # RFC 4271 §10; in one wakeup with those of other sessions
            first, now = _EARLIEST * interval, self._process.now
            deadline = now + first + (interval - first) * self._process.rng.random()
            self._process.timers.cancel(self._keepalive)
            arm = self._process.timers.arm
            self._keepalive = arm(deadline, self._keepalive_due, now + first)

    def _keepalive_due(self) -> None:
        self.fire(SessionEvent.KEEPALIVE_DUE)

    # -- sending ----------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send a message."""
        if self.stream is None:
            return
        if not self.unsent:
            self._sent_at = self._process.now
            self._process.timers.cancel(self._send_hold)
            deadline = self._sent_at + self._send_hold_time
            self._send_hold = self._process.timers.arm(deadline, self._send_hold_due)
        self.unsent += len(data)
        self._owner.counters.sent[_LABELS[data[TYPE_AT]]] += 1
        self._process.emit(SendStream(self.stream, data))

    def sent(self, count: int) -> None:
        """The kernel took so many of them."""
        self.unsent = max(0, self.unsent - count)
        self._sent_at = self._process.now
        if not self.unsent:
            self._process.timers.cancel(self._send_hold)
        if self.unsent < MOST_WAITING // 2:
            self._owner.room()

    @property
    def _send_hold_time(self) -> float:
        return max(SEND_HOLD_TIME, 2 * self._hold_time)

    def _send_hold_due(self) -> None:
        due = self._sent_at + self._send_hold_time
        if due > self._process.now:
            self._send_hold = self._process.timers.arm(due, self._send_hold_due)
            return
        what = f"it has read nothing for {self._send_hold_time:g} s"
        self.fire(SessionEvent.SEND_HOLD_EXPIRED, what, notification(Fault.SEND_HOLD_TIMER_EXPIRED))


_A = SessionAction
_ACTIONS: Final[Mapping[SessionAction, Callable[[BgpConnection], None]]] = MappingProxyType(
    {
        _A.CONNECT: BgpConnection._connect,  # noqa: SLF001 - the table of this class
        _A.LISTEN: BgpConnection._listen,  # noqa: SLF001
        _A.SEND_OPEN: BgpConnection._send_open,  # noqa: SLF001
        _A.CONFIRM: BgpConnection._confirm,  # noqa: SLF001
        _A.ESTABLISH: BgpConnection._establish,  # noqa: SLF001
        _A.SEND_KEEPALIVE: BgpConnection._send_keepalive,  # noqa: SLF001
        _A.HEARD: BgpConnection._heard,  # noqa: SLF001
        _A.DELIVER: BgpConnection._deliver,  # noqa: SLF001
    }
)
"""Those that do not end in Idle."""
