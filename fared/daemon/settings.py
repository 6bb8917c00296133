"""From the configuration to the settings of the rooms: the one place where both are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fared.config import Config
from fared.config.convert import to_isis_settings, to_ospf_settings
from fared.config.values import is_glob
from fared.core.backoff import BackoffSettings
from fared.core.links import Link
from fared.fib.settings import FibSettings
from fared.kernel.sysctl import Wanted, wanted_sysctls
from fared.rib.settings import SolverSettings
from fared.router.settings import PREFERENCES, RouterSettings
from fared.te.announce import DEFAULT_ANNOUNCE, AnnounceSettings
from fared.weights.adaptation import AdaptationSettings
from fared.weights.path_capacity import WeightMode

COARSE = AnnounceSettings(threshold=0.25, minimum_interval=30.0)
"""Announcing load where no weight follows it: rarely, for those who look at the database."""
LEAST_STALE, STALE_PERIODS = 10.0, 5
"""A load stands for at least so many seconds, and for so many measuring periods."""
LOOPBACK_NET = 127 << 24


def router_settings(config: Config, router_id: int, hostname: str) -> RouterSettings:
    """Build the settings of the router. ValueError if ``config`` has no routing protocol.

    Where both protocols run, routes are computed when the section of OSPF says.
    """
    section = config.ospf or config.isis
    if section is None:
        raise ValueError("the configuration has no ospf and no isis section")
    ospf = to_ospf_settings(config, router_id, hostname) if config.ospf else None
    isis = to_isis_settings(config, router_id, hostname) if config.isis else None
    if weight_mode(config) is not WeightMode.AVAILABLE:
        ospf = replace(ospf, announce=COARSE) if ospf else None
        isis = replace(isis, announce=COARSE) if isis else None
    spf = section.spf
    return RouterSettings(
        ospf=ospf,
        isis=isis,
        solver=SolverSettings(
            max_paths=section.max_paths,
            mode=weight_mode(config),
            flows=config.adaptive.flows,
            floor=config.adaptive.floor,
            adaptation=adaptation_settings(config),
        ),
        fib=fib_settings(config),
        backoff=BackoffSettings(
            initial_delay=spf.initial_delay,
            short_delay=spf.short_delay,
            long_delay=spf.long_delay,
            holddown=spf.holddown,
            time_to_learn=spf.time_to_learn,
        ),
        preferences={
            "ospf": config.ospf.preference if config.ospf else PREFERENCES["ospf"],
            "isis": config.isis.preference if config.isis else PREFERENCES["isis"],
        },
        start_deadline=max(_silences(config), default=0.0),
    )


def fib_settings(config: Config) -> FibSettings:
    """What kind of groups there are in the kernel."""
    return FibSettings(resilient=config.fib.group_type == "resilient", buckets=config.fib.buckets)


def adaptation_settings(config: Config) -> AdaptationSettings:
    """How weights follow load, where they do."""
    adaptive = config.adaptive
    return AdaptationSettings(
        time_constant=adaptive.time_constant,
        dead_band=adaptive.dead_band,
        floor=adaptive.floor,
        equalise=adaptive.metric == "equalise",
        threshold=adaptive.announce_threshold,
        measure_period=adaptive.measure_period,
        announce_interval=DEFAULT_ANNOUNCE.minimum_interval,
        stale_after=max(LEAST_STALE, STALE_PERIODS * adaptive.measure_period),
    )


def _silences(config: Config) -> Iterator[float]:
    """After how long each configured interface holds a silent neighbor for dead, seconds."""
    for area in () if config.ospf is None else config.ospf.areas.values():
        for interface in area.interfaces.values():
            if not interface.passive:
                yield float(interface.dead_interval)
    for circuit in () if config.isis is None else config.isis.interfaces.values():
        if not circuit.passive:
            yield circuit.hello_interval * circuit.hello_multiplier


def named_interfaces(config: Config) -> Iterator[str]:
    """Interfaces that the file names outright, without a glob."""
    sections = [] if config.ospf is None else list(config.ospf.areas.values())
    keys = {name for section in sections for name in section.interfaces}
    keys |= set() if config.isis is None else set(config.isis.interfaces)
    return (name for name in sorted(keys) if not is_glob(name))


def sysctls_of(config: Config, router_id: int, links: list[Link]) -> list[Wanted]:
    """What the kernel must be set to for the protocols and families that run."""
    families = () if config.isis is None else config.isis.families
    circuits = [link for link in links if config.isis_interface(link.name) is not None]
    others = [link for link in links if config.ospf_interface(link.name) is not None]
    # IS-IS carries IPv4 there over IPv6 next hops, OSPF over those of the neighbor's loopback.
    addressless = 4 in families and any(not link.ipv4() for link in circuits)
    return wanted_sysctls(
        router_id,
        sorted({link.name for link in [*circuits, *others]}),
        ipv6=6 in families or addressless,
        unnumbered=addressless or any(not link.ipv4() for link in others),
    )


def with_clock(settings: RouterSettings, wall_ns: int, now: float) -> RouterSettings:
    """Tell the engine what the wall clock says at loop time ``now``; ``wall_ns`` since 1970.

    Nanoseconds serve as 64-bit sequence numbers: packets are never that many, and the next life
    begins above those of this one (RFC 7474 §3 leaves the mechanism open).
    """
    return settings.with_clock(wall_ns / 1e9 - now, wall_ns)


def weight_mode(config: Config) -> WeightMode:
    """What the weights follow: nothing (plain ECMP), capacity, or available capacity.

    Equalising follows the latter too, by another rule.
    """
    if not config.adaptive.enabled:
        return WeightMode.NONE
    if config.adaptive.metric == "equalise":
        return WeightMode.AVAILABLE
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
