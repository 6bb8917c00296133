"""A job in one epoch: its trees, and who may send what to whom. All members get the same one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise

import msgspec

from fared.ina.plan.model import BitString, RatedTree, SummingJob, TreePlan, Vertex, members
from fared.ina.plan.stripes import one_round, stripe_weights
from fared.ina.slots.packet import header_size

SLOT_OVERHEAD = 64
"""Bytes that a slot takes besides its packet."""
MOST_TREES = 1024
MOST_WINDOW = 4096


class SetupError(ValueError):
    """A job that cannot be right: the text tells why."""


def slot_size(length: int, payload: int) -> int:
    """Return the bytes of one slot."""
    return header_size(length) + payload + SLOT_OVERHEAD


class TreeSetup(msgspec.Struct, frozen=True, omit_defaults=True):
    """One tree: ``parents`` of workers (negative BFR-ids) and VAT nodes, weight, and window S.

    ``above`` has the way of results that do not go straight from the root: from whom workers behind
    a relay, and the routers on the way to them, get theirs.
    """

    tree_id: int
    root: Vertex
    weight: int
    window: int
    parents: dict[Vertex, Vertex]
    above: dict[Vertex, Vertex] = {}

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

    job_id: int
    epoch: int
    length: int
    payload: int
    workers: tuple[int, ...]
    trees: tuple[TreeSetup, ...]
    sub_domain: int = 0
    set_id: int = 0
    elastic: bool = False
    """Whether the job goes on without workers that are lost, and they may come back."""
    since: int = 0
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

    def memory(self, node: Vertex) -> int:
        """Return the bytes of a router's slots."""
        size = slot_size(self.length, self.payload)
        return sum((2 * role.window + 1) * size for role in self.roles(node))

    def checked(self) -> JobSetup:
        """Return itself. Raises SetupError if trees, weights or sizes cannot be right."""
        if not self.workers or len(set(self.workers)) != len(self.workers):
            raise SetupError("no workers, or two with one BFR-id")
        if not (min(self.workers) >= 1 and max(self.workers) <= self.length):
            raise SetupError("a BFR-id does not fit the bit string")
        if not 0 < self.payload <= 0xFFFF or self.payload % 8:
            raise SetupError(f"payload of {self.payload} bytes")
        if not 1 <= len(self.trees) <= MOST_TREES:
            raise SetupError(f"{len(self.trees)} trees")
        if [tree.tree_id for tree in self.trees] != list(range(len(self.trees))):
            raise SetupError("trees are not numbered from 0")
        for tree in self.trees:
            _check_tree(tree, self.bits)
        return self


def _check_tree(tree: TreeSetup, bits: BitString) -> None:
    if not (0 < tree.weight <= 0xFFFF and 0 < tree.window <= MOST_WINDOW):
        raise SetupError(f"tree {tree.tree_id}: weight {tree.weight}, window {tree.window}")
    if tree.root in tree.parents:
        raise SetupError(f"tree {tree.tree_id}: the root has a parent")
    for ways in (tree.parents, tree.above):
        _check_ways(tree, ways)
    if {child for child in tree.above if child < 0} - tree.parents.keys():
        raise SetupError(f"tree {tree.tree_id}: results for workers that it does not have")
    found = sum(1 << (-child - 1) for child in tree.parents if child < 0)
    if found != bits:
        raise SetupError(f"tree {tree.tree_id}: workers {members(found ^ bits)} differ")


def _check_ways(tree: TreeSetup, ways: Mapping[Vertex, Vertex]) -> None:
    for child in ways:
        at, steps = child, 0
        while at != tree.root:
            if at not in ways or steps > len(ways):
                raise SetupError(f"tree {tree.tree_id}: {child} does not reach the root")
            at, steps = ways[at], steps + 1
        if at < 0 or ways[child] < 0:
            raise SetupError(f"tree {tree.tree_id}: a worker has children")


def tree_roles(tree: TreeSetup) -> dict[Vertex, TreeRole]:
    """Return the role of each VAT node of a tree, and of each router that passes results on."""
    summed = _strings(tree.parents)
    senders = _children(tree.parents, summed)
    behind = _strings(tree.above)
    below = _children(tree.above, behind)
    straight = summed[tree.root] & ~behind.get(tree.root, 0)
    found = {}
    for node in tree.nodes:
        ways = below.get(node, {})
        direct = sum(bits for child, bits in ways.items() if child < 0)
        found[node] = TreeRole(
            tree.tree_id,
            tree.window,
            summed.get(node, 0),
            tree.parents.get(node),
            senders.get(node, {}),
            tree.above.get(node),
            {child: bits for child, bits in ways.items() if child >= 0},
            direct | (straight if node == tree.root else 0),
        )
    return found


def _strings(ways: Mapping[Vertex, Vertex]) -> dict[Vertex, BitString]:
    """Return the bits of the workers whose way to the root leads over each router."""
    found = dict.fromkeys(ways.values(), 0)
    for worker in (child for child in ways if child < 0):
        at: Vertex | None = ways[worker]
        while at is not None:
            found[at] |= 1 << (-worker - 1)
            at = ways.get(at)
    return found


def _children(
    ways: Mapping[Vertex, Vertex], strings: Mapping[Vertex, BitString]
) -> dict[Vertex, dict[Vertex, BitString]]:
    """Return the children of each router with their bits."""
    found: dict[Vertex, dict[Vertex, BitString]] = {}
    for child, parent in ways.items():
        own = 1 << (-child - 1) if child < 0 else strings[child]
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
        )
        for at, (rated, weight) in enumerate(used)
    )
    return JobSetup(job_id, epoch, length, payload, _bfr_ids(plan.job), trees).checked()


def parents_of(rated: RatedTree) -> dict[Vertex, Vertex]:
    """Return the parents; each router on the way of a relay is one, since routes would avoid it."""
    tree = rated.tree
    if rated.kind != "relay":
        return dict(tree.parents)
    found: dict[Vertex, Vertex] = {}
    for child, route in tree.routes.items():
        # The first router of a worker is its gateway, so that it needs no other part.
        rest = (child < 0 and route[2:]) or route[1:]
        found.update(pairwise((child, *rest)))
    return found


def _above(rated: RatedTree) -> dict[Vertex, Vertex]:
    """Return the way of results to workers that the root's own routes must not reach."""
    tree = rated.tree
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


def _bfr_ids(job: SummingJob) -> tuple[int, ...]:
    return tuple(sorted(job.workers))
