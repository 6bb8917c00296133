"""What every view is given: the router, the facts of the process, and how to name things."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fared.api.control import CommandError
from fared.config import Config
from fared.core.ids import Prefix, dotted, format_address, format_node, parse_prefix
from fared.core.links import Link
from fared.fib.model import FibState
from fared.isis.ids import Level
from fared.rib.model import Route
from fared.rib.solver import RouteSolver
from fared.router.router import Router
from fared.router.speaker import ISIS, OSPF, Speaker
from fared.ted.model import PathType
from fared.weights.path_capacity import WeightMode

if TYPE_CHECKING:
    from fared.isis.snapshot import IsisSnapshot
    from fared.ospf.snapshot import OspfSnapshot

NAMES = {OSPF: "OSPF", ISIS: "IS-IS"}
"""Protocols as people write them."""
EXTERNAL = (
    PathType.EXTERNAL_1,
    PathType.EXTERNAL_2,
    PathType.LEVEL_1_REDISTRIBUTED,
    PathType.LEVEL_2_REDISTRIBUTED,
)
"""Where a local route is not announced as one inside the AS, but redistributed."""
FAMILIES = {"ipv4": 4, "ipv6": 6}


@dataclass(slots=True)
class Runtime:
    """Facts of the process that no pure room knows. Times are Unix time in seconds."""

    started_at: float
    pid: int
    config_file: str
    loaded_at: float
    last_reload_ok: bool | None = None
    last_reload_error: str | None = None
    event_loop_lag: float = 0.0
    resyncs: Counter[str] = field(default_factory=Counter)
    sysctls: list[dict[str, Any]] = field(default_factory=list)
    utilized: dict[int, float] = field(default_factory=dict)
    """Outbound load by interface index, bytes/s."""
    load_samples: Counter[str] = field(default_factory=Counter)
    """How often loads were measured, by result: ok or failed."""
    neighbor_reasons: dict[tuple[int, int], str] = field(default_factory=dict)
    """Why each neighbor (ifindex, node id) last changed its state."""


@dataclass
class ViewContext:
    """One moment of the daemon. ``now`` is on the router's clock, ``wall`` the same in Unix time."""

    router: Router
    config: Config
    runtime: Runtime
    now: float
    wall: float
    log: deque[dict[str, Any]]
    dump: Callable[[], FibState]
    links: Mapping[int, Link]
    counters: Callable[[], Mapping[str, Mapping[str, Mapping[str, int]]]]
    """Counts by protocol (empty: none), group and name."""
    proto: str | None = None
    """The protocol that is asked for; None: all that run."""

    def unix(self, at: float) -> float:
        """Turn the router's clock into Unix time."""
        return self.wall - (self.now - at)

    # -- which protocol ---------------------------------------------------------------------

    def narrowed(self, proto: str | None) -> ViewContext:
        """The same moment seen by one protocol only. Raises CommandError if it does not run."""
        if proto is None:
            return self
        if proto not in NAMES:
            known = " or ".join(NAMES)
            raise CommandError("bad-argument", f"{proto!r} is not a protocol: {known}")
        if proto not in self.router.speakers:
            raise CommandError("unsupported", f"this router does not speak {NAMES[proto]}")
        return replace(self, proto=proto)

    @cached_property
    def speakers(self) -> list[Speaker]:
        """The protocols that are looked at."""
        known = self.router.speakers
        return list(known.values()) if self.proto is None else [known[self.proto]]

    def speaks(self, proto: str) -> bool:
        """Whether a protocol runs and is looked at."""
        return proto in self.router.speakers and self.proto in (None, proto)

    @cached_property
    def ospf(self) -> OspfSnapshot:
        """The OSPF engine at this moment."""
        return self.router.engine.snapshot(self.now)

    @cached_property
    def isis(self) -> IsisSnapshot:
        """The IS-IS engine at this moment."""
        return self.router.isis.snapshot(self.now)

    # -- names ------------------------------------------------------------------------------

    @cached_property
    def hostnames(self) -> dict[int, str]:
        """Dynamic hostnames (RFC 5642, RFC 5301) by node id, of all protocols."""
        return {
            node: block.hostname
            for speaker in self.router.speakers.values()
            for solver in speaker.solvers.values()
            for area in solver.areas
            for node, block in solver.ted(area).blocks.items()
            if block.hostname
        }

    @property
    def root(self) -> str:
        """This router's id in the first protocol that is looked at."""
        return format_node(self.speakers[0].root)

    def node(self, node: int) -> str:
        """Name a vertex by its id."""
        return format_node(node)

    def name(self, node: int) -> str:
        """Name a vertex by its hostname where it has one."""
        return self.hostnames.get(node) or format_node(node)

    def find_node(self, text: str, speaker: Speaker) -> int | None:
        """A node of a protocol by router id, system id or hostname; None: there is none."""
        nodes = {
            node: block.hostname
            for solver in speaker.solvers.values()
            for area in solver.areas
            for node, block in solver.ted(area).blocks.items()
        }
        for node, hostname in nodes.items():
            if text in (hostname, format_node(node)):
                return node
        return None

    # -- routes -----------------------------------------------------------------------------

    @cached_property
    def routes(self) -> Mapping[Prefix, Route]:
        """The table that is looked at: the best routes, or those of one protocol."""
        if len(self.speakers) > 1:
            return self.router.table.routes
        (speaker,) = self.speakers
        tables = [speaker.routes(family) for family in speaker.solvers]
        return {prefix: route for table in tables for prefix, route in table.items()}

    def speaker_of(self, prefix: Prefix) -> Speaker:
        """The protocol from which the route to a prefix of the table comes."""
        if len(self.speakers) == 1:
            return self.speakers[0]
        source = self.router.table.source(prefix)
        assert source is not None, "a route of the table has a source"
        return self.router.speakers[source]

    def solver_of(self, prefix: Prefix) -> RouteSolver:
        """The solver that computed the route to a prefix of the table."""
        solver = self.speaker_of(prefix).solver_of(prefix)
        assert solver is not None, "a route was computed by the solver of its family"
        return solver

    def find_route(self, text: str) -> Prefix:
        """A prefix of the table: exactly as written, or the longest match of an address.

        Raises CommandError.
        """
        try:
            wanted = parse_prefix(text)
        except ValueError as error:
            raise CommandError("bad-argument", f"{text!r} is not a prefix: {error}") from None
        routes = self.routes
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
        """For how many large flows weights lean away from small paths; None: they do not."""
        solver = self.router.settings.solver
        return None if solver.mode is WeightMode.NONE else solver.flows

    @property
    def weights(self) -> str:
        """What the weights follow: none, capacity, available, or equalise (available, too)."""
        solver = self.router.settings.solver
        if solver.mode is WeightMode.AVAILABLE and solver.adaptation.equalise:
            return "equalise"
        return str(solver.mode.value)


def finite(value: float | None) -> float | None:
    """JSON has no infinity and no NaN: both are unknown."""
    return value if value is not None and math.isfinite(value) else None


def gateway(family: int, address: int) -> str | None:
    """A next hop's address, None where it needs none."""
    return format_address(family, address) if address else None


def area_name(proto: str, area: int) -> str:
    """Name an area of OSPF, ``0.0.0.1``, or a level of IS-IS, ``level-1``."""
    return Level(area).label if proto == ISIS else dotted(area)


def family_name(family: int) -> str:
    """Write ``ipv4`` or ``ipv6``."""
    return f"ipv{family}"


def family_number(name: str | None) -> int | None:
    """Read ``ipv4`` or ``ipv6``; None: both. Raises CommandError."""
    if name is None:
        return None
    if name not in FAMILIES:
        raise CommandError("bad-argument", f"{name!r} is not a family: ipv4 or ipv6")
    return FAMILIES[name]
