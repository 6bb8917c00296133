"""What is accepted of an UPDATE: policy, next hops, and routes that will soon be withdrawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from fared.core.filters import Filter, Withheld, denying
from fared.core.ids import Prefix
from fared.protocols.bgp.neighbor import BgpSpeaker
from fared.protocols.bgp.packet.attributes import Communities, LocalPref, PathAttributes
from fared.protocols.bgp.packet.communities import GRACEFUL_SHUTDOWN
from fared.protocols.bgp.packet.messages import RouteGroup, Update

_LEAST = LocalPref(0)
_MOST_NAMES: Final = 4


class Accepted(NamedTuple):
    """An UPDATE as the tables learn it: what is not accepted counts as withdrawn.

    ``refused`` are prefixes with a next hop that is not usable, ``gateways`` where routes of a
    family lead.
    """

    update: Update
    refused: int
    gateways: dict[int, tuple[int, int]]


def accepted(update: Update, neighbor: BgpSpeaker) -> Accepted:
    """Return what is accepted of an UPDATE."""
    if not update.routes:
        return Accepted(update, 0, {})
    routes: list[RouteGroup] = []
    lost: list[Prefix] = [*update.withdrawn]
    refused, gateways = 0, {}
    for group in update.routes:
        gateway = neighbor.gateway(group.next_hop)
        if gateway is None:
            # RFC 4271 §6.3: it is not used until the link has such an address
            refused += len(group.prefixes)
        else:
            gateways[group.prefixes[0].family] = gateway
        permitted = permitted_of(group.prefixes, neighbor)
        if len(permitted) != len(group.prefixes):
            lost += set(group.prefixes).difference(permitted)
        if permitted:
            routes.append(RouteGroup(group.next_hop, permitted))
    attributes = _shut_down(update.attributes, neighbor)
    found = replace(update, withdrawn=tuple(lost), routes=tuple(routes), attributes=attributes)
    return Accepted(found, refused, gateways)


def permitted_of(prefixes: tuple[Prefix, ...], neighbor: BgpSpeaker) -> tuple[Prefix, ...]:
    """Return the prefixes that the import policy of a neighbor permits."""
    if not neighbor.imports:
        return ()
    filters = neighbor.settings.import_filters
    if not filters:
        return prefixes
    return tuple([one for one in prefixes if denying(filters, one) is None])


def kept_out(neighbors: Iterable[BgpSpeaker], prefix: Prefix) -> Iterator[Withheld]:
    """Yield the filters of neighbors that deny a prefix, each once with all that have it."""
    found: dict[tuple[str, Filter], list[str]] = {}
    for one in neighbors:
        mine = one.settings
        for way, filters in (("of", mine.import_filters), ("for", mine.export_filters)):
            denies = denying(filters, prefix)
            if denies is not None:
                found.setdefault((way, denies), []).append(one.name)
    for (way, denies), names in found.items():
        names.sort()
        more = len(names) - _MOST_NAMES
        text = ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
        yield Withheld(f"routes {way} {text}", denies.told(prefix))


def _shut_down(attributes: PathAttributes, neighbor: BgpSpeaker) -> PathAttributes:
    """Prefer any other path to one of a router that is drained (RFC 8326 §4.2)."""
    found = attributes.find(Communities)
    if neighbor.internal or found is None or GRACEFUL_SHUTDOWN not in found.communities:
        return attributes
    return attributes.replaced(_LEAST)
