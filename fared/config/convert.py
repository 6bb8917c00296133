"""From the configuration to the settings that the engines take."""

from __future__ import annotations

from fared.config.model import Config, Redistribute, Redistributed, RedistributedDefault
from fared.core.ids import AreaId, RouterId
from fared.ospf.settings import (
    AnnounceSettings,
    AreaSettings,
    InterfaceSettings,
    NetworkType,
    OspfSettings,
    RangeSettings,
    RedistributeSettings,
    Redistribution,
)

_LOOPBACK = "lo"


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
