"""The input of every view: the router, facts of the process, and names of nodes and areas."""

from __future__ import annotations

import itertools
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from fared.config import Config
from fared.core.ids import (
    FAMILY_IPV4,
    HOSTS_AREA,
    Prefix,
    format_address,
    format_node,
    is_group,
    parse_prefix,
    speaker_of,
)
from fared.core.link_facts import KERNEL_PLATFORM, LinkPlatform
from fared.core.links import Link
from fared.core.load_history import LoadHistory
from fared.core.lost_neighbors import LostNeighbors
from fared.core.sysctl import SysctlRow
from fared.management.documents.errors import CommandError
from fared.management.documents.facts import Facts, LinkDelay
from fared.management.documents.human import PROTOCOLS
from fared.management.documents.link import Derated, LinkHealthStatus
from fared.management.documents.log_ring import LogRing
from fared.paths.fib.model import FibState
from fared.paths.rib.model import Route
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.model import NodeBlock, PathType
from fared.paths.weights.path_capacity import WeightMode
from fared.router.instance import ProtocolInstance
from fared.router.protocols import BGP, ISIS, OSPF
from fared.router.router import Router

if TYPE_CHECKING:
    from fared.fpm.session import FpmSession
    from fared.protocols.bgp.engine import BgpEngine
    from fared.protocols.isis.engine import IsisEngine
    from fared.protocols.ospf.engine import OspfEngine

EXTERNAL = (
    PathType.EXTERNAL_1,
    PathType.EXTERNAL_2,
    PathType.LEVEL_1_REDISTRIBUTED,
    PathType.LEVEL_2_REDISTRIBUTED,
)
"""Local routes that are not advertised as intra-area, but redistributed."""
FAMILIES = {"ipv4": 4, "ipv6": 6}


class ProcessFacts(Protocol):
    """Facts of the process, outside the pure packages (``loop.runtime``). Times are Unix time."""

    started_at: float
    pid: int
    config_file: str
    loaded_at: float
    last_reload_ok: bool | None
    last_reload_error: str | None
    unconfirmed_until: float | None
    event_loop_lag: float
    recent_lags: deque[float]
    resyncs: Counter[str]
    sysctls: list[SysctlRow]
    utilized: dict[int, float]
    """Outbound load by interface index, bytes/s."""
    load_history: LoadHistory
    load_samples: Counter[str]
    """Measurements of load, by result: ok or failed."""
    neighbor_reasons: dict[tuple[int, int], str]
    """The reason of the last state change of each neighbor (ifindex, node id)."""
    lost_neighbors: LostNeighbors
    cleared: tuple[float, Mapping[str, Mapping[str, Mapping[str, int]]]] | None
    """The Unix time of the last ``clear counters``, and what it found."""


class SprayFacts(Protocol):
    """Facts of sprayed packets that only the daemon knows."""

    @property
    def problem(self) -> str:
        """Why nothing can be sprayed; empty if it can."""

    @property
    def counted(self) -> Mapping[int, tuple[int, int]]:
        """Packets and bytes by id of the next hop."""


class BierFacts(Protocol):
    """Facts of BIER that only the daemon knows."""

    @property
    def problem(self) -> str:
        """Why no packets are forwarded; empty if they are."""

    @property
    def counted(self) -> Mapping[str, tuple[int, int]]:
        """Packets and bytes by name of the counter."""

    @property
    def by_process(self) -> bool:
        """Whether the daemon forwards, not the kernel."""


class PluggedIn(Protocol):
    """A service of another package (``runtime.extensions``), such as one of jobs."""

    async def show(self, name: str | None) -> Facts:
        """Return the document of all jobs, or of one. Raises CommandError."""

    def drawn(self) -> list[Any]:
        """Return the jobs as ``show fabric`` has them (``fabric.DrawnJob``)."""

    def metrics(self) -> Iterator[Any]:
        """Yield their metrics, as prometheus_client has them."""

    def stop(self) -> None:
        """End the connection to the other process."""


class FpmFacts(Protocol):
    """The session of FPM, and its connection."""

    session: FpmSession
    connected_at: float | None
    """Unix time of the present connection; None: there is none."""
    warm_restart: str | None
    """How far a warm restart of SONiC is; None: it is unknown."""

    @property
    def address(self) -> str:
        """The peer's address and port."""

    @property
    def slow(self) -> bool:
        """Whether the peer takes no more bytes now."""


class NothingForwarded(msgspec.Struct, frozen=True):
    """The facts without BIER."""

    problem: str = ""
    by_process: bool = False
    counted: Mapping[str, tuple[int, int]] = MappingProxyType({})


class NothingSprayed(msgspec.Struct, frozen=True):
    """The facts if nothing is sprayed."""

    problem: str = ""
    counted: Mapping[int, tuple[int, int]] = MappingProxyType({})


class ViewContext(msgspec.Struct, dict=True):
    """The daemon at one time: ``now`` on the router's clock, ``wall`` the same in Unix time."""

    router: Router
    config: Config
    runtime: ProcessFacts
    now: float
    wall: float
    log: LogRing
    dump: Callable[[], FibState]
    links: Mapping[int, Link]
    counters: Callable[[], Mapping[str, Mapping[str, Mapping[str, int]]]]
    """Counts by protocol (empty: none), group and name."""
    foreign: Callable[[], Mapping[Prefix, int | None]] = dict
    """Protocol numbers of other programs' routes in the places of ours."""
    plugged: Mapping[str, PluggedIn] = MappingProxyType({})
    """The services of other packages, by their section of the configuration."""
    bfd: Callable[[], Any] = lambda: None
    """The document of ``show bfd``; None: no interface uses BFD."""
    shown_config: Callable[..., Any] = lambda **_: None
    """Makes the document of ``show config``, with ``saved`` that of the file."""
    spraying: SprayFacts = NothingSprayed()
    derated: Callable[[str], Sequence[Derated]] = lambda _: ()
    """Why the advertised capacity of a link (by name) is less than it could be."""
    link_health: Callable[[str], LinkHealthStatus | None] = lambda _: None
    """How a link is; None: it is not watched."""
    platform: LinkPlatform = KERNEL_PLATFORM
    """What tells facts of links beside the kernel."""
    drained: Derated | None = None
    """Why the router is drained by an operator."""
    bier: BierFacts = NothingForwarded()
    fpm: FpmFacts | None = None
    """None: routes go to the kernel only."""
    proto: str | None = None
    """The requested protocol; None: all that run."""

    def unix(self, at: float) -> float:
        """Convert the router's clock to Unix time."""
        return self.wall - (self.now - at)

    # -- which protocol ---------------------------------------------------------------------

    def narrowed(self, proto: str | None) -> ViewContext:
        """Return the context of one protocol only. Raises CommandError if it does not run."""
        if proto is None:
            return self
        if proto in self.router.instances:
            return replace(self, proto=proto)
        if proto in PROTOCOLS:
            raise CommandError("unsupported", f"this router does not run {PROTOCOLS[proto]}")
        known = " or ".join(PROTOCOLS)
        raise CommandError("bad-argument", f"{proto!r} is not a protocol: {known}")

    @cached_property
    def instances(self) -> list[ProtocolInstance]:
        """The requested protocols."""
        known = self.router.instances
        return list(known.values()) if self.proto is None else [known[self.proto]]

    @property
    def ospf(self) -> OspfEngine:
        """The OSPF engine, which views only read."""
        return cast("OspfEngine", self.router.instances[OSPF].engine)

    @property
    def isis(self) -> IsisEngine:
        """The IS-IS engine, which views only read."""
        return cast("IsisEngine", self.router.instances[ISIS].engine)

    @property
    def bgp(self) -> BgpEngine:
        """The BGP engine, which views only read."""
        return cast("BgpEngine", self.router.instances[BGP].engine)

    @property
    def titles(self) -> dict[str, str]:
        """The title of each running protocol: ``OSPF``."""
        return {name: instance.protocol.title for name, instance in self.router.instances.items()}

    def area_name(self, proto: str, area: int) -> str:
        """Format an area of OSPF, ``0.0.0.1``, or a level of IS-IS, ``level-1``."""
        return self.router.instances[proto].protocol.show_area(area % HOSTS_AREA)

    # -- names ------------------------------------------------------------------------------

    @cached_property
    def hostnames(self) -> dict[int, str]:
        """Dynamic hostnames (RFC 5642, RFC 5301) by node id, of all protocols."""
        found: dict[int, str] = {
            node: block.hostname
            for instance in self.router.instances.values()
            for solver in instance.solvers.values()
            for area in solver.areas
            for node, block in solver.ted(area).blocks.items()
            if block.hostname
        }
        own = self.router.settings.hostname
        if own and BGP in self.router.instances:
            found.setdefault(self.router.instances[BGP].root, own)
        return found | (self._speakers() if BGP in self.router.instances else {})

    def _speakers(self) -> dict[int, str]:
        """Return the hostnames of BGP neighbors, as they are told in OPEN messages."""
        return {
            one.agreed.identifier: one.agreed.hostname
            for one in self.bgp.instance.up()
            if one.agreed is not None and one.agreed.hostname
        }

    @property
    def root(self) -> str:
        """This router's id in the first requested protocol."""
        return format_node(self.instances[0].root)

    def node(self, node: int) -> str:
        """Format the id of a vertex."""
        return format_node(node)

    def name(self, node: int, family: int = FAMILY_IPV4) -> str:
        """Return the hostname of a vertex, or its id; of a group of BGP, the prefixes in it."""
        speaker = speaker_of(node)
        if is_group(speaker):
            rib = self.bgp.instance.ribs.get(family)
            return format_node(node) if rib is None else rib.in_words(node & 0xFFFFFFFF)
        return self.hostnames.get(speaker) or format_node(node)

    @cached_property
    def _names(self) -> dict[str, str]:
        return {format_node(node): hostname for node, hostname in self.hostnames.items()}

    def named(self, id_: str) -> str:
        """Return the hostname of an id that is text, or the id."""
        return self._names.get(id_, id_)

    def find_node(self, text: str, instance: ProtocolInstance) -> int | None:
        """Find a node of a protocol by router id, system id or hostname; None: not found."""
        nodes = (
            node
            for solver in instance.solvers.values()
            for area in solver.areas
            for node in solver.ted(area).blocks
        )
        for node in nodes:
            if text in (self.hostnames.get(node), format_node(node)):
                return node
        return None

    # -- routes -----------------------------------------------------------------------------

    @cached_property
    def routes(self) -> Mapping[Prefix, Route]:
        """The requested table: the best routes, or those of one protocol."""
        if len(self.instances) > 1:
            return self.router.table.routes
        (instance,) = self.instances
        return instance.routes

    def instance_of(self, prefix: Prefix) -> ProtocolInstance:
        """Return the protocol of the route to a prefix of the table."""
        if len(self.instances) == 1:
            return self.instances[0]
        source = self.router.table.source(prefix)
        assert source is not None, "a route of the table has a source"
        return self.router.instances[source]

    def solver_of(self, prefix: Prefix) -> RouteSolver:
        """Return the solver of the route to a prefix of the table."""
        solver = self.instance_of(prefix).solver_of(prefix)
        assert solver is not None, "a route was computed by the solver of its family"
        return solver

    @staticmethod
    def wanted_prefix(text: str) -> Prefix:
        """Read a prefix, or an address. Raises CommandError."""
        try:
            return parse_prefix(text)
        except ValueError as error:
            raise CommandError("bad-argument", f"{text!r} is not a prefix: {error}") from None

    def find_route(self, text: str) -> Prefix:
        """Find a prefix of the table: the exact one, or the longest match of an address.

        Raises CommandError.
        """
        wanted, routes = self.wanted_prefix(text), self.routes
        if wanted in routes:
            return wanted
        if "/" in text:
            raise CommandError("not-found", f"no route to {text}")
        matches = [
            prefix
            for prefix in routes
            if prefix.family == wanted.family and prefix.contains(wanted.network)
        ]
        if not matches:
            raise CommandError("not-found", f"no route to {text}")
        return max(matches, key=lambda prefix: prefix.length)

    @property
    def flows(self) -> int | None:
        """The number of large flows that weights are skewed for; None: not skewed."""
        solver = self.router.settings.solver
        return None if solver.mode is WeightMode.NONE else solver.flows

    @property
    def weights(self) -> str:
        """The basis of weights: none, capacity, available, or equalise (available, too)."""
        solver = self.router.settings.solver
        if solver.mode is WeightMode.AVAILABLE and solver.adaptation.equalise:
            return "equalise"
        return str(solver.mode.value)


def type_of(proto: str, route: Route) -> str:
    """Return the type of a route of a protocol; BGP has none."""
    return proto if proto == BGP else route.path_type.label


def finite(value: float | None) -> float | None:
    """Return a value for JSON; infinity and NaN become None, unknown."""
    return value if value is not None and math.isfinite(value) else None


def seconds(microseconds: float) -> LinkDelay:
    """Return a delay for JSON; NaN, unknown, is left out."""
    return UNSET if math.isnan(microseconds) else round(microseconds / 1e6, 6)


def link_delays(block: NodeBlock) -> Iterable[LinkDelay]:
    """Yield the delay of each link of a router, in the order of its block."""
    if block.delays is None:
        return itertools.repeat(UNSET, len(block.metrics))
    return map(seconds, block.delays.tolist())


def gateway(family: int, address: int) -> str | None:
    """Format a next hop's address; None where it needs none."""
    return format_address(family, address) if address else None


def checksum_text(checksum: int) -> str:
    """Format a sum of checksums (RFC 4750), which is equal on all routers of an area or level."""
    return f"0x{checksum & 0xFFFFFFFF:08x}"


def family_name(family: int) -> str:
    """Return ``ipv4`` or ``ipv6``."""
    return f"ipv{family}"


def family_number(name: str | None) -> int | None:
    """Parse ``ipv4`` or ``ipv6``; None: both. Raises CommandError."""
    if name is None:
        return None
    if name not in FAMILIES:
        raise CommandError("bad-argument", f"{name!r} is not a family: ipv4 or ipv6")
    return FAMILIES[name]
