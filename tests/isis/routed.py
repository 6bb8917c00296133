"""Engines whose TEDs are solved, and whose routes are returned to them.

One solver for each router and family receives the output of the engine, as in ``fared.router``;
level-1-2 engines receive the routes.

"""

from __future__ import annotations

from fared.core.ids import NodeId, Prefix, isis_node, parse_prefix
from fared.paths.rib.solver import RouteSolver, SolverSettings
from fared.paths.ted.events import (
    AdvertisedRoute,
    LocalLinksChanged,
    PrefixesUpdated,
    RoutesComputed,
    TedUpdated,
)
from tests.isis.net import Network


class Routers:
    """The routing tables of a network."""

    def __init__(self, net: Network) -> None:
        self.net = net
        self._solvers: dict[tuple[int, int], RouteSolver] = {}
        self._read: dict[int, int] = {}
        self._told: dict[tuple[int, int], dict[Prefix, AdvertisedRoute]] = {}

    def solver(self, number: int, family: int = 4) -> RouteSolver:
        """The solver of a router for a family."""
        key = number, family
        if key not in self._solvers:
            self._solvers[key] = RouteSolver(NodeId(isis_node(number)), SolverSettings())
        return self._solvers[key]

    def settle(self, rounds: int = 12) -> None:
        """Run network and solvers in turn until nothing changes."""
        for _ in range(rounds):
            self.net.run(3.0)
            news = [self._turn(number) for number in self.net.live()]
            if not any(news):
                return
        raise AssertionError("routes go on changing")

    def _turn(self, number: int) -> bool:
        """Solve the TED of a router and return the routes to it; whether any changed."""
        node = self.net.nodes[number]
        outputs = node.outputs[self._read.get(number, 0) :]
        self._read[number] = len(node.outputs)
        for _, output in outputs:
            if isinstance(output, TedUpdated):
                at = output.area, output.node
                self.solver(number, output.family).put_block(*at, output.block, output.changes)
            elif isinstance(output, PrefixesUpdated):
                at = output.area, output.node
                self.solver(number, output.family).put_prefixes(*at, output.changes)
            elif isinstance(output, LocalLinksChanged):
                self.solver(number, output.family).set_local_links(output.area, output.links)
        news = False
        for family in (4, 6):
            self.solver(number, family).solve()
            if node.engine.takes_routes:
                news |= self._tell(number, family)
        return news

    def _tell(self, number: int, family: int) -> bool:
        solver = self.solver(number, family)
        facts = {
            prefix: AdvertisedRoute(
                route.metric,
                route.path_type,
                () if route.area is None else (route.area,),
                solver.path_capacity(prefix),
            )
            for prefix, route in solver.routes.items()
        }
        before = self._told.get((number, family), {})
        changes = {p: f for p, f in facts.items() if before.get(p) != f}
        changes.update({p: None for p in before if p not in facts})
        self._told[number, family] = facts
        if changes:
            self.net.input(number, RoutesComputed(changes, {}))
        return bool(changes)

    def route(self, number: int, prefix: str):
        """The route of a router to a prefix, or None."""
        wanted = parse_prefix(prefix)
        return self.solver(number, wanted.family).routes.get(wanted)

    def hops(self, number: int, prefix: str) -> dict[int, float | None]:
        """The next hops of a route: system id to path capacity."""
        route = self.route(number, prefix)
        if route is None or route.nexthops is None:
            return {}
        return {hop.neighbor >> 8 & 0xFFFF_FFFF_FFFF: hop.capacity for hop in route.nexthops.hops}
