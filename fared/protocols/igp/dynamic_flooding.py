"""Dynamic flooding (RFC 9667) in its distributed mode: which neighbors are sent an LSA, and when.

Routers advertise the algorithms that they support, and whether they may be area leader. If the
leader demands fared's algorithm, each router that supports it floods to others that do over the
flooding topology (``igp.flooding_topology``) only; all other neighbors receive everything. The
engines report the links that routers advertise, and ask for a ``FloodPlan`` when they flood.

A lost link outside of the topology changes nothing. Otherwise the topology is computed again soon
after the first change. Meanwhile LSAs follow the former one, which any single failure leaves
connected. With the new one, the ends of a link that was not in the former compare what they have
received lately, since routers change topologies at different times; if losses had parted the former
topology between them, as far back as a dead neighbor may have gone unnoticed.

A router of the topology may acknowledge all and pass nothing on, and two of them cut others off. So
the ends of some other links compare what they have received, shortly after: one that has not the
same gets it. What comes over such a link first, while the topology is settled, is flooded to all:
its way over the topology ends somewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from fared.protocols.igp.flooding_topology import FloodingTopology, flooding_topology

ALGORITHM: Final = 228
"""Of the private range, 128 to 254 (RFC 9667 §5.1.1): ``flooding_topology`` and ``FloodPlan``."""
LEADER_PRIORITY: Final = 64
CALM: Final = 2.0
"""Seconds without a new link or router before a router begins to flood over a topology."""
COMPARED_AFTER: Final = 1.0
"""Seconds after which the end of the lower id tells the other what it has, which has it by then."""
SENT_AFTER: Final = 1.5
"""Seconds after which the other end sends what it has not been told."""
MOST_BANDWIDTHS: Final = 32
"""LSAs that are compared together; of further ones those that only announce a bandwidth are not."""
_SETTLED = 2.0
"""Seconds after which all routers flood over the same topology."""
_LONGEST_WAIT = 60.0
_SOON = 0.1
_PER_LINK = 1e-5
"""Seconds between two computations, for each link: they must not fill the time of a router."""
_NO_LINKS: Final[frozenset[int]] = frozenset()


class Capability(msgspec.Struct, frozen=True):
    """What a router advertises: its algorithms; ``priority`` None: it will not be area leader.

    ``leader_algorithm`` is the one that it demands as leader.
    """

    algorithms: tuple[int, ...] = ()
    priority: int | None = None
    leader_algorithm: int = 0


OWN: Final = Capability((ALGORITHM,), LEADER_PRIORITY, ALGORITHM)


class AddedLink(msgspec.Struct, frozen=True):
    """A link of ours that has come into the topology, or whose ends compare LSAs from now on.

    ``parent``: this router is the parent. ``joins``: losses had parted the former topology between
    its ends.
    """

    neighbor: int
    parent: bool
    joins: bool


class FloodPlan(msgspec.Struct, frozen=True):
    """What is done with an LSA from one sender. Neighbors in none of the sets take no part.

    ``now``: it is sent at once. ``later``: it is sent after the flood delay, unless the neighbor
    has shown by then that it has it. ``spared``: it is not sent. Some of these compare it:
    ``told`` are told that we have it, ``telling`` tell us, or else are sent it.
    """

    now: frozenset[int]
    later: frozenset[int]
    spared: frozenset[int]
    told: frozenset[int] = frozenset()
    telling: frozenset[int] = frozenset()


class TopologyView(msgspec.Struct, frozen=True):
    """A flooding topology as this router takes part in it; ``scope``: area id or level.

    ``routers`` 0: there is none yet, or no longer. ``others``: neighbors that take part, over links
    outside of it.
    """

    scope: int
    leader: int | None
    routers: int
    parents: tuple[int, ...]
    children: tuple[int, ...]
    others: tuple[int, ...]


class DynamicFlooding:
    """The state of one area or level. ``own`` is the id of this router."""

    def __init__(self, own: int) -> None:
        self._own = own
        self._claims: dict[int, frozenset[int]] = {}
        self._capabilities: dict[int, Capability] = {}
        self._graph: dict[int, set[int]] = {}
        self._plans: dict[int | None, FloodPlan] = {}
        self._adjacent: frozenset[int] = _NO_LINKS
        self._known: frozenset[int] = _NO_LINKS
        """Our links when the topology was computed."""
        self._stale_since: float | None = None
        self._grown_at = -math.inf
        self._computed_at = -math.inf
        self.topology: FloodingTopology | None = None
        """None: flooded to all neighbors."""
        self.computations = 0

    # What routers advertise

    def links(self, node: int, neighbors: Iterable[int], now: float) -> None:
        """The point-to-point links that a router advertises; none: it has gone.

        A link to itself, which only a forged LSA or LSP has, is none: nobody else confirms it.
        """
        before, after = self._claims.get(node, _NO_LINKS), frozenset(neighbors) - {node}
        if before == after:
            return
        if after:
            self._claims[node] = after
        else:
            self._claims.pop(node, None)
        for other in before ^ after:
            self._link(node, other, now)

    def capability(self, node: int, capability: Capability | None, now: float) -> None:
        """What a router advertises about dynamic flooding; None: nothing."""
        before = self._capabilities.get(node)
        if before == capability:
            return
        if capability is None:
            del self._capabilities[node]
        else:
            self._capabilities[node] = capability
        self._changed(now)
        for other in self._claims.get(node, _NO_LINKS):
            self._link(node, other, now)

    def adjacent(self, neighbors: Iterable[int]) -> None:
        """The neighbors of this router, full or up on point-to-point links."""
        self._adjacent = frozenset(neighbors)
        self._plans.clear()

    def _takes_part(self, node: int) -> bool:
        capability = self._capabilities.get(node)
        return capability is not None and ALGORITHM in capability.algorithms

    def _link(self, a: int, b: int, now: float) -> None:
        """Enter a link into the graph, or remove it, as both ends advertise it now."""
        claims = self._claims
        there = b in claims.get(a, _NO_LINKS) and a in claims.get(b, _NO_LINKS)
        there = there and self._takes_part(a) and self._takes_part(b)
        if there == (b in self._graph.get(a, _NO_LINKS)):
            return
        self._plans.clear()
        if there:
            self._graph.setdefault(a, set()).add(b)
            self._graph.setdefault(b, set()).add(a)
            self._grown_at = now
            self._changed(now)
            return
        for node, other in ((a, b), (b, a)):
            self._graph[node].discard(other)
            if not self._graph[node]:
                del self._graph[node]
        if self.topology is None or not self.topology.is_without(a, b):
            self._changed(now)

    def _changed(self, now: float) -> None:
        if self._stale_since is None:
            self._stale_since = now

    # The topology

    @property
    def leader(self) -> int | None:
        """The area leader: of the highest priority, of equal ones the highest id."""
        candidates = [
            (capability.priority, node)
            for node, capability in self._capabilities.items()
            if capability.priority is not None and (node == self._own or self._is_linked(node))
        ]
        return max(candidates)[1] if candidates else None

    def _is_linked(self, node: int) -> bool:
        """Whether another router confirms a link of this one; none does if it is dead."""
        return any(
            node in self._claims.get(other, _NO_LINKS)
            for other in self._claims.get(node, _NO_LINKS)
        )

    def due(self) -> float | None:
        """When to compute; None: nothing has changed."""
        if self._stale_since is None:
            return None
        if self.topology is None:
            calm = max(self._stale_since, self._grown_at) + CALM
            return min(calm, self._stale_since + _LONGEST_WAIT)
        gap = max(_SOON, _PER_LINK * sum(map(len, self._graph.values())) / 2)
        return max(self._stale_since + _SOON, self._computed_at + gap)

    def compute(self, now: float) -> list[AddedLink]:
        """Compute the topology; return our links that are new in it, or are compared since."""
        former = self.topology
        self._stale_since, self._computed_at = None, now
        self._plans.clear()
        self.computations += 1
        if not self._is_agreed() or self._own not in self._graph:
            self.topology = None
            return []
        self.topology = flooding_topology(self._graph)
        self._known = frozenset(self._graph[self._own])
        if former is None:
            return []
        return self._added(self.topology, former)

    def _added(self, topology: FloodingTopology, former: FloodingTopology) -> list[AddedLink]:
        own, before = self._own, former.neighbors(self._own)
        compared = topology.companions(own) - former.companions(own) - before
        found = [AddedLink(node, own < node, False) for node in sorted(compared)]
        added = topology.neighbors(own) - before
        if not added:
            return found
        part = self._parts(former)
        children = topology.places[own].children
        mine = part.get(own)
        return found + [
            AddedLink(node, node in children, mine is None or part.get(node) != mine)
            for node in sorted(added)
        ]

    def _is_agreed(self) -> bool:
        """Whether this router takes part and the area leader demands this algorithm."""
        leader = self.leader
        if leader is None or not self._takes_part(self._own):
            return False
        return self._capabilities[leader].leader_algorithm == ALGORITHM

    def _parts(self, former: FloodingTopology) -> dict[int, int]:
        """What is left of a topology: for each router a router that stands for its part."""
        found: dict[int, int] = {}
        for start in former.places:
            if start in found:
                continue
            found[start] = start
            reached = [start]
            for node in reached:
                alive = self._graph.get(node, _NO_LINKS)
                for other in former.neighbors(node):
                    if other in alive and other not in found:
                        found[other] = start
                        reached.append(other)
        return found

    # Flooding

    def plan(self, sender: int | None) -> FloodPlan | None:
        """To whom to flood an LSA from a neighbor; None: to all.

        ``sender`` None: our own, or from a neighbor that takes no part.
        """
        topology = self.topology
        place = None if topology is None else topology.places.get(self._own)
        if topology is None or place is None:
            return None
        links = self._graph.get(self._own, _NO_LINKS)
        if sender not in links:
            sender = None
        plan = self._plans.get(sender)
        if plan is None:
            # a link that is newer than the topology carries everything
            known = self._known & links
            chosen = known & topology.neighbors(self._own)
            children = chosen.intersection(place.children)
            alive = [node for node in place.parents if node in known and node in self._adjacent]
            # upward to one parent only, and not what has come from a parent, unless that is above
            # the originator by way of this router
            rises = sender is None or sender not in place.parents
            if sender is not None and not rises:
                rises = topology.places[sender].parents[:1] == [self._own]
            upward = frozenset(alive[:1]) if rises else _NO_LINKS
            now = children | upward
            # cut off: to all, until there is another topology
            if not alive and not children & self._adjacent:
                now = known
            spared = known - chosen - now
            told, telling = self._comparing(topology, spared)
            plan = self._plans[sender] = FloodPlan(now, chosen - now, spared, told, telling)
        return plan

    def _comparing(
        self, topology: FloodingTopology, spared: frozenset[int]
    ) -> tuple[frozenset[int], frozenset[int]]:
        """Neighbors to compare with: those of a higher id are told, those of a lower one tell."""
        compared = spared & topology.companions(self._own)
        told = frozenset(node for node in compared if node > self._own)
        return told, compared - told

    def spares(self, neighbor: int) -> bool:
        """Whether a neighbor takes part, over a link outside of the topology."""
        topology = self.topology
        if topology is None or neighbor not in self._known:
            return False
        return neighbor not in topology.neighbors(self._own)

    def is_detour(self, sender: int, now: float) -> bool:
        """Whether a neighbor should have spared us what it has sent, if the topology carried it."""
        settled = self._stale_since is None and now >= self._computed_at + _SETTLED
        return settled and self.spares(sender)

    def view(self, scope: int) -> TopologyView:
        """The topology around this router."""
        topology = self.topology
        place = None if topology is None else topology.places.get(self._own)
        if topology is None or place is None:
            return TopologyView(scope, self.leader, 0, (), (), ())
        others = self._graph.get(self._own, set()) - {*place.parents, *place.children}
        return TopologyView(
            scope,
            self.leader,
            len(topology.places),
            tuple(place.parents),
            tuple(sorted({*place.children} - {*place.parents})),
            tuple(sorted(others)),
        )
