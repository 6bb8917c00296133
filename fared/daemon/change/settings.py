"""Converts the configuration to the settings of the packages.

Nothing else knows both but the modules of one protocol, ``ospf_settings``, ``isis_settings`` and
``bgp_settings``, each of which is loaded only if its protocol is configured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from fared.config import Config
from fared.config.section import settings_of
from fared.core.backoff import BackoffSettings
from fared.core.links import Link
from fared.daemon.change.common_settings import bier_settings, weight_mode
from fared.fpm.encode import LARGEST_WEIGHT
from fared.paths.fib.settings import (
    MAIN_TABLE,
    FibSettings,
    Granularity,
    SprayMatch,
    SpraySettings,
)
from fared.paths.rib.settings import SolverSettings
from fared.paths.te.advertise import DEFAULT_ADVERTISE
from fared.paths.weights.adaptation import AdaptationSettings
from fared.paths.weights.quantise import DEFAULT_MAX_WEIGHT
from fared.protocols.igp.events import LinkChanged
from fared.router import events
from fared.router.engine import EngineSettings
from fared.router.protocols import BGP, ISIS, OSPF
from fared.router.settings import RouterSettings

LEAST_STALE, STALE_PERIODS = 10.0, 5
"""A load is valid for at least so many seconds, and for so many measuring periods."""
_GOLDEN, _MAX_U32 = 0x9E37_79B1, 0xFFFF_FFFF
"""2^32 over the golden ratio: multiples of it are far apart modulo 2^32 (Fibonacci hashing)."""


def router_settings(config: Config, router_id: int, hostname: str) -> RouterSettings:
    """Build the settings of the router. ValueError if ``config`` has no routing protocol.

    If several protocols run, the SPF back-off and the maximum number of paths are those of the
    first one's section.
    """
    sections = config.protocols
    if not sections:
        raise ValueError("the configuration has no ospf, isis or bgp section")
    section = next(iter(sections.values()))
    return RouterSettings(
        protocols={name: ENGINE_SETTINGS[name](config, router_id, hostname) for name in sections},
        solver=settings_of(
            SolverSettings,
            section,
            config.adaptive,
            mode=weight_mode(config),
            adaptation=adaptation_settings(config),
            max_weight=config.fib.max_weight or _default_max_weight(config),
            max_group_size=config.fib.max_group_size,
        ),
        fib=fib_settings(config),
        spray=spray_settings(config, router_id),
        bier=bier_settings(config),
        backoff=settings_of(BackoffSettings, section.spf),
        preferences={name: section.preference for name, section in sections.items()},
        start_deadline=max(_silences(config), default=0.0),
    )


def _default_max_weight(config: Config) -> int:
    """Return what holds everywhere; FPM has eight bits, without 0."""
    return DEFAULT_MAX_WEIGHT if config.fib.fpm is None else min(DEFAULT_MAX_WEIGHT, LARGEST_WEIGHT)


def fib_settings(config: Config) -> FibSettings:
    """Return the settings of the FIB planner: the type of groups in the kernel."""
    return settings_of(FibSettings, config.fib, resilient=config.fib.group_type == "resilient")


def spray_settings(config: Config, router_id: int) -> SpraySettings:
    """Return which packets are sprayed. Routers begin their periods at different phases.

    A reload may leave a table other than main in use, over which nothing is sprayed.
    """
    adaptive, match = config.adaptive, config.adaptive.packet_match
    identity = router_id or (0 if config.isis is None else int(config.isis.system_id))
    flows = config.fib.table != MAIN_TABLE
    return SpraySettings(
        granularity=Granularity.FLOW if flows else Granularity(adaptive.granularity),
        gap=adaptive.flowlet_gap,
        prefixes=tuple(sorted(adaptive.packet_prefixes)),
        match=SprayMatch(
            *(tuple(sorted(set(v))) for v in (match.dscp, match.udp_ports, match.tcp_ports))
        ),
        phase=(identity * _GOLDEN & _MAX_U32) / 2**32,
    )


def adaptation_settings(config: Config) -> AdaptationSettings:
    """Return how weights follow load."""
    adaptive = config.adaptive
    return settings_of(
        AdaptationSettings,
        adaptive,
        equalise=adaptive.metric == "equalise",
        threshold=adaptive.announce_threshold,
        advertise_interval=DEFAULT_ADVERTISE.minimum_interval,
        stale_after=max(LEAST_STALE, STALE_PERIODS * adaptive.measure_period),
    )


def _silences(config: Config) -> Iterator[float]:
    """Yield the dead interval of each configured interface, or neighbor by address, seconds."""
    if config.bgp is not None:
        yield from (one.silence for one in config.bgp.by_address.values() if not one.shutdown)
    for section in config.protocols.values():
        for _, interface in section.every_interface():
            if interface.expects_neighbors:
                yield float(interface.silence)


def counts_boots(config: Config) -> bool:
    """Whether any sequence number begins with a boot count."""
    return any(section.counts_boots for section in config.protocols.values())


def link_events(config: Config, link: Link, share: float = 1.0) -> list[events.Input]:
    """The events of a link for each protocol, with its settings; ``share`` of a derated link."""
    return [
        events.To(name, LinkChanged(link, LINK_SETTINGS[name](config, link, share)))
        for name in config.protocols
    ]


def _ospf(config: Config, router_id: int, hostname: str) -> EngineSettings:
    from fared.daemon.change.ospf_settings import ospf_settings  # noqa: PLC0415 - where it is spoken

    return ospf_settings(config, router_id, hostname)


def _ospf_link(config: Config, link: Link, share: float) -> object:
    from fared.daemon.change.ospf_settings import interface_settings  # noqa: PLC0415 - where it is spoken

    return interface_settings(config, link, share)


def _isis(config: Config, router_id: int, hostname: str) -> EngineSettings:
    from fared.daemon.change.isis_settings import isis_settings  # noqa: PLC0415 - where it is spoken

    return isis_settings(config, router_id, hostname)


def _isis_link(config: Config, link: Link, share: float) -> object:
    from fared.daemon.change.isis_settings import circuit_settings  # noqa: PLC0415 - where it is spoken

    return circuit_settings(config, link, share)


def _bgp(config: Config, router_id: int, hostname: str) -> EngineSettings:
    from fared.daemon.change.bgp_settings import bgp_settings  # noqa: PLC0415 - where it is spoken

    return bgp_settings(config, router_id, hostname)


def _bgp_link(config: Config, link: Link, share: float) -> object:
    from fared.daemon.change.bgp_settings import link_settings  # noqa: PLC0415 - where it is spoken

    return link_settings(config, link, share)


ENGINE_SETTINGS: Mapping[str, Callable[[Config, int, str], EngineSettings]] = MappingProxyType(
    {OSPF: _ospf, ISIS: _isis, BGP: _bgp}
)
LINK_SETTINGS: Mapping[str, Callable[[Config, Link, float], object]] = MappingProxyType(
    {OSPF: _ospf_link, ISIS: _isis_link, BGP: _bgp_link}
)
"""By protocol: its settings from those of the file."""
