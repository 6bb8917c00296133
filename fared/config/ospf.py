"""The ``ospf`` section: OSPFv2 on this router, with the leaf names of ietf-ospf (RFC 9129)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from msgspec import field
from msgspec.structs import replace

from fared.config import quantities, values
from fared.config.authentication import OspfAuthentication
from fared.config.bfd import BfdOptions, BfdRouter
from fared.config.filters import AreaFilter, FilterName
from fared.config.globs import MostExact
from fared.config.igp import FloodingOptions, Sources, SpfDelays
from fared.config.section import Reload, Section
from fared.config.shapes import EMPTY_IS_MEANT
from fared.core.bfd import BfdSettings
from fared.core.ids import AreaId, RouterId, ipv4_prefix
from fared.core.links import Link
from fared.paths.weights.defaults import MAX_PATHS
from fared.protocols.ospf.packet.extended_prefix import PATH_CAPACITY
from fared.protocols.ospf.settings import (
    AreaSettings,
    GracefulRestartSettings,
    InterfaceSettings,
    OspfSettings,
    RangeSettings,
    Redistribution,
)
from fared.router.protocols import OSPF, PROTOCOLS

_DEAD_INTERVAL_HELLOS = 4
_LAST_METRIC = 0xFFFFFE
"""One below LSInfinity (RFC 2328 appendix B)."""
_ENGINE, _RESTART = OspfSettings(RouterId(0)), GracefulRestartSettings()
_INTERFACE, _AREA = InterfaceSettings(AreaId(0)), AreaSettings(AreaId(0))
_RANGE = RangeSettings(ipv4_prefix(0, 0))
"""The defaults of the engine."""


class OspfInterface(Section, frozen=True):
    """OSPF on one interface, or on all that a glob matches (RFC 2328 §C.3).

    ``prefix_suppression`` None: that of the router, unless the interface is passive.
    """

    network_type: Annotated[Literal["point-to-point", "broadcast"], Reload.BOUNCE] = (
        "point-to-point"
    )
    priority: Annotated[int, values.whole(0, 255)] = _INTERFACE.router_priority
    cost: Annotated[int, values.whole(1, 65535)] = _INTERFACE.cost
    hello_interval: Annotated[quantities.WholeSeconds, Reload.BOUNCE] = 1
    dead_interval: Annotated[quantities.WholeSeconds, Reload.BOUNCE] = 4
    retransmit_interval: quantities.Seconds = _INTERFACE.rxmt_interval
    mtu_ignore: bool = False
    ttl_security: values.TtlSecurity = False
    passive: Annotated[bool, Reload.BOUNCE] = False
    prefix_suppression: bool | None = None
    authentication: OspfAuthentication | None = None
    bfd: BfdOptions = BfdOptions()

    @classmethod
    def prepare(cls, data: object) -> object:
        """Default dead interval: four hello intervals (RFC 2328 §C.3)."""
        if isinstance(data, dict) and "hello-interval" in data and "dead-interval" not in data:
            try:
                hello = quantities.parse_whole_seconds(data["hello-interval"])
            except (ValueError, TypeError):
                return data  # the shape of hello-interval reports the error
            return {**data, "dead-interval": min(hello * _DEAD_INTERVAL_HELLOS, 65535)}
        return data

    def bfd_settings(self, router: BfdRouter) -> BfdSettings | None:
        """Return the settings of BFD: not strict if hellos can have no link-local block."""
        found = self.bfd.settings(router)
        # RFC 5613 §2.5 has room for sequence numbers of 32 bits
        if found is not None and self.authentication and self.authentication.extended:
            return replace(found, strict=False)
        return found

    @property
    def expects_neighbors(self) -> bool:
        """Whether other routers are looked for on it."""
        return not self.passive

    @property
    def silence(self) -> float:
        """The dead interval: seconds without a hello after which a neighbor is down."""
        return float(self.dead_interval)

    def check(self) -> None:
        """Refuse a dead interval that is not longer than the hello interval."""
        if self.dead_interval <= self.hello_interval:
            raise values.expected(
                f"more than hello-interval ({self.hello_interval})", field="dead-interval"
            )


class OspfRange(Section, frozen=True):
    """An address range of an area (RFC 2328 §C.2). ``cost`` None: the greatest inside."""

    cost: Annotated[int, values.whole(0, _LAST_METRIC)] | None = None
    advertise: bool = _RANGE.advertise


class OspfArea(Section, frozen=True):
    """One area and its interfaces. ``summary`` and ``default_cost`` are for stub areas."""

    type: Annotated[Literal["normal", "stub"], Reload.BOUNCE] = "normal"
    summary: bool = _AREA.summary
    default_cost: Annotated[int, values.whole(0, _LAST_METRIC)] = _AREA.default_cost
    ranges: dict[values.PrefixText, OspfRange] = field(default_factory=dict)
    filter: AreaFilter = AreaFilter()
    interfaces: Annotated[dict[values.InterfaceGlob, OspfInterface], Reload.BOUNCE] = field(
        default_factory=dict
    )

    def check(self) -> None:
        """Refuse ``summary: false`` in an area that is no stub."""
        if not self.summary and self.type != "stub":
            raise values.expected("true unless the area is of type stub", field="summary")


class _OspfSource(Section, frozen=True):
    """How to advertise routes of one source (RFC 2328 §A.4.5).

    ``prefixes`` empty: all of them that ``filter`` permits.
    """

    metric: Annotated[int, values.whole(0, _LAST_METRIC)] = Redistribution().metric
    metric_type: Annotated[int, values.whole(1, 2)] = 2
    prefixes: list[values.PrefixText] = field(default_factory=list)
    filter: FilterName | None = None


class Redistributed(_OspfSource, frozen=True):
    """How to advertise routes of the kernel."""

    tag: values.RouteTag = 0


class RedistributedProtocol(_OspfSource, frozen=True):
    """How to advertise the routes of another protocol; ``tag`` None: that of their origin."""

    tag: values.RouteTag | None = None


class RedistributedDefault(Section, frozen=True):
    """The default route; ``always``: also without a static one."""

    metric: Annotated[int, values.whole(0, _LAST_METRIC)] = 10
    metric_type: Annotated[int, values.whole(1, 2)] = 2
    tag: values.RouteTag = 0
    always: bool = False


class Redistribute(Sources, frozen=True):
    """The routes of other sources that OSPF advertises."""

    connected: Annotated[Redistributed | None, EMPTY_IS_MEANT] = None
    static: Annotated[Redistributed | None, EMPTY_IS_MEANT] = None
    bgp: Annotated[RedistributedProtocol | None, EMPTY_IS_MEANT] = None
    isis: Annotated[RedistributedProtocol | None, EMPTY_IS_MEANT] = None
    default: Annotated[RedistributedDefault | None, EMPTY_IS_MEANT] = None


class OspfGracefulRestart(Section, frozen=True):
    """Graceful restart of OSPF (RFC 3623). ``enabled``: of this router, ``helper``: of neighbors.

    ``grace_period``: seconds that a restart of this router takes at most,
    ``supported_grace_time``: seconds for which this router helps a neighbor at most,
    however often that announces another restart.
    """

    enabled: bool = False
    grace_period: quantities.WholeSeconds = int(_RESTART.period)
    helper: bool = False
    strict_lsa_checking: bool = _RESTART.strict_lsa_checking
    planned_only: bool = False
    supported_grace_time: quantities.WholeSeconds = int(_RESTART.longest)


class Ospf(Section, frozen=True):
    """OSPFv2. ``areas`` in the order of the file, by id.

    ``max_lsas``: LSAs in each area, and in the AS. ``max_prefixes``: prefixes in use of all areas.
    """

    areas: Annotated[dict[values.AreaText, OspfArea], Reload.BOUNCE] = field(default_factory=dict)
    preference: Annotated[int, values.whole(1, 255)] = PROTOCOLS[OSPF].preference
    max_paths: Annotated[int, values.whole(1, 1024)] = MAX_PATHS
    max_lsas: values.Limit = _ENGINE.limit.most
    max_lsas_per_originator: values.Limit = _ENGINE.limit.of_originator
    max_prefixes: values.Limit = _ENGINE.prefix_limit.most
    max_prefixes_per_originator: values.Limit = _ENGINE.prefix_limit.of_originator
    stub_router: bool = False
    stub_router_on_startup: quantities.Duration = 0.0
    stub_router_on_shutdown: quantities.Duration = 0.0
    prefix_suppression: bool = False
    path_capacity_sub_tlv: Annotated[int, values.whole(0, 65535), Reload.RESTART] = PATH_CAPACITY
    external_capacity_scope: Literal["area", "as"] = "area"
    adjacency_stagger: Annotated[int, values.whole(1, 65535)] = _ENGINE.adjacency_stagger
    redistribute: Redistribute = Redistribute()
    flooding: FloodingOptions = FloodingOptions()
    graceful_restart: OspfGracefulRestart = OspfGracefulRestart()
    spf: SpfDelays = SpfDelays()
    needs_router_id: ClassVar[bool] = True
    families: ClassVar[tuple[int, ...]] = (4,)
    ipv4_over_ipv6: ClassVar[bool] = False
    """Whether next hops on a link without IPv4 address are IPv6, or the neighbor's loopback."""

    @property
    def drained_on_shutdown(self) -> float:
        """Seconds of the shutdown in which others keep transit traffic away."""
        return self.stub_router_on_shutdown

    @functools.cached_property
    def by_name(self) -> MostExact[tuple[AreaId, OspfInterface]]:
        """Area and settings of interfaces, by name."""
        return MostExact(
            {
                key: (AreaId(area_id), settings)
                for area_id, area in self.areas.items()
                for key, settings in area.interfaces.items()
            }
        )

    def suppresses(self, interface: OspfInterface) -> bool:
        """Whether the network of an interface is not advertised (RFC 6860)."""
        own = interface.prefix_suppression
        return self.prefix_suppression and not interface.passive if own is None else own

    def every_interface(self) -> Iterator[tuple[str, OspfInterface]]:
        """Yield each interface of each area, by name or glob."""
        for area in self.areas.values():
            yield from area.interfaces.items()

    def interface(self, name: str) -> tuple[AreaId, OspfInterface] | None:
        """Return area and settings of an interface by its name, None where OSPF does not run."""
        return self.by_name.find(name)

    def on(self, link: Link) -> tuple[AreaId, OspfInterface] | None:
        """Return the same for a link."""
        return self.by_name.on(link)

    @property
    def counts_boots(self) -> bool:
        """Whether any key has 64-bit sequence numbers, which contain a boot count."""
        rings = [interface.authentication for _, interface in self.every_interface()]
        return any(key.extended_sequence for ring in rings if ring for key in ring.keys or (ring,))
