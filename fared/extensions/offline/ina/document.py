"""The document ``fared-ina-plan/1``: trees, rates, bounds and the load of links."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from fared.core.ids import NodeId, format_node
from fared.extensions.ina.plan.bounds import least_cut, ring_rate
from fared.extensions.ina.plan.model import (
    AggregationTree,
    Capacities,
    Direction,
    SummingJob,
    TreePlan,
    Vertex,
)
from fared.extensions.ina.plan.stripes import one_round, stripe_weights
from fared.management.documents import human
from fared.management.documents.cells import Cell, Columns, Styled, count, dim, judged, plural_list
from fared.management.documents.declare import Answer
from fared.management.documents.facts import BytesPerSecond, Facts, Ratio

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

_FULL = 0.999
"""The part of its capacity from which a link limits the trees on it."""
_SHOWN = 4
_CHUNKS = 26


class PlanRouter(Facts):
    """A router of a plan."""

    router: str
    hostname: str | None

    def __str__(self) -> str:
        return human.router(self.router, self.hostname)


class PlanWorker(Facts):
    """A worker, and the leaf that it is attached to."""

    bfr_id: int
    router: str
    hostname: str | None


class PlanWay(Facts):
    """A link in one direction."""

    from_: PlanRouter = msgspec.field(name="from")
    to: PlanRouter


class PlanLoad(PlanWay):
    """The load of a link; ``capacity`` None: unlimited."""

    capacity: BytesPerSecond
    load: float


class PlanNode(PlanRouter):
    """A VAT node with its A-BM (draft-song-ina-00 §2.1), bit 0 is BFR-id 1; ``parent`` None: root.

    ``streams``: the number of nodes and workers that send to it.
    """

    parent: str | None
    bits: str
    streams: int


class PlanTree(Facts):
    """A tree, its rate, and the share and weight that it has of all.

    ``limits`` are the full links; ``relays`` the ways, router by router up to the root, that cross
    another leaf of the job.
    """

    root: PlanRouter
    kind: str
    rate: float
    share: Ratio
    weight: int
    limits: list[PlanWay]
    relays: list[list[PlanRouter]]
    nodes: list[PlanNode]


class InaPlan(Answer, tag="fared-ina-plan/1"):
    """The plan of one job. Rates are bytes/s.

    ``bound``: no plan is faster, ``ring_rate`` is that of a ring; None: unlimited. ``round``: the
    trees of successive chunks. ``unicast``: why a link carries a result once for each worker behind
    it; empty: results go by BIER, once over each link.
    """

    changes: list[str]
    workers: list[PlanWorker]
    unicast: str
    rate: float
    bound: float | None
    ring_rate: float | None
    trees: list[PlanTree]
    round: list[int]
    links: list[PlanLoad]

    def show(self, paper: Paper) -> None:
        """Print the rate, then trees and links."""
        if self.changes:
            paper.line(dim(f"What if: {', '.join(self.changes)}\n"))
        leaves = list(dict.fromkeys(human.router(w.router, w.hostname) for w in self.workers))
        title = f"{count(len(self.workers), 'worker')} on {plural_list(leaves, _SHOWN)}"
        paper.heading(title, first=True)
        paper.pairs(_rates(self))
        paper.heading("Trees")
        _show_trees(self.trees, paper)
        paper.heading("Links")
        paper.grid(("Router", "~Links from", ">Up", ">Used", ">Down", ">Used"), _links(self))


def _rates(plan: InaPlan) -> Iterator[tuple[str, Cell]]:
    n = len(plan.workers)
    yield "Rate", f"{human.bandwidth(plan.rate)} bit/s"
    if plan.bound:
        part = plan.rate / plan.bound
        words = f"{human.bandwidth(plan.bound)}: the plan has {human.share(part)} of it"
        yield "Bound", judged(words, good=part > 0.995, bad="yellow")
    if plan.ring_rate:
        whole = plan.ring_rate / (2 * (n - 1) / n)
        times = plan.rate / whole
        yield "Ring", f"{human.bandwidth(whole)}: takes {times:.2f} times as long"
    yield "Results", f"by unicast: {plan.unicast}" if plan.unicast else "by BIER"
    order = " ".join(str(tree + 1) for tree in plan.round[:_CHUNKS])
    more = " ..." if len(plan.round) > _CHUNKS else ""
    yield "Chunks", f"to trees {order}{more}, and again"


def _show_trees(trees: list[PlanTree], paper: Paper) -> None:
    numbers = {id(tree): number for number, tree in enumerate(trees, 1)}
    columns: Columns = {
        ">Tree": lambda tree: str(numbers[id(tree)]),
        "Root": "root",
        "Kind": "kind",
        ">Rate": lambda tree: human.bandwidth(tree.rate),
        ">Share": "share",
        ">Weight": "weight",
        "~Limited by": lambda tree: (
            plural_list([f"{way.from_} > {way.to}" for way in tree.limits], 1) or "worker"
        ),
    }
    paper.table(trees, columns)
    for number, tree in enumerate(trees, 1):
        for way in tree.relays:
            paper.line(dim(f"Tree {number} relays: {' > '.join(map(str, way))}"))


def _links(plan: InaPlan) -> Iterator[tuple[Cell, ...]]:
    """Yield one row for all links of a router that carry the same of the same, both ways."""
    loads = {(str(link.from_), str(link.to)): (link.load, link.capacity) for link in plan.links}
    roots = {str(tree.root) for tree in plan.trees}
    groups: dict[tuple[str, Load, Load | None], list[str]] = {}
    for (near, far), up in loads.items():
        alike = (near in roots) == (far in roots)
        if near < far if alike else far in roots:
            groups.setdefault((far, up, loads.get((far, near))), []).append(near)
    for (far, up, down), names in sorted(groups.items(), key=lambda item: (item[0][0], item[1])):
        yield far, plural_list(names, _SHOWN), *_used(up), *_used(down)


Load = tuple[float, float | None]
"""Load and capacity."""


def _used(link: Load | None) -> tuple[Cell, Cell]:
    if link is None:
        return human.DASH, human.DASH
    load, capacity = link
    used = load / capacity if capacity else 0.0
    return human.bandwidth(load), Styled(human.share(used), "yellow" if used > _FULL else "")


def plan_document(
    network: Capacities, plan: TreePlan, hostnames: Mapping[NodeId, str], changes: Iterable[str]
) -> InaPlan:
    """Return the document of one job."""
    weights = stripe_weights([rated.rate for rated in plan.trees])
    loads = plan.loads()
    trees = [
        PlanTree(
            root=PlanRouter(**_router(rated.tree.root, hostnames)),
            kind=rated.kind,
            rate=rated.rate,
            share=rated.rate / plan.rate,
            weight=weight,
            limits=[
                PlanWay(**_ends(link, hostnames))
                for link in sorted(
                    rated.tree.loads(), key=lambda link: (network.links.get(link, 0.0), link)
                )
                if min(link) >= 0 and _full(network, loads, link)
            ],
            relays=_relays(plan.job, rated.tree, hostnames),
            nodes=_nodes(rated.tree, hostnames),
        )
        for rated, weight in zip(plan.trees, weights, strict=True)
    ]
    return InaPlan(
        changes=list(changes),
        workers=[
            PlanWorker(bfr_id=bfr_id, **_router(leaf, hostnames))
            for bfr_id, leaf in sorted(plan.job.workers.items())
        ],
        unicast=plan.job.unicast,
        rate=plan.rate,
        bound=_finite(least_cut(network, plan.job)),
        ring_rate=_finite(ring_rate(network, plan.job)),
        trees=trees,
        round=list(one_round(weights)),
        links=[
            PlanLoad(**_ends(link, hostnames), capacity=_finite(network.links[link]), load=load)
            for link, load in sorted(loads.items())
            if min(link) >= 0
        ],
    )


def _full(network: Capacities, loads: Mapping[Direction, float], link: Direction) -> bool:
    return loads[link] >= network.links[link] * _FULL


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _router(node: Vertex, hostnames: Mapping[NodeId, str]) -> dict[str, Any]:
    return {"router": format_node(node), "hostname": hostnames.get(NodeId(node))}


def _ends(link: Direction, hostnames: Mapping[NodeId, str]) -> dict[str, PlanRouter]:
    tail, head = (PlanRouter(**_router(node, hostnames)) for node in link)
    return {"from_": tail, "to": head}


def _nodes(tree: AggregationTree, hostnames: Mapping[NodeId, str]) -> list[PlanNode]:
    return [
        PlanNode(
            **_router(node, hostnames),
            parent=None if node == tree.root else format_node(tree.parents[node]),
            bits=f"{bits:#x}",
            streams=sum(parent == node for parent in tree.parents.values()),
        )
        for node, bits in sorted(tree.bit_strings().items())
    ]


def _relays(
    job: SummingJob, tree: AggregationTree, hostnames: Mapping[NodeId, str]
) -> list[list[PlanRouter]]:
    leaves = set(job.leaves) - {tree.root}
    found: list[list[PlanRouter]] = []
    for leaf in job.leaves:
        worker = next(-bfr_id for bfr_id, at in sorted(job.workers.items()) if at == leaf)
        way = list(tree.routes[worker][1:])
        while way[-1] != tree.root:
            way += tree.routes[way[-1]][1:]
        if leaves.intersection(way[1:]):
            found.append([PlanRouter(**_router(node, hostnames)) for node in way])
    return found
