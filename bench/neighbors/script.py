"""The script of ``scale``: what all scripted neighbors of the device have in common.

They announce LSAs or LSPs together, each over its own link, and count what the device answers:
acknowledgments within a second, hellos that came late, adjacencies that it gave up.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

HELLO = 10
"""Seconds between two hellos; a neighbor is dead after four of them."""
Send = Callable[[bytes], object]
"""Sends one packet over a link."""
IN_TIME = 1.0
"""Seconds for an acknowledgment to be in time."""
RETRANSMIT = 5.0
"""RxmtInterval (RFC 2328 §C.3), minimumLSPTransmissionInterval (ISO 10589 §7.3.15.6)."""


class Contents(Protocol):
    """The database that the neighbors offer, and its changes; LSAs and LSPs are bytes."""

    def instances(self) -> set[bytes]:
        """Identify the present instance of each LSA."""

    def instance(self, raw: bytes) -> bytes:
        """Identify an instance as acknowledgments do."""

    def packed(self, lsas: Iterable[bytes]) -> list[Any]:
        """Prepare packets that any neighbor can send."""

    def is_newest(self, raw: bytes) -> bool:
        """Whether an LSA has not been replaced by a later instance."""

    def identity(self, instance: bytes) -> bytes:
        """Identify the LSA of which this is an instance."""

    def announcement(self) -> bytes:
        """The next instance of an LSA in which an available bandwidth differs."""

    def cut(self, link: tuple[int, int]) -> list[bytes]:
        """Take a link away at both of its ends; return the changed LSAs."""

    def restore(self, link: tuple[int, int]) -> list[bytes]:
        """Put it back."""


class Neighbor(Protocol):
    """An emulated neighbor on one link."""

    script: Script
    bit: int
    silent: bool
    heard_at: float

    @property
    def pending(self) -> bool:
        """Whether ``push`` has something to send."""

    def hello(self) -> None:
        """Send a hello, due once in a hello interval."""

    def say(self, body: Any) -> None:  # noqa: ANN401
        """Send a packet that ``Contents.packed`` has prepared."""

    def queue(self, bodies: Iterable[Any]) -> None:
        """Send packets when ``push`` is called."""

    def push(self) -> None:
        """Send one of the queued packets."""

    def receive(self, payload: bytes) -> None:
        """Process a packet."""

    def burst_over(self) -> None:
        """All that arrived together has been received."""


class Sent:
    """One LSA that the neighbors announce, and since when.

    ``due``, ``waiting``: bits of those that still have to send it, or await an acknowledgment.
    ``last``: when it was sent last. ``replaced``: the instance before, if it is open too.
    """

    __slots__ = ("at", "due", "last", "raw", "replaced", "waiting")

    def __init__(self, raw: bytes, at: float, due: int, replaced: bytes | None) -> None:
        self.raw, self.at, self.due, self.waiting = raw, at, due, 0
        self.last, self.replaced = at, replaced


class Wave:
    """LSAs announced together: neighbors send them one after another, each a little later."""

    def __init__(self, sent: list[Sent], order: list[Neighbor], at: float, spread: float) -> None:
        self._sent, self._order = sent, order
        self._at, self._step = at, spread / len(order)
        self._done = 0
        self._pack = order[0].script.contents.packed
        self._whole = self._pack(one.raw for one in sent)

    def turn(self, now: float) -> bool:
        """Send as far as it is time; return whether all neighbors have sent."""
        order = self._order
        while self._done < len(order) and now >= self._at + self._done * self._step:
            self._send(order[self._done])
            self._done += 1
        return self._done == len(order)

    def _send(self, neighbor: Neighbor) -> None:
        """Send all but those that the device has sent to this neighbor (RFC 2328 §13.3 (1))."""
        bit = neighbor.bit
        due = [one for one in self._sent if one.due & bit]
        for one in due:
            one.due &= ~bit
            one.waiting |= bit
        neighbor.script.copies += len(due)
        whole = len(due) == len(self._sent)
        for body in self._whole if whole else self._pack(one.raw for one in due):
            neighbor.say(body)


class Script:
    """What all neighbors of the device have in common: the database, and what was announced."""

    def __init__(self, contents: Contents, device: int, hello: int, spread: float) -> None:
        self.contents = contents
        self.spread = spread
        """Seconds from the first copy of an announcement to the last."""
        self.device = device
        self.hello = hello
        self.neighbors: list[Neighbor] = []
        self.missing: set[bytes] = set()
        """Instances that the device has neither acknowledged nor flooded."""
        self.sent: dict[bytes, Sent] = {}
        self._latest: dict[bytes, bytes] = {}
        """The last instance that was sent, by LSA."""
        self.copies = 0
        self.in_time = 0
        """Acknowledgments of announced LSAs that came in time, one for each LSA and neighbor."""
        self.retransmitted = 0
        self.links = 0
        """Point-to-point links in the router LSA of the device: its full adjacencies."""
        self.lost = 0
        """Adjacencies that the device gave up."""
        self.lapse = 0.0
        """The longest time between two hellos of the device on one link, seconds."""
        self.received = 0
        self._retransmit_at = 0.0
        self._waves: list[Wave] = []
        self._dice = random.Random(64)

    def offer(self) -> None:
        """Prepare what the neighbors offer to the device."""
        self.missing = self.contents.instances()

    def announce(self, lsas: list[bytes], now: float) -> None:
        """Send new instances over every link."""
        everyone = (1 << len(self.neighbors)) - 1
        sent = [self._instance(raw, now, everyone) for raw in lsas]
        order = self._dice.sample(self.neighbors, len(self.neighbors))
        self._waves.append(Wave(sent, order, now, self.spread))
        self.turn(now)

    def _instance(self, raw: bytes, now: float, everyone: int) -> Sent:
        instance = self.contents.instance(raw)
        identity = self.contents.identity(instance)
        found = self.sent[instance] = Sent(raw, now, everyone, self._latest.get(identity))
        self._latest[identity] = instance
        return found

    def turn(self, now: float) -> bool:
        """Send what is due of all announcements; return whether all has been sent."""
        self._waves = [wave for wave in self._waves if not wave.turn(now)]
        return not self._waves

    def heard(self, neighbor: Neighbor, before: float, *, lost: bool) -> None:
        """Record a hello of the device after the one ``before``, if any; whether it gave up."""
        if before:
            self.lapse = max(self.lapse, neighbor.heard_at - before)
        self.lost += lost

    def acknowledged(self, instance: bytes, bit: int) -> bool:
        """Record that the device has an instance; return whether a neighbor awaited this.

        It then has had all instances before, or has no use for them: a neighbor stops to send an
        LSA when it sends the next instance, which is all that is acknowledged (ISO 10589
        §7.3.15.4 lists what is in the database).
        """
        self.missing.discard(instance)
        awaited, before = self._settle(instance, bit)
        while before is not None:
            _, before = self._settle(before, bit)
        return awaited

    def _settle(self, instance: bytes, bit: int) -> tuple[bool, bytes | None]:
        """Whether a neighbor awaited this acknowledgment, and the instance before, if any."""
        found = self.sent.get(instance)
        if found is None:
            return False, None
        found.due &= ~bit
        awaited = bool(found.waiting & bit)
        if awaited:
            found.waiting &= ~bit
            if time.monotonic() - found.at <= IN_TIME:
                self.in_time += 1
        if not found.waiting and not found.due:
            del self.sent[instance]
        return awaited, found.replaced

    def retransmit(self, now: float) -> None:
        """Send again what has not been acknowledged in time; to be called often."""
        if now < self._retransmit_at:
            return
        self._retransmit_at = now + 0.5
        due: dict[int, list[bytes]] = {}
        for instance, sent in list(self.sent.items()):
            if now - sent.last < RETRANSMIT:
                break
            del self.sent[instance]
            if self.contents.is_newest(sent.raw):
                sent.last = now
                self.sent[instance] = sent  # at the end: the order is that of time
                for number in range(sent.waiting.bit_length()):
                    if sent.waiting >> number & 1:
                        due.setdefault(number, []).append(sent.raw)
        for number, lsas in due.items():
            self.retransmitted += len(lsas)
            self.neighbors[number].queue(self.contents.packed(lsas))

    def reset(self) -> None:
        """Begin a measurement."""
        now = time.monotonic()
        self.sent.clear()
        self._latest.clear()
        self.copies = self.in_time = self.retransmitted = self.lost = self.received = 0
        self.lapse = 0.0
        for neighbor in self.neighbors:
            neighbor.heard_at = max(neighbor.heard_at, now - self.hello)
