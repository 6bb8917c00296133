"""A router whose neighbors announce paths, with the real route solver."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fared.core.ids import FAMILY_IPV4, NodeId, Prefix, ipv4_prefix
from fared.paths.rib.solver import RibUpdate, RouteSolver, SolverSettings
from fared.paths.ted.events import LocalLinksChanged, PrefixesUpdated, TedUpdated
from fared.paths.ted.model import LocalLink
from fared.protocols.bgp.packet.as_path import sequence
from fared.protocols.bgp.packet.attributes import (
    AsPath,
    Attribute,
    Origin,
    PathAttributes,
    SharedLimits,
    attributes_of,
)
from fared.protocols.bgp.packet.communities import LinkBandwidth, SharedLimit
from fared.protocols.bgp.packet.messages import RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.rib.adj_out import ExportSettings
from fared.protocols.bgp.rib.decision import DecisionSettings
from fared.protocols.bgp.rib.paths import BgpPeer, with_bandwidth
from fared.protocols.bgp.rib.tables import BgpRib

GBPS = 1e9 / 8
ROOT = NodeId(0x0A000001)
OWN_AS = 65001
LEAF_AS = 65100
NET = ipv4_prefix(0x0A010000, 24)


def nets(count: int, first: int = 0x0A010000) -> tuple[Prefix, ...]:
    return tuple([ipv4_prefix(first + (at << 8), 24) for at in range(count)])


def attributes(
    *path: int, gbps: float | None = None, raw: float | None = None, more: Iterable[Attribute] = ()
) -> PathAttributes:
    found = attributes_of([Origin(0), AsPath(sequence(*path)), *more])
    value = gbps * GBPS if gbps is not None else raw
    return found if value is None else with_bandwidth(found, LinkBandwidth(1, value))


def limits(*named: tuple[int, ...]) -> list[SharedLimits]:
    """Name routers that all paths pass through, with what they carry, and what is carried there."""
    found = [
        SharedLimit(65000 + one, 0x0A0A0000 + one, *[gbps * GBPS for gbps in more])
        for one, *more in named
    ]
    return [SharedLimits(tuple(found))] if found else []


def peer(number: int, **options: Any) -> BgpPeer:
    values = {"remote_as": 65000 + 100 * number, "identifier": 0x0A090000 + number} | options
    return BgpPeer(number, address=0x0A080000 + number, **values)


class Router:
    """Tables, a solver of their graph, and shortcuts."""

    def __init__(
        self, decision: DecisionSettings | None = None, solver: SolverSettings | None = None
    ) -> None:
        self.rib = BgpRib(ROOT, OWN_AS, FAMILY_IPV4, decision or DecisionSettings())
        self.solver = RouteSolver(ROOT, solver or SolverSettings())
        self.announces = lambda old, new: True

    def add(self, one: BgpPeer, gbps: float | None = 400) -> None:
        hop = BgpNextHop(4, 0x0A080100 + one.number)
        export = ExportSettings(OWN_AS, hop)
        self.rib.add(one, link(one, gbps), export, self._announces)

    def _announces(self, old: float | None, new: float | None) -> bool:
        return self.announces(old, new)

    def announce(self, one: BgpPeer, prefixes: Iterable[Prefix], what: PathAttributes) -> None:
        group = RouteGroup(BgpNextHop(4, one.address), tuple(prefixes))
        self.rib.update(one.number, Update(routes=(group,), attributes=what))

    def path(self, one: BgpPeer, *prefixes: Prefix, **options: Any) -> None:
        """A neighbor announces a path of two AS numbers, its own first."""
        self.announce(one, prefixes or (NET,), attributes(one.remote_as, LEAF_AS, **options))

    def settle(self, limit: int = 1000) -> list[Any]:
        for _ in range(1000):
            if self.rib.settled:
                break
            self.rib.settle(limit)
        return list(self.rib.graph.take("test", 0.0))

    def solve(self) -> RibUpdate:
        feed(self.solver, self.settle())
        return self.solver.solve()

    def weights(self, prefix: Prefix = NET) -> list[int]:
        """The weights of next hops by interface."""
        route = self.solver.routes[prefix]
        assert route.nexthops is not None
        return [hop.weight for hop in route.nexthops.hops]

    def told(self, one: BgpPeer, limit: int = 1000) -> dict[Prefix, PathAttributes | None]:
        """What a neighbor is told now, None for a withdrawal."""
        found: dict[Prefix, PathAttributes | None] = {}
        out = self.rib.outs[one.number]
        for _ in range(1000):
            if not out.due:
                break
            for update in out.take(self.rib.table, limit):
                found.update(dict.fromkeys(update.withdrawn))
                for group in update.routes:
                    assert group.next_hop == out.settings.next_hop
                    found.update(dict.fromkeys(group.prefixes, update.attributes))
        return found


def link(one: BgpPeer, gbps: float | None) -> LocalLink:
    bandwidth = None if gbps is None else gbps * GBPS
    name = f"swp{one.number}"
    return LocalLink(one.number, name, NodeId(0), one.address, 0, 1, bandwidth)


def feed(solver: RouteSolver, outputs: Iterable[Any]) -> None:
    """Pass outputs on, as ``router.instance`` does."""
    for one in outputs:
        match one:
            case TedUpdated():
                solver.put_block(one.area, one.node, one.block, one.changes)
            case PrefixesUpdated():
                solver.put_prefixes(one.area, one.node, one.changes)
            case LocalLinksChanged():
                solver.set_local_links(one.area, one.links)
