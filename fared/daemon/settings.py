"""Converts the configuration to the settings of the rooms; only this module knows both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fared.config import Config
from fared.config.isis import Isis, keys_of_levels
from fared.config.model import Ospf
from fared.config.redistribute import (
    IsisRedistributed,
    IsisRedistributedDefault,
    Redistribute,
    Redistributed,
    RedistributedDefault,
)
from fared.config.values import MAIN_TABLE, TX_ONLY
from fared.core.backoff import BackoffSettings
from fared.core.database_limit import LimitSettings
from fared.core.ids import AreaId, RouterId
from fared.core.igp import LinkChanged
from fared.core.information import APPLICATION, OPAQUE_TYPE
from fared.core.links import Link
from fared.fib.settings import FibSettings, Granularity, SprayMatch, SpraySettings
from fared.isis.ids import LevelSet
from fared.isis.settings import (
    CircuitKind,
    CircuitSettings,
    FastFloodingSettings,
    IsisSettings,
)
from fared.isis.settings import RedistributeSettings as IsisRedistributeSettings
from fared.isis.settings import Redistribution as IsisRedistribution
from fared.ospf.settings import (
    AreaSettings,
    GracefulRestartSettings,
    InterfaceSettings,
    NetworkType,
    OspfSettings,
    RangeSettings,
    RedistributeSettings,
    Redistribution,
    TtlSecurity,
)
from fared.rib.settings import SolverSettings
from fared.router import events
from fared.router.engine import EngineSettings
from fared.router.protocols import ISIS, OSPF
from fared.router.settings import RouterSettings
from fared.te.advertise import DEFAULT_ADVERTISE, AdvertiseSettings
from fared.weights.adaptation import AdaptationSettings
from fared.weights.path_capacity import WeightMode

if TYPE_CHECKING:
    from fared.core.bier import BierSettings

COARSE = AdvertiseSettings(threshold=0.25, minimum_interval=30.0)
"""Load is advertised rarely if no weights follow it, for display only."""
LEAST_STALE, STALE_PERIODS = 10.0, 5
"""A load is valid for at least so many seconds, and for so many measuring periods."""
_GOLDEN, _MAX_U32 = 0x9E37_79B1, 0xFFFF_FFFF
"""2^32 over the golden ratio: multiples of it are far apart modulo 2^32 (Fibonacci hashing)."""
_LOOPBACK = "lo"
_TTL_SECURITY: dict[bool | str, TtlSecurity] = {
    False: TtlSecurity.OFF,
    TX_ONLY: TtlSecurity.TX_ONLY,
    True: TtlSecurity.ON,
}
_LEVELS = {"level-1": LevelSet.ONE, "level-2": LevelSet.TWO, "level-1-2": LevelSet.BOTH}


def router_settings(config: Config, router_id: int, hostname: str) -> RouterSettings:
    """Build the settings of the router. ValueError if ``config`` has no routing protocol.

    If several protocols run, the SPF back-off and the maximum number of paths are those of the
    first one's section.
    """
    sections = config.protocols
    if not sections:
        raise ValueError("the configuration has no ospf and no isis section")
    section = next(iter(sections.values()))
    spf = section.spf
    return RouterSettings(
        protocols={name: ENGINE_SETTINGS[name](config, router_id, hostname) for name in sections},
        solver=SolverSettings(
            max_paths=section.max_paths,
            mode=weight_mode(config),
            flows=config.adaptive.flows,
            floor=config.adaptive.floor,
            adaptation=adaptation_settings(config),
        ),
        fib=fib_settings(config),
        spray=spray_settings(config, router_id),
        bier=bier_settings(config),
        backoff=BackoffSettings(
            initial_delay=spf.initial_delay,
            short_delay=spf.short_delay,
            long_delay=spf.long_delay,
            holddown=spf.holddown,
            time_to_learn=spf.time_to_learn,
        ),
        preferences={name: section.preference for name, section in sections.items()},
        start_deadline=max(_silences(config), default=0.0),
    )


def bier_settings(config: Config) -> BierSettings | None:
    """Return the settings of BIER; None where it does not run."""
    section = config.bier
    if section is None:
        return None
    from fared.core.bier import BierSettings  # noqa: PLC0415 - where BIER runs

    hosts = tuple(sorted(section.hosts.items()))
    return BierSettings(section.sub_domain, section.bfr_id, section.bsl, hosts, section.php)


def advertise_settings(config: Config) -> AdvertiseSettings:
    """Return when to advertise the load of a link."""
    if weight_mode(config) is not WeightMode.AVAILABLE:
        return replace(COARSE, budget=config.adaptive.announce_budget)
    return AdvertiseSettings(
        threshold=config.adaptive.announce_threshold, budget=config.adaptive.announce_budget
    )


def fib_settings(config: Config) -> FibSettings:
    """Return the settings of the FIB planner: the type of groups in the kernel."""
    return FibSettings(resilient=config.fib.group_type == "resilient", buckets=config.fib.buckets)


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
    return AdaptationSettings(
        time_constant=adaptive.time_constant,
        dead_band=adaptive.dead_band,
        floor=adaptive.floor,
        equalise=adaptive.metric == "equalise",
        threshold=adaptive.announce_threshold,
        measure_period=adaptive.measure_period,
        advertise_interval=DEFAULT_ADVERTISE.minimum_interval,
        stale_after=max(LEAST_STALE, STALE_PERIODS * adaptive.measure_period),
    )


def _silences(config: Config) -> Iterator[float]:
    """Yield the dead interval of each configured interface, seconds."""
    for section in config.protocols.values():
        for _, interface in section.every_interface():
            if not interface.passive:
                yield float(interface.silence)


def counts_boots(config: Config) -> bool:
    """Whether any sequence number begins with a boot count."""
    return any(section.counts_boots for section in config.protocols.values())


def weight_mode(config: Config) -> WeightMode:
    """Return the basis of weights: none (plain ECMP), capacity, or available capacity.

    ``equalise`` uses the latter too, with a different rule.
    """
    if not config.adaptive.enabled:
        return WeightMode.NONE
    if config.adaptive.metric == "equalise":
        return WeightMode.AVAILABLE
    return WeightMode(config.adaptive.metric)


def ospf_settings(config: Config, router_id: int, hostname: str | None) -> OspfSettings:
    """Settings of the OSPF engine; ``router_id`` and ``hostname`` as the daemon resolved them.

    Raises ValueError if the configuration has no ``ospf`` section.
    """
    router = config.section(Ospf)
    return OspfSettings(
        router_id=RouterId(router_id),
        hostname=hostname,
        areas=tuple(
            AreaSettings(
                AreaId(area),
                stub=section.type == "stub",
                summary=section.summary,
                default_cost=section.default_cost,
                ranges=tuple(
                    RangeSettings(prefix, item.cost, item.advertise)
                    for prefix, item in sorted(section.ranges.items())
                ),
            )
            for area, section in sorted(router.areas.items())
        ),
        stub_router=router.stub_router,
        stub_router_on_startup=router.stub_router_on_startup,
        redistribute=_redistribution(router.redistribute),
        path_capacity_code=router.path_capacity_sub_tlv or None,
        information_type=OPAQUE_TYPE if config.ina.enabled else None,
        adjacency_stagger=router.adjacency_stagger,
        reduction=router.flooding.settings(),
        graceful_restart=GracefulRestartSettings(
            enabled=router.graceful_restart.enabled,
            period=float(router.graceful_restart.grace_period),
            helper=router.graceful_restart.helper,
            strict_lsa_checking=router.graceful_restart.strict_lsa_checking,
            planned_only=router.graceful_restart.planned_only,
            longest=float(router.graceful_restart.supported_grace_time),
        ),
        limit=LimitSettings(router.max_lsas, router.max_lsas_per_originator),
        prefix_limit=LimitSettings(router.max_prefixes, router.max_prefixes_per_originator),
        bier=bier_settings(config),
        advertise=advertise_settings(config),
    )


def _redistribution(section: Redistribute) -> RedistributeSettings:
    return RedistributeSettings(
        connected=_advertised(section.connected),
        static=_advertised(section.static),
        default=_advertised(section.default),
        default_always=section.default is not None and section.default.always,
    )


def _advertised(section: Redistributed | RedistributedDefault | None) -> Redistribution | None:
    if section is None:
        return None
    prefixes = section.prefixes if isinstance(section, Redistributed) else ()
    return Redistribution(
        section.metric, section.metric_type == 2, section.tag, tuple(sorted(prefixes))
    )


def interface_settings(
    config: Config, name: str, *, loopback: bool | None = None
) -> InterfaceSettings | None:
    """Return OSPF settings of one interface, globs resolved; None where OSPF does not run.

    ``loopback`` is the kernel's flag of the link; without it only ``lo`` is a loopback.
    """
    found = config.ospf_interface(name)
    if found is None:
        return None
    area, section = found
    if loopback is None:
        loopback = name == _LOOPBACK
    return InterfaceSettings(
        area=area,
        network_type=NetworkType.LOOPBACK if loopback else NetworkType(section.network_type),
        router_priority=section.priority,
        cost=section.cost,
        hello_interval=section.hello_interval,
        router_dead_interval=section.dead_interval,
        rxmt_interval=section.retransmit_interval,
        passive=section.passive,
        prefix_suppression=config.section(Ospf).suppresses(section),
        mtu_ignore=section.mtu_ignore,
        ttl_security=_TTL_SECURITY[section.ttl_security],
        capacity=config.interface_bandwidth(name),
        authentication=section.authentication.keyring() if section.authentication else (),
        bfd=section.bfd_settings(config.bfd),
    )


def isis_settings(config: Config, router_id: int, hostname: str | None) -> IsisSettings:
    """Settings of the IS-IS engine; ``router_id`` becomes the TE router id.

    Raises ValueError if the configuration has no ``isis`` section.
    """
    section = config.section(Isis)
    policies = section.inter_level_propagation_policies
    return IsisSettings(
        system_id=section.system_id,
        areas=tuple(net.area for net in section.net),
        levels=_LEVELS[section.level],
        hostname=hostname,
        router_id=router_id,
        families=section.families,
        multi_topology=section.multi_topology,
        overload=section.overload,
        overload_on_startup=section.overload_on_startup,
        level1_to_level2=policies.level1_to_level2,
        level2_to_level1=policies.level2_to_level1,
        redistribute=_isis_redistribution(section),
        attached=section.attached,
        lsp_mtu=section.lsp_mtu,
        lsp_lifetime=section.lsp_lifetime,
        lsp_refresh_interval=section.lsp_refresh,
        advertise=advertise_settings(config),
        path_capacity_code=section.path_capacity_sub_tlv or None,
        information_application=APPLICATION if config.ina.enabled else None,
        reduction=section.flooding.settings(),
        fast_flooding=FastFloodingSettings(
            enabled=section.fast_flooding.enabled,
            receive_window=section.fast_flooding.receive_window,
            burst_size=section.fast_flooding.burst_size,
            rate=section.fast_flooding.lsps_per_second,
        ),
        limit=LimitSettings(section.max_lsps, section.max_lsps_per_system),
        prefix_limit=LimitSettings(section.max_prefixes, section.max_prefixes_per_system),
        bier=bier_settings(config),
        restart_helper=section.graceful_restart.helper,
        strict_lsp_checking=section.graceful_restart.strict_lsp_checking,
        restarts=section.graceful_restart.enabled,
        restart_period=float(section.graceful_restart.grace_period),
        suppress_adjacency=section.graceful_restart.suppress_adjacency,
        lsp_authentication=tuple(
            (level, keys.keyring()) for level, keys in keys_of_levels(section).items()
        ),
    )


def _isis_redistribution(section: Isis) -> IsisRedistributeSettings:
    found = section.redistribute
    usual = "level-1" if section.level == "level-1" else "level-2"
    return IsisRedistributeSettings(
        connected=_isis_advertised(found.connected, usual),
        static=_isis_advertised(found.static, usual),
        default=_isis_advertised(found.default, usual),
        default_always=found.default is not None and found.default.always,
    )


def _isis_advertised(
    section: IsisRedistributed | IsisRedistributedDefault | None, level: str
) -> IsisRedistribution | None:
    if section is None:
        return None
    prefixes = section.prefixes if isinstance(section, IsisRedistributed) else ()
    levels = _LEVELS[section.level or level]
    return IsisRedistribution(levels, section.metric, section.tag, tuple(sorted(prefixes)))


def circuit_settings(
    config: Config, name: str, *, loopback: bool | None = None
) -> CircuitSettings | None:
    """Return IS-IS settings of one interface, globs resolved; None where IS-IS does not run.

    ``loopback`` is the kernel's flag of the link; without it only ``lo`` is a loopback.
    """
    section = config.isis_interface(name)
    if section is None:
        return None
    router = config.section(Isis)
    if loopback is None:
        loopback = name == _LOOPBACK
    return CircuitSettings(
        kind=CircuitKind.LOOPBACK if loopback else CircuitKind(section.network_type),
        levels=_LEVELS[router.level] & _LEVELS[router.levels_of(section)],
        metric=section.metric,
        hello_interval=section.hello_interval,
        hello_multiplier=section.hello_multiplier,
        priority=section.priority,
        passive=section.passive,
        prefix_suppression=router.suppresses(section),
        hello_padding=section.hello_padding,
        csnp_interval=float(section.csnp_interval),
        lsp_retransmit_interval=section.lsp_retransmit_interval,
        capacity=config.interface_bandwidth(name),
        authentication=section.authentication.keyring() if section.authentication else (),
        bfd=section.bfd.settings(config.bfd),
    )


def link_events(config: Config, link: Link, share: float = 1.0) -> list[events.Input]:
    """The events of a link for each protocol, with its settings; ``share`` of a derated link."""
    return [
        events.To(name, LinkChanged(link, LINK_SETTINGS[name](config, link, share)))
        for name in config.protocols
    ]


def _ospf_link(config: Config, link: Link, share: float) -> InterfaceSettings | None:
    found = interface_settings(config, link.name, loopback=link.loopback)
    return found if found is None or share >= 1.0 else replace(found, share=share)


def _isis_link(config: Config, link: Link, share: float) -> CircuitSettings | None:
    found = circuit_settings(config, link.name, loopback=link.loopback)
    return found if found is None or share >= 1.0 else replace(found, share=share)


ENGINE_SETTINGS: Mapping[str, Callable[[Config, int, str], EngineSettings]] = MappingProxyType(
    {OSPF: ospf_settings, ISIS: isis_settings}
)
LINK_SETTINGS: Mapping[str, Callable[[Config, Link, float], object]] = MappingProxyType(
    {OSPF: _ospf_link, ISIS: _isis_link}
)
"""By protocol: its settings from those of the file."""
