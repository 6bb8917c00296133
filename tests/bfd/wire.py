"""Two or more ends of BFD on a virtual wire: time, losses, and what each end reported."""

import heapq
import random
from collections.abc import Callable

from fared.core.bfd import SessionSettings
from fared.protocols.bfd.messages import SessionKey
from fared.protocols.bfd.packet import ControlPacket, State, decode_packet
from fared.protocols.bfd.session import BfdSession
from fared.protocols.bfd.sessions import Sessions

DELAY = 0.0005
A, B = b"\x0a\0\0\1", b"\x0a\0\0\2"


class End:
    """One router: its sessions, and all that it sent and reported."""

    def __init__(self, wire: "Wire", address: bytes, seed: int) -> None:
        self.wire, self.address = wire, address
        self.sessions = Sessions(random.Random(seed), self)
        self.sent: list[tuple[float, ControlPacket]] = []
        self.reports: list[tuple[float, State, State]] = []
        self.closures: list[SessionKey] = []
        self.logged: list[str] = []
        self.passes: Callable[[ControlPacket], bool] = lambda _: True
        """Whether a packet of this end arrives."""
        self.stopped_until = 0.0
        """The process does not run before that time."""

    def send(self, key: SessionKey, payload: bytes) -> None:
        packet = decode_packet(payload)
        self.sent.append((self.wire.now, packet))
        if self.passes(packet):
            self.wire.post(self.address, key.remote, payload)

    def changed(self, key: SessionKey, session: BfdSession) -> None:
        self.reports.append((self.wire.now, session.state, session.remote_state))

    def closed(self, key: SessionKey) -> None:
        self.closures.append(key)

    def discarded(self, reason: str, ifindex: int, source: bytes, effect: str) -> None:
        self.logged.append(reason)

    def open(self, remote: bytes, settings: SessionSettings, **options) -> BfdSession:
        key = SessionKey(1, remote)
        assert self.sessions.open(key, settings, self.wire.now, **options)
        return self.session(remote)

    def close(self, remote: bytes) -> None:
        self.sessions.close(SessionKey(1, remote), self.wire.now)

    def session(self, remote: bytes) -> BfdSession:
        return dict(self.sessions.items())[SessionKey(1, remote)]

    def downs(self) -> list[float]:
        return [at for at, state, _ in self.reports if state is State.DOWN]


class Wire:
    """Virtual time; packets arrive after ``DELAY``."""

    def __init__(self) -> None:
        self.now = 100.0
        self._flying: list[tuple[float, int, bytes, bytes, bytes]] = []
        self._order = 0
        self.ends = {A: End(self, A, 1), B: End(self, B, 2)}
        self.a, self.b = self.ends[A], self.ends[B]

    def post(self, source: bytes, destination: bytes, payload: bytes) -> None:
        self._order += 1
        heapq.heappush(self._flying, (self.now + DELAY, self._order, source, destination, payload))

    def run(self, seconds: float) -> None:
        """Let time pass; a process that is stopped gets its packets and timers afterwards."""
        end = self.now + seconds
        while (at := self._next()) is not None and at <= end:
            self.now = max(self.now, at)
            self._step()
        self.now = end

    def until(self, condition: Callable[[], bool], within: float) -> None:
        end = self.now + within
        while not condition():
            at = self._next()
            assert at is not None, "nothing is left to happen"
            assert at <= end, "too late"
            self.now = max(self.now, at)
            self._step()

    def _next(self) -> float | None:
        times = [self._ready(end, end.sessions.next_deadline()) for end in self.ends.values()]
        times += [
            self._ready(self.ends[destination], at) for at, _, _, destination, _ in self._flying
        ]
        return min((at for at in times if at is not None), default=None)

    def _ready(self, end: End, at: float | None) -> float | None:
        return None if at is None else max(at, end.stopped_until)

    def _step(self) -> None:
        waiting = []
        while self._flying and self._flying[0][0] <= self.now:
            item = heapq.heappop(self._flying)
            end = self.ends[item[3]]
            if end.stopped_until > self.now:
                waiting.append(item)
            else:
                end.sessions.receive(1, item[2], item[4], self.now)
        for item in waiting:
            heapq.heappush(self._flying, item)
        for end in self.ends.values():
            if end.stopped_until <= self.now:
                end.sessions.tick(self.now)


FAST = SessionSettings(50_000, 50_000, 3)
USUAL = SessionSettings()


def up(settings: SessionSettings = USUAL, other: SessionSettings | None = None) -> Wire:
    """Two ends whose session is up, their Poll Sequences finished."""
    wire = Wire()
    wire.a.open(B, settings)
    wire.b.open(A, settings if other is None else other)
    both = (wire.a.session(B), wire.b.session(A))
    wire.until(lambda: all(session.state is State.UP for session in both), 5.0)
    wire.run(2.0)
    return wire
