"""When a changed bandwidth of a link is flooded again.

Load moves all the time and each announcement costs every router of the area a computation, so
small changes stay local. Less bandwidth is told at once, since others send too much until they
know; more bandwidth may wait, and waiting damps oscillation. A changed capacity is a fact
about the link and not load: it is always told at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from fared.core.timers import Timer, TimerQueue


@dataclass(frozen=True, slots=True)
class AnnounceSettings:
    """When a changed TE bandwidth is flooded again (te.announce): relative to link capacity."""

    threshold: float = 0.03
    minimum_interval: float = 1.0


DEFAULT_ANNOUNCE = AnnounceSettings()


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Capacity and outbound load of one link, bytes/s; None: not known."""

    capacity: float | None
    utilized: float | None = 0.0

    @property
    def available(self) -> float | None:
        """What is left of the capacity (RFC 7471 §4.6); never below zero.

        All of it while the load is not known: a load of long ago would keep traffic away for ever.
        """
        if self.capacity is None:
            return None
        return max(0.0, self.capacity - (self.utilized or 0.0))

    @property
    def told(self) -> tuple[float | None, float | None]:
        """Available and utilized bandwidth as they are flooded: nothing while no load is known."""
        if self.utilized is None or self.capacity is None:
            return None, None
        return self.available, self.utilized


@dataclass(frozen=True, slots=True)
class Announced:
    """What was flooded last, and when."""

    bandwidth: Bandwidth
    at: float


def announce_at(
    announced: Announced | None,
    current: Bandwidth,
    *,
    threshold: float,
    minimum_interval: float,
    now: float,
) -> float | None:
    """Return when ``current`` is to be flooded: ``now``, a later time, or None for not at all.

    ``threshold`` is a fraction of the link's capacity; a change of the available bandwidth must
    exceed it. ``minimum_interval`` (seconds) is the least time from the last announcement to
    one that raises the available bandwidth.
    """
    if announced is None or announced.bandwidth.capacity != current.capacity:
        return now
    before, after = announced.bandwidth.available, current.available
    if before is None or after is None or current.capacity is None:
        return None
    change = after - before
    if abs(change) <= threshold * current.capacity:
        return None
    return now if change < 0 else max(now, announced.at + minimum_interval)


class AnnouncingLink(Protocol):
    """What an engine keeps of a link: its bandwidth now, what was flooded, and when to look again."""

    announced: Announced | None
    announce_timer: Timer | None

    @property
    def bandwidth(self) -> Bandwidth:
        """Capacity and load."""


def announce_now(
    link: AnnouncingLink,
    settings: AnnounceSettings,
    timers: TimerQueue,
    now: float,
    again: Callable[[], None],
) -> bool:
    """Whether the bandwidth of a link is to be flooded now; then it counts as announced.

    Where it has to wait, ``again`` is called when its time has come.
    """
    timers.cancel(link.announce_timer)
    link.announce_timer = None
    current = link.bandwidth
    at = announce_at(
        link.announced,
        current,
        threshold=settings.threshold,
        minimum_interval=settings.minimum_interval,
        now=now,
    )
    if at is None:
        return False
    if at > now:
        link.announce_timer = timers.arm(at, again)
        return False
    link.announced = Announced(current, now)
    return True
