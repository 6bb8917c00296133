"""All sessions: which one a packet belongs to (RFC 5880 §6.3), and how sessions come and go."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from fared.core.bfd import MICROSECONDS, SessionSettings
from fared.core.log_limit import LogRateLimiter, Verdict
from fared.core.rng import Rng
from fared.core.timers import TimerQueue
from fared.core.wire import DecodeError
from fared.protocols.bfd.messages import SessionKey
from fared.protocols.bfd.packet import YOUR_DISCRIMINATOR, State, decode_packet
from fared.protocols.bfd.session import BfdSession

MAX_SESSIONS = 2048
_PATIENCE = 10.0
"""Seconds for which packets without a session are no news: the usual hello interval."""
_DISCRIMINATORS = 1 << 32


class SessionPort(Protocol):
    """What sessions need of the process around them."""

    def send(self, key: SessionKey, payload: bytes) -> None:
        """Send a packet to the neighbor of a session."""

    def changed(self, key: SessionKey, session: BfdSession) -> None:
        """The state of a session, or that of its neighbor, changed."""

    def closed(self, key: SessionKey) -> None:
        """A session sends no more packets."""

    def discarded(self, reason: str, ifindex: int, source: bytes, effect: str) -> None:
        """A packet without a session, or that its session refused, is to be logged."""


class Sessions:
    """Sessions by interface and neighbor, and by discriminator.

    A session that is removed while it is up stays for its detection time in AdminDown, so that
    the neighbor does not take the end of the packets for a failure (RFC 5882 §4.3.1).
    """

    def __init__(self, rng: Rng, port: SessionPort) -> None:
        self.now = 0.0
        self.counters: Counter[str] = Counter()
        """Discarded packets without a session, by reason."""
        self._rng, self._port = rng, port
        self._timers = TimerQueue()
        self._keys: dict[BfdSession, SessionKey] = {}
        self._by_key: dict[SessionKey, BfdSession] = {}
        self._by_discriminator: dict[bytes, BfdSession] = {}
        self._log_limiter = LogRateLimiter()

    def __len__(self) -> int:
        return len(self._by_key)

    # -- sessions ---------------------------------------------------------------------------

    def open(
        self,
        key: SessionKey,
        settings: SessionSettings,
        now: float,
        discriminators: tuple[int, int] | None = None,
    ) -> bool:
        """Run a session, or apply settings to it; False: there are too many."""
        self.now = now
        session = self._by_key.get(key)
        if session is not None:
            session.configure(settings)
            session.enable()
            return True
        if len(self._by_key) >= MAX_SESSIONS:
            return False
        local, remote = discriminators or (0, 0)
        if not local or local.to_bytes(4, "big") in self._by_discriminator:
            local = self._discriminator()
        # a sequence number of the former process is not known: its authentication begins anew
        if settings.key is not None:
            remote = 0
        session = BfdSession(settings, local, self._timers, self._rng, self)
        self._by_key[key], self._keys[session] = session, key
        self._by_discriminator[local.to_bytes(4, "big")] = session
        session.start(remote)
        return True

    def close(self, key: SessionKey, now: float) -> None:
        """End a session: at once if it is down, else after the neighbor has been told."""
        self.now = now
        session = self._by_key.get(key)
        if session is None or session.state is State.ADMIN_DOWN:
            return
        if session.state is State.DOWN:
            self._drop(session)
            return
        session.disable()
        interval = max(session.desired_min_tx, session.remote_min_rx) / MICROSECONDS
        last = now + session.settings.multiplier * interval
        self._timers.arm(last, lambda: self._left(session))

    def _left(self, session: BfdSession) -> None:
        if session in self._keys and session.state is State.ADMIN_DOWN:
            self._drop(session)

    def _drop(self, session: BfdSession) -> None:
        session.close()
        key = self._keys.pop(session)
        del self._by_key[key]
        del self._by_discriminator[session.local_discr.to_bytes(4, "big")]
        self._port.closed(key)

    def leave(self, now: float) -> None:
        """Tell all neighbors that the sessions end without a failure."""
        self.now = now
        for session in self._by_key.values():
            session.disable()

    def _discriminator(self) -> int:
        while True:
            found = int(self._rng.random() * _DISCRIMINATORS)
            if found and found.to_bytes(4, "big") not in self._by_discriminator:
                return found

    def items(self) -> list[tuple[SessionKey, BfdSession]]:
        """Return the sessions that are not ending."""
        return [
            (key, session)
            for key, session in self._by_key.items()
            if session.state is not State.ADMIN_DOWN
        ]

    # -- packets and time -------------------------------------------------------------------

    def receive(self, ifindex: int, source: bytes, payload: bytes, now: float) -> None:
        """Process a packet that arrived with TTL 255."""
        self.now = now
        session = self._by_discriminator.get(payload[YOUR_DISCRIMINATOR])
        same_link = session is not None and self._keys[session].ifindex == ifindex
        if session is not None and same_link and session.settled == payload:
            session.repeated()
            return
        try:
            packet = decode_packet(payload)
        except DecodeError as error:
            self._discard(error.code, ifindex, source)
            return
        # RFC 5880 §6.3: the first packets of a neighbor have no discriminator of ours; RFC 5881 §3
        if not packet.your_discriminator:
            session = self._by_key.get(SessionKey(ifindex, source))
        # The neighbor may know of the adjacency before we do, or still be of one that has ended.
        if session is None:
            self._discard("no-session", ifindex, source, patience=_PATIENCE)
            return
        # a neighbor may send from another address of its own, but from this link
        if self._keys[session].ifindex != ifindex:
            self._discard("no-session", ifindex, source)
            return
        problem = session.receive(packet, payload)
        if problem is not None:
            self._log_discarded(problem, ifindex, source)

    def reject(self, reason: str, ifindex: int, source: bytes, now: float) -> None:
        """Count a packet that was refused before it was read."""
        self.now = now
        self._discard(reason, ifindex, source)

    def tick(self, now: float) -> None:
        """Fire the timers that are due."""
        self.now = now
        self._timers.fire(now)

    def next_deadline(self) -> float | None:
        """When to call ``tick`` at the latest."""
        return self._timers.next_deadline()

    def _discard(self, reason: str, ifindex: int, source: bytes, *, patience: float = 0.0) -> None:
        """Count a packet, and log it if its kind has been coming for ``patience`` seconds."""
        self.counters[reason] += 1
        sender = int.from_bytes(source, "big")
        if not patience or self._log_limiter.lasts(sender, reason, self.now, patience):
            self._log_discarded(reason, ifindex, source)

    def _log_discarded(self, reason: str, ifindex: int, source: bytes) -> None:
        verdict = self._log_limiter.judge(int.from_bytes(source, "big"), reason, self.now)
        if verdict is not Verdict.SUPPRESS:
            again = "counted but not logged for a minute" if verdict is Verdict.LOG_LAST else ""
            self._port.discarded(reason, ifindex, source, again)

    # -- SessionOwner -----------------------------------------------------------------------

    def send(self, session: BfdSession, payload: bytes) -> None:
        """Send a packet to the neighbor of a session."""
        self._port.send(self._keys[session], payload)

    def changed(self, session: BfdSession) -> None:
        """Report a change of a session, unless it is ending."""
        if session.state is not State.ADMIN_DOWN:
            self._port.changed(self._keys[session], session)
