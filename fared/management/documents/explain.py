"""``explain PREFIX``: why a route has its next hops and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from fared.management.documents import human
from fared.management.documents.cells import (
    Cell,
    Columns,
    Styled,
    delay_column,
    dim,
    plural_list,
    red,
    without_repeated,
)
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.facts import (
    BytesPerSecond,
    Facts,
    LinkDelay,
    NamedNode,
    Ratio,
    Seconds,
    UnixTime,
)
from fared.management.documents.happened import WhatChanged
from fared.management.documents.path import NamedLink
from fared.management.documents.routes import NextHopFacts

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

_INTERFACES_SHOWN = 8


class ExplainedLimit(NamedLink):
    """The link that bounds a path capacity: a wider link would increase it."""

    capacity: BytesPerSecond


class ExplainNextHop(NextHopFacts):
    """One next hop with the reason of its weight, in numbers and as a sentence (``reason``).

    ``limiting_link`` None: the capacity is unknown, or is bounded by several links together.
    ``delay``: of the longest shortest path that begins here; left out if no link has one.
    """

    limiting_link: ExplainedLimit | None
    weight: int
    share: Ratio
    ecmp_share: Ratio
    reason: str
    delay: LinkDelay = UNSET


class MissingHop(NamedNode):
    """A neighbor that was a next hop until a link was lost, its own or one beyond."""

    link: str
    since: UnixTime


class WithheldPrefix(Facts):
    """A place that a filter keeps the prefix out of, and the item that denies it."""

    where: str
    reason: str


class SlowerHop(NamedNode):
    """A next hop at equal cost that is not used: its ``delay``, ``above`` the lowest by so much."""

    via: str
    delay: Seconds
    above: Seconds


def show_slower(hops: list[SlowerHop] | UnsetType, paper: Paper) -> None:
    """Print each of them in a line."""
    for hop in [] if hops is UNSET else hops:
        delay, above = human.duration(hop.delay), human.duration(hop.above)
        name = "" if hop.via == hop.name else f" ({hop.name})"
        text = f"{name}: delay {delay}, {above} above the lowest; not used"
        paper.line((Styled(hop.via, "bold"), text))


class Explain(Answer, tag="fared-explain/1"):
    """``explain PREFIX`` (argument ``prefix``, or an address): the derivation of a route.

    Argument ``proto`` optional: of that protocol's route, used or not. ``weights``: their basis,
    none, capacity, available or equalise; ``granularity``: what takes one path, flow, flowlet or
    packet; ``destinations``: the routers that advertise the prefix and were chosen, none of a route
    of BGP; ``summary``: the explanation in one or two sentences; ``withheld``: where filters keep
    the prefix out.
    ``slower``: next hops at equal cost that are not used because of their delay, if there are any.
    """

    root: str
    prefix: str
    protocol: str
    preference: int
    metric: int
    type: str
    area: str | None
    connected: bool
    discard: bool
    destinations: list[NamedNode]
    nexthops: list[ExplainNextHop]
    missing: list[MissingHop]
    weights: str
    granularity: str
    summary: str
    withheld: list[WithheldPrefix]
    last_change: WhatChanged | None
    slower: list[SlowerHop] | UnsetType = UNSET

    def show(self, paper: Paper) -> None:
        """Print the route, then its next hops with their limits and reasons."""
        # the type of an IS-IS route contains the level
        other = None if self.area == self.type else self.area
        area = f", {human.area_title(other).lower()}" if other else ""
        to = ", ".join(end.name for end in self.destinations)
        paper.heading(self.prefix, first=True)
        if self.type == self.protocol:
            paper.line(f"{human.PROTOCOLS.get(self.protocol, '')}, preference {self.preference}")
        else:
            paper.line(f"{self.type}{area}, metric {self.metric}, to {to or 'this router'}")
        paper.line(f"\n{self.summary}")
        for place in self.withheld:
            paper.line(f"\nKept out of {place.where}: {place.reason}.")
        for hop in self.missing:
            gone = f"{hop.link} is gone for {paper.ago(hop.since)}"
            paper.line(red(f"\n{hop.name} is no next hop: {gone}"))
        hops = without_repeated(_HOPS, self.nexthops, "Interface", "Neighbor")
        paper.more(self.nexthops, {**hops, **delay_column(self.nexthops), **_LIMIT})
        if self.nexthops:
            paper.rates()
            paper.line()
            _show_reasons(self.nexthops, paper)
        show_slower(self.slower, paper)
        if self.last_change is not None:
            ago, last = paper.ago(self.last_change.at), self.last_change
            paper.line(dim(f"\nlast changed {ago} ago: {'; '.join(last.changes or last.causes)}"))


def _show_reasons(hops: list[ExplainNextHop], paper: Paper) -> None:
    reasons: dict[str, list[str]] = {}
    for hop in hops:
        reasons.setdefault(hop.reason, []).append(hop.via)
    for reason, interfaces in reasons.items():
        paper.line((Styled(plural_list(interfaces, _INTERFACES_SHOWN), "bold"), f": {reason}"))


def _share(hop: ExplainNextHop) -> Cell:
    """Return the share; in a colour if plain ECMP would have another."""
    moved = hop.share / hop.ecmp_share if hop.ecmp_share else 1.0
    style = "yellow" if moved < 0.95 else "green" if moved > 1.05 else ""
    return Styled(human.share(hop.share), style)


def _limit(hop: ExplainNextHop) -> str:
    link = hop.limiting_link
    if link is None:
        return human.DASH
    return f"beyond {link.tail}" if link.from_ == link.to else f"{link.tail} > {link.head}"


_HOPS: Columns = {
    "Neighbor": "name",
    "Interface": "via",
    ">Link": "bandwidth",
    ">Path": "capacity",
    ">Weight": "weight",
    ">Share": _share,
    ">ECMP": "ecmp_share",
}
_LIMIT: Columns = {"Limited by": _limit}

DOCUMENT = Document(
    Explain,
    "explain:explain",
    "Explain the route to PREFIX.",
    (Argument("prefix", required=True),),
    narrowed=True,
)
