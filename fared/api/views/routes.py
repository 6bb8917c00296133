"""Views of what was computed: routes, weight vectors, and why they are as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fared.api.schema import routes as schema
from fared.api.views.adaptation import loop, programmed_shares, state, vector_of
from fared.api.views.context import (
    EXTERNAL,
    NAMES,
    ViewContext,
    area_name,
    family_name,
    family_number,
    finite,
    gateway,
)
from fared.core.ids import Prefix
from fared.core.units import format_bandwidth
from fared.rib.explain import ExplainedHop, Explanation, LimitingLink
from fared.rib.model import NextHop, NextHopSet, Route
from fared.weights.quantise import divide_buckets
from fared.weights.staffing import lean

MAX_EXAMPLES = 3


def routes(context: ViewContext, prefix: str | None = None, af: str | None = None) -> schema.Routes:
    """``show routes [PREFIX]``. Raises CommandError."""
    family = family_number(af)
    chosen = _chosen(context, prefix, family)
    known = sorted({f for speaker in context.speakers for f in speaker.solvers})
    listed = [family] if family is not None else known
    return {
        "format": "fared-routes/1",
        "root": context.root,
        "af": "both" if len(listed) > 1 else family_name(listed[0]),
        "routes": [_route(context, context.routes[wanted]) for wanted in chosen],
    }


def _chosen(context: ViewContext, prefix: str | None, family: int | None) -> list[Prefix]:
    """The prefixes that are asked for, in order. Raises CommandError."""
    if prefix is not None:
        return [context.find_route(prefix)]
    return sorted(p for p in context.routes if family in (None, p.family))


def _route(context: ViewContext, route: Route) -> schema.Route:
    hops = () if route.nexthops is None or route.discard else route.nexthops.hops
    written = written_weights(context, hops)
    total = sum(written)
    proto = context.speaker_of(route.prefix).name
    return {
        "prefix": str(route.prefix),
        "protocol": proto,
        "preference": context.router.settings.preferences[proto],
        "metric": route.metric,
        "type": route.path_type.label,
        "area": None if route.area is None else area_name(proto, route.area),
        "connected": route.nexthops is None,
        "redistributed": route.nexthops is None and route.path_type in EXTERNAL,
        "discard": route.discard,
        "nexthops": [
            _hop(context, hop, weight, total) for hop, weight in zip(hops, written, strict=True)
        ],
    }


def written_weights(context: ViewContext, hops: Sequence[NextHop]) -> tuple[int, ...]:
    """The weights of next hops as they stand in the kernel: in resilient groups whole buckets."""
    weights = tuple(hop.weight for hop in hops)
    settings = context.router.settings.fib
    if not settings.resilient or len(weights) < 2:
        return weights
    return divide_buckets(weights, settings.buckets_of(len(weights)))


def _hop(context: ViewContext, hop: NextHop, weight: int, total: int) -> schema.RouteNextHop:
    return {
        "interface": hop.interface,
        "address": gateway(hop.family, hop.gateway),
        "neighbor": context.node(hop.neighbor),
        "hostname": context.hostnames.get(hop.neighbor),
        "bandwidth": finite(hop.bandwidth),
        "capacity": finite(hop.capacity),
        "weight": weight,
        "share": round(weight / total, 4),
    }


def weights(
    context: ViewContext, prefix: str | None = None, af: str | None = None
) -> schema.Weights:
    """``show weights [PREFIX]``: each distinct vector once. Raises CommandError."""
    vectors: dict[Any, tuple[NextHopSet, list[Route]]] = {}
    for wanted in _chosen(context, prefix, family_number(af)):
        route = context.routes[wanted]
        if route.nexthops is not None and not route.discard:
            key: tuple[object, ...] = (
                context.speaker_of(wanted).name,
                wanted.family,
                route.nexthops.key,
                vector_of(context, wanted),
            )
            found = vectors.setdefault(key, (route.nexthops, []))
            found[1].append(route)
    ordered = sorted(vectors.values(), key=lambda item: (-len(item[0].hops), item[1][0].prefix))
    return {
        "format": "fared-weights/1",
        "root": context.root,
        "metric": context.weights,
        "flows": context.flows,
        "adaptation": loop(context),
        "vectors": [_vector(context, hops, users) for hops, users in ordered],
    }


def _vector(context: ViewContext, hops: NextHopSet, users: list[Route]) -> schema.WeightVector:
    wanted = programmed_shares(context, users[0].prefix, hops) or wanted_shares(context, hops)
    written = written_weights(context, hops.hops)
    total = sum(written)
    members: list[schema.WeightMember] = []
    for hop, weight, want in zip(hops.hops, written, wanted, strict=True):
        shown = _hop(context, hop, weight, total)
        share = weight / total
        members.append(
            {
                "interface": shown["interface"],
                "address": shown["address"],
                "neighbor": shown["neighbor"],
                "hostname": shown["hostname"],
                "bandwidth": shown["bandwidth"],
                "capacity": shown["capacity"],
                "weight": weight,
                "wanted_share": round(want, 6),
                "share": round(share, 6),
                "ecmp_share": round(1 / len(hops.hops), 6),
                "error": round(share / want - 1, 6) if want else 0.0,
            }
        )
    destinations = sorted({node for route in users for node in route.destinations})
    return {
        "protocol": context.speaker_of(users[0].prefix).name,
        "af": family_name(users[0].prefix.family),
        "prefixes": len(users),
        "examples": [str(route.prefix) for route in users[:MAX_EXAMPLES]],
        "destinations": [context.name(node) for node in destinations],
        "quantization_error": round(quantization_error(context, hops, wanted), 6),
        "members": members,
        "adaptation": state(context, users[0].prefix),
    }


def wanted_shares(context: ViewContext, hops: NextHopSet) -> list[float]:
    """Shares as the capacities would have them; the weights' own where capacities are unknown."""
    capacities = [finite(hop.capacity) for hop in hops.hops]
    known = [capacity for capacity in capacities if capacity is not None]
    if len(known) < len(capacities) or not sum(known):
        return [hop.weight / hops.total_weight for hop in hops.hops]
    flows = context.flows
    pulled: list[float] = known if flows is None else lean(np.array([known]), flows)[0].tolist()
    return [value / sum(pulled) for value in pulled]


def quantization_error(
    context: ViewContext, hops: NextHopSet, wanted: list[float] | None = None
) -> float:
    """Throughput lost to integer weights (algorithm: sum(q) / max(q/w) against sum(w))."""
    written = written_weights(context, hops.hops)
    pairs = zip(wanted or wanted_shares(context, hops), written, strict=True)
    worst = max((weight / want for want, weight in pairs if want), default=0.0)
    return max(0.0, 1 - sum(written) / worst) if worst else 0.0


def explain(context: ViewContext, prefix: str) -> schema.Explain:
    """``explain PREFIX``: why these next hops, and what limits each. Raises CommandError."""
    found = context.find_route(prefix)
    explanation = context.solver_of(found).explain(found)
    assert explanation is not None, "a route that is in the table can be explained"
    route, proto = explanation.route, context.speaker_of(found).name
    return {
        "format": "fared-explain/1",
        "root": context.root,
        "prefix": str(found),
        "protocol": proto,
        "preference": context.router.settings.preferences[proto],
        "metric": route.metric,
        "type": route.path_type.label,
        "area": None if route.area is None else area_name(proto, route.area),
        "connected": route.nexthops is None,
        "discard": route.discard,
        "destinations": [
            {"id": context.node(node), "hostname": context.hostnames.get(node)}
            for node in route.destinations
        ],
        "nexthops": [_explained(context, found, hop) for hop in explanation.hops],
        "weights": context.weights,
        "summary": _summary(context, explanation),
        "last_change": _last_change(context, found),
    }


def _explained(
    context: ViewContext, prefix: Prefix, explained: ExplainedHop
) -> schema.ExplainNextHop:
    hop = explained.hop
    shown = _hop(context, hop, hop.weight, 1)
    used = context.routes[prefix].nexthops
    others = () if used is None else used.hops
    written = written_weights(context, others)
    programmed = {o.hop_key: weight for o, weight in zip(others, written, strict=True)}
    weight = programmed.get(hop.hop_key, 0) if programmed else hop.weight
    limit: schema.LimitingLink | None = None
    if len(explained.limits) == 1:
        link = explained.limits[0]
        limit = {
            "from": context.node(link.tail),
            "from_hostname": context.hostnames.get(link.tail),
            "to": context.node(link.head),
            "to_hostname": context.hostnames.get(link.head),
            "capacity": finite(link.capacity),
        }
    return {
        "interface": shown["interface"],
        "address": shown["address"],
        "neighbor": shown["neighbor"],
        "hostname": shown["hostname"],
        "bandwidth": shown["bandwidth"],
        "capacity": shown["capacity"],
        "limiting_link": limit,
        "weight": weight,
        "share": round(weight / sum(programmed.values()) if programmed else explained.share, 4),
        "ecmp_share": round(explained.ecmp_share, 4),
        "reason": _reason(context, prefix, explained),
    }


def _reason(context: ViewContext, prefix: Prefix, explained: ExplainedHop) -> str:
    if context.weights == "none":
        return "plain ECMP: adaptive routing is off, every next hop weighs 1"
    if explained.hop.capacity is None:
        return "capacity unknown: no router on the path floods it; weighs like its siblings"
    capacity = format_bandwidth(explained.hop.capacity)
    if not explained.limits:
        return f"carries {capacity}"
    names = [
        f"{_limit_name(context, link)} ({format_bandwidth(link.capacity)})"
        for link in explained.limits[:MAX_EXAMPLES]
    ]
    more = len(explained.limits) - len(names)
    others = f" and {more} more" if more else ""
    local = explained.limits[0].tail == context.speaker_of(prefix).root
    where = "its own link, " if local and len(names) == 1 else ""
    return f"carries {capacity}, limited by {where}{', '.join(names)}{others}"


def _limit_name(context: ViewContext, link: LimitingLink) -> str:
    if link.tail == link.head:
        return f"what {context.name(link.tail)} announced to lie behind it"
    return f"{context.name(link.tail)} -> {context.name(link.head)}"


def _summary(context: ViewContext, explanation: Explanation) -> str:
    route = explanation.route
    where = " and ".join(context.name(node) for node in route.destinations)
    if route.nexthops is None:
        if route.path_type in EXTERNAL:
            return f"{route.prefix} is redistributed here: a route of the kernel's own leads there."
        return f"{route.prefix} is connected here."
    if route.discard:
        return (
            f"{route.prefix} is an area range of this router: other areas are told that all of "
            "it is here, and what has no longer match is discarded."
        )
    count = len(explanation.hops)
    known = [hop.hop.capacity for hop in explanation.hops if hop.hop.capacity is not None]
    text = (
        f"{route.prefix} is behind {where}, {count} next hop{'s' if count > 1 else ''} "
        f"at metric {route.metric}."
    )
    if len(known) == count and count > 1:
        total = sum(known)
        plain = count * min(known)
        gain = f", plain ECMP could fill only {format_bandwidth(plain)}" if plain < total else ""
        text += f" Together they carry {format_bandwidth(total)}{gain}."
        if context.flows is not None and max(known) > min(known):
            text += f" For {context.flows} flows the smaller ones get less than their part of it."
    silent = [context.name(end.node) for end in explanation.announced if end.capacity is None]
    if silent:
        several = len(silent) > 1
        text += (
            f" {' and '.join(silent)} announce{'' if several else 's'} no path capacity for it: "
            "what lies beyond is not known and limits nothing."
        )
    return text + _others(context, route)


def _others(context: ViewContext, route: Route) -> str:
    """What other protocols know of the prefix, and why that is not used, or should be."""
    router = context.router
    used = router.table.source(route.prefix)
    mine = context.speaker_of(route.prefix).name
    others = [name for name in router.table.candidates(route.prefix) if name != mine]
    if not others or used is None:
        return ""
    if used != mine:
        return f" It is not used: {NAMES[used]} knows {route.prefix} too and is preferred."
    known = " and ".join(
        f"{NAMES[name]} (preference {router.settings.preferences[name]})" for name in others
    )
    return (
        f" {known} would have a route too; that of {NAMES[mine]} "
        f"(preference {router.settings.preferences[mine]}) is used."
    )


def _last_change(context: ViewContext, prefix: Prefix) -> dict[str, Any] | None:
    """Of the route that is used: what another protocol's route went through is not kept."""
    used = context.router.table.source(prefix)
    found = context.router.journal.last_change.get(prefix)
    if found is None or used not in (None, context.speaker_of(prefix).name):
        return None
    return {"at": context.unix(found.at), "causes": list(found.causes)}
