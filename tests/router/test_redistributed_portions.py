"""Thousands of routes of another protocol that change at once: passed on in portions.

Portions are counted, and what a protocol has been told in the end; no second is measured.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from fared.core.ids import FAMILY_IPV4, Prefix, SystemId, ipv4_prefix, isis_node
from fared.core.routes import LocalRoute, RouteKey, RouteSource
from fared.paths.ted.events import LocalLinksChanged, TedUpdated
from fared.paths.ted.model import LocalLink, NodeBlock, PathType, PrefixReachability
from fared.protocols.igp.events import ExternalRoutes
from fared.protocols.isis.settings import IsisSettings
from fared.protocols.ospf.settings import (
    OspfSettings,
    RedistributeSettings,
    Redistribution,
    RouterId,
)
from fared.router.protocols import ISIS, OSPF
from fared.router.redistribution import PORTION
from fared.router.router import Router
from fared.router.settings import RouterSettings
from tests.router.told_engine import Engine

ME, FAR = isis_node(1), isis_node(2)
PREFIXES = [ipv4_prefix(0x0B000000 + (at << 8), 24) for at in range(2 * PORTION + 500)]
TURNS = 3
"""Portions of all prefixes."""
AREA = 2


@dataclass
class Hearing(Engine):
    """An engine that keeps what it is told of other routes."""

    portions: list[dict[RouteKey, LocalRoute | None]] = field(default_factory=list)

    def handle(self, event: object, now: float) -> None:
        """Remember it."""
        if isinstance(event, ExternalRoutes):
            self.portions.append(dict(event.changes))


def block(node: int, neighbors: list[int], prefixes: list[Prefix], metric: int) -> NodeBlock:
    count = len(neighbors)
    known = tuple([PrefixReachability(one, metric, PathType.LEVEL_2) for one in prefixes])
    return NodeBlock(
        node=node,
        neighbors=np.array(neighbors, np.int64),
        metrics=np.full(count, 10, np.int64),
        capacities=np.full(count, 1e9),
        availables=np.full(count, 1e9),
        local_ids=np.zeros(count, np.int64),
        remote_ids=np.zeros(count, np.int64),
        prefixes=known,
        transit=True,
        hostname=None,
    )


class Border:
    """A router with IS-IS, which knows a far router, and OSPF, which redistributes its routes."""

    def __init__(self) -> None:
        self.now = 0.0
        into = RedistributeSettings(isis=Redistribution())
        protocols = {
            ISIS: IsisSettings(SystemId(1), (b"\x49",), families=(FAMILY_IPV4,)),
            OSPF: OspfSettings(RouterId(1), redistribute=into),
        }
        settings = RouterSettings(protocols)
        self.router = Router(settings, random.Random(1), 0.0, lambda: self.now)
        self.isis = self.router.instances[ISIS].engine = Engine(settled=True)
        self.ospf = self.router.instances[OSPF].engine = Hearing(settled=True)
        link = LocalLink(1, "eth1", FAR, 0x0A000001, ME, 10, None)
        self.isis.said.append(LocalLinksChanged(AREA, (link,), "adjacency", 0.0, FAMILY_IPV4))
        self.flood(block(ME, [FAR], [], 10))

    def flood(self, described: NodeBlock) -> None:
        """Have the engine report a block in the next wakeup."""
        said = TedUpdated(AREA, described.node, described, "lsp", self.now, FAMILY_IPV4)
        self.isis.said.append(said)

    def tell(self, metric: int, prefixes: list[Prefix] = PREFIXES) -> None:
        """Have the far router reach prefixes, which the border learns with one LSP."""
        self.ospf.portions.clear()
        self.flood(block(FAR, [ME], prefixes, metric))
        self.router.tick(self.now)
        self.flush()

    def flush(self) -> None:
        """Take all that follows in this turn of the loop."""
        while self.router.take_outputs():
            pass

    def turns(self) -> list[int]:
        """Let time pass; how many routes OSPF was told of in each turn, since ``tell``."""
        found = [sum(map(len, self.ospf.portions))] if self.ospf.portions else []
        for _ in range(2000):
            told = sum(map(len, self.ospf.portions))
            self.now += 0.001
            deadline = self.router.next_deadline()
            if deadline is not None and deadline <= self.now:
                self.router.tick(self.now)
                self.flush()
            more = sum(map(len, self.ospf.portions)) - told
            found += [more] if more else []
        return found

    def known(self) -> dict[Prefix, int]:
        """The metrics by which OSPF knows the routes that it was told of last."""
        told = {key: route for some in self.ospf.portions for key, route in some.items()}
        assert all(source is RouteSource.ISIS for source, _ in told)
        return {prefix: route.metric for (_, prefix), route in told.items() if route is not None}


def test_thousands_of_routes_are_passed_on_in_portions_of_a_turn_each():
    border = Border()
    border.tell(10)
    first = border.turns()
    assert sum(first) == len(PREFIXES)
    assert max(first) == PORTION
    assert len(first) == TURNS
    border.tell(20)
    again = border.turns()
    assert len(again) == TURNS
    assert max(again) == PORTION
    assert set(border.known().values()) == {30}


def test_what_changes_again_between_portions_is_told_as_it_is():
    border = Border()
    border.tell(10)
    border.turns()
    border.tell(20)
    border.tell(40, PREFIXES[:-1])
    assert border.router.redistribution.waits
    border.turns()
    assert not border.router.redistribution.waits
    passed = border.router.redistribution.passed
    metrics = {route.metric for prefix in PREFIXES[:-1] for _, _, route in passed(prefix)}
    assert metrics == {50}
    assert not [*passed(PREFIXES[-1])]
    assert border.ospf.portions[-1][RouteSource.ISIS, PREFIXES[-1]] is None
