"""Who plays: the leaves and hosts between which flows go, and the link that an act changes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from fared.core.units import BytesPerSecond, format_bandwidth
from fared.extensions.lab import traffic
from fared.extensions.lab.acts.stage import SETTLED, DemoError, DemoStage
from fared.extensions.lab.addressing import AddressPlan, NodePlan
from fared.extensions.lab.expected import Rate, expected_shares, known_capacities
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView, shares
from fared.extensions.lab.ranks import ranks_at
from fared.extensions.lab.traffic import TrafficReport
from fared.extensions.lab.waiting import Accepts

SHARE_TOLERANCE = 0.02
"""How far a measured share may be from its weight."""
_WEIGHT_TOLERANCE = 0.01
_DEADLINE = 20.0


@dataclass(frozen=True)
class Cast:
    """The nodes: flows go from source to target, and the link from tail to head fails.

    ``watched``: the leaves whose next hops the link changes, of fared where others run too.
    """

    source: NodePlan
    source_host: str
    target: NodePlan
    target_host: str
    prefixes: tuple[str, ...]
    tail: NodePlan
    head: NodePlan
    rate: BytesPerSecond
    watched: tuple[NodePlan, ...]

    @property
    def link(self) -> str:
        """The direction of the link, as text."""
        return f"{self.tail.name} > {self.head.name}"

    @property
    def held(self) -> str:
        """Who holds weights: the beginning of a sentence."""
        count = len(self.watched)
        return "1 leaf holds" if count == 1 else f"{count} leaves hold"


def choose(fabric: Fabric) -> Cast:
    """Choose leaves, hosts and the link that is slowed down: the first leaf, and the farthest one.

    Raises LabError.
    """
    plan = fabric.plan
    if any(node.node.is_segment for node in plan.nodes.values()):
        raise DemoError("the demonstration requires links between two nodes, without LAN segments")
    source, target = map(plan.node, plan.farthest_leaves())
    if len(plan.equal_cost_ports(source.name, target.name)) < 2:
        one = f"{source.name} has only one shortest path to {target.name}"
        raise DemoError(f"{one}: there is nothing to weight, `fared-lab up` runs the fabric")
    tail, head, watched = _link(plan, source, target)
    port = plan.ports_between(tail.name, head.name)[0]
    rate = fabric.rate(port)
    if rate is None:
        raise DemoError(f"the link {tail.name}-{head.name} has no rate to reduce")
    sender = ranks_at(plan, source.name)[0]
    others = [rank for rank in ranks_at(plan, target.name) if rank.host != sender.host]
    if not others:
        raise DemoError(f"{source.name} and {target.name} have the same host, {sender.host}")
    return Cast(
        source=source,
        source_host=sender.name,
        target=target,
        target_host=others[0].name,
        prefixes=others[0].prefixes,
        tail=tail,
        head=head,
        rate=rate,
        watched=watched,
    )


def _link(
    plan: AddressPlan, source: NodePlan, target: NodePlan
) -> tuple[NodePlan, NodePlan, tuple[NodePlan, ...]]:
    """Return the ends of the link that changes, and the leaves that must notice.

    It is the last link to the target, of the first spine that measures what it sends. FRR and BIRD
    do not: where they run in all spines it is the source's first uplink, which others do not use.
    """
    near = plan.distances(target.name)
    kind = source.node.kind
    watched = tuple(
        leaf
        for leaf in plan.leaves
        if leaf.name != target.name and leaf.node.kind == kind and leaf.name in near
    )
    for port in plan.equal_cost_ports(source.name, target.name):
        spine = plan.node(port.peer)
        while (onward := plan.equal_cost_ports(spine.name, target.name))[0].peer != target.name:
            spine = plan.node(onward[0].peer)
        if spine.node.kind == kind:
            return spine, target, watched
    first = plan.equal_cost_ports(source.name, target.name)[0]
    return source, plan.node(first.peer), (source,)


def weighted(
    plan: AddressPlan, cast: Cast, rate: Rate, tolerance: float = _WEIGHT_TOLERANCE
) -> Accepts:
    """Return the condition that a leaf's weights toward the target match what it knows of paths.

    ``rate``: what the leaf knows of each port; ``tolerance``: of a share, 0 to 1.
    """

    def accepts(name: str, view: KernelView) -> bool:
        wanted = expected_shares(known_capacities(plan, rate, name, cast.target.name))
        return all(
            wanted.keys() == held.keys()
            and all(abs(held[port] - share) <= tolerance for port, share in wanted.items())
            for held in (shares(view.hops(prefix)) for prefix in cast.prefixes)
        )

    return accepts


def measure(stage: DemoStage, cast: Cast, *, ipv6: bool = False) -> TrafficReport:
    """Send flows from host to host, and count them at the source's uplinks. Raises LabError."""
    ends = cast.source_host, cast.target_host
    with stage.console.status(f"{traffic.DEFAULT_FLOWS:,} flows from {ends[0]} to {ends[1]}"):
        return traffic.measure(stage.fabric, *ends, ipv6=ipv6)


def shape(stage: DemoStage, cast: Cast, rate: BytesPerSecond) -> None:
    """Change the rate of the link, wait until all leaves weight it, and tell. Raises DemoError."""
    fabric = stage.fabric
    begun = time.monotonic()
    fabric.shape(cast.tail.name, cast.head.name, rate)
    accepts = weighted(fabric.plan, cast, fabric.rate)
    done = stage.wait(cast.watched, accepts, _DEADLINE, "leaves weight the path", quiet=SETTLED)
    hops = fabric.view(cast.source.name).hops(cast.prefixes[0])
    ratio = ":".join(str(hop.weight) for hop in hops)
    stage.done(f"at {format_bandwidth(rate)} bit/s {cast.held} {ratio}", begun, done)
