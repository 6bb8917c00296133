"""``show bgp routes``: paths that neighbors advertise, which are used, and why others are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from fared.management.documents import human
from fared.management.documents.cells import Cell, Columns, dim
from fared.management.documents.declare import AF, PREFIX, Answer, Argument, Document
from fared.management.documents.facts import BytesPerSecond, Facts

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

_COLUMNS = ("  Prefix", "Neighbor", ">Bandwidth", ">Link", ">Carries", "~AS path")


class SharedLimitEntry(Facts):
    """A router that all paths behind a neighbor pass through, and what it carries.

    ``reach``: what the neighbor carries to there; None: it is the neighbor itself.
    """

    router_id: str
    hostname: str | None
    remote_as: int
    carries: BytesPerSecond
    reach: BytesPerSecond

    @property
    def text(self) -> str:
        """In words."""
        name = human.router(self.router_id, self.hostname)
        reach = "" if self.reach is None else f", {human.bandwidth(self.reach)} to there"
        return f"{name} carries {human.bandwidth(self.carries)}{reach}"


class BgpPathEntry(Facts):
    """A path. ``neighbor``: as it is configured; own and redistributed ones have that word.

    ``used``: among those that packets take; ``best`` is the first of them, which is advertised.
    ``why_not``: the step of the decision at which it was left out, or that its next hop is not
    usable. ``bandwidth``: that in its Link Bandwidth community, ``link``: that of the links to the
    router, ``carries``: the lesser of both. ``as_path``: AS numbers, sets in braces.
    ``communities`` are standard and large ones, ``extended_communities`` those but Link Bandwidth.
    ``limits``: the routers that the neighbor names, nearest first.
    ``available``: what load leaves of ``bandwidth``, as the neighbor says; None: it says nothing.
    """

    neighbor: str
    router_id: str
    used: bool
    best: bool
    why_not: str | None
    as_path: str
    origin: str
    next_hop: str | None
    local_preference: int | None
    med: int | None
    communities: list[str]
    extended_communities: list[str]
    limits: list[SharedLimitEntry]
    bandwidth: BytesPerSecond
    available: BytesPerSecond
    link: BytesPerSecond
    carries: BytesPerSecond


class AdvertisedTo(Facts):
    """A neighbor that a route is advertised to, with the path bandwidth and limits in it."""

    neighbor: str
    bandwidth: BytesPerSecond
    limits: list[SharedLimitEntry]


class BgpRouteEntry(Facts):
    """A prefix. ``carries``: what the paths in use carry together; None: not known."""

    prefix: str
    carries: BytesPerSecond
    paths: Sequence[BgpPathEntry]
    advertised_to: list[AdvertisedTo] | UnsetType = UNSET


class BgpRoutes(Answer, tag="fared-bgp-routes/1"):
    """``show bgp routes``; argument ``prefix`` optional: only that one, or for an address the best.

    One alone has ``advertised_to``. ``neighbor``: prefixes that this neighbor advertises, with its
    paths only. Argument ``af`` (ipv4, ipv6) narrows the list.
    """

    router_id: str
    local_as: int
    routes: Sequence[BgpRouteEntry]

    def show(self, paper: Paper) -> None:
        """Print a row for each path; of one prefix all that is known."""
        if len(self.routes) == 1 and self.routes[0].advertised_to is not UNSET:
            _one(paper, self.routes[0])
            return
        for found in paper.by_family(self.routes):
            paper.grid(_COLUMNS, (row for route in found for row in _rows(route)))
        if self.routes:
            paper.line(dim(f"* used, > best; {human.RATES}"))


def _rows(route: BgpRouteEntry) -> Iterator[Sequence[Cell]]:
    prefix = route.prefix
    for path in route.paths:
        mark = ("*" if path.used else " ") + (">" if path.best else " ")
        yield (
            f"{mark}{prefix}",
            path.neighbor,
            human.bandwidth(path.bandwidth),
            human.bandwidth(path.link),
            human.bandwidth(path.carries),
            _path(path),
        )
        prefix = ""


def _path(path: BgpPathEntry) -> str:
    text = path.as_path or human.DASH
    return text if path.origin == "igp" else f"{text} ({path.origin})"


def _one(paper: Paper, route: BgpRouteEntry) -> None:
    used = sum(path.used for path in route.paths)
    carries = "" if route.carries is None else f", together {human.bandwidth(route.carries)}"
    paper.heading(f"{route.prefix}: {used} of {len(route.paths)} paths used{carries}", first=True)
    for path in route.paths:
        paper.heading(f"{path.neighbor}{_standing(path)}")
        paper.facts(path, _FACTS)
    others = route.advertised_to or []
    limited = any(each.limits for each in others)
    paper.more(others, {**_TOLD, **(_TOLD_LIMITS if limited else {})})
    paper.rates()


def _standing(path: BgpPathEntry) -> str:
    if path.best:
        return ": best"
    return ": used" if path.used else f": not used, {path.why_not or 'not decided yet'}"


def _limits(path: BgpPathEntry) -> str | None:
    if path.bandwidth is None and path.link is None:
        return None
    told = "none" if path.bandwidth is None else human.bandwidth(path.bandwidth)
    link = "unknown" if path.link is None else human.bandwidth(path.link)
    return f"{told}, link {link}: carries {human.bandwidth(path.carries)}"


def _shared(entry: BgpPathEntry | AdvertisedTo) -> str | None:
    return "; ".join(each.text for each in entry.limits) or None


_FACTS: Columns = {
    "Router id": lambda p: p.router_id or None,
    "AS path": _path,
    "Next hop": "next_hop",
    "Bandwidth": _limits,
    "Available": lambda p: None if p.available is None else human.bandwidth(p.available),
    "Limits": _shared,
    "Preference": lambda p: None if p.local_preference is None else str(p.local_preference),
    "MED": lambda p: None if p.med is None else str(p.med),
    "Communities": lambda p: ", ".join([*p.communities, *p.extended_communities]) or None,
}
_TOLD: Columns = {"Advertised to": "neighbor", ">Bandwidth": "bandwidth"}
_TOLD_LIMITS: Columns = {"~Limits": lambda told: _shared(told) or human.DASH}

DOCUMENT = Document(
    BgpRoutes,
    "bgp_routes:routes",
    "Paths that BGP neighbors advertise, with their bandwidths.\n\n"
    "PREFIX: that one, or of an address the best, with all that is known, and who gets it.",
    (
        PREFIX,
        AF,
        Argument(
            "neighbor", "option", word="NAME", help="Only paths that this neighbor advertises."
        ),
    ),
    rare=True,
    proto="bgp",
)
