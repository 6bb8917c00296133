"""Converts the configuration to the settings of the OSPF engine and of its interfaces."""

from __future__ import annotations

from fared.config import Config
from fared.config.ospf import (
    Ospf,
    Redistribute,
    Redistributed,
    RedistributedDefault,
    RedistributedProtocol,
)
from fared.config.section import settings_of
from fared.config.values import TX_ONLY
from fared.core.ids import AreaId, RouterId
from fared.core.information import OPAQUE_TYPE
from fared.core.links import Link
from fared.core.routes import RouteSource
from fared.daemon.change.common_settings import (
    advertise_settings,
    bier_settings,
    filters_of,
    refused_tags,
)
from fared.protocols.igp.database_limit import LimitSettings
from fared.protocols.ospf.settings import (
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

_TTL_SECURITY: dict[bool | str, TtlSecurity] = {
    False: TtlSecurity.OFF,
    TX_ONLY: TtlSecurity.TX_ONLY,
    True: TtlSecurity.ON,
}


def ospf_settings(config: Config, router_id: int, hostname: str | None) -> OspfSettings:
    """Settings of the OSPF engine; ``router_id`` and ``hostname`` as the daemon resolved them.

    Raises ValueError if the configuration has no ``ospf`` section.
    """
    router, restart = config.section(Ospf), config.section(Ospf).graceful_restart
    return settings_of(
        OspfSettings,
        router,
        router_id=RouterId(router_id),
        hostname=hostname,
        areas=tuple(
            settings_of(
                AreaSettings,
                section,
                area=AreaId(area),
                stub=section.type == "stub",
                filter_in=config.filter(section.filter.in_),
                filter_out=config.filter(section.filter.out),
                ranges=tuple(
                    settings_of(RangeSettings, item, prefix=prefix)
                    for prefix, item in sorted(section.ranges.items())
                ),
            )
            for area, section in sorted(router.areas.items())
        ),
        redistribute=_redistribution(config, router.redistribute),
        path_capacity_code=router.path_capacity_sub_tlv or None,
        information_type=OPAQUE_TYPE if config.ina.enabled else None,
        reduction=router.flooding.settings(),
        graceful_restart=settings_of(
            GracefulRestartSettings,
            restart,
            period=float(restart.grace_period),
            longest=float(restart.supported_grace_time),
        ),
        limit=LimitSettings(router.max_lsas, router.max_lsas_per_originator),
        prefix_limit=LimitSettings(router.max_prefixes, router.max_prefixes_per_originator),
        bier=bier_settings(config),
        advertise=advertise_settings(config),
    )


def _redistribution(config: Config, section: Redistribute) -> RedistributeSettings:
    return RedistributeSettings(
        connected=_advertised(config, section.connected),
        static=_advertised(config, section.static),
        bgp=_advertised(config, section.bgp, RouteSource.BGP),
        isis=_advertised(config, section.isis, RouteSource.ISIS),
        default=_advertised(config, section.default),
        default_always=section.default is not None and section.default.always,
    )


def _advertised(
    config: Config,
    section: Redistributed | RedistributedProtocol | RedistributedDefault | None,
    protocol: RouteSource | None = None,
) -> Redistribution | None:
    """Return how to advertise a source; ``protocol``: another one, of which nothing returns."""
    if section is None:
        return None
    return settings_of(
        Redistribution,
        section,
        type_2=section.metric_type == 2,
        filters=filters_of(config, section),
        refused=refused_tags(config, RouteSource.OSPF, protocol) if protocol else (),
    )


def interface_settings(config: Config, link: Link, share: float = 1.0) -> InterfaceSettings | None:
    """Return OSPF settings of an interface; None where OSPF does not run.

    ``share``: the part of the capacity that is left, less than 1 on a derated link.
    """
    found = config.ospf.on(link) if config.ospf else None
    if found is None:
        return None
    area, section = found
    return settings_of(
        InterfaceSettings,
        section,
        area=area,
        network_type=NetworkType.LOOPBACK if link.loopback else NetworkType(section.network_type),
        router_priority=section.priority,
        router_dead_interval=section.dead_interval,
        rxmt_interval=section.retransmit_interval,
        prefix_suppression=config.section(Ospf).suppresses(section),
        ttl_security=_TTL_SECURITY[section.ttl_security],
        share=share,
        capacity=config.interface_bandwidth(link.name),
        delay=config.interface_delay(link.name),
        authentication=section.authentication.keyring() if section.authentication else (),
        bfd=section.bfd_settings(config.bfd),
    )
