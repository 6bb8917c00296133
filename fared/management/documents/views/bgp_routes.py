"""The views of BGP's tables: prefixes with all paths to them, and why some are not used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from fared.core.ids import Prefix, dotted
from fared.management.documents.bgp_routes import (
    AdvertisedTo,
    BgpPathEntry,
    BgpRouteEntry,
    BgpRoutes,
    SharedLimitEntry,
)
from fared.management.documents.bgp_summary import BgpSummary
from fared.management.documents.context import ViewContext, family_number, finite
from fared.management.documents.errors import CommandError, not_found
from fared.management.documents.rows import Rows, Shared
from fared.management.documents.sliced import Sliced, Work, in_order
from fared.management.documents.views import bgp
from fared.protocols.bgp.instance import BgpInstance
from fared.protocols.bgp.neighbor import BgpSpeaker
from fared.protocols.bgp.packet.attributes import (
    AsPath,
    Communities,
    ExtendedCommunities,
    LargeCommunities,
    LocalPref,
    Med,
    Origin,
    OriginType,
    PathAttributes,
)
from fared.protocols.bgp.packet.communities import SharedLimit, community_text, extended_text
from fared.protocols.bgp.rib.decision import PeerPath
from fared.protocols.bgp.rib.paths import OWN, REDISTRIBUTED
from fared.protocols.bgp.rib.tables import BgpRib

_SOURCES = {OWN: "own", REDISTRIBUTED: "redistributed"}


def summary(context: ViewContext) -> BgpSummary:
    """``show bgp summary``. Raises CommandError where BGP does not run."""
    here = context.narrowed("bgp")
    return BgpSummary(router_id=here.root, status=bgp.status(here), neighbors=bgp.neighbors(here))


@Sliced
def routes(
    context: ViewContext,
    prefix: str | None = None,
    af: str | None = None,
    neighbor: str | None = None,
) -> Work[BgpRoutes]:
    """``show bgp routes [PREFIX]``. Raises CommandError."""
    here = context.narrowed("bgp")
    instance, family = here.bgp.instance, family_number(af)
    asked = None if neighbor is None else _named(here, instance, neighbor)
    rows = _BgpRows(here, instance, asked)
    if prefix is not None:
        wanted = _wanted(here, instance, prefix)
        row = rows.row((wanted, instance.ribs[wanted.family]))
        row.advertised_to = list(_advertised_to(here, instance, wanted))
        return BgpRoutes(here.root, instance.settings.local_as, [row])
    found = [
        (known, rib)
        for of, rib in instance.ribs.items()
        if family in (None, of)
        for known in _prefixes(rib, asked)
    ]
    ordered = yield from in_order(found, lambda entry: entry[0])
    return BgpRoutes(here.root, instance.settings.local_as, Rows(ordered, rows.row))


def _named(context: ViewContext, instance: BgpInstance, name: str) -> BgpSpeaker:
    """Return the neighbor of a name. Raises CommandError."""
    entries = bgp.neighbors(context)
    called = {entry.peer for entry in entries if entry.is_called(name)}
    for one in instance.neighbors.values():
        if one.name in called:
            return one
    raise not_found("neighbor", name, (entry.name for entry in entries))


def _prefixes(rib: BgpRib, asked: BgpSpeaker | None) -> list[Prefix]:
    table = rib.table
    if asked is None:
        return [table.prefixes[number] for some in table.members.values() for number in some]
    return table.announced(asked.number) if rib.knows(asked.number) else []


def _wanted(context: ViewContext, instance: BgpInstance, text: str) -> Prefix:
    """Return the exact prefix, or the longest one of an address. Raises CommandError."""
    wanted = context.wanted_prefix(text)
    rib = instance.ribs.get(wanted.family)
    if rib is not None and rib.table.group(wanted):
        return wanted
    inside = []
    if rib is not None and "/" not in text:
        inside = [one for one in _prefixes(rib, None) if one.contains(wanted.network)]
    if not inside:
        raise CommandError("not-found", f"no neighbor advertises {text}")
    return max(inside, key=lambda one: one.length)


class _BgpRows:
    """Builds the rows of prefixes; those of a group share their paths."""

    def __init__(
        self, context: ViewContext, instance: BgpInstance, asked: BgpSpeaker | None
    ) -> None:
        self._of, self._asked = (context, instance), asked
        self._paths: dict[tuple[int, int], Sequence[BgpPathEntry]] = {}

    def row(self, entry: tuple[Prefix, BgpRib]) -> BgpRouteEntry:
        """Build one row."""
        prefix, rib = entry
        return BgpRouteEntry(
            prefix=str(prefix),
            carries=finite(rib.carried(prefix)),
            paths=self._of_group(rib, rib.table.group(prefix)),
        )

    def _of_group(self, rib: BgpRib, group: int) -> Sequence[BgpPathEntry]:
        if not group:
            return []
        found = self._paths.get((rib.family, group))
        if found is None:
            found = Shared(list(self._candidates(rib, group)), partial(_entry, *self._of, rib))
            self._paths[rib.family, group] = found
        return found

    def _candidates(self, rib: BgpRib, group: int) -> Iterator[tuple[PeerPath, int, str | None]]:
        """Yield the paths of a group: those in use first, each with its place among them."""
        used = rib.chosen[group].paths if group in rib.chosen else ()
        places = {one.peer.number: at for at, one in enumerate(used)}
        known = rib.table.candidates(group)
        known.sort(key=lambda one: (places.get(one.peer.number, len(places)), one.peer.number))
        for one in known:
            if self._asked is not None and one.peer.number != self._asked.number:
                continue
            place = places.get(one.peer.number, -1)
            yield one, place, _why_not(one, used, rib) if place < 0 else None


def _why_not(one: PeerPath, used: Sequence[PeerPath], rib: BgpRib) -> str | None:
    """Return the step of the decision at which a path was left out (RFC 4271 §9.1.2)."""
    if not rib.usable(one):
        return f"its next hop {one.path.next_hop} is not on the link to the neighbor"
    if not used:
        return None
    best = used[0]
    mine, theirs = one.path, best.path
    (local, length, origin), (local_, length_, origin_) = mine.preference, theirs.preference
    steps = (
        (best.peer.number == OWN, "the network is our own"),
        (one.peer.number == REDISTRIBUTED, "a neighbor advertises a path"),
        (local > local_, f"its local preference is lower: {-local}, not {-local_}"),
        (length > length_, f"its AS path is longer: {length}, not {length_}"),
        (origin > origin_, "its origin is less preferred"),
        (
            mine.neighbor_as == theirs.neighbor_as and mine.med > theirs.med,
            f"its MED is higher: {mine.med}, not {theirs.med}",
        ),
        (one.peer.internal and not best.peer.internal, "an external neighbor advertises one"),
        (one.metric > best.metric, "its next hop is farther away"),
        (len(used) >= rib.settings.max_paths, f"max-paths: {rib.settings.max_paths}"),
        (
            not rib.settings.relax
            and mine.attributes.find(AsPath) != theirs.attributes.find(AsPath),
            "its AS path is another one (as-path: strict)",
        ),
    )
    return next((text for holds, text in steps if holds), "another MED of its AS is lower")


def _entry(
    context: ViewContext,
    instance: BgpInstance,
    rib: BgpRib,
    entry: tuple[PeerPath, int, str | None],
) -> BgpPathEntry:
    (one, place, why_not), (peer, path, _) = entry, entry[0]
    attributes, own = path.attributes, _SOURCES.get(peer.number)
    origin, as_path = attributes.find(Origin), attributes.find(AsPath)
    local, med = attributes.find(LocalPref), attributes.find(Med)
    link = None if own else finite(rib.capacity_to(one))
    known = [value for value in (path.bandwidth, link) if value is not None]
    known_as = instance.neighbors.get(peer.number)
    return BgpPathEntry(
        neighbor=own or (dotted(peer.identifier) if known_as is None else known_as.name),
        router_id="" if own else dotted(peer.identifier),
        used=place >= 0,
        best=place == 0,
        why_not=why_not,
        as_path="" if as_path is None else as_path.document(),
        origin=OriginType(origin.origin).name.lower() if origin is not None else "incomplete",
        next_hop=None if own else str(path.next_hop),
        local_preference=None if local is None else local.preference,
        med=None if med is None else med.metric,
        communities=list(_communities(path.attributes)),
        extended_communities=list(_extended(path.attributes)),
        limits=_limits(context, path.limits),
        bandwidth=finite(path.bandwidth),
        available=finite(path.available),
        link=link,
        carries=min(known, default=None),
    )


def _communities(attributes: PathAttributes) -> Iterator[str]:
    found, large = attributes.find(Communities), attributes.find(LargeCommunities)
    yield from () if found is None else map(community_text, found.communities)
    yield from () if large is None else map(str, large.communities)


def _extended(attributes: PathAttributes) -> Iterator[str]:
    found = attributes.find(ExtendedCommunities)
    yield from () if found is None else map(extended_text, found.communities)


def _limits(context: ViewContext, limits: Iterable[SharedLimit]) -> list[SharedLimitEntry]:
    return [
        SharedLimitEntry(
            router_id=dotted(one.identifier),
            hostname=context.hostnames.get(one.identifier),
            remote_as=one.number,
            carries=finite(one.bandwidth),
            reach=finite(one.reach),
        )
        for one in limits
    ]


def _advertised_to(
    context: ViewContext, instance: BgpInstance, prefix: Prefix
) -> Iterator[AdvertisedTo]:
    """Yield the neighbors that know the prefix from this router, and its bandwidth."""
    rib = instance.ribs[prefix.family]
    number = rib.table.number(prefix)
    for one in instance.neighbors.values():
        out = rib.outs.get(one.number)
        route = None if out is None or number is None else out.told(number)
        if route is not None:
            yield AdvertisedTo(
                neighbor=one.name,
                bandwidth=finite(route.bandwidth),
                limits=_limits(context, route.limits),
            )
