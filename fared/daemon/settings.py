"""From the configuration to the settings of the rooms: the one place where both are known."""

from __future__ import annotations

from dataclasses import replace

from fared.config import Config
from fared.config.convert import to_ospf_settings
from fared.core.backoff import BackoffSettings
from fared.core.links import Link
from fared.fib.settings import FibSettings
from fared.ospf.settings import AnnounceSettings
from fared.rib.settings import SolverSettings
from fared.router.settings import RouterSettings
from fared.weights.path_capacity import WeightMode

COARSE = AnnounceSettings(threshold=0.25, minimum_interval=30.0)
"""Announcing load where no weight follows it: rarely, for those who look at the database."""
LOOPBACK_NET = 127 << 24


def router_settings(config: Config, router_id: int, hostname: str) -> RouterSettings:
    """Build the settings of the router. ``config`` must have an ospf section (ValueError)."""
    ospf = config.ospf
    if ospf is None:
        raise ValueError("the configuration has no ospf section")
    dead_intervals = [
        interface.dead_interval
        for area in ospf.areas.values()
        for interface in area.interfaces.values()
        if not interface.passive
    ]
    settings = to_ospf_settings(config, router_id, hostname)
    if weight_mode(config) is not WeightMode.AVAILABLE:
        settings = replace(settings, announce=COARSE)
    return RouterSettings(
        ospf=settings,
        solver=SolverSettings(
            max_paths=ospf.max_paths, mode=weight_mode(config), floor=config.adaptive.floor
        ),
        fib=FibSettings(resilient=config.fib.group_type == "resilient"),
        backoff=BackoffSettings(
            initial_delay=ospf.spf.initial_delay,
            short_delay=ospf.spf.short_delay,
            long_delay=ospf.spf.long_delay,
            holddown=ospf.spf.holddown,
            time_to_learn=ospf.spf.time_to_learn,
        ),
        start_deadline=float(max(dead_intervals, default=0)),
    )


def with_clock(settings: RouterSettings, wall_ns: int, now: float) -> RouterSettings:
    """Tell the engine what the wall clock says at loop time ``now``; ``wall_ns`` since 1970.

    Nanoseconds serve as 64-bit sequence numbers: packets are never that many, and the next life
    begins above those of this one (RFC 7474 §3 leaves the mechanism open).
    """
    return settings.with_clock(wall_ns / 1e9 - now, wall_ns)


def weight_mode(config: Config) -> WeightMode:
    """What the weights follow: nothing (plain ECMP), capacity, or available capacity."""
    if not config.adaptive.enabled:
        return WeightMode.NONE
    return WeightMode(config.adaptive.metric)


def router_id_of(config: Config, links: list[Link]) -> int | None:
    """The configured router id, else the highest loopback address; None where there is neither."""
    if config.router_id is not None:
        return int(config.router_id)
    addresses = [
        address.address
        for link in links
        if link.loopback
        for address in link.ipv4()
        if address.address >> 24 << 24 != LOOPBACK_NET
    ]
    return max(addresses, default=None)
