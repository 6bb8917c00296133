"""A job in one epoch: its trees, and who may send what to whom. All members get the same one."""

from __future__ import annotations

from functools import cached_property

import msgspec

from fared.ina.plan.model import BitString, SummingJob, TreePlan, Vertex, members
from fared.ina.plan.stripes import one_round, stripe_weights
from fared.ina.slots.packet import header_size

SLOT_OVERHEAD = 64
"""Bytes that a slot takes besides its packet."""
MOST_TREES = 1024
MOST_WINDOW = 4096


class SetupError(ValueError):
    """A job that cannot be right: the text tells why."""


class TreeSetup(msgspec.Struct, frozen=True):
    """One tree: ``parents`` of workers (negative BFR-ids) and VAT nodes, weight, and window S."""

    tree_id: int
    root: Vertex
    weight: int
    window: int
    parents: dict[Vertex, Vertex]


class TreeRole(msgspec.Struct, frozen=True):
    """What one VAT node does in one tree; the root has no parent.

    ``senders`` has the bits that each child may send.
    """

    tree_id: int
    window: int
    bits: BitString
    parent: Vertex | None
    senders: dict[Vertex, BitString]


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
        size = header_size(self.length) + self.payload + SLOT_OVERHEAD
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
    for child in tree.parents:
        at, steps = child, 0
        while at != tree.root:
            if at not in tree.parents or steps > len(tree.parents):
                raise SetupError(f"tree {tree.tree_id}: {child} does not reach the root")
            at, steps = tree.parents[at], steps + 1
        if at < 0 or tree.parents[child] < 0:
            raise SetupError(f"tree {tree.tree_id}: a worker has children")
    found = sum(1 << (-child - 1) for child in tree.parents if child < 0)
    if found != bits:
        raise SetupError(f"tree {tree.tree_id}: workers {members(found ^ bits)} differ")


def tree_roles(tree: TreeSetup) -> dict[Vertex, TreeRole]:
    """Return the role of each VAT node of a tree."""
    strings = dict.fromkeys({tree.root, *tree.parents.values()}, 0)
    for worker in (child for child in tree.parents if child < 0):
        at: Vertex | None = tree.parents[worker]
        while at is not None:
            strings[at] |= 1 << (-worker - 1)
            at = tree.parents.get(at)
    senders: dict[Vertex, dict[Vertex, BitString]] = {}
    for child, parent in tree.parents.items():
        own = 1 << (-child - 1) if child < 0 else strings[child]
        senders.setdefault(parent, {})[child] = own
    return {
        node: TreeRole(
            tree.tree_id, tree.window, bits, tree.parents.get(node), senders.get(node, {})
        )
        for node, bits in strings.items()
    }


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
            parents=dict(rated.tree.parents),
        )
        for at, (rated, weight) in enumerate(used)
    )
    return JobSetup(job_id, epoch, length, payload, _bfr_ids(plan.job), trees).checked()


def _bfr_ids(job: SummingJob) -> tuple[int, ...]:
    return tuple(sorted(job.workers))
