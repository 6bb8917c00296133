"""Converts the configuration to the settings of the BGP engine and of its links."""

from __future__ import annotations

from fared.config import Config
from fared.config.bgp import Bgp, BgpRedistributed
from fared.config.bgp_neighbor import BgpAuthentication, BgpNeighbor
from fared.config.igp import families_of
from fared.config.section import settings_of
from fared.core.ids import RouterId
from fared.core.links import Link
from fared.core.streams import StreamKey
from fared.daemon.change.common_settings import advertise_settings, filters_of, weight_mode
from fared.paths.weights.path_capacity import WeightMode
from fared.protocols.bgp.settings import (
    BgpLinkSettings,
    BgpNeighborSettings,
    BgpRedistribution,
    BgpRestartSettings,
    BgpSettings,
    PathBandwidthSettings,
)

_THIRD = 3
"""Keepalives in a hold time (RFC 4271 §4.4)."""


def bgp_settings(config: Config, router_id: int, hostname: str | None) -> BgpSettings:
    """Settings of the BGP engine; ``router_id`` and ``hostname`` as the daemon resolved them.

    Raises ValueError if the configuration has no ``bgp`` section.
    """
    section = config.section(Bgp)
    return settings_of(
        BgpSettings,
        section,
        local_as=section.as_,
        router_id=RouterId(router_id if section.router_id is None else section.router_id),
        hostname=hostname,
        neighbors=tuple(
            neighbor_settings(config, one, key) for key, one in section.by_address.items()
        ),
        families=section.families,
        networks=section.own_prefixes,
        redistribute={
            source: _redistribution(config, one)
            for source, one in section.redistribute.named.items()
            if isinstance(one, BgpRedistributed)
        },
        relax=section.as_path == "relax",
        graceful_restart=settings_of(BgpRestartSettings, section.graceful_restart),
        advertise=advertise_settings(config),
        drained=section.graceful_shutdown,
        demand=section.path_bandwidth.demand,
        follows_load=weight_mode(config) is WeightMode.AVAILABLE,
    )


def _redistribution(config: Config, section: BgpRedistributed) -> BgpRedistribution:
    return settings_of(BgpRedistribution, section, filters=filters_of(config, section))


def neighbor_settings(
    config: Config, section: BgpNeighbor, address: str | None
) -> BgpNeighborSettings:
    """Return the settings of a neighbor; ``address`` None: that of an unnumbered link."""
    router, filters = config.section(Bgp), section.filter
    third = section.hold_time / _THIRD
    found = [config.filter(name) for name in (filters.import_, filters.export)]
    accepted, told = [() if one is None else (one,) for one in found]
    return settings_of(
        BgpNeighborSettings,
        section,
        address=address,
        local=section.local_address,
        enabled=not section.shutdown,
        families=families_of(section.address_families or router.address_families),
        keepalive=third if section.keepalive is None else section.keepalive,
        key=_key(section.authentication),
        imports=section.import_,
        exports=section.export,
        import_filters=accepted,
        export_filters=told,
        path_bandwidth=_path_bandwidth(router, section),
        bfd=section.bfd.settings(config.bfd),
    )


def _key(section: BgpAuthentication | None) -> StreamKey | None:
    return None if section is None else StreamKey(section.secret())


def _path_bandwidth(router: Bgp, section: BgpNeighbor) -> PathBandwidthSettings:
    """Return what a neighbor has of its own, and else what the router has."""
    own = {
        name: value
        for name in section.path_bandwidth.__struct_fields__
        if (value := getattr(section.path_bandwidth, name)) is not None
    }
    return settings_of(PathBandwidthSettings, router.path_bandwidth, **own)


def link_settings(config: Config, link: Link, share: float = 1.0) -> BgpLinkSettings | None:
    """Return BGP settings of a link; None where no neighbor is and no network is announced.

    ``share``: the part of the capacity that is left, less than 1 on a derated link.
    """
    section = config.section(Bgp)
    unnumbered = None if link.loopback else section.by_name.find(link.name)
    if section.on(link) is None:
        return None
    return BgpLinkSettings(
        neighbor=None if unnumbered is None else neighbor_settings(config, unnumbered, None),
        advertise=section.own_names.find(link.name) is not None,
        capacity=config.interface_bandwidth(link.name),
        share=share,
        delay=config.interface_delay(link.name),
    )
