"""The view of one route: its derivation, the limits of each next hop, other protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fared.core.filters import Withheld
from fared.core.ids import Prefix, is_group, is_shared
from fared.core.link_text import direction
from fared.core.routes import ORIGIN_TAGS
from fared.core.units import format_bandwidth
from fared.management.documents.context import EXTERNAL, ViewContext, finite, type_of
from fared.management.documents.errors import CommandError
from fared.management.documents.explain import (
    Explain,
    ExplainedLimit,
    ExplainNextHop,
    WithheldPrefix,
)
from fared.management.documents.facts import NamedNode
from fared.management.documents.happened import WhatChanged, told
from fared.management.documents.human import PROTOCOLS
from fared.management.documents.sliced import Sliced, Work
from fared.management.documents.views.hop_delays import delay_of, slower_hops
from fared.management.documents.views.missing_hops import missing_hops
from fared.management.documents.views.routes import MAX_EXAMPLES, next_hop_facts, written_weights
from fared.paths.fib.settings import Granularity, SprayMatch
from fared.paths.rib.explain import ExplainedHop, Explanation, LimitingLink
from fared.paths.rib.table import RouteRank

_MOST_TELLERS = 4


@Sliced
def explain(context: ViewContext, prefix: str) -> Work[Explain]:
    """``explain PREFIX``: next hops and their limits. Raises CommandError."""
    found = _find(context, prefix)
    explanation = context.solver_of(found).explain(found)
    assert explanation is not None, "a route that is in the table can be explained"
    route, proto = explanation.route, context.instance_of(found).name
    missing = yield from missing_hops(context, context.instance_of(found), route)
    changes_at = yield from told(context)
    return Explain(
        root=context.root,
        prefix=str(found),
        protocol=proto,
        preference=context.router.preferences[proto],
        metric=route.metric,
        type=type_of(proto, route),
        area=None if route.area is None else context.area_name(proto, route.area),
        connected=route.nexthops is None,
        discard=route.discard,
        destinations=[
            NamedNode(id=context.node(node), hostname=context.hostnames.get(node))
            for node in route.destinations
            if not is_group(node)
        ],
        nexthops=[_explained(context, found, hop, explanation) for hop in explanation.hops],
        missing=missing,
        weights=context.weights,
        granularity=context.router.spraying.granularity(found),
        summary=_summary(context, explanation),
        withheld=[WithheldPrefix.of(place) for place in _withheld(context, found)],
        last_change=_last_change(context, found, changes_at),
        slower=slower_hops(context, explanation.delays),
    )


def _find(context: ViewContext, text: str) -> Prefix:
    """Find a route; of a prefix that filters keep out of the table, say which does.

    Raises CommandError.
    """
    wanted = context.wanted_prefix(text)
    if wanted in context.routes:
        return wanted
    for place in _withheld(context, wanted):
        raise CommandError(
            "not-found", f"no route to {text}: kept out of {place.where}: {place.reason}"
        )
    return context.find_route(text)


def _withheld(context: ViewContext, prefix: Prefix) -> Iterator[Withheld]:
    for instance in context.instances:
        yield from instance.engine.withheld(prefix)


def _explained(
    context: ViewContext, prefix: Prefix, explained: ExplainedHop, whole: Explanation
) -> ExplainNextHop:
    hop = explained.hop
    used = context.routes[prefix].nexthops
    others = () if used is None else used.hops
    written = () if used is None else written_weights(context, used)
    programmed = {o.hop_key: weight for o, weight in zip(others, written, strict=True)}
    weight = programmed.get(hop.hop_key, 0) if programmed else hop.weight
    limit: ExplainedLimit | None = None
    if len(explained.limits) == 1:
        link = explained.limits[0]
        limit = ExplainedLimit(
            from_=context.node(link.tail),
            from_hostname=context.hostnames.get(link.tail),
            to=str(prefix) if is_group(link.head) else context.node(link.head),
            to_hostname=context.hostnames.get(link.head),
            capacity=finite(link.capacity),
        )
    return ExplainNextHop(
        **next_hop_facts(context, hop),
        limiting_link=limit,
        weight=weight,
        share=round(weight / sum(programmed.values()) if programmed else explained.share, 4),
        ecmp_share=round(explained.ecmp_share, 4),
        reason=_reason(context, prefix, explained),
        delay=delay_of(hop, whole.delays),
    )


def _reason(context: ViewContext, prefix: Prefix, explained: ExplainedHop) -> str:
    if context.weights == "none":
        return "plain ECMP: adaptive routing is off, every next hop has weight 1"
    if explained.hop.capacity is None:
        return "capacity unknown: no router on the path floods it; weighted like its siblings"
    capacity = format_bandwidth(explained.hop.capacity)
    if not explained.limits:
        return f"carries {capacity}"
    if _shares_link(context, prefix, explained):
        own = explained.hop.interface
        return f"carries {capacity}, limited by its own link {own}, which other next hops share"
    names = [
        f"{_limit_name(context, link)} ({format_bandwidth(link.capacity)})"
        for link in explained.limits[:MAX_EXAMPLES]
    ]
    more = len(explained.limits) - len(names)
    others = f" and {more} more" if more else ""
    local = explained.limits[0].tail == context.instance_of(prefix).root
    where = "its own link, " if local and len(names) == 1 else ""
    derated = _derated(context, explained.hop.interface) if local else ""
    return f"carries {capacity}, limited by {where}{', '.join(names)}{others}{derated}"


def _shares_link(context: ViewContext, prefix: Prefix, explained: ExplainedHop) -> bool:
    """Whether the link to a LAN limits neighbors of BGP together."""
    if not any(is_group(link.head) for link in explained.limits):
        return False
    rib = context.bgp.instance.ribs[prefix.family]
    return explained.hop.ifindex in rib.limiting_links(prefix)


def _derated(context: ViewContext, interface: str) -> str:
    """Say who or what derates our own link, if anybody does."""
    worst = min(context.derated(interface), key=lambda item: item.share, default=None)
    if worst is None:
        return ""
    why = f": {worst.reason}" if worst.reason else ""
    return f"; {interface} is derated to {worst.share:.0%} by {worst.by}{why}"


def _limit_name(context: ViewContext, link: LimitingLink) -> str:
    if is_shared(link.tail):
        return f"what {context.name(link.tail)} carries"
    if is_group(link.head):
        return f"what {context.name(link.tail)} announces"
    if link.tail == link.head:
        return f"the path capacity that {context.name(link.tail)} advertises"
    return direction(context.name(link.tail), context.name(link.head))


def _summary(context: ViewContext, explanation: Explanation) -> str:
    prefix, route = explanation.prefix, explanation.route
    if route.nexthops is None:
        if route.path_type in EXTERNAL:
            return f"{prefix} is redistributed here; the kernel's own route is used."
        return f"{prefix} is connected here."
    if route.discard:
        return (
            f"{prefix} is an area range of this router: it is advertised to other areas, and "
            "packets without a more specific route are discarded."
        )
    count = len(explanation.hops)
    known = [hop.hop.capacity for hop in explanation.hops if hop.hop.capacity is not None]
    hops = f"{count} next hop{'s' if count > 1 else ''}"
    if any(map(is_group, route.destinations)):
        text = f"{prefix} is advertised by {_tellers(context, explanation)}, {hops}."
    else:
        where = " and ".join(context.name(node) for node in route.destinations)
        text = f"{prefix} is behind {where}, {hops} at metric {route.metric}."
    if len(known) == count and count > 1:
        total = sum(known)
        plain = count * min(known)
        gain = f", plain ECMP could use only {format_bandwidth(plain)}" if plain < total else ""
        text += f" Together they carry {format_bandwidth(total)}{gain}."
        if context.flows is not None and max(known) > min(known):
            text += f" For {context.flows} flows the smaller ones get less than their proportion."
    silent = [context.name(end.node) for end in explanation.advertised if end.capacity is None]
    if silent:
        several = len(silent) > 1
        text += (
            f" {' and '.join(silent)} advertise{'' if several else 's'} no path capacity for it: "
            "the capacity beyond is unknown and limits nothing."
        )
    return "".join(
        (
            text,
            _origin(context, explanation),
            _passed_on(context, prefix),
            _sprayed(context, prefix),
            _others(context, prefix),
        )
    )


def _origin(context: ViewContext, explanation: Explanation) -> str:
    """Say which protocol borders have redistributed a prefix from, as its tags tell."""
    instance = context.instance_of(explanation.prefix)
    tags = instance.tags(explanation.prefix)
    origins = [PROTOCOLS[source] for source, tag in ORIGIN_TAGS.items() if tag in tags]
    if not origins:
        return ""
    with_ = [
        f"{context.name(end.node)} with {format_bandwidth(end.capacity)}"
        for end in explanation.advertised
        if end.capacity is not None
    ]
    borders = f": {', '.join(with_)}" if with_ else ""
    return f" It is redistributed from {' and '.join(origins)}{borders}."


def _passed_on(context: ViewContext, prefix: Prefix) -> str:
    """Say into which protocols this router redistributes a route, and with which capacity."""
    found = []
    for name, source, route in context.router.redistribution.passed(prefix):
        engine = context.router.instances[name].engine
        if not any(source in place.where for place in engine.withheld(prefix)):
            capacity = "unknown" if route.capacity is None else format_bandwidth(route.capacity)
            found.append(f"{context.titles[name]} (path capacity {capacity})")
    return f" This router redistributes it into {' and '.join(found)}." if found else ""


def _tellers(context: ViewContext, explanation: Explanation) -> str:
    """Return the neighbors that a route of BGP leads to."""
    names = list(dict.fromkeys(context.name(one.hop.neighbor) for one in explanation.hops))
    more = len(names) - _MOST_TELLERS
    if more > 0:
        return f"{', '.join(names[:_MOST_TELLERS])} and {more} more"
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _sprayed(context: ViewContext, prefix: Prefix) -> str:
    """Describe what is distributed over the next hops, unless it is flows."""
    granularity = context.router.spraying.granularity(prefix)
    if granularity == Granularity.FLOW:
        return ""
    match = context.router.settings.spray.match
    which = "" if match == SprayMatch() else " that packet-match selects"
    return f" Of forwarded packets{which}, each {granularity} takes the next hop that is due."


def _others(context: ViewContext, prefix: Prefix) -> str:
    """Describe other protocols' routes to the prefix, and which one is used."""
    router, titles = context.router, context.titles
    used = router.table.source(prefix)
    mine = context.instance_of(prefix).name
    found = router.table.candidates(prefix)
    ranks = {name: router.instances[name].rank(prefix, route) for name, route in found.items()}
    # an own redistributed route is that of the other protocol, once more
    others = [name for name in found if name != mine and ranks[name] is not RouteRank.OWN]
    if not others or used is None:
        return ""
    if used != mine:
        return f" It is not used: {titles[used]} has {prefix} too and is preferred."
    known = " and ".join(
        f"{titles[name]} (redistributed there)"
        if ranks[name] is RouteRank.REDISTRIBUTED
        else f"{titles[name]} (preference {router.preferences[name]})"
        for name in others
    )
    return (
        f" {known} has a route too; that of {titles[mine]} "
        f"(preference {router.preferences[mine]}) is used."
    )


def _last_change(
    context: ViewContext, prefix: Prefix, changes_at: Callable[[float], list[str]]
) -> WhatChanged | None:
    """Return the last change of the route in use; those of unused routes are not recorded."""
    used = context.router.table.source(prefix)
    found = context.router.journal.last_change.get(prefix)
    if found is None or used not in (None, context.instance_of(prefix).name):
        return None
    at, changes = context.unix(found.at), changes_at(found.at)
    return WhatChanged(at=at, causes=list(found.causes), changes=changes)
