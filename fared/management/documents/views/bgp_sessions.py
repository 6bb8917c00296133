"""The row of a BGP neighbor, and why a session is not established, or exchanges nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fared.core.ids import dotted, format_address
from fared.management.documents.context import ViewContext, family_name, finite
from fared.management.documents.neighbor import BgpNeighborEntry, PathBandwidthUse, SessionFamily
from fared.management.documents.views.link import problem_shown
from fared.management.documents.views.packet_counts import packets_by_type, rejected_by_reason
from fared.protocols.bgp.counted import COUNTABLE
from fared.protocols.bgp.instance import BgpInstance
from fared.protocols.bgp.neighbor import BgpSpeaker
from fared.protocols.bgp.packet.messages import MessageType
from fared.protocols.bgp.settings import EXTERNAL, INTERNAL
from fared.protocols.igp.refusals import NeighborProblem

_UPDATE = MessageType.UPDATE.label


def interface_of(context: ViewContext, one: BgpSpeaker) -> str:
    """Return the interface that leads to a neighbor, or would; its own name if none does."""
    if one.place is not None:
        return one.place.link.name
    family, address = one.address
    for link in context.links.values():
        if any(own.family == family and own.contains(address) for own in link.addresses):
            return link.name
    return one.name


def problem_of(one: BgpSpeaker, instance: BgpInstance) -> NeighborProblem | None:
    """Return why a neighbor is not used; None: it is, or it is shut down."""
    if not one.settings.enabled:
        return None
    cause, text = next(_problems(one, instance), ("", ""))
    return NeighborProblem(cause, text) if cause else None


def _problems(one: BgpSpeaker, instance: BgpInstance) -> Iterator[tuple[str, str]]:
    if one.place is None:
        yield _nowhere(one, instance)
    elif one.held is not None:
        most = one.settings.maximum_prefixes
        yield "maximum-prefixes", f"it has announced more than {most} prefixes"
    elif one.agreed is None:
        reason = "" if one.session is None else one.session.reason
        yield "session", reason or "no session yet"
    else:
        if not one.imports and one.settings.imports is None:
            yield "policy", "nothing is accepted from it: it has no import (RFC 8212)"
        if not one.exports and one.settings.exports is None:
            yield "policy", "nothing is advertised to it: it has no export (RFC 8212)"


def _nowhere(one: BgpSpeaker, instance: BgpInstance) -> tuple[str, str]:
    if one.ifindex is None:
        return "no-link", "no link that is up has a network with its address"
    link = instance.links.get(one.ifindex)
    if link is None:
        return "link-down", "the link is down"
    if link.link.link_local() is None:
        return "no-address", "the link has no IPv6 link-local address"
    return "unheard", "no router advertisement of it has been heard"


def neighbor_entry(
    context: ViewContext, instance: BgpInstance, one: BgpSpeaker
) -> BgpNeighborEntry:
    """Return the row of a neighbor."""
    settings, agreed, session, place = one.settings, one.agreed, one.session, one.place
    identifier = one.peer.identifier if one.peer is not None else None
    ifindex = one.ifindex if place is None else place.link.ifindex
    reasons = context.runtime.neighbor_reasons
    reason = None if identifier is None else reasons.get((ifindex or 0, identifier))
    return BgpNeighborEntry(
        router_id=one.name if identifier is None else dotted(identifier),
        hostname=None if identifier is None else context.hostnames.get(identifier),
        interface=interface_of(context, one),
        address=None if place is None else place.text,
        state=one.state.label,
        problem=problem_shown(problem_of(one, instance)),
        uptime=None if session is None else round(context.now - session.since, 3),
        dead_in=_until(context, None if session is None else session.dead_at),
        flaps=one.flaps,
        last_reason=(session.reason if session is not None and agreed is None else reason) or None,
        own_address=None if place is None else format_address(place.family, place.local.address),
        helped=_until(context, max((t.deadline for t in one.stale.values()), default=None)),
        peer=one.name,
        remote_as=_remote_as(one, instance),
        external=_external(one, instance),
        description=settings.description,
        shutdown=not settings.enabled,
        hold_time=None if agreed is None else float(agreed.hold_time),
        keepalive=None if agreed is None else agreed.keepalive,
        capabilities=list(_capabilities(one)),
        families=list(_families(context, instance, one)),
        updates_received=one.counters.received[_UPDATE],
        updates_sent=one.counters.sent[_UPDATE],
        updates_rejected=sum(n for (k, _), n in one.counters.rejected.items() if k == _UPDATE),
        messages=packets_by_type(one.counters, COUNTABLE.types),
        rejected=rejected_by_reason(one.counters),
        imports=None if settings.imports is None else list(settings.imports),
        exports=None if settings.exports is None else list(settings.exports),
        import_filter=next((each.name for each in settings.import_filters), None),
        export_filter=next((each.name for each in settings.export_filters), None),
        maximum_prefixes=settings.maximum_prefixes,
        held=_until(context, None if one.held is None else one.held.deadline),
        capacity=_capacity(instance, one),
        path_bandwidth=PathBandwidthUse.of(settings.path_bandwidth),
        min_path_bandwidth=settings.min_path_bandwidth,
        demand=_demand(instance, one),
        authenticated=settings.key is not None,
        ttl_security=settings.ttl_security,
        bfd=None if settings.bfd is None else ("Up" if one.bfd_up else "Down"),
    )


def _until(context: ViewContext, deadline: float | None) -> float | None:
    return None if deadline is None else round(deadline - context.now, 3)


def _remote_as(one: BgpSpeaker, instance: BgpInstance) -> int | None:
    if one.peer is not None:
        return one.peer.remote_as
    wanted = one.settings.remote_as
    if isinstance(wanted, int):
        return wanted
    return instance.settings.local_as if wanted == INTERNAL else None


def _external(one: BgpSpeaker, instance: BgpInstance) -> bool | None:
    wanted = one.settings.remote_as
    return wanted == EXTERNAL or (wanted not in (INTERNAL, instance.settings.local_as))


def _capabilities(one: BgpSpeaker) -> Iterator[str]:
    """Yield what both sides can, in words."""
    agreed = one.agreed
    if agreed is None:
        return
    yield from (family_name(family) for family in agreed.families)
    known = {
        "four-octet AS": agreed.four_octet_as,
        "route refresh": agreed.refresh,
        "extended next hop": agreed.extended_next_hop,
        "extended message": agreed.limit > _USUAL,
        "graceful restart": agreed.restart is not None,
        "own minimum": agreed.own_minimum,
    }
    yield from (name for name, agreed_on in known.items() if agreed_on)


_USUAL = 4096
"""Octets of a message without RFC 8654."""


def _families(
    context: ViewContext, instance: BgpInstance, one: BgpSpeaker
) -> Iterator[SessionFamily]:
    for family, rib in instance.ribs.items():
        out = rib.outs.get(one.number)
        if not rib.knows(one.number):
            continue
        next_hop = one.next_hop(family) if one.agreed is not None else None
        stale = one.stale.get(family)
        yield SessionFamily(
            af=family_name(family),
            received=rib.table.count(one.number),
            advertised=0 if out is None else int(np.count_nonzero(out.sent)),
            waiting=0 if out is None else out.waiting,
            loading=family in one.unended,
            stale=_until(context, None if stale is None else stale.deadline),
            next_hop=None
            if next_hop is None
            else format_address(next_hop.family, next_hop.address),
        )


def _demand(instance: BgpInstance, one: BgpSpeaker) -> float | None:
    """Return what all neighbors that are told a share may send, of the first family of this one."""
    ribs = [rib for rib in instance.ribs.values() if rib.knows(one.number)]
    told = ribs and one.settings.path_bandwidth.value == "share"
    return ribs[0].demand if told else None


def _capacity(instance: BgpInstance, one: BgpSpeaker) -> float | None:
    link = None if one.place is None else instance.links.get(one.place.link.ifindex)
    return None if link is None else finite(link.bandwidth.capacity)
