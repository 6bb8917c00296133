"""Converts the configuration to the settings of the IS-IS engine and of its circuits."""

from __future__ import annotations

from msgspec.structs import replace

from fared.config import Config
from fared.config.isis import Isis, keys_of_levels
from fared.config.redistribute import IsisRedistributed, IsisRedistributedDefault
from fared.core.information import APPLICATION
from fared.core.links import Link
from fared.daemon.change.common_settings import LOOPBACK, advertise_settings, bier_settings
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
        redistribute=_redistribution(section),
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


def _redistribution(section: Isis) -> RedistributeSettings:
    found = section.redistribute
    usual = "level-1" if section.level == "level-1" else "level-2"
    return RedistributeSettings(
        connected=_advertised(found.connected, usual),
        static=_advertised(found.static, usual),
        default=_advertised(found.default, usual),
        default_always=found.default is not None and found.default.always,
    )


def _advertised(
    section: IsisRedistributed | IsisRedistributedDefault | None, level: str
) -> Redistribution | None:
    if section is None:
        return None
    prefixes = section.prefixes if isinstance(section, IsisRedistributed) else ()
    levels = _LEVELS[section.level or level]
    return Redistribution(levels, section.metric, section.tag, tuple(sorted(prefixes)))


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
        loopback = name == LOOPBACK
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


def isis_link(config: Config, link: Link, share: float) -> CircuitSettings | None:
    """Settings of a link for IS-IS; ``share`` below 1 on a derated one."""
    found = circuit_settings(config, link.name, loopback=link.loopback)
    return found if found is None or share >= 1.0 else replace(found, share=share)
