"""What a plan is made of: capacities, jobs, aggregation trees (VAT), and trees with rates.

Vertices are those of the TED; the worker with BFR-id i is vertex -i, so that a tree has workers and
routers in one numbering. Bit i - 1 of a bit string is BFR-id i (RFC 8279 §3). Rates and capacities
are bytes/s, memory is bytes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Annotated

import msgspec
from msgspec import Meta

from fared.extensions.ina.fields import MOST_GIVEN, Router

Vertex = int
Direction = tuple[Vertex, Vertex]
BitString = int


class Resource(msgspec.Struct, frozen=True):
    """Something that trees use up: a direction of a link, or ``summing`` or ``memory`` of a router.

    A router has itself as ``tail`` and ``head``.
    """

    kind: str
    tail: Vertex
    head: Vertex


def link_resource(tail: Vertex, head: Vertex) -> Resource:
    """Return the resource of one direction of a link."""
    return Resource("link", tail, head)


class Capacities(msgspec.Struct, frozen=True):
    """The network that trees use.

    ``links`` are bytes/s for each direction; one of 0 is a failed link. ``adders`` are the routers
    that can sum; ``summing`` (bytes/s that a router can add up) and ``memory`` (bytes for slots)
    are limits of some of them. A slot is held for ``slot_seconds``.
    """

    links: Mapping[Direction, float]
    adders: frozenset[Vertex]
    summing: Mapping[Vertex, float] = {}
    memory: Mapping[Vertex, float] = {}
    slot_seconds: float = 0.001

    def width(self, a: Vertex, b: Vertex) -> float:
        """Return what a link carries up and results down at once: the least of its directions."""
        return min(self.links.get((a, b), 0.0), self.links.get((b, a), 0.0))

    def neighbors(self) -> dict[Vertex, list[Vertex]]:
        """Return the neighbors of each vertex, over links that work in both directions."""
        found: dict[Vertex, list[Vertex]] = {}
        for tail, head in sorted(self.links):
            if self.width(tail, head) > 0:
                found.setdefault(tail, []).append(head)
        return found

    def limit(self, resource: Resource) -> float:
        """Return how much there is of a resource."""
        if resource.kind == "link":
            return self.links.get((resource.tail, resource.head), 0.0)
        of = self.summing if resource.kind == "summing" else self.memory
        return of.get(resource.tail, math.inf)


class GivenTree(msgspec.Struct, frozen=True):
    """The VAT nodes of a tree that an operator gives, and where each but the root sends its sum."""

    root: Router
    parents: Annotated[dict[Router, Router], Meta(max_length=MOST_GIVEN)]

    @property
    def nodes(self) -> list[Vertex]:
        """All routers that sum, the root last."""
        return [*self.parents, self.root]


class SummingJob(msgspec.Struct, frozen=True):
    """Workers that all-reduce together: the router (leaf) of each, by BFR-id.

    ``weight`` is the job's part when several share the network. ``adders`` are the routers with
    memory for its slots; None: all that sum. ``unicast`` tells why results go to each worker by
    itself; empty: they go by BIER, so that a link carries each once. It has the ``given`` tree, if
    there is one, and no other. The workers of a ``wide`` job are in several areas.
    """

    name: str
    workers: Mapping[int, Vertex]
    nic: float = math.inf
    weight: float = 1.0
    adders: frozenset[Vertex] | None = None
    unicast: str = ""
    given: GivenTree | None = None
    wide: bool = False

    @property
    def leaves(self) -> list[Vertex]:
        """The routers that have workers, ascending."""
        return sorted(set(self.workers.values()))

    @property
    def replicates(self) -> bool:
        """Whether all routers of a tree that sum pass results on, so that planes carry them once.

        By BIER they need not; a given tree has the nodes that an operator wants, and no others.
        """
        return self.wide and bool(self.unicast) and self.given is None

    @property
    def bits(self) -> BitString:
        """The bits of all workers."""
        return bits_of(self.workers)

    def bits_at(self, leaf: Vertex) -> BitString:
        """The bits of the workers at one router."""
        return bits_of(bfr_id for bfr_id, at in self.workers.items() if at == leaf)

    def attached(self, network: Capacities) -> Capacities:
        """Return the network with the links of the job's workers."""
        links = dict(network.links)
        for bfr_id, leaf in self.workers.items():
            links[-bfr_id, leaf] = links[leaf, -bfr_id] = self.nic
        return msgspec.structs.replace(network, links=links)


class AggregationTree(msgspec.Struct, frozen=True):
    """One VAT (§2.1) and the way of its results (§2.2).

    ``parents`` has the VAT node next to each worker and VAT node but the root. ``routes`` has the
    path of each edge, from the child to its parent with both, over routers that only forward.
    ``results`` are the links that carry a result; one that carries two copies is in it twice.
    """

    root: Vertex
    parents: Mapping[Vertex, Vertex]
    routes: Mapping[Vertex, tuple[Vertex, ...]]
    results: tuple[Direction, ...]

    @property
    def nodes(self) -> list[Vertex]:
        """The VAT nodes: routers that sum."""
        return sorted({self.root, *self.parents.values()})

    def children(self) -> dict[Vertex, list[Vertex]]:
        """Return the children of each VAT node."""
        found: dict[Vertex, list[Vertex]] = {}
        for child, parent in sorted(self.parents.items()):
            found.setdefault(parent, []).append(child)
        return found

    def bit_strings(self) -> dict[Vertex, BitString]:
        """Return the A-BM of each VAT node: the bits of the workers below it."""
        found = dict.fromkeys(self.nodes, 0)
        for worker in (child for child in self.parents if child < 0):
            at: Vertex | None = self.parents[worker]
            while at is not None:
                found[at] |= 1 << (-worker - 1)
                at = self.parents.get(at)
        return found

    def loads(self) -> Counter[Direction]:
        """Count the copies of a stream on each direction of a link, with the result's."""
        found = Counter(self.results)
        for route in self.routes.values():
            found.update(pairwise(route))
        return found

    def usage(self, network: Capacities) -> dict[Resource, float]:
        """Return what the tree uses of each resource at a rate of one byte/s."""
        found = {link_resource(*link): float(n) for link, n in self.loads().items()}
        fan_in = Counter(self.parents.values())
        for node, streams in fan_in.items():
            if node in network.summing:
                found[Resource("summing", node, node)] = float(streams)
            if node in network.memory:
                # Two versions of each slot, so that a late copy never meets a new chunk.
                found[Resource("memory", node, node)] = 2 * network.slot_seconds
        return found


class RatedTree(msgspec.Struct, frozen=True):
    """A tree, its rate, and its kind: ``star``, ``relay``, ``given``, or ``wide``.

    The last one is a star of a job whose results are replicated (``SummingJob.replicates``).
    """

    tree: AggregationTree
    rate: float
    kind: str = "star"


class TreePlan(msgspec.Struct, frozen=True):
    """The trees of one job."""

    job: SummingJob
    trees: tuple[RatedTree, ...]

    @property
    def rate(self) -> float:
        """The rate at which the job's arrays are reduced."""
        return sum(rated.rate for rated in self.trees)

    def loads(self) -> dict[Direction, float]:
        """Return bytes/s on each direction of a link."""
        total: dict[Direction, float] = {}
        for rated in self.trees:
            for link, copies in rated.tree.loads().items():
                total[link] = total.get(link, 0.0) + copies * rated.rate
        return total

    @property
    def routers(self) -> frozenset[Vertex]:
        """All routers on the way of arrays and results."""
        links = (link for rated in self.trees for link in rated.tree.loads())
        return frozenset(vertex for link in links for vertex in link if vertex >= 0)

    def seconds(self, size: float) -> float:
        """Return the time of an all-reduce of ``size`` bytes, without latency."""
        return size / self.rate if self.rate > 0 else math.inf


def bits_of(bfr_ids: Iterable[int]) -> BitString:
    """Return the bit string of some BFR-ids."""
    found = 0
    for bfr_id in bfr_ids:
        found |= 1 << (bfr_id - 1)
    return found


def members(bits: BitString) -> list[int]:
    """Return the BFR-ids of a bit string, ascending."""
    return [at + 1 for at in range(bits.bit_length()) if bits >> at & 1]
