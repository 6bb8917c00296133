"""From the configuration to the settings that the engines take."""

from __future__ import annotations

from fared.config.isis import Isis, keys_of_levels
from fared.config.model import Config
from fared.config.redistribute import (
    IsisRedistributed,
    IsisRedistributedDefault,
    Redistribute,
    Redistributed,
    RedistributedDefault,
)
from fared.core.ids import AreaId, RouterId
from fared.isis import settings as isis
from fared.isis.ids import LevelSet
from fared.isis.settings import CircuitKind, CircuitSettings, IsisSettings
from fared.ospf.settings import (
    AreaSettings,
    InterfaceSettings,
    NetworkType,
    OspfSettings,
    RangeSettings,
    RedistributeSettings,
    Redistribution,
)
from fared.te.announce import AnnounceSettings

_LOOPBACK = "lo"
_LEVELS = {"level-1": LevelSet.ONE, "level-2": LevelSet.TWO, "level-1-2": LevelSet.BOTH}


def to_ospf_settings(config: Config, router_id: int, hostname: str | None) -> OspfSettings:
    """Settings of the OSPF engine; ``router_id`` and ``hostname`` as the daemon resolved them.

    Raises ValueError if the configuration has no ``ospf`` section.
    """
    if config.ospf is None:
        raise ValueError("the configuration has no ospf section")
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
            for area, section in sorted(config.ospf.areas.items())
        ),
        stub_router=config.ospf.stub_router,
        redistribute=_redistribution(config.ospf.redistribute),
        path_capacity_code=config.ospf.path_capacity_sub_tlv or None,
        reduction=config.ospf.flooding.settings(),
        announce=AnnounceSettings(threshold=config.adaptive.announce_threshold),
    )


def _redistribution(section: Redistribute) -> RedistributeSettings:
    return RedistributeSettings(
        connected=_announced(section.connected),
        static=_announced(section.static),
        default=_announced(section.default),
        default_always=section.default is not None and section.default.always,
    )


def _announced(section: Redistributed | RedistributedDefault | None) -> Redistribution | None:
    if section is None:
        return None
    prefixes = section.prefixes if isinstance(section, Redistributed) else ()
    return Redistribution(
        section.metric, section.metric_type == 2, section.tag, tuple(sorted(prefixes))
    )


def interface_settings(
    config: Config, name: str, *, loopback: bool | None = None
) -> InterfaceSettings | None:
    """OSPF settings of one interface, globs resolved; None where OSPF does not run.

    ``loopback`` is what the kernel says of the link; unsaid, only ``lo`` is one.
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
        mtu_ignore=section.mtu_ignore,
        capacity=config.interface_bandwidth(name),
        authentication=section.authentication.keyring() if section.authentication else (),
    )


def to_isis_settings(config: Config, router_id: int, hostname: str | None) -> IsisSettings:
    """Settings of the IS-IS engine; ``router_id`` becomes the TE router id.

    Raises ValueError if the configuration has no ``isis`` section.
    """
    section = config.isis
    if section is None:
        raise ValueError("the configuration has no isis section")
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
        announce=AnnounceSettings(threshold=config.adaptive.announce_threshold),
        path_capacity_code=section.path_capacity_sub_tlv or None,
        reduction=section.flooding.settings(),
        lsp_authentication=tuple(
            (level, keys.keyring()) for level, keys in keys_of_levels(section).items()
        ),
    )


def _isis_redistribution(section: Isis) -> isis.RedistributeSettings:
    found = section.redistribute
    usual = "level-1" if section.level == "level-1" else "level-2"
    return isis.RedistributeSettings(
        connected=_isis_announced(found.connected, usual),
        static=_isis_announced(found.static, usual),
        default=_isis_announced(found.default, usual),
        default_always=found.default is not None and found.default.always,
    )


def _isis_announced(
    section: IsisRedistributed | IsisRedistributedDefault | None, level: str
) -> isis.Redistribution | None:
    if section is None:
        return None
    prefixes = section.prefixes if isinstance(section, IsisRedistributed) else ()
    levels = _LEVELS[section.level or level]
    return isis.Redistribution(levels, section.metric, section.tag, tuple(sorted(prefixes)))


def circuit_settings(
    config: Config, name: str, *, loopback: bool | None = None
) -> CircuitSettings | None:
    """IS-IS settings of one interface, globs resolved; None where IS-IS does not run.

    ``loopback`` is what the kernel says of the link; unsaid, only ``lo`` is one.
    """
    section = config.isis_interface(name)
    if section is None or config.isis is None:
        return None
    if loopback is None:
        loopback = name == _LOOPBACK
    levels = _LEVELS[config.isis.level] & _LEVELS[config.isis.levels_of(section)]
    return CircuitSettings(
        kind=CircuitKind.LOOPBACK if loopback else CircuitKind(section.network_type),
        levels=levels,
        metric=section.metric,
        hello_interval=section.hello_interval,
        hello_multiplier=section.hello_multiplier,
        priority=section.priority,
        passive=section.passive,
        hello_padding=section.hello_padding,
        csnp_interval=float(section.csnp_interval),
        lsp_retransmit_interval=section.lsp_retransmit_interval,
        capacity=config.interface_bandwidth(name),
        authentication=section.authentication.keyring() if section.authentication else (),
    )
