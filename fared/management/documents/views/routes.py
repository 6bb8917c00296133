"""Views of computed routes and weight vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from msgspec import UNSET, UnsetType

from fared.core.ids import Prefix, is_group
from fared.management.documents.context import (
    EXTERNAL,
    ViewContext,
    family_name,
    family_number,
    finite,
    gateway,
    type_of,
)
from fared.management.documents.errors import CommandError
from fared.management.documents.explain import SlowerHop
from fared.management.documents.routes import (
    CONNECTED,
    DISCARD,
    RouteCount,
    RouteEntry,
    RouteNextHop,
    Routes,
)
from fared.management.documents.rows import Rows, Shared
from fared.management.documents.sliced import PORTION, Sliced, Work, chosen, each, in_order
from fared.management.documents.views.adaptation import (
    announcements,
    loop,
    programmed_shares,
    state,
    vector_of,
)
from fared.management.documents.views.hop_delays import slower_hops
from fared.management.documents.views.route_filter import change_times, wanted_routes
from fared.management.documents.views.status import weighted_routes
from fared.management.documents.weights import DelayChoice, WeightMember, Weights, WeightVector
from fared.paths.rib.model import HopKey, NextHop, NextHopSet, Route
from fared.paths.rib.set_builder import SolvedHops
from fared.paths.weights.few_flows import skew_for_few_flows
from fared.paths.weights.path_capacity import WeightMode
from fared.paths.weights.quantise import divide_buckets

MAX_EXAMPLES = 3


@Sliced
def routes(
    context: ViewContext,
    prefix: str | None = None,
    *,
    summary: bool = False,
    af: str | None = None,
    longer: bool = False,
    via: str | None = None,
    kind: str | None = None,
    older: float | None = None,
    newer: float | None = None,
) -> Work[Routes]:
    """``show routes [PREFIX]``. Raises CommandError."""
    family = family_number(af)
    if longer and prefix is None:
        raise CommandError("bad-argument", "longer needs a prefix")
    within = context.wanted_prefix(prefix) if longer and prefix is not None else None
    found = yield from _chosen(context, None if within else prefix, family)
    wanted = wanted_routes(context, via, kind, older, newer)
    if within is not None:
        wanted.append(lambda row: within.covers(row[1]))
    if wanted:
        found = yield from chosen(found, lambda row: all(each(row) for each in wanted))
    if within is not None and not found:
        raise CommandError("not-found", f"no route within {prefix}")
    known = sorted({f for instance in context.instances for f in instance.solvers})
    listed = [family] if family is not None else known
    document = Routes(
        root=context.root,
        af="both" if len(listed) > 1 else family_name(listed[0]),
        routes=[] if summary else Rows(found, _RouteRows(context).row),
    )
    if summary:
        document.summary = yield from _summary(context, found)
    return document


def _summary(
    context: ViewContext, found: Sequence[tuple[str, Prefix, Route]]
) -> Work[list[RouteCount]]:
    """Count routes by protocol, family and type."""
    alike: dict[tuple[str, int, str], dict[Prefix, Route]] = {}
    for number, (proto, prefix, route) in enumerate(found):
        if number % PORTION == 0:
            yield
        label = CONNECTED if route.nexthops is None else type_of(proto, route)
        key = (proto, prefix.family, DISCARD if route.discard else label)
        alike.setdefault(key, {})[prefix] = route
    installed = context.router.planner.installed.routes
    return [
        RouteCount(
            protocol=proto,
            af=family_name(family),
            type=label,
            routes=len(alike[proto, family, label]),
            weighted=weighted_routes(alike[proto, family, label]),
            installed=len(alike[proto, family, label].keys() & installed.keys()),
        )
        for proto, family, label in sorted(alike)
    ]


def _chosen(
    context: ViewContext, prefix: str | None, family: int | None
) -> Work[list[tuple[str, Prefix, Route]]]:
    """Return the requested routes, in order, after protocol and prefix. Raises CommandError."""
    if prefix is not None:
        wanted = context.find_route(prefix)
        return [(context.instance_of(wanted).name, wanted, context.routes[wanted])]
    alone = context.instances[0].name if len(context.instances) == 1 else None
    source = context.router.table.source
    # with the protocols at once: a route may be gone when its turn comes
    routes = [
        (alone or source(found) or "", found, route)
        for found, route in context.routes.items()
        if family in (None, found.family)
    ]
    return (yield from in_order(routes, itemgetter(1)))


class _RouteRows:
    """Builds the rows of routes; many share the next hops of a few sets."""

    def __init__(self, context: ViewContext) -> None:
        self._context = context
        self._preferences = context.router.preferences
        self._live = bool(context.runtime.pid)
        """Whether it is a router that runs, not one that computes for ``fared-cli spf``."""
        self._installed = context.router.planner.installed.routes
        self._changed_at = change_times(context)
        self._tags = {i.name: i.engine.tags() for i in context.instances}
        self._nexthops: dict[int, tuple[NextHopSet, Sequence[RouteNextHop]]] = {}
        """By the id of the set, which is kept alive so that its id is not used again."""

    def row(self, entry: tuple[str, Prefix, Route]) -> RouteEntry:
        """Build one row of protocol, prefix and route."""
        proto, prefix, route = entry
        return RouteEntry(
            prefix=str(prefix),
            protocol=proto,
            preference=self._preferences[proto],
            metric=route.metric,
            type=type_of(proto, route),
            area=None if route.area is None else self._context.area_name(proto, route.area),
            connected=route.nexthops is None,
            redistributed=route.nexthops is None and route.path_type in EXTERNAL,
            discard=route.discard,
            tag=self._tags[proto](prefix, route.area, route.destinations),
            nexthops=self._hops(None if route.discard else route.nexthops),
            changed_at=self._changed_at(proto, prefix) if self._live else UNSET,
            installed=prefix in self._installed if self._live else UNSET,
        )

    def _hops(self, nexthops: NextHopSet | None) -> Sequence[RouteNextHop]:
        if nexthops is None:
            return []
        known = self._nexthops.get(id(nexthops))
        if known is None:
            written = written_weights(self._context, nexthops)
            pairs = list(zip(nexthops.hops, written, strict=True))
            shown = Shared(pairs, partial(self._hop, total=sum(written)))
            known = self._nexthops[id(nexthops)] = (nexthops, shown)
        return known[1]

    def _hop(self, entry: tuple[NextHop, int], total: int) -> RouteNextHop:
        hop, weight = entry
        facts = next_hop_facts(self._context, hop)
        return RouteNextHop(**facts, weight=weight, share=round(weight / total, 4))


def written_weights(context: ViewContext, nexthops: NextHopSet) -> tuple[int, ...]:
    """Return the weights as in the kernel: within its bounds, in resilient groups whole buckets."""
    weights = _merged(context, nexthops)
    settings = context.router.settings.fib
    used = sum([weight > 0 for weight in weights])
    if not settings.resilient or used < 2:
        return weights
    return divide_buckets(weights, settings.buckets_of(used))


def _merged(context: ViewContext, nexthops: NextHopSet) -> tuple[int, ...]:
    """Return the weight of each next hop in the group of the set.

    Neighbors that share a next hop share its weight.
    """
    written = context.router.planner.written(nexthops)
    if written == nexthops.key:
        return tuple([weight for _, weight in written])
    weights, wanted = dict(written), Counter[HopKey]()
    for hop, weight in nexthops.key:
        wanted[hop] += weight
    return tuple([weights.get(hop, 0) * weight // wanted[hop] for hop, weight in nexthops.key])


def next_hop_facts(context: ViewContext, hop: NextHop) -> dict[str, Any]:
    """Return the fields of ``NextHopFacts``. A link of a saved database has no interface."""
    return {
        "interface": hop.interface or None,
        "address": gateway(hop.family, hop.gateway),
        "neighbor": context.node(hop.neighbor),
        "hostname": context.hostnames.get(hop.neighbor),
        "bandwidth": finite(hop.bandwidth),
        "capacity": finite(hop.capacity),
    }


@Sliced
def weights(
    context: ViewContext, prefix: str | None = None, af: str | None = None
) -> Work[Weights]:
    """``show weights [PREFIX]``: each distinct vector once. Raises CommandError."""
    vectors: dict[Any, tuple[NextHopSet, list[tuple[Prefix, Route]]]] = {}
    for number, (proto, wanted, route) in enumerate(
        (yield from _chosen(context, prefix, family_number(af)))
    ):
        if number % PORTION == 0:
            yield
        if route.nexthops is not None and not route.discard:
            key: tuple[object, ...] = (
                proto,
                wanted.family,
                route.nexthops.key,
                vector_of(context, wanted),
                context.router.spraying.granularity(wanted),
            )
            found = vectors.setdefault(key, (route.nexthops, []))
            found[1].append((wanted, route))
    ordered = sorted(vectors.values(), key=lambda item: (-len(item[0].hops), item[1][0][0]))
    made = yield from each(ordered, lambda item: _vector(context, *item), portion=1)
    return Weights(
        root=context.root,
        metric=context.weights,
        flows=context.flows,
        adaptation=loop(context),
        announcements=announcements(context),
        vectors=made,
        delay=_delay_choice(context),
    )


def _delay_choice(context: ViewContext) -> DelayChoice | UnsetType:
    settings = context.router.settings.solver
    if not settings.delay_rule:
        return UNSET
    return DelayChoice(
        margin=settings.delay_margin, bound=settings.delay_bound, unknown=settings.unknown_delay
    )


def _slower(context: ViewContext, prefix: Prefix, route: Route) -> list[SlowerHop] | UnsetType:
    if not context.router.settings.solver.delay_rule:
        return UNSET
    return slower_hops(context, context.solver_of(prefix).hop_delays(prefix, route))


def _vector(
    context: ViewContext, hops: NextHopSet, users: list[tuple[Prefix, Route]]
) -> WeightVector:
    first, route = users[0]
    wanted = programmed_shares(context, first, hops) or wanted_shares(context, hops)
    written = written_weights(context, hops)
    total = sum(written)
    members: list[WeightMember] = []
    for hop, weight, want in zip(hops.hops, written, wanted, strict=True):
        share = weight / total
        members.append(
            WeightMember(
                **next_hop_facts(context, hop),
                weight=weight,
                wanted_share=round(want, 6),
                share=round(share, 6),
                ecmp_share=round(1 / len(hops.hops), 6),
                error=round(share / want - 1, 6) if want else 0.0,
            )
        )
    destinations = sorted({node for _, route in users for node in route.destinations})
    return WeightVector(
        protocol=context.instance_of(first).name,
        af=family_name(first.family),
        prefixes=len(users),
        examples=[str(prefix) for prefix, _ in users[:MAX_EXAMPLES]],
        destinations=[context.name(node) for node in destinations if not is_group(node)],
        granularity=context.router.spraying.granularity(first),
        quantization_error=round(quantization_error(context, hops, wanted), 6),
        members=members,
        adaptation=state(context, first),
        slower=_slower(context, first, route),
    )


def wanted_shares(context: ViewContext, hops: NextHopSet) -> list[float]:
    """Return shares in proportion to capacities; by the weights where capacities are unknown."""
    capacities = [finite(hop.capacity) for hop in hops.hops]
    known = [capacity for capacity in capacities if capacity is not None]
    if len(known) < len(capacities) or not sum(known):
        return [hop.weight / hops.total_weight for hop in hops.hops]
    flows = context.flows
    effective: list[float] = (
        known if flows is None else skew_for_few_flows(np.array([known]), flows)[0].tolist()
    )
    return [value / sum(effective) for value in effective]


def quantization_error(
    context: ViewContext, hops: NextHopSet, wanted: list[float] | None = None
) -> float:
    """Return the throughput lost to integer weights (sum(q) / max(q/w) against sum(w)).

    With that of next hops whose weight is zero.
    """
    written = written_weights(context, hops)
    pairs = zip(wanted or wanted_shares(context, hops), written, strict=True)
    worst = max((weight / want for want, weight in pairs if want), default=0.0)
    if not worst:
        return 0.0
    return max(0.0, 1 - min(sum(written) / worst, 1.0) * (1 - _left_out(context, hops)))


def _left_out(context: ViewContext, hops: NextHopSet) -> float:
    """Return the share of next hops that get no traffic, since their weight is zero.

    Those beyond ``max_paths`` are not meant; by load, next hops have other shares than capacities.
    """
    if not isinstance(hops, SolvedHops):
        return 0.0
    settings = context.router.settings.solver
    if settings.mode is not WeightMode.CAPACITY:
        return 0.0
    _, capacities, weights = hops.arrays()
    if not np.isfinite(capacities).all():
        return 0.0
    meant = (capacities > 0) & (np.cumsum(capacities > 0) <= settings.max_paths)
    if weights[meant].all():
        return 0.0
    shares = np.where(meant, capacities, 0.0)[None]
    if context.flows is not None:
        shares = skew_for_few_flows(shares, context.flows)
    return float(1 - shares[0][weights > 0].sum() / shares.sum())
