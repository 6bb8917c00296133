"""The configuration file as typed, frozen models with documented defaults.

Keys follow the leaf names of ietf-ospf (RFC 9129) in kebab-case. Values are held in the units
of the engines: bytes/s, seconds, ratios, ids as integers. ``Config.document()`` returns the form of
the file.

Keys of ``interfaces`` sections are names or globs. To an interface only the most exact key applies,
with all of its settings: an exact name before any glob, a longer glob before a shorter one.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal, TypeVar

from msgspec import field

from fared.config import quantities, values
from fared.config.bfd import BfdRouter
from fared.config.bgp import Bgp
from fared.config.bier import BierRouter
from fared.config.filters import FilterItems, FilterName
from fared.config.fpm import Fpm
from fared.config.globs import MostExact
from fared.config.isis import Isis, IsisInterface
from fared.config.link_health import LinkHealth
from fared.config.ospf import Ospf, OspfInterface
from fared.config.platform import Platform
from fared.config.section import Reload, Section
from fared.config.shapes import EMPTY_IS_MEANT, describe_section, shape_of
from fared.core.filters import Filter
from fared.core.ids import AreaId
from fared.paths.fib.settings import MAIN_TABLE, METRIC, PROTOCOL, FibSettings, SpraySettings
from fared.paths.te.advertise import DEFAULT_ADVERTISE
from fared.paths.weights.defaults import DEAD_BAND, FLOOR, MEASURE_PERIOD, TIME_CONSTANT
from fared.runtime.sockets import CONTROL_SOCKET, INA_SOCKET
from fared.runtime.state_directory import DEFAULT as DEFAULT_STATE_DIRECTORY

Protocol = TypeVar("Protocol", Ospf, Isis, Bgp)
_Port = Annotated[int, values.whole(1, 65535)]


class LinkFacts(Section, frozen=True):
    """Configured facts of a link. ``bandwidth`` None: from the kernel (auto).

    ``delay``: seconds in the direction of this interface; None: not advertised.
    """

    bandwidth: quantities.Bandwidth = None
    delay: quantities.Delay = None


class PacketMatch(Section, frozen=True):
    """Packets with one of these DSCPs or ports, as source or destination. All empty: any packet."""

    dscp: list[Annotated[int, values.whole(0, 63)]] = field(default_factory=list)
    udp_ports: list[_Port] = field(default_factory=list)
    tcp_ports: list[_Port] = field(default_factory=list)


class Adaptive(Section, frozen=True):
    """Weights of next hops. Times in seconds, ``time_constant`` 0 undamped; thresholds 0..1.

    ``flows`` None: many flows, proportional weights. ``announce_budget``: of an area or level.
    ``granularity``: what takes one path, of the packets that ``packet_prefixes`` (destinations;
    empty: all) and ``packet_match`` select. ``delay_margin`` and ``delay_bound`` (None: none)
    choose among next hops of equal cost; ``unknown_delay`` counts for links without one.
    """

    enabled: bool = True
    metric: Literal["capacity", "available", "equalise"] = "capacity"
    flows: Annotated[int, values.whole(1, 1_000_000)] | None = None
    measure_period: quantities.Period = MEASURE_PERIOD
    time_constant: quantities.Duration = TIME_CONSTANT
    announce_threshold: quantities.Ratio = DEFAULT_ADVERTISE.threshold
    announce_budget: quantities.Rate = DEFAULT_ADVERTISE.budget
    dead_band: quantities.Ratio = DEAD_BAND
    floor: quantities.Ratio = FLOOR
    granularity: Literal["flow", "flowlet", "packet"] = "flow"
    flowlet_gap: quantities.Period = SpraySettings().gap
    packet_prefixes: list[values.AnyPrefixText] = field(default_factory=list)
    packet_match: PacketMatch = PacketMatch()
    delay_margin: quantities.PathDelay = None
    delay_bound: quantities.PathDelay = None
    unknown_delay: quantities.Duration = 0.0


class Fib(Section, frozen=True):
    """Our objects in the kernel. ``protocol`` 0..4 belong to the kernel and to static routes.

    ``max_weight`` None: the default of weights; ``max_group_size``: the greatest sum of the weights
    of a group, ``max_groups``: the most groups, None: any. ``fpm``: where else routes go, None:
    nowhere; ``kernel`` false: there only.
    """

    table: Annotated[values.RouteTable, Reload.RESTART] = MAIN_TABLE
    protocol: Annotated[int, values.whole(5, 255), Reload.RESTART] = PROTOCOL
    metric: Annotated[int, values.whole(0, 0xFFFFFFFF), Reload.RESTART] = METRIC
    group_type: Annotated[Literal["hash-threshold", "resilient"], Reload.RESTART] = "hash-threshold"
    sysctls: Annotated[Literal["set", "check", "ignore"], Reload.RESTART] = "set"
    buckets: Annotated[int, values.whole(1, 65535), Reload.RESTART] = FibSettings().buckets
    max_weight: Annotated[int, values.whole(1, 65535)] | None = None
    max_group_size: Annotated[int, values.whole(1, 65535)] | None = None
    max_groups: Annotated[int, values.whole(1, 65535)] | None = None
    on_exit: Literal["withdraw", "keep"] = "withdraw"
    fpm: Fpm | None = None
    kernel: Annotated[bool, Reload.RESTART] = True

    def check(self) -> None:
        """Refuse a bound on the sum of weights that are buckets: ``buckets`` is their sum."""
        if self.fpm is None and not self.kernel:
            raise values.expected("true without fpm: routes would go nowhere", field="kernel")
        if self.max_group_size is not None and self.group_type == "resilient":
            raise values.expected(
                "no max-group-size: a resilient group has buckets", field="max-group-size"
            )


class Api(Section, frozen=True):
    """Servers of the daemon. ``http`` None: off; ``http_names``: further host names of HTTP.

    ``change_group``: the group whose members may change the daemon over the control socket; None:
    whoever may connect.
    """

    socket: Annotated[values.NotEmpty, Reload.RESTART] = CONTROL_SOCKET
    http: Annotated[values.HttpListen, Reload.RESTART] = values.HttpAddress("127.0.0.1", 9547)
    http_names: tuple[values.NotEmpty, ...] = ()
    change_group: values.NotEmpty | None = None


class Ina(Section, frozen=True):
    """In-network aggregation: jobs are flooded, and ``fared-ina`` behind ``socket`` sums."""

    enabled: Annotated[bool, Reload.RESTART] = False
    socket: Annotated[values.NotEmpty, Reload.RESTART] = INA_SOCKET


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
    filters: dict[FilterName, FilterItems] = field(default_factory=dict)
    ospf: Annotated[Ospf | None, EMPTY_IS_MEANT, Reload.RESTART] = None
    isis: Annotated[Isis | None, EMPTY_IS_MEANT, Reload.RESTART] = None
    bgp: Annotated[Bgp | None, EMPTY_IS_MEANT, Reload.RESTART] = None
    bfd: BfdRouter = BfdRouter()
    bier: Annotated[BierRouter | None, EMPTY_IS_MEANT, Reload.RESTART] = None
    adaptive: Adaptive = Adaptive()
    fib: Fib = Fib()
    ina: Ina = Ina()
    api: Api = Api()
    link_health: LinkHealth = LinkHealth()
    platform: Platform = Platform()
    log: Log = Log()

    def check(self) -> None:
        """Refuse spraying over a table other than main, before whose rule those of marks come."""
        if self.adaptive.granularity != "flow" and self.fib.table != MAIN_TABLE:
            raise values.expected("table: main, since packets are sprayed", field="fib")

    @functools.cached_property
    def _facts(self) -> MostExact[LinkFacts]:
        return MostExact(self.interfaces)

    @functools.cached_property
    def _compiled(self) -> dict[str, Filter]:
        return {name: Filter(name, items) for name, items in self.filters.items()}

    def filter(self, name: str | None) -> Filter | None:
        """Return the filter of a name that the file declares; None of no name."""
        return None if name is None else self._compiled[name]

    @property
    def protocols(self) -> dict[str, Ospf | Isis | Bgp]:
        """Return the sections of the protocols that run, by name."""
        names = ("ospf", "isis", "bgp")
        return {key: part for key in names if (part := getattr(self, key)) is not None}

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
        facts = self._facts.find(name)
        return None if facts is None else facts.bandwidth

    def interface_delay(self, name: str) -> float | None:
        """Return the configured delay of a link in seconds, None if there is none."""
        facts = self._facts.find(name)
        return None if facts is None else facts.delay

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
