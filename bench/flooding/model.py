"""Ways to flood in a Clos fabric, compared in a model: copies received, and delay.

Routers are nodes with a rule, wires have a delay for each packet, nothing is lost or queued. Each
way floods a change of each router in turn, then, for every single failure and a sample of double
ones, the LSAs by which the ends tell of their lost links. Routers do not know of a failure before
such an LSA arrives; those that flood over a topology compute the new one a moment later, each from
what it knows. ``python -m bench flooding/model [DOUBLES]``.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import itertools
import random
import statistics
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any

from fared.protocols.igp.flooding_topology import FloodingTopology, flooding_topology

WIRE = (0.0002, 0.005)
"""Seconds: delay of a packet, its processing included."""
DEFERRED = (0.025, 0.1)
TOLD = 0.1
"""Seconds from a new topology to the acknowledgments of recent LSAs over its new links."""
PARENT_AGAIN, CHILD_AGAIN = 0.25, 0.4
"""Seconds after which a parent, or a child, sends over a new link what was not acknowledged."""
RECOMPUTED = 0.1
"""Seconds from an LSA with a lost link to the new flooding topology."""
Edge = tuple[int, int]
Graph = dict[int, set[int]]
Row = dict[str, Any]


class Copy(Enum):
    """What a router does about one neighbor with an LSA that is new to it."""

    NOW = 0
    DEFERRED = 1
    NONE = 2


@dataclass(frozen=True)
class Lsa:
    """An LSA: who originated it, which links it tells are lost."""

    origin: int
    lost: frozenset[Edge] = frozenset()


def edge(a: int, b: int) -> Edge:
    """A link, whichever end is named first."""
    return (min(a, b), max(a, b))


def three_stages(spines: int, leaves: int) -> tuple[Graph, dict[int, str]]:
    """Every leaf below every spine."""
    graph: Graph = {number: set() for number in range(spines + leaves)}
    for leaf, spine in itertools.product(range(spines, spines + leaves), range(spines)):
        graph[leaf].add(spine)
        graph[spine].add(leaf)
    return graph, {n: "spine" if n < spines else "leaf" for n in graph}


def five_stages(pods: int, leaves: int, planes: int, width: int) -> tuple[Graph, dict[int, str]]:
    """Pods of leaves below a spine for each plane; each plane has ``width`` superspines."""
    graph: Graph = {}
    kinds = dict.fromkeys(range(planes * width), "superspine")
    for pod in range(pods):
        base = planes * width + pod * (planes + leaves)
        for plane in range(planes):
            spine = base + plane
            kinds[spine] = "spine"
            below = [base + planes + number for number in range(leaves)]
            kinds |= dict.fromkeys(below, "leaf")
            for far in (*below, *range(plane * width, (plane + 1) * width)):
                graph.setdefault(spine, set()).add(far)
                graph.setdefault(far, set()).add(spine)
    return graph, kinds


# -- ways to flood -------------------------------------------------------------------------------


class Way:
    """RFC 2328 §13.3: to all neighbors but the sender."""

    name = "every link at once (RFC 2328)"
    learns = False
    sampled = 20
    """Of so many failures one is run: the model of dense ways takes long."""
    """Whether it reacts to lost links."""

    def __init__(self, graph: Graph, kinds: dict[int, str]) -> None:
        self.graph, self.kinds = graph, kinds
        self.dead: frozenset[Edge] = frozenset()
        """Links that their ends know to be dead."""

    def copy(self, node: int, to: int, sender: int | None, lsa: Lsa, lost: frozenset[Edge]) -> Copy:
        """Whether and when ``node`` sends to ``to`` what it has from ``sender``."""
        del node, to, sender, lsa, lost
        return Copy.NOW

    def added(self, node: int, before: frozenset[Edge], after: frozenset[Edge]) -> dict[int, bool]:
        """Neighbors to which a node sends again as it learns of lost links; True: as parent."""
        del node, before, after
        return {}


class Suppression(Way):
    """The default: deferred for whoever is adjacent to the originator."""

    name = "flood suppression (default)"

    def copy(self, node: int, to: int, sender: int | None, lsa: Lsa, lost: frozenset[Edge]) -> Copy:
        """See ``Way``."""
        del node, lost
        return Copy.DEFERRED if sender is not None and to in self.graph[lsa.origin] else Copy.NOW


class Leaf(Suppression):
    """``reduction: leaf`` on leaves."""

    name = "reduction: leaf"

    def copy(self, node: int, to: int, sender: int | None, lsa: Lsa, lost: frozenset[Edge]) -> Copy:
        """See ``Way``."""
        if sender is not None and self.kinds[node] == "leaf":
            return Copy.DEFERRED
        return super().copy(node, to, sender, lsa, lost)


class Relays(Way):
    """Each originator's own relays, chosen by a hash, two for each router (as in distoptflood)."""

    name = "two relays for each originator and router"

    def __init__(self, graph: Graph, kinds: dict[int, str]) -> None:
        super().__init__(graph, kinds)
        self._level: dict[int, dict[int, int]] = {}
        self._relays: dict[int, set[int]] = {}

    def copy(self, node: int, to: int, sender: int | None, lsa: Lsa, lost: frozenset[Edge]) -> Copy:
        """See ``Way``."""
        del sender, lost
        if lsa.origin not in self._relays:
            self._choose(lsa.origin)
        level = self._level[lsa.origin]
        if node == lsa.origin:
            return Copy.NOW
        relayed = node in self._relays[lsa.origin] and level[to] > level[node]
        return Copy.NOW if relayed else Copy.NONE

    def _choose(self, origin: int) -> None:
        level = self._level[origin] = {origin: 0}
        ring = [origin]
        relays = self._relays[origin] = set()
        while ring:
            after = sorted({n for node in ring for n in self.graph[node]} - set(level))
            level.update(dict.fromkeys(after, level[ring[0]] + 1))
            missing = {node: min(2, len(self.graph[node] & set(ring))) for node in after}
            for node in sorted(ring, key=lambda n: _hash(origin, n)):
                reached = [n for n in self.graph[node] if missing.get(n, 0)]
                if reached:
                    relays.add(node)
                    for neighbor in reached:
                        missing[neighbor] -= 1
            ring = after


class Plain(Way):
    """RFC 9667 as it stands: to all neighbors in the flooding topology but the sender."""

    name = "flooding topology, first copy to all others"
    learns = True
    sampled = 1

    def __init__(self, graph: Graph, kinds: dict[int, str]) -> None:
        super().__init__(graph, kinds)
        self.topology = cache(self._topology)

    def _topology(self, lost: frozenset[Edge]) -> FloodingTopology:
        return flooding_topology(
            {a: {b for b in far if edge(a, b) not in lost} for a, far in self.graph.items()}
        )

    def copy(self, node: int, to: int, sender: int | None, lsa: Lsa, lost: frozenset[Edge]) -> Copy:
        """See ``Way``."""
        del sender, lsa
        return Copy.NOW if self.topology(lost).has(node, to) else Copy.NONE

    def added(self, node: int, before: frozenset[Edge], after: frozenset[Edge]) -> dict[int, bool]:
        """See ``Way``."""
        old, new = self.topology(before), self.topology(after)
        children = new.places[node].children
        return {n: n in children for n in new.neighbors(node) - old.neighbors(node)}


class Spread(Plain):
    """The same with links spread over routers: each child takes parents with few children."""

    name = "flooding topology of low degree, first copy to all others"

    def _topology(self, lost: frozenset[Edge]) -> FloodingTopology:
        found = super()._topology(lost)
        seen: set[int] = set()
        for node, place in found.places.items():
            choice = sorted(self.graph[node] & seen, key=lambda n: len(found.places[n].children))
            choice = [n for n in choice if edge(node, n) not in lost][:2]
            if len(choice) == len(place.parents):
                for parent in place.parents:
                    found.places[parent].children.remove(node)
                place.parents = choice
                for parent in choice:
                    found.places[parent].children.append(node)
            seen.add(node)
        return found


class Parents(Plain):
    """The topology, from parents to children at once; upward at once to the primary parent only."""

    name = "flooding topology, parents and children (reduction: dynamic)"

    def copy(self, node: int, to: int, sender: int | None, lsa: Lsa, lost: frozenset[Edge]) -> Copy:
        """See ``Way``."""
        del lsa
        place = self.topology(lost).places[node]
        if to in place.children:
            return Copy.NOW
        if to not in place.parents:
            return Copy.NONE
        tree = sender is not None and self.topology(lost).places[sender].parents[:1] == [node]
        below = tree or sender not in place.parents
        alive = [parent for parent in place.parents if edge(node, parent) not in self.dead]
        return Copy.NOW if below and to == alive[0] else Copy.DEFERRED


def _hash(*values: int) -> bytes:
    return hashlib.md5(repr(values).encode(), usedforsecurity=False).digest()


# -- the model -----------------------------------------------------------------------------------


@dataclass
class Router:
    """One router: what it has, from whom, and what it knows of lost links."""

    has: dict[Lsa, int | None] = field(default_factory=dict)
    lost: frozenset[Edge] = frozenset()
    told: frozenset[Edge] = frozenset()
    shown: set[tuple[Lsa, int]] = field(default_factory=set)
    """LSAs that a neighbor has sent or been sent."""
    listed: set[tuple[Lsa, int]] = field(default_factory=set)
    """LSAs to send again over a new link, unless acknowledged."""


class Model:
    """One event: LSAs originated at time 0 in a fabric some of whose links are dead."""

    def __init__(self, way: Way, dead: frozenset[Edge], seed: int) -> None:
        self.way, self.dead, self.now = way, dead, 0.0
        way.dead = dead
        self.routers = {number: Router() for number in way.graph}
        self.heard: Counter[tuple[int, Lsa]] = Counter()
        self.last = 0.0
        self._random = random.Random(seed)
        self._queue: list[tuple[float, int, Any]] = []
        self._order = itertools.count()

    def run(self, lsas: list[Lsa]) -> None:
        """Flood them until nothing is left to send."""
        for lsa in lsas:
            self._learn(lsa.origin, lsa, None)
        while self._queue:
            self.now, _, action = heapq.heappop(self._queue)
            action()

    def missing(self, lsas: list[Lsa]) -> int:
        """Reachable routers that lack an LSA."""
        lacking = 0
        for lsa in lsas:
            reached, ring = {lsa.origin}, [lsa.origin]
            while ring:
                ring = [
                    n
                    for node in ring
                    for n in self.way.graph[node]
                    if edge(node, n) not in self.dead and n not in reached and not reached.add(n)  # type: ignore[func-returns-value]
                ]
            lacking += sum(lsa not in self.routers[node].has for node in reached)
        return lacking

    def _at(self, delay: float, action: Any) -> None:  # noqa: ANN401
        heapq.heappush(self._queue, (self.now + delay, next(self._order), action))

    def _learn(self, number: int, lsa: Lsa, sender: int | None) -> None:
        router = self.routers[number]
        router.has[lsa] = sender
        self.last = max(self.last, self.now)
        due = self._random.uniform(*DEFERRED)
        for to in self.way.graph[number]:
            if to == sender or edge(number, to) in self.dead:
                continue
            copy = self.way.copy(number, to, sender, lsa, router.lost)
            if copy is Copy.NOW:
                self._send(number, to, lsa)
            elif copy is Copy.DEFERRED:
                self._at(due, lambda t=to: self._send(number, t, lsa))
        if self.way.learns and not lsa.lost <= router.told:
            router.told |= lsa.lost
            self._at(RECOMPUTED, lambda: self._recompute(number))

    def _recompute(self, number: int) -> None:
        router = self.routers[number]
        if router.told == router.lost:
            return
        added = self.way.added(number, router.lost, router.told)
        router.lost = router.told
        for to, parent in added.items():
            for lsa in router.has if edge(number, to) not in self.dead else ():
                router.listed.add((lsa, to))
                again = PARENT_AGAIN if parent else CHILD_AGAIN
                self._at(again, lambda t=to, x=lsa: self._again(number, t, x))
                tell = TOLD + self._random.uniform(*WIRE)
                self._at(tell, lambda t=to, x=lsa: self.routers[t].listed.discard((x, number)))

    def _again(self, number: int, to: int, lsa: Lsa) -> None:
        if (lsa, to) in self.routers[number].listed:
            self._send(number, to, lsa)

    def _send(self, number: int, to: int, lsa: Lsa) -> None:
        router = self.routers[number]
        if (lsa, to) not in router.shown:
            router.shown.add((lsa, to))
            self._at(self._random.uniform(*WIRE), lambda: self._receive(to, number, lsa))

    def _receive(self, number: int, sender: int, lsa: Lsa) -> None:
        self.heard[number, lsa] += 1
        router = self.routers[number]
        router.shown.add((lsa, sender))
        if lsa not in router.has:
            self._learn(number, lsa, sender)


def failures(graph: Graph, doubles: int) -> tuple[list[frozenset[Edge]], list[frozenset[Edge]]]:
    """The dead links of every failure of a link or router, and of a sample of pairs of them."""
    links = [frozenset([link]) for link in sorted({edge(a, b) for a in graph for b in graph[a]})]
    routers = [frozenset(edge(a, b) for b in graph[a]) for a in sorted(graph)]
    rng = random.Random(19)
    kinds = itertools.cycle(((links, links), (routers, routers), (links, routers)))
    pairs = [rng.choice(a) | rng.choice(b) for a, b in itertools.islice(kinds, doubles)]
    return links + routers, pairs


def told(graph: Graph, dead: frozenset[Edge]) -> list[Lsa]:
    """The LSAs of a failure: each end with a link left tells which links it lost."""
    ends: dict[int, set[Edge]] = {}
    for link in dead:
        for end in link:
            ends.setdefault(end, set()).add(link)
    return [
        Lsa(end, frozenset(lost))
        for end, lost in sorted(ends.items())
        if len(lost) < len(graph[end])
    ]


@dataclass
class Result:
    """What a set of events shows: copies heard of one LSA, seconds, routers without an LSA."""

    copies: dict[str, list[int]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    missing: int = 0

    def event(self, way: Way, dead: frozenset[Edge], lsas: list[Lsa], seed: int) -> None:
        """Run one event and add to the result."""
        model = Model(way, dead, seed)
        model.run(lsas)
        self.missing += model.missing(lsas)
        self.seconds.append(model.last)
        for lsa in lsas:
            for number, kind in way.kinds.items():
                if number != lsa.origin and lsa in model.routers[number].has:
                    self.copies.setdefault(kind, []).append(model.heard[number, lsa])

    def text(self) -> str:
        """One line: for each kind of router mean and most copies, then the seconds."""
        kinds = ", ".join(
            f"{kind} {statistics.mean(found):.2f} (max {max(found)})"
            for kind, found in sorted(self.copies.items())
        )
        late = sorted(self.seconds)
        return (
            f"{kinds}; all after {statistics.median(late) * 1e3:.0f} ms"
            f" (max {late[-1] * 1e3:.0f} ms); without it: {self.missing}"
        )


WAYS: tuple[type[Way], ...] = (Way, Suppression, Leaf, Relays, Spread, Plain, Parents)
FABRICS = {
    "16 spines x 64 leaves": three_stages(16, 64),
    "80 routers in five stages": five_stages(8, 4, 4, 4),
}


def measure(way: Way, doubles: int) -> dict[str, Result]:
    """A change of each router, then every single failure and some double ones."""
    found = {"a change": Result(), "single failures": Result(), "double failures": Result()}
    for number in way.graph:
        found["a change"].event(way, frozenset(), [Lsa(number)], number)
    for name, sets in zip(list(found)[1:], failures(way.graph, doubles), strict=True):
        for seed, dead in list(enumerate(sets))[:: way.sampled]:
            found[name].event(way, dead, told(way.graph, dead), seed)
    return found


def main() -> None:
    """Print a line for each way and set of events."""
    parser = argparse.ArgumentParser(description="Ways to flood, compared in a model.")
    parser.add_argument("doubles", nargs="?", type=int, default=200)
    given = parser.parse_args()
    for fabric, (graph, kinds) in FABRICS.items():
        print(f"## {fabric}")
        for kind in WAYS:
            way = kind(graph, kinds)
            for name, result in measure(way, given.doubles).items():
                print(f"{way.name} | {name} | {result.text()}", flush=True)
