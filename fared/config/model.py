"""The configuration file as typed, frozen models with documented defaults.

Keys follow the leaf names of ietf-ospf (RFC 9129) in kebab-case. Values are held in the units
of the engines: bytes/s, seconds, ratios, ids as integers. ``Config.document()`` returns the form of
the file.

Keys of ``interfaces`` sections are names or globs. To an interface only the most exact key applies,
with all of its settings: an exact name before any glob, a longer glob before a shorter one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from msgspec import field
from msgspec.structs import replace

from fared.config import quantities, values
from fared.config.authentication import OspfAuthentication
from fared.config.bfd import BfdOptions, BfdRouter
from fared.config.bier import BierRouter
from fared.config.flooding import FloodingOptions
from fared.config.globs import MostExact
from fared.config.isis import Isis, IsisInterface
from fared.config.link_health import LinkHealth
from fared.config.packets import PacketMatch
from fared.config.redistribute import Redistribute
from fared.config.restart import OspfGracefulRestart
from fared.config.section import Reload, Section
from fared.config.shapes import EMPTY_IS_MEANT, describe_section, shape_of
from fared.config.spf import SpfDelays
from fared.core.bfd import BfdSettings
from fared.core.ids import AreaId
from fared.paths.te.advertise import DEFAULT_ADVERTISE
from fared.protocols.ospf.packet.extended_prefix import PATH_CAPACITY
from fared.runtime.state_directory import DEFAULT as DEFAULT_STATE_DIRECTORY

_DEAD_INTERVAL_HELLOS = 4
_LAST_METRIC = 0xFFFFFE
"""One below LSInfinity (RFC 2328 appendix B)."""


class LinkFacts(Section, frozen=True):
    """Configured facts of a link. ``bandwidth`` None: from the kernel (auto)."""

    bandwidth: quantities.Bandwidth = None


class OspfInterface(Section, frozen=True):
    """OSPF on one interface, or on all that a glob matches (RFC 2328 §C.3).

    ``prefix_suppression`` None: that of the router, unless the interface is passive.
    """

    network_type: Annotated[Literal["point-to-point", "broadcast"], Reload.BOUNCE] = (
        "point-to-point"
    )
    priority: Annotated[int, values.whole(0, 255)] = 1
    cost: Annotated[int, values.whole(1, 65535)] = 10
    hello_interval: Annotated[quantities.WholeSeconds, Reload.BOUNCE] = 1
    dead_interval: Annotated[quantities.WholeSeconds, Reload.BOUNCE] = 4
    retransmit_interval: quantities.Seconds = 5.0
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
    advertise: bool = True


class OspfArea(Section, frozen=True):
    """One area and its interfaces. ``summary`` and ``default_cost`` are for stub areas."""

    type: Annotated[Literal["normal", "stub"], Reload.BOUNCE] = "normal"
    summary: bool = True
    default_cost: Annotated[int, values.whole(0, _LAST_METRIC)] = 1
    ranges: dict[values.PrefixText, OspfRange] = field(default_factory=dict)
    interfaces: Annotated[dict[values.InterfaceGlob, OspfInterface], Reload.BOUNCE] = field(
        default_factory=dict
    )

    def check(self) -> None:
        """Refuse ``summary: false`` in an area that is no stub."""
        if not self.summary and self.type != "stub":
            raise values.expected("true unless the area is of type stub", field="summary")


class Ospf(Section, frozen=True):
    """OSPFv2. ``areas`` in the order of the file, by id.

    ``max_lsas``: LSAs in each area, and in the AS. ``max_prefixes``: prefixes in use of all areas.
    """

    areas: Annotated[dict[values.AreaText, OspfArea], Reload.BOUNCE] = field(default_factory=dict)
    preference: Annotated[int, values.whole(1, 255)] = 110
    max_paths: Annotated[int, values.whole(1, 1024)] = 64
    max_lsas: Annotated[int, values.whole(100, 10_000_000)] = 150_000
    max_lsas_per_originator: Annotated[int, values.whole(100, 10_000_000)] = 120_000
    max_prefixes: Annotated[int, values.whole(100, 10_000_000)] = 600_000
    max_prefixes_per_originator: Annotated[int, values.whole(100, 10_000_000)] = 120_000
    stub_router: bool = False
    stub_router_on_startup: quantities.Duration = 0.0
    stub_router_on_shutdown: quantities.Duration = 0.0
    prefix_suppression: bool = False
    path_capacity_sub_tlv: Annotated[int, values.whole(0, 65535), Reload.RESTART] = PATH_CAPACITY
    adjacency_stagger: Annotated[int, values.whole(1, 65535)] = 8
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

    @property
    def counts_boots(self) -> bool:
        """Whether any key has 64-bit sequence numbers, which contain a boot count."""
        rings = [interface.authentication for _, interface in self.every_interface()]
        return any(key.extended_sequence for ring in rings if ring for key in ring.keys or (ring,))


Protocol = TypeVar("Protocol", Ospf, Isis)


class Adaptive(Section, frozen=True):
    """Weights of next hops. Times in seconds, ``time_constant`` 0 undamped; thresholds 0..1.

    ``flows`` None: many flows, proportional weights. ``announce_budget``: of an area or level.
    ``granularity``: what takes one path, of the packets that ``packet_prefixes`` (destinations;
    empty: all) and ``packet_match`` select.
    """

    enabled: bool = True
    metric: Literal["capacity", "available", "equalise"] = "capacity"
    flows: Annotated[int, values.whole(1, 1_000_000)] | None = None
    measure_period: quantities.Period = 1.0
    time_constant: quantities.Duration = 20.0
    announce_threshold: quantities.Ratio = DEFAULT_ADVERTISE.threshold
    announce_budget: quantities.Rate = DEFAULT_ADVERTISE.budget
    dead_band: quantities.Ratio = 0.05
    floor: quantities.Ratio = 0.02
    granularity: Literal["flow", "flowlet", "packet"] = "flow"
    flowlet_gap: quantities.Period = 0.02
    packet_prefixes: list[values.AnyPrefixText] = field(default_factory=list)
    packet_match: PacketMatch = PacketMatch()


class Fib(Section, frozen=True):
    """Our objects in the kernel. ``protocol`` 0..4 belong to the kernel and to static routes."""

    table: Annotated[values.RouteTable, Reload.RESTART] = 254
    protocol: Annotated[int, values.whole(5, 255), Reload.RESTART] = 201
    metric: Annotated[int, values.whole(0, 0xFFFFFFFF), Reload.RESTART] = 20
    group_type: Annotated[Literal["hash-threshold", "resilient"], Reload.RESTART] = "hash-threshold"
    sysctls: Annotated[Literal["set", "check", "ignore"], Reload.RESTART] = "set"
    buckets: Annotated[int, values.whole(1, 65535), Reload.RESTART] = 512
    on_exit: Literal["withdraw", "keep"] = "withdraw"


class Api(Section, frozen=True):
    """Servers of the daemon. ``http`` None: off; ``http_names``: further host names of HTTP.

    ``change_group``: the group whose members may change the daemon over the control socket; None:
    whoever may connect.
    """

    socket: Annotated[values.NotEmpty, Reload.RESTART] = "/run/fared/fared.sock"
    http: Annotated[values.HttpListen, Reload.RESTART] = values.HttpAddress("127.0.0.1", 9547)
    http_names: tuple[values.NotEmpty, ...] = ()
    change_group: values.NotEmpty | None = None


class Ina(Section, frozen=True):
    """In-network aggregation: jobs are flooded, and ``fared-ina`` behind ``socket`` sums."""

    enabled: Annotated[bool, Reload.RESTART] = False
    socket: Annotated[values.NotEmpty, Reload.RESTART] = "/run/fared-ina/ina.sock"


class Log(Section, frozen=True):
    """Logging. ``auto``: JSON under systemd, text elsewhere."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "text"] = "auto"


class Config(Section, frozen=True):
    """The whole file.

    ``router_id`` None: the highest loopback address; ``hostname`` None: the kernel's. Both are
    resolved by the daemon. ``state_directory`` has the files that a restart needs.
    """

    router_id: Annotated[values.RouterIdText | None, Reload.RESTART] = None
    hostname: values.Hostname | None = None
    state_directory: Annotated[values.Directory, Reload.RESTART] = DEFAULT_STATE_DIRECTORY
    interfaces: dict[values.InterfaceGlob, LinkFacts] = field(default_factory=dict)
    ospf: Annotated[Ospf | None, EMPTY_IS_MEANT, Reload.RESTART] = None
    isis: Annotated[Isis | None, EMPTY_IS_MEANT, Reload.RESTART] = None
    bfd: BfdRouter = BfdRouter()
    bier: Annotated[BierRouter | None, EMPTY_IS_MEANT, Reload.RESTART] = None
    adaptive: Adaptive = Adaptive()
    fib: Fib = Fib()
    ina: Ina = Ina()
    api: Api = Api()
    link_health: LinkHealth = LinkHealth()
    log: Log = Log()

    def check(self) -> None:
        """Refuse spraying over a table other than main, before whose rule those of marks come."""
        if self.adaptive.granularity != "flow" and self.fib.table != values.MAIN_TABLE:
            raise values.expected("table: main, since packets are sprayed", field="fib")

    @functools.cached_property
    def _bandwidths(self) -> MostExact[LinkFacts]:
        return MostExact(self.interfaces)

    @property
    def protocols(self) -> dict[str, Ospf | Isis]:
        """Return the sections of the protocols that run, by name."""
        return {key: part for key in ("ospf", "isis") if (part := getattr(self, key)) is not None}

    def section(self, kind: type[Protocol]) -> Protocol:
        """Return the section of a protocol. Raises ValueError if it does not run."""
        for section in self.protocols.values():
            if isinstance(section, kind):
                return section
        raise ValueError(f"the configuration has no {kind.__name__.lower()} section")

    def ospf_interface(self, name: str) -> tuple[AreaId, OspfInterface] | None:
        """Return area and settings of an interface, None where OSPF does not run."""
        return self.ospf.interface(name) if self.ospf else None

    def isis_interface(self, name: str) -> IsisInterface | None:
        """Return the settings of an interface, None where IS-IS does not run."""
        found = self.isis.interface(name) if self.isis else None
        return found[1] if found else None

    def interface_bandwidth(self, name: str) -> float | None:
        """Return the configured bandwidth in bytes/s, None for auto."""
        facts = self._bandwidths.find(name)
        return None if facts is None else facts.bandwidth

    def document(self) -> dict[str, Any]:
        """Return the configuration with all defaults in the form of the file, secrets hidden."""
        document: dict[str, Any] = shape_of(Config).write(self)  # type: ignore[assignment]
        return {key: value for key, value in document.items() if value is not None}


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the file, for editors; defaults are in the form of the file."""
    definitions: dict[str, Any] = {}
    schema = describe_section(Config, definitions)
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, **schema, "$defs": definitions}
