"""When to advertise a changed bandwidth of a link, and which (RFC 7471 §5, §6, RFC 8570 §5, §6).

Load varies continuously, and each advertisement makes every router of the area compute, so small
changes are not advertised. A decrease of available bandwidth is advertised at once, since others
send too much until they learn of it; an increase may wait, which also damps oscillation. A changed
capacity is advertised at once. How many changes of load the routers of an area advertise together
is limited: ``te.announcer``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from fared.core.units import MIN_CAPACITY
from fared.paths.te.attributes import TeAttributes
from fared.paths.te.budget import average

if TYPE_CHECKING:
    from fared.core.ids import Prefix
    from fared.core.links import Link

_PRIORITIES = 8
"""Priorities of reservations (RFC 3630 §2.5.8)."""
_WHOLE = 1 - 1e-6
"""Part of a capacity that counts as all of it: sums differ by the order of their terms."""
_THRESHOLD = 0.03
"""Change that is advertised by default, of a load as of a path capacity."""


class AdvertiseSettings(msgspec.Struct, frozen=True):
    """When to advertise a change: ``threshold`` relative to link capacity, interval in seconds.

    ``budget``: changes that all routers of an area together may advertise in a second
    (``te.budget``). ``path_threshold``: the change of a path capacity toward another area or level,
    relative to the one advertised. Weights follow path capacities whatever they follow on links, so
    a coarse ``threshold``, of loads that are only displayed, does not apply to them.
    """

    threshold: float = _THRESHOLD
    minimum_interval: float = 1.0
    budget: float = 500.0
    path_threshold: float = _THRESHOLD


DEFAULT_ADVERTISE = AdvertiseSettings()


class Bandwidth(msgspec.Struct, frozen=True):
    """Capacity and outbound load of one link, bytes/s; None: unknown.

    ``maximum``: what the link could carry where ``capacity`` is less, because the link is derated;
    None: ``capacity`` is all of it.
    """

    capacity: float | None
    utilized: float | None = 0.0
    maximum: float | None = None

    @property
    def available(self) -> float | None:
        """Capacity minus load (RFC 7471 §4.6), at least zero.

        While the load is unknown it is all of the capacity: an outdated load would divert traffic
        forever.
        """
        if self.capacity is None:
            return None
        return max(0.0, self.capacity - (self.utilized or 0.0))

    def resized(self, other: Bandwidth) -> bool:
        """Whether another has other capacities, whatever the load."""
        return self.capacity != other.capacity or self.maximum != other.maximum

    @property
    def advertised(self) -> tuple[float | None, float | None]:
        """Available and utilized bandwidth to advertise; None while the load is unknown."""
        if self.utilized is None or self.capacity is None:
            return None, None
        return self.available, self.utilized


class AdvertisedBandwidth(msgspec.Struct, frozen=True):
    """The bandwidth advertised last, and when."""

    bandwidth: Bandwidth
    at: float


def advertise_at(
    advertised: AdvertisedBandwidth | None,
    current: Bandwidth,
    *,
    threshold: float,
    minimum_interval: float,
    now: float,
) -> float | None:
    """Return when to advertise ``current``: ``now``, a later time, or None for not at all.

    ``threshold`` is a fraction of the link's capacity; a change of the available bandwidth must
    exceed it. ``minimum_interval`` (seconds) is the least time from the last advertisement to
    one that raises the available bandwidth.
    """
    # A capacity is configured or of the hardware: it does not vary, and needs no damping.
    if advertised is None or advertised.bandwidth.resized(current):
        return now
    before, after = advertised.bandwidth.available, current.available
    if before is None or after is None or current.capacity is None:
        return None
    change = after - before
    # RFC 7471 §6, RFC 8570 §6: small changes are not advertised
    if abs(change) <= threshold * current.capacity:
        return None
    return now if change < 0 else max(now, advertised.at + minimum_interval)


class NearAdvertised(msgspec.Struct, frozen=True):
    """The loads of a link, bytes/s, that are not advertised while all of this is the same.

    Those whose change is at most half of what would be advertised.
    """

    least: float
    most: float
    link: Link
    settings: LinkSettings
    far_share: float
    advertised: AdvertisedBandwidth
    rules: AdvertiseSettings


def damped(
    advertised: float | None, current: float | None, rules: AdvertiseSettings
) -> float | None:
    """Return the path capacity to advertise for a prefix: the last one, while the change is small.

    Both in bytes/s; None: unknown.
    """
    if advertised is None or current is None:
        return current
    small = abs(current - advertised) <= rules.path_threshold * advertised
    return advertised if small else current


class PathCapacities:
    """When to advertise the path capacities of prefixes into one area or level.

    Small changes are not advertised (``damped``), except that of a path that is whole again: else
    one that was repaired in small steps would count for less than others for good.
    """

    def __init__(self) -> None:
        self._whole: dict[Prefix, float] = {}
        """Of prefixes that have lost capacity: what was advertised before."""

    def advertise(
        self, prefix: Prefix, old: float | None, new: float | None, rules: AdvertiseSettings
    ) -> float | None:
        """Return the capacity to advertise where ``old`` is advertised; bytes/s, None: unknown."""
        whole, chosen = self._whole.get(prefix), self.chosen(prefix, old, new, rules)
        if old is None or new is None or (whole is not None and new >= whole * _WHOLE):
            self._whole.pop(prefix, None)
        elif whole is None and chosen is not None and chosen < old:
            self._whole[prefix] = old
        return chosen

    def chosen(
        self, prefix: Prefix, old: float | None, new: float | None, rules: AdvertiseSettings
    ) -> float | None:
        """Return what ``advertise`` would."""
        whole = self._whole.get(prefix)
        if whole is not None and new is not None and new >= whole * _WHOLE:
            return new
        return damped(old, new, rules)

    def withdraw(self, prefix: Prefix) -> None:
        """The prefix is no longer advertised."""
        self._whole.pop(prefix, None)


class LinkSettings(Protocol):
    """Settings of a link, common to all protocols."""

    @property
    def capacity(self) -> float | None:
        """The configured capacity, bytes/s; None: that of the kernel's link."""

    @property
    def share(self) -> float:
        """The part of the capacity that may be used: less than 1 on a derated link."""

    @property
    def delay(self) -> float | None:
        """The configured delay in our direction, seconds; None: not advertised."""


SettingsT = TypeVar("SettingsT", bound=LinkSettings)


class AdvertisedLink(Generic[SettingsT]):
    """A link that an engine runs on: present bandwidth, advertised bandwidth.

    ``utilized`` is the load measured last, bytes/s, None while unknown; ``averaged`` the one to
    advertise, the same unless the budget of the area is short (``te.budget``). ``far_share``: the
    part of its capacity that the far end uses (``te.far_ends``).
    """

    def __init__(self, link: Link, settings: SettingsT) -> None:
        self.link = link
        self.settings = settings
        self.utilized: float | None = 0.0
        self.averaged: float | None = 0.0
        self.far_share = 1.0
        self.advertised: AdvertisedBandwidth | None = None
        self._measured_at = 0.0
        self._near: NearAdvertised | None = None

    @property
    def ifindex(self) -> int:
        """The kernel's index."""
        return self.link.ifindex

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.link.name

    @property
    def bandwidth(self) -> Bandwidth:
        """Capacity (configured, else the link's own) and load to advertise.

        A derated link keeps the least capacity that others accept: they use it if there is no
        other path.
        """
        capacity = self.settings.capacity
        if capacity is None:
            capacity = self.link.capacity
        share = self.settings.share
        if capacity is None or min(share, self.far_share) >= 1.0:
            return Bandwidth(capacity, self.averaged)
        if share < 1.0:
            return Bandwidth(max(capacity * share, MIN_CAPACITY), self.averaged, capacity)
        return Bandwidth(max(capacity * self.far_share, MIN_CAPACITY), self.averaged)

    def measured(self, utilized: float | None, averaging: float, now: float) -> None:
        """Store a measured load, and average it over ``averaging`` seconds."""
        since, self._measured_at = now - self._measured_at, now
        self.averaged = average(self.averaged, utilized, since, averaging)
        self.utilized = utilized

    def stays_near(self, utilized: float, rules: AdvertiseSettings, now: float) -> bool:
        """Store a load that is near the advertised one, without an average.

        False: it is stored by ``measured``, and has to be judged by ``advertise_at``.
        """
        near = self._near
        if (
            near is None
            or not near.least <= utilized <= near.most
            or near.link is not self.link
            or near.settings is not self.settings
            or near.far_share != self.far_share
            or near.advertised is not self.advertised
            or near.rules is not rules
        ):
            return False
        self.utilized = self.averaged = utilized
        self._measured_at = now
        return True

    def judged(self, rules: AdvertiseSettings, *, due: bool) -> None:
        """Remember, if nothing is to be advertised, for which loads that is so."""
        last, capacity = self.advertised, self.bandwidth.capacity
        if due or last is None:
            self._near = None
            return
        least, most = -math.inf, math.inf  # without a capacity no load is advertised
        before = last.bandwidth.available
        if capacity is not None and before is not None:
            load, change = capacity - before, rules.threshold * capacity / 2
            least, most = load - change, min(load + change, capacity)
        self._near = NearAdvertised(
            least,
            most,
            self.link,
            self.settings,
            self.far_share,
            last,
            rules,
        )

    @property
    def urgent(self) -> bool:
        """Whether the capacity is not the advertised one, or none is advertised yet."""
        last = self.advertised
        return last is None or last.bandwidth.resized(self.bandwidth)

    @property
    def change(self) -> float:
        """Available bandwidth minus the advertised one, as part of the capacity."""
        current = self.bandwidth
        if self.advertised is None or current.available is None or not current.capacity:
            return 0.0
        return (current.available - (self.advertised.bandwidth.available or 0.0)) / current.capacity


def te_attributes(link: AdvertisedLink[Any], te_metric: int) -> TeAttributes:
    """Return the attributes to advertise, with the bandwidth chosen last, not the present load.

    This router makes no reservations: all of the capacity is reservable and unreserved.
    """
    bandwidth = link.advertised.bandwidth if link.advertised else link.bandwidth
    capacity = bandwidth.capacity
    # RFC 7471 §4.1, RFC 8570 §4.1: in microseconds; without its A bit, for it is not measured
    delay = None if link.settings.delay is None else round(link.settings.delay * 1e6)
    if capacity is None:
        return TeAttributes(te_metric=te_metric, delay=delay)
    available, utilized = bandwidth.advertised
    return TeAttributes(
        te_metric=te_metric,
        delay=delay,
        # RFC 7471 §4.5: the residual bandwidth is what is left of the maximum
        max_bandwidth=capacity if bandwidth.maximum is None else bandwidth.maximum,
        max_reservable_bandwidth=capacity,
        unreserved_bandwidth=(capacity,) * _PRIORITIES,
        residual_bandwidth=capacity,
        available_bandwidth=available,
        utilized_bandwidth=utilized,
    )
