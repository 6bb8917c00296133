"""The delays of next hops, and which are not used because of it, as ``explain`` shows them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET, UnsetType

from fared.management.documents.context import ViewContext, seconds
from fared.management.documents.explain import SlowerHop
from fared.management.documents.facts import LinkDelay
from fared.paths.rib.hop_delays import HopDelay
from fared.paths.rib.model import NextHop


def slower_hops(context: ViewContext, delays: Iterable[HopDelay]) -> list[SlowerHop] | UnsetType:
    """Return the next hops that are not used because of their delay; UNSET: there are none."""
    found = [
        SlowerHop(
            id=context.node(each.link.neighbor),
            hostname=context.hostnames.get(each.link.neighbor),
            via=each.link.interface or context.name(each.link.neighbor),
            delay=round(each.delay / 1e6, 6),
            above=round(each.above / 1e6, 6),
        )
        for each in delays
        if not each.used
    ]
    return found or UNSET


def delay_of(hop: NextHop, delays: Iterable[HopDelay]) -> LinkDelay:
    """Return the delay of a next hop's paths, seconds."""
    for each in delays:
        link = each.link
        if (link.ifindex, link.gateway, link.neighbor) == (hop.ifindex, hop.gateway, hop.neighbor):
            return seconds(each.delay)
    return UNSET
