"""A job in one epoch: its trees, and who may send what to whom. All members get the same one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import Annotated

import msgspec
from msgspec import Meta

from fared.extensions.ina.fields import (
    MOST_GIVEN,
    MOST_TREES,
    MOST_WORKERS,
    BfrId,
    EpochNumber,
    JobId,
    Length,
    Octet,
    Payload,
    Router,
    TreeId,
    Weight,
    Window,
    WorkerOrRouter,
)
from fared.extensions.ina.plan.model import (
    AggregationTree,
    BitString,
    RatedTree,
    SummingJob,
    TreePlan,
    Vertex,
    bits_of,
    members,
)
from fared.extensions.ina.plan.stripes import one_round, stripe_weights
from fared.extensions.ina.slots.packet import header_size

_OF_SLOT, _OF_TREE, _OF_CHILD, _OF_EDGE = 768, 4096, 128, 64
"""Bytes that CPython takes for a slot besides its packet, for a tree, for a child of a VAT node,
and for an edge of any tree of a job, with short bit strings (``tests/ina/test_memory.py``)."""
_MOST_PACKET = 0xFFFF - 28
"""Bytes of a UDP payload (RFC 768, RFC 791)."""


class SetupError(ValueError):
    """A job that cannot be right: the text tells why."""


def tree_size(length: int, payload: int, window: int, children: int) -> int:
    """Return the bytes of a tree in a VAT node with so many children."""
    bits = length // 7  # of an integer, whose digits have 30 bits in 4 bytes
    slot = header_size(length) + payload + _OF_SLOT + 3 * bits
    return (2 * window + 1) * slot + _OF_TREE + children * (_OF_CHILD + bits)


class TreeSetup(msgspec.Struct, frozen=True, omit_defaults=True):
    """One tree: ``parents`` of workers (negative BFR-ids) and VAT nodes, weight, and window S.

    ``above`` has the way of results that do not go straight from the root: from whom workers behind
    a relay, and the routers on the way to them, get theirs. ``sums`` are the workers in the A-BM of
    a router that does not sum all that comes from below: it passes on what has none of their bits
    (draft-song-ina-00 §2.1). Former versions sum all of it there, with the same result.
    """

    tree_id: TreeId
    root: Router
    weight: Weight
    window: Window
    parents: dict[WorkerOrRouter, Router]
    above: dict[WorkerOrRouter, Router] = {}
    sums: Annotated[dict[Router, tuple[BfrId, ...]], Meta(max_length=MOST_GIVEN)] = {}

    @property
    def nodes(self) -> set[Vertex]:
        """The routers that sum, or pass results on."""
        return {self.root, *self.parents.values(), *self.above.values()}


class TreeRole(msgspec.Struct, frozen=True):
    """What one VAT node does in one tree; the root has no parent.

    ``senders`` has the bits that each child may send. Results come from ``above``; ``below`` has
    the routers that pass them on to workers, with their bits, ``direct`` the other workers that get
    them from here.
    """

    tree_id: int
    window: int
    bits: BitString
    parent: Vertex | None
    senders: dict[Vertex, BitString]
    above: Vertex | None
    below: dict[Vertex, BitString]
    direct: BitString


class JobSetup(msgspec.Struct, frozen=True, dict=True):
    """A job: ids, bit string length, the most bytes of values in a packet, workers and trees."""

    job_id: JobId
    epoch: EpochNumber
    length: Length
    payload: Payload
    workers: Annotated[tuple[BfrId, ...], Meta(min_length=1, max_length=MOST_WORKERS)]
    trees: Annotated[tuple[TreeSetup, ...], Meta(max_length=MOST_TREES)]
    sub_domain: Octet = 0
    set_id: Octet = 0
    elastic: bool = False
    """Whether the job goes on without workers that are lost, and they may come back."""
    since: EpochNumber = 0
    """The epoch in which the workers of an elastic job last changed."""

    @cached_property
    def bits(self) -> BitString:
        """The bits of all workers."""
        return sum(1 << (bfr_id - 1) for bfr_id in set(self.workers))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The trees of one round of chunks, as indexes."""
        return one_round([tree.weight for tree in self.trees])

    @property
    def lead(self) -> int:
        """How far a worker's chunks may be ahead of its first one without a result."""
        return sum(tree.window for tree in self.trees)

    def roles(self, node: Vertex) -> list[TreeRole]:
        """Return what a router does in each tree in which it is a VAT node."""
        found = (tree_roles(tree).get(node) for tree in self.trees)
        return [role for role in found if role is not None]

    @cached_property
    def size(self) -> int:
        """Bytes of the job itself in each of its routers."""
        edges = sum(len(tree.parents) + len(tree.above) for tree in self.trees)
        return _OF_EDGE * (edges + 8 * len(self.workers))

    def taken(self, node: Vertex) -> int:
        """Return the bytes that the job takes in a router, which may be no VAT node."""
        return self.memory.get(node, self.size)

    @cached_property
    def memory(self) -> dict[Vertex, int]:
        """Bytes of trees in each VAT node, with those of the job."""
        found: Counter[Vertex] = Counter()
        for tree in self.trees:
            children = Counter((*tree.parents.values(), *tree.above.values()))
            for node in tree.nodes:
                found[node] += tree_size(self.length, self.payload, tree.window, children[node])
        return {node: self.size + bytes_ for node, bytes_ in found.items()}

    def checked(self) -> JobSetup:
        """Return itself. Raises SetupError if fields do not fit together.

        Each has its range where it is decoded (``fared.extensions.ina.fields``).
        """
        workers = set(self.workers)
        if not workers or len(workers) != len(self.workers):
            raise SetupError("no workers, or two with one BFR-id")
        if max(workers) > self.length:
            raise SetupError("a BFR-id does not fit the bit string")
        if header_size(self.length) + self.payload > _MOST_PACKET:
            raise SetupError(f"payload of {self.payload} bytes")
        if [tree.tree_id for tree in self.trees] != list(range(len(self.trees))):
            raise SetupError("trees are not numbered from 0")
        for tree in self.trees:
            _check_tree(tree, workers)
        return self


def _check_tree(tree: TreeSetup, workers: set[int]) -> None:
    what = f"tree {tree.tree_id}"
    for ways in (tree.parents, tree.above):
        if tree.root in ways:
            raise SetupError(f"{what}: the root has a parent")
        lost = ways.keys() - from_root(ways, tree.root)
        if lost:
            raise SetupError(f"{what}: {min(lost)} does not reach the root")
    found = {-child for child in tree.parents if child < 0}
    if {-child for child in tree.above if child < 0} - found:
        raise SetupError(f"{what}: results for workers that it does not have")
    if found != workers:
        raise SetupError(f"{what}: workers {sorted(found ^ workers)} differ")
    if tree.sums:
        _check_sums(tree, what)


def _check_sums(tree: TreeSetup, what: str) -> None:
    """Check that each packet is summed or passed on as a whole wherever it comes."""
    behind = _strings(tree.parents, tree.root)
    coming: dict[Vertex, list[BitString]] = {}
    for child in reversed(from_root(tree.parents, tree.root)):
        arrived = coming.pop(child, [])
        if child < 0:
            sent = [1 << (-child - 1)]
        elif child not in tree.sums:
            sent = [behind.get(child, 0)]
        else:
            own = bits_of(tree.sums[child])
            sent = [own, *(bits for bits in arrived if not bits & own)]
            parts = sum(bits for bits in arrived if bits & own)
            if parts != own or child == tree.root:
                raise SetupError(f"{what}: {child} cannot sum {list(tree.sums[child])} by itself")
        if child != tree.root:
            coming.setdefault(tree.parents[child], []).extend(sent)
    if tree.sums.keys() - behind.keys():
        raise SetupError(f"{what}: {min(tree.sums.keys() - behind.keys())} has nothing to sum")


def from_root(ways: Mapping[Vertex, Vertex], root: Vertex) -> list[Vertex]:
    """Return the vertices whose way leads to the root, each after the next one of its way."""
    children: dict[Vertex, list[Vertex]] = {}
    for child, parent in ways.items():
        children.setdefault(parent, []).append(child)
    found = [root]
    for at in found:
        found.extend(children.pop(at, ()))
    return found


def tree_roles(tree: TreeSetup) -> dict[Vertex, TreeRole]:
    """Return the role of each VAT node of a tree, and of each router that passes results on."""
    summed = _strings(tree.parents, tree.root)
    senders = _children(tree.parents, summed)
    behind = _strings(tree.above, tree.root)
    below = _children(tree.above, behind)
    straight = summed[tree.root] & ~behind.get(tree.root, 0)
    found = {}
    for node in tree.nodes:
        ways = below.get(node, {})
        direct = sum(bits for child, bits in ways.items() if child < 0)
        found[node] = TreeRole(
            tree.tree_id,
            tree.window,
            bits_of(tree.sums[node]) if node in tree.sums else summed.get(node, 0),
            tree.parents.get(node),
            senders.get(node, {}),
            tree.above.get(node),
            {child: bits for child, bits in ways.items() if child >= 0},
            direct | (straight if node == tree.root else 0),
        )
    return found


def _strings(ways: Mapping[Vertex, Vertex], root: Vertex) -> dict[Vertex, BitString]:
    """Return the bits of the workers whose way to the root leads over each router."""
    found = dict.fromkeys(ways.values(), 0)
    for child in reversed(from_root(ways, root)[1:]):
        found[ways[child]] |= 1 << (-child - 1) if child < 0 else found.get(child, 0)
    return found


def _children(
    ways: Mapping[Vertex, Vertex], strings: Mapping[Vertex, BitString]
) -> dict[Vertex, dict[Vertex, BitString]]:
    """Return the children of each router with their bits."""
    found: dict[Vertex, dict[Vertex, BitString]] = {}
    for child, parent in ways.items():
        own = 1 << (-child - 1) if child < 0 else strings.get(child, 0)
        found.setdefault(parent, {})[child] = own
    return found


def setup_of(
    plan: TreePlan,
    *,
    job_id: int,
    epoch: int,
    length: int,
    payload: int,
    window: int,
) -> JobSetup:
    """Return the setup of a plan. ``window`` is that of the tree with the highest rate.

    Others have windows in proportion to their rates, two at least.
    """
    weights = stripe_weights([rated.rate for rated in plan.trees])
    used = [(rated, weight) for rated, weight in zip(plan.trees, weights, strict=True) if weight]
    highest = max((weight for _, weight in used), default=1)
    trees = tuple(
        TreeSetup(
            tree_id=at,
            root=rated.tree.root,
            weight=weight,
            window=max(2, -(-window * weight // highest)),
            parents=parents_of(rated),
            above=_above(rated),
            sums=_sums(rated),
        )
        for at, (rated, weight) in enumerate(used)
    )
    return JobSetup(job_id, epoch, length, payload, _bfr_ids(plan.job), trees).checked()


def parents_of(rated: RatedTree) -> dict[Vertex, Vertex]:
    """Return the parents; each router on the way of a relay is one, since routes would avoid it.

    In a given tree a VAT node gets what comes past, and passes on what it does not sum.
    """
    tree = rated.tree
    if rated.kind == "given":
        nodes = set(tree.nodes)
        return {
            child: next(router for router in route[1:] if router in nodes)
            for child, route in tree.routes.items()
        }
    if rated.kind != "relay":
        return dict(tree.parents)
    found: dict[Vertex, Vertex] = {}
    for child, route in tree.routes.items():
        # The first router of a worker is its gateway, so that it needs no other part.
        rest = (child < 0 and route[2:]) or route[1:]
        found.update(pairwise((child, *rest)))
    return found


def _sums(rated: RatedTree) -> dict[Vertex, tuple[int, ...]]:
    """Return the A-BMs of routers past which other packets of the tree come."""
    if rated.kind != "given":
        return {}
    behind = _strings(parents_of(rated), rated.tree.root)
    return {
        node: tuple(members(bits))
        for node, bits in rated.tree.bit_strings().items()
        if bits != behind[node]
    }


def _above(rated: RatedTree) -> dict[Vertex, Vertex]:
    """Return the way of results to workers that the root's own routes must not reach."""
    tree = rated.tree
    if rated.kind == "wide":
        return _replicated(tree)
    if rated.kind != "relay":
        return {}
    before = {head: tail for tail, head in tree.results}
    ways: dict[Vertex, list[Vertex]] = {}
    for worker in (child for child in tree.parents if child < 0):
        ways[worker] = [before[worker]]
        while ways[worker][-1] != tree.root:
            ways[worker].append(before[ways[worker][-1]])
    found: dict[Vertex, Vertex] = {}
    for worker, (_, *way) in ways.items():
        if len(way) > 1:
            found.update(pairwise((worker, *way)))
    # A relay has the result: its own workers need no second copy over the same link.
    relays = set(found)
    for worker, (leaf, *_) in ways.items():
        if leaf in relays:
            found[worker] = leaf
    return found


def _replicated(tree: AggregationTree) -> dict[Vertex, Vertex]:
    """Return the way of results on which each router that sums, but the leaves, passes them on."""
    leaves = {route[1] for child, route in tree.routes.items() if child < 0}
    found: dict[Vertex, Vertex] = {}
    for worker in (child for child in tree.parents if child < 0):
        near, above = worker, tree.parents[worker]
        while above in leaves and above != tree.root:
            above = tree.parents[above]
        while tree.root not in (near, above):
            found[near] = above
            near, above = above, tree.parents[above]
        if near in found.values():
            found[near] = above
    return found


def _bfr_ids(job: SummingJob) -> tuple[int, ...]:
    return tuple(sorted(job.workers))
