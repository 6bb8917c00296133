"""One BFD session in asynchronous mode (RFC 5880 §6.8), driven by packets and time.

Its own lateness is measured. A session that sends later than it planned did not get the CPU, and
its neighbor's packets may be delayed by the same cause: it counts that, and extends the present
detection time by the delay, at most by one detection time. A true failure is then detected within
twice the detection time.

``repeated`` is a fast path beside ``receive``: tests/bfd/test_session.py proves them equal; row
``BFD: repeated packets``.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from fared.core.bfd import MICROSECONDS, SessionSettings
from fared.core.rng import Rng
from fared.core.timers import Timer, TimerQueue
from fared.protocols.bfd.auth import Verifier, sign
from fared.protocols.bfd.fsm import RECEIVED, SESSION_TABLE, Event
from fared.protocols.bfd.packet import (
    ControlPacket,
    Diagnostic,
    State,
    discard_reason,
    encode_packet,
)

SLOW_TX = MICROSECONDS
"""RFC 5880 §6.8.3: the least DesiredMinTxInterval unless the session is up."""
_JITTER = 0.25
"""RFC 5880 §6.8.7: a packet is up to this part of the interval early."""
_LEAST_JITTER = 0.1
"""§6.8.7: with a detection multiplier of 1, at least this part."""
_LATE = 0.1
"""Part of an interval by which a session may be late without being counted."""
_SEQUENCES = 1 << 32


class SessionOwner(Protocol):
    """Sends the packets of sessions, and reports their changes; ``now`` is the present time."""

    now: float

    def send(self, session: BfdSession, payload: bytes) -> None:
        """Send a packet to the neighbor of a session."""

    def changed(self, session: BfdSession) -> None:
        """The state of a session, or that of its neighbor, changed."""


class SessionCounters(msgspec.Struct):
    """Counters of a session; ``worst_late`` in seconds."""

    sent: int = 0
    received: int = 0
    discarded: dict[str, int] = msgspec.field(default_factory=dict)
    ups: int = 0
    downs: int = 0
    late: int = 0
    worst_late: float = 0.0
    extended: int = 0


class BfdSession:
    """One session; the names of its variables are those of RFC 5880 §6.8.1.

    Call ``start`` once.
    """

    def __init__(
        self,
        settings: SessionSettings,
        local_discr: int,
        timers: TimerQueue,
        rng: Rng,
        owner: SessionOwner,
    ) -> None:
        self.settings = settings
        self.state = State.DOWN
        self.remote_state = State.DOWN
        self.local_discr = local_discr
        self.remote_discr = 0
        self.diagnostic = int(Diagnostic.NONE)
        self.remote_diagnostic = 0
        self.remote_min_rx = 1
        self.remote_min_tx = 0
        self.remote_mult = 0
        self.remote_demand = self.remote_independent = False
        self.required_min_rx = settings.min_rx
        """In use for the detection time."""
        self.desired_min_tx = SLOW_TX
        """In use for transmission; §6.8.3 delays some changes until a Poll Sequence ends."""
        self.counters = SessionCounters()
        self.since = owner.now
        self.settled: bytes | None = None
        """The last packet, if it only restarts the detection time when it is repeated."""
        self._timers, self._rng, self._owner = timers, rng, owner
        self._polling = self._poll_again = False
        self._verifier = None if settings.key is None else Verifier(settings.key)
        self._sequence = int(rng.random() * _SEQUENCES)
        self._tx_timer: Timer | None = None
        self._detect_timer: Timer | None = None
        self._detect_at = 0.0
        self._grace = 0.0
        """Seconds by which the present detection time has been extended."""
        self._reported = (self.state, self.remote_state)
        self._sent: bytes | None = None
        """The contents of the last packet without P and F; None: to be encoded."""

    # -- life -------------------------------------------------------------------------------

    def start(self, resumed: int = 0) -> None:
        """Begin to send; ``resumed``: the session was up, with this remote discriminator."""
        if resumed:
            self.state = self.remote_state = State.UP
            self.remote_discr = resumed
            self.desired_min_tx = self._wanted_tx()
            self.remote_mult, self.remote_min_tx = self.settings.multiplier, self.settings.min_tx
            self._polling = True
            self._heard()
        self._transmit()

    def configure(self, settings: SessionSettings) -> None:
        """Apply other timers (RFC 5880 §6.8.3); another key ends the session."""
        if settings == self.settings:
            return
        if settings.key != self.settings.key:
            self._verifier = None if settings.key is None else Verifier(settings.key)
        self.settings = settings
        self._intervals_changed()

    def disable(self) -> None:
        """Tell the neighbor that the session ends without a failure (§6.8.16)."""
        self._fire(Event.DISABLED)

    def enable(self) -> None:
        """Run again after ``disable``."""
        self._fire(Event.ENABLED)

    def close(self) -> None:
        """Cancel the timers."""
        self._timers.cancel(self._tx_timer)
        self._timers.cancel(self._detect_timer)

    @property
    def detection_time(self) -> float:
        """Seconds without a packet after which the session is down (§6.8.4); 0 if unknown."""
        interval = max(self.required_min_rx, self.remote_min_tx)
        return self.remote_mult * interval / MICROSECONDS

    @property
    def transmit_interval(self) -> float:
        """Seconds between two packets, before jitter (§6.8.7); 0: none are sent."""
        if not self.remote_min_rx:
            return 0.0
        return max(self.desired_min_tx, self.remote_min_rx) / MICROSECONDS

    # -- receiving --------------------------------------------------------------------------

    def repeated(self) -> None:
        """Process a packet equal to ``settled``: the neighbor is alive, nothing else changes."""
        self.counters.received += 1
        self._heard()

    def receive(self, packet: ControlPacket, payload: bytes) -> str | None:
        """Process a packet of this session (§6.8.6); return why it was discarded, else None."""
        problem = self._problem(packet, payload)
        if problem is not None:
            self.counters.discarded[problem] = self.counters.discarded.get(problem, 0) + 1
            return problem
        self.counters.received += 1
        before = self.transmit_interval
        self._take(packet)
        # §6.8.6: the final packet ends the Poll Sequence
        if packet.final and self._polling:
            self._poll_ended()
        self._heard()
        if self.state is State.ADMIN_DOWN:
            return None
        self._fire(RECEIVED[packet.state], quiet=packet.poll)
        self._report()
        # §6.8.6: answer a poll at once, whatever the transmit timer
        if packet.poll:
            self._send(final=True)
        # §6.8.7: an interval that became shorter applies at once
        interval = self.transmit_interval
        if interval < before or (interval and self._tx_timer is None):
            self._arm_tx()
        simple = self._verifier is None and not (packet.poll or packet.final)
        self.settled = payload if simple and self.state is State.UP else None
        return None

    def _problem(self, packet: ControlPacket, payload: bytes) -> str | None:
        reason = discard_reason(packet)
        if reason is not None:
            return reason
        # §6.8.6: authentication is in use on both ends, or on none
        if self._verifier is not None:
            return self._verifier.problem(packet, payload)
        return None if packet.authentication is None else "auth-not-in-use"

    def _take(self, packet: ControlPacket) -> None:
        """Store the variables of the neighbor (§6.8.6)."""
        if self.remote_discr != packet.my_discriminator:
            self.remote_discr, self._sent = packet.my_discriminator, None
        self.remote_state = packet.state
        self.remote_diagnostic = packet.diagnostic
        self.remote_demand = packet.demand
        self.remote_independent = packet.control_plane_independent
        self.remote_min_rx = packet.required_min_rx
        self.remote_min_tx = packet.desired_min_tx
        self.remote_mult = packet.detect_mult

    def _heard(self) -> None:
        """Restart the detection time; an armed timer compares when it fires."""
        self._grace = 0.0
        self._detect_at = self._owner.now + self.detection_time
        timer = self._detect_timer
        if timer is None or not timer.active or timer.deadline > self._detect_at:
            self._arm_detection()

    # -- detection --------------------------------------------------------------------------

    def _arm_detection(self) -> None:
        self._timers.cancel(self._detect_timer)
        self._detect_timer = self._timers.arm(self._detect_at, self._detect)

    def _detect(self) -> None:
        """Fire: the detection time may have expired (§6.8.4)."""
        timer, now = self._detect_timer, self._owner.now
        assert timer is not None
        self._was_late(now - timer.deadline)
        if now < self._detect_at:
            self._arm_detection()
            return
        self.settled = self._sent = None
        # §6.8.1
        self.remote_min_rx = 1
        expired = self.state in (State.INIT, State.UP)
        # The packet that reports it still has the discriminator of the neighbor: bfdd of FRR 8.4
        # finds no session between link-local addresses without it, and would notice 3 packets later
        if expired:
            self._fire(Event.EXPIRED)
        self.remote_discr, self._sent = 0, None
        # §6.8.1, bfd.AuthSeqKnown: until another packet was missing for as long again
        if not expired and self._verifier is not None:
            self._verifier.known = False
            return
        if self._verifier is not None:
            self._detect_at = now + self.detection_time
            self._arm_detection()

    def _was_late(self, late: float) -> None:
        """Count a timer that fired late, and extend the detection time by the delay."""
        if late <= _LATE * self.settings.min_tx / MICROSECONDS:
            return
        counters = self.counters
        counters.late += 1
        counters.worst_late = max(counters.worst_late, late)
        extension = min(late, self.detection_time - self._grace)
        if self.state is State.UP and extension > 0:
            self._grace += extension
            self._detect_at += extension
            counters.extended += 1

    # -- state ------------------------------------------------------------------------------

    def _fire(self, event: Event, *, quiet: bool = False) -> None:
        """Run an event through the table; ``quiet``: the caller sends."""
        transition = SESSION_TABLE.find(self.state, event)
        if transition is None or transition.target is None:
            return
        previous, self.state = self.state, transition.target
        if transition.action is not None:
            self.diagnostic = int(transition.action)
        self.since = self._owner.now
        self.settled = None
        if self.state is State.UP:
            self.diagnostic = int(Diagnostic.NONE)
            self.counters.ups += 1
        if previous is State.UP:
            self.counters.downs += 1
        self._intervals_changed(quiet=True)
        self._report()
        # §6.8.7: other contents are sent at once
        if not quiet:
            self._transmit()

    def _report(self) -> None:
        states = (self.state, self.remote_state)
        if states != self._reported:
            self._reported = states
            self._owner.changed(self)

    # -- intervals --------------------------------------------------------------------------

    def _wanted_tx(self) -> int:
        """Return bfd.DesiredMinTxInterval: at least a second unless the session is up (§6.8.3)."""
        wanted = self.settings.min_tx
        return wanted if self.state is State.UP else max(wanted, SLOW_TX)

    def _intervals_changed(self, *, quiet: bool = False) -> None:
        """Announce intervals with a Poll Sequence, and use those that may be used now (§6.8.3)."""
        self._sent = None
        if self.state is not State.UP:
            self._polling = self._poll_again = False
            self._use_intervals()
            return
        # §6.8.3: a longer transmit interval and a shorter receive interval wait for its end
        self.desired_min_tx = min(self.desired_min_tx, self._wanted_tx())
        self.required_min_rx = max(self.required_min_rx, self.settings.min_rx)
        self._poll_again = self._polling
        self._polling = True
        if not quiet:
            self._transmit()

    def _poll_ended(self) -> None:
        if self._poll_again:  # the settings changed meanwhile: another Poll Sequence (§6.5)
            self._poll_again = False
            return
        self._polling = False
        self._use_intervals()

    def _use_intervals(self) -> None:
        self.desired_min_tx = self._wanted_tx()
        self.required_min_rx = self.settings.min_rx

    # -- sending ----------------------------------------------------------------------------

    def _transmit(self) -> None:
        """Send a packet now, and the next one after the interval."""
        self._send(final=False)
        self._arm_tx()

    def _arm_tx(self) -> None:
        self._timers.cancel(self._tx_timer)
        self._tx_timer = None
        interval = self.transmit_interval
        # §6.8.7: the neighbor wants none, or is in Demand mode and no Poll Sequence is in progress
        demand = self.remote_demand and self.state is self.remote_state is State.UP
        if not interval or (demand and not self._polling):
            return
        least = _LEAST_JITTER if self.settings.multiplier == 1 else 0.0
        early = least + (_JITTER - least) * self._rng.random()
        self._tx_timer = self._timers.arm(self._owner.now + interval * (1 - early), self._tick)

    def _tick(self) -> None:
        timer = self._tx_timer
        assert timer is not None
        self._was_late(self._owner.now - timer.deadline)
        self._transmit()

    def _send(self, *, final: bool) -> None:
        self.counters.sent += 1
        poll = self._polling and not final
        if self._verifier is None and not poll and not final:
            if self._sent is None:
                self._sent = encode_packet(self._packet(poll=False, final=False))
            self._owner.send(self, self._sent)
            return
        packet = self._packet(poll=poll, final=final)
        key = self.settings.key
        if key is None:
            self._owner.send(self, encode_packet(packet))
            return
        self._owner.send(self, sign(packet, key, self._sequence))
        # §6.7.4: meticulous: a new number for each packet; else it may stay
        self._sequence = (self._sequence + key.meticulous) % _SEQUENCES

    def _packet(self, *, poll: bool, final: bool) -> ControlPacket:
        """Build a packet (§6.8.7)."""
        settings = self.settings
        return ControlPacket(
            state=self.state,
            diagnostic=self.diagnostic,
            poll=poll,
            final=final,
            detect_mult=settings.multiplier,
            my_discriminator=self.local_discr,
            your_discriminator=self.remote_discr,
            desired_min_tx=self._wanted_tx(),
            required_min_rx=settings.min_rx,
        )
