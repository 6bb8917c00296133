"""The state of a link that every protocol reports: up or down, capacity and its source."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from fared.management.documents.context import ViewContext, finite
from fared.management.documents.protocol_status import FloodingStatus, FloodingTopologyStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fared.management.documents.schema.link import (
        AuthenticationStatus,
        LinkHealthStatus,
        LinkStatus,
        ProblemEntry,
        RefusedHelloEntry,
    )
    from fared.protocols.igp import refusals
    from fared.protocols.igp.dynamic_flooding import TopologyView
    from fared.protocols.igp.keys import KeyringView
    from fared.protocols.igp.reduction import ReductionSettings
    from fared.protocols.isis.snapshot import AdjacencyView, CircuitView
    from fared.protocols.ospf.snapshot import InterfaceView, NeighborView
    from fared.router.instance import ProtocolInstance


def link_facts(context: ViewContext, view: InterfaceView | CircuitView) -> LinkStatus:
    """Return the state of a link; ``view`` is the protocol's interface."""
    name = view.name
    link = context.links.get(view.ifindex)
    utilized = context.runtime.utilized.get(view.ifindex)
    bandwidth = finite(view.capacity)
    available = None
    if bandwidth is not None and utilized is not None:
        available = max(0.0, bandwidth - utilized)
    source = None
    if context.config.interface_bandwidth(name) is not None:
        source = "config"
    elif link is not None and bandwidth is not None:
        source = "shaper" if link.shaped is not None and link.capacity == link.shaped else "speed"
    return {
        "up": link is not None and link.up,
        "bandwidth": bandwidth,
        "bandwidth_source": source,
        "utilized": utilized,
        "available": available,
        "health": _health(context, name),
        "derated": [
            {"by": item.by, "share": item.share, "at": item.at, "reason": item.reason}
            for item in context.derated(name)
        ],
        "announced_available": finite(view.advertised_available),
    }


def _health(context: ViewContext, name: str) -> LinkHealthStatus | None:
    facts = context.link_health(name)
    if facts is None:
        return None
    return {
        "mode": facts.mode,
        "errors": facts.errors,
        "packets": facts.packets,
        "share": facts.share,
        "reason": facts.reason,
        "recovers_in": round(facts.recovers_in, 3),
        "penalty": round(facts.penalty, 1),
        "suppressed": facts.suppressed,
        "reuse_in": round(facts.reuse_in, 3),
    }


def problem_shown(problem: refusals.NeighborProblem | None) -> ProblemEntry | None:
    """Return why a neighbor is not used."""
    return None if problem is None else {"cause": problem.cause, "text": problem.text}


def unready_neighbor(name: str, view: NeighborView | AdjacencyView) -> str:
    """Return why a neighbor is not ready; empty: that is not known."""
    return "" if view.problem is None else f"{name} on {view.interface}: {view.problem.text}"


def refused_hellos(context: ViewContext) -> list[RefusedHelloEntry]:
    """Return the hellos refused in the last minutes."""
    return [row for each in context.instances for row in refused_by(each, context.now)]


def refused_by(instance: ProtocolInstance, now: float) -> list[RefusedHelloEntry]:
    """Return those that one protocol has refused."""
    return [
        {
            "proto": instance.name,
            "interface": item.interface,
            "source": item.source,
            "router_id": item.node,
            "cause": item.cause,
            "text": item.text,
            "first": round(now - item.first, 3),
            "last": round(now - item.last, 3),
            "times": item.times,
        }
        for item in instance.engine.refused(now)
    ]


def by_interface(rows: Iterable[RefusedHelloEntry]) -> defaultdict[str, list[RefusedHelloEntry]]:
    """Group refused hellos by interface."""
    found: defaultdict[str, list[RefusedHelloEntry]] = defaultdict(list)
    for row in rows:
        found[row["interface"]].append(row)
    return found


def flooding_status(
    reduction: ReductionSettings,
    topologies: tuple[TopologyView, ...],
    scope: Callable[[int], str],
    name: Callable[[int], str],
) -> FloodingStatus:
    """Return how flooding is reduced; ``scope`` names areas or levels, ``name`` routers."""
    return FloodingStatus(
        reduction=reduction.mode.value,
        delay=reduction.delay,
        topologies=[
            FloodingTopologyStatus(
                scope=scope(view.scope),
                leader=None if view.leader is None else name(view.leader),
                routers=view.routers,
                parents=[name(router) for router in view.parents],
                children=[name(router) for router in view.children],
                others=[name(router) for router in view.others],
            )
            for view in topologies
        ],
    )


def keyring_shown(view: KeyringView | None) -> AuthenticationStatus | None:
    """Return which key signs and which are accepted, without any secret."""
    if view is None:
        return None
    return {
        "algorithm": view.algorithm,
        "key_id": view.key_id,
        "extended": view.extended,
        "expired": view.expired,
        "accepted_key_ids": list(view.accepted),
    }
