"""Engines with what a router does about their TEDs: routes are solved and told back.

One solver for each router and family, fed with what the engine emits, as the router room feeds
it; level-1-2 engines hear of the outcome.
"""

from __future__ import annotations

from fared.core.ids import NodeId, Prefix, isis_node, parse_prefix
from fared.isis.events import LocalLinksChanged, RoutesComputed, TedUpdated
from fared.rib.solver import RouteSolver, SolverSettings
from fared.ted.events import RouteFacts
from tests.isis.net import Network


class Routers:
    """The routing tables of a network."""

    def __init__(self, net: Network) -> None:
        self.net = net
        self._solvers: dict[tuple[int, int], RouteSolver] = {}
        self._read: dict[int, int] = {}
        self._told: dict[tuple[int, int], dict[Prefix, RouteFacts]] = {}

    def solver(self, number: int, family: int = 4) -> RouteSolver:
        """The solver of a router for a family."""
        key = number, family
        if key not in self._solvers:
            self._solvers[key] = RouteSolver(NodeId(isis_node(number)), SolverSettings())
        return self._solvers[key]

    def settle(self, rounds: int = 12) -> None:
        """Let network and routing tables act on each other until nothing changes."""
        for _ in range(rounds):
            self.net.run(3.0)
            news = [self._turn(number) for number in self.net.live()]
            if not any(news):
                return
        raise AssertionError("routes go on changing")

    def _turn(self, number: int) -> bool:
        """Solve what a router was told, and tell it; return whether that was news."""
        node = self.net.nodes[number]
        outputs = node.outputs[self._read.get(number, 0) :]
        self._read[number] = len(node.outputs)
        for _, output in outputs:
            if isinstance(output, TedUpdated):
                self.solver(number, output.family).put_block(output.area, output.node, output.block)
            elif isinstance(output, LocalLinksChanged):
                self.solver(number, output.family).set_local_links(output.area, output.links)
        news = False
        for family in (4, 6):
            self.solver(number, family).solve()
            if node.engine.in_several_areas:
                news |= self._tell(number, family)
        return news

    def _tell(self, number: int, family: int) -> bool:
        solver = self.solver(number, family)
        facts = {
            prefix: RouteFacts(
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
        """The route of a router to a prefix, None without one."""
        wanted = parse_prefix(prefix)
        return self.solver(number, wanted.family).routes.get(wanted)

    def hops(self, number: int, prefix: str) -> dict[int, float | None]:
        """Next hops of a route: neighbor's system id to path capacity."""
        route = self.route(number, prefix)
        if route is None or route.nexthops is None:
            return {}
        return {hop.neighbor >> 8 & 0xFFFF_FFFF_FFFF: hop.capacity for hop in route.nexthops.hops}
