"""Converts the configuration to the settings of the IS-IS engine and of its circuits."""

from __future__ import annotations

from fared.config import Config
from fared.config.isis import (
    Isis,
    IsisRedistributed,
    IsisRedistributedDefault,
    IsisRedistributedProtocol,
    keys_of_levels,
)
from fared.config.section import settings_of
from fared.core.information import APPLICATION
from fared.core.links import Link
from fared.core.routes import RouteSource
from fared.daemon.change.common_settings import (
    advertise_settings,
    bier_settings,
    filters_of,
    refused_tags,
)
from fared.protocols.igp.database_limit import LimitSettings
from fared.protocols.isis.ids import LevelSet
from fared.protocols.isis.settings import (
    CircuitKind,
    CircuitSettings,
    FastFloodingSettings,
    IsisSettings,
    RedistributeSettings,
    Redistribution,
)

_LEVELS = {"level-1": LevelSet.ONE, "level-2": LevelSet.TWO, "level-1-2": LevelSet.BOTH}


def isis_settings(config: Config, router_id: int, hostname: str | None) -> IsisSettings:
    """Settings of the IS-IS engine; ``router_id`` becomes the TE router id.

    Raises ValueError if the configuration has no ``isis`` section.
    """
    section, restart = config.section(Isis), config.section(Isis).graceful_restart
    fast, leaking = section.fast_flooding, section.inter_level_propagation_policies
    return settings_of(
        IsisSettings,
        section,
        leaking,
        restart,
        system_id=section.system_id,
        areas=tuple(net.area for net in section.net),
        levels=_LEVELS[section.level],
        hostname=hostname,
        router_id=router_id,
        families=section.families,
        filter_up=config.filter(leaking.filter.level1_to_level2),
        filter_down=config.filter(leaking.filter.level2_to_level1),
        redistribute=_redistribution(config, section),
        lsp_refresh_interval=section.lsp_refresh,
        advertise=advertise_settings(config),
        path_capacity_code=section.path_capacity_sub_tlv or None,
        information_application=APPLICATION if config.ina.enabled else None,
        reduction=section.flooding.settings(),
        fast_flooding=settings_of(FastFloodingSettings, fast, rate=fast.lsps_per_second),
        limit=LimitSettings(section.max_lsps, section.max_lsps_per_system),
        prefix_limit=LimitSettings(section.max_prefixes, section.max_prefixes_per_system),
        bier=bier_settings(config),
        restart_helper=restart.helper,
        restarts=restart.enabled,
        restart_period=float(restart.grace_period),
        lsp_authentication=tuple(
            (level, keys.keyring()) for level, keys in keys_of_levels(section).items()
        ),
    )


def _redistribution(config: Config, section: Isis) -> RedistributeSettings:
    found = section.redistribute
    usual = "level-1" if section.level == "level-1" else "level-2"
    return RedistributeSettings(
        connected=_advertised(config, found.connected, usual),
        static=_advertised(config, found.static, usual),
        bgp=_advertised(config, found.bgp, usual, RouteSource.BGP),
        ospf=_advertised(config, found.ospf, usual, RouteSource.OSPF),
        default=_advertised(config, found.default, usual),
        default_always=found.default is not None and found.default.always,
    )


def _advertised(
    config: Config,
    section: IsisRedistributed | IsisRedistributedProtocol | IsisRedistributedDefault | None,
    level: str,
    protocol: RouteSource | None = None,
) -> Redistribution | None:
    """Return how to advertise a source; ``protocol``: another one, of which nothing returns."""
    if section is None:
        return None
    levels = _LEVELS[section.level or level]
    return settings_of(
        Redistribution,
        section,
        levels=levels,
        filters=filters_of(config, section),
        refused=refused_tags(config, RouteSource.ISIS, protocol) if protocol else (),
    )


def circuit_settings(config: Config, link: Link, share: float = 1.0) -> CircuitSettings | None:
    """Return IS-IS settings of an interface; None where IS-IS does not run.

    ``share``: the part of the capacity that is left, less than 1 on a derated link.
    """
    found = config.isis.on(link) if config.isis else None
    if found is None:
        return None
    section, router = found[1], config.section(Isis)
    return settings_of(
        CircuitSettings,
        section,
        kind=CircuitKind.LOOPBACK if link.loopback else CircuitKind(section.network_type),
        levels=_LEVELS[router.level] & _LEVELS[router.levels_of(section)],
        prefix_suppression=router.suppresses(section),
        csnp_interval=float(section.csnp_interval),
        share=share,
        capacity=config.interface_bandwidth(link.name),
        delay=config.interface_delay(link.name),
        authentication=section.authentication.keyring() if section.authentication else (),
        bfd=section.bfd.settings(config.bfd),
    )
