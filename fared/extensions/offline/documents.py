"""Documents of ``fared-cli spf``: routes of a saved database, and the effect of changes.

Next hops have the interface that is in the file; of any other router than the one that saved it,
interfaces are unknown, and the address is that which the far end floods, None where it floods none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from fared.management.documents import human
from fared.management.documents.bier import Bier
from fared.management.documents.cells import Cell, Columns, Styled, count, dim, yellow
from fared.management.documents.declare import Answer
from fared.management.documents.facts import BytesPerSecond, Facts, Ratio
from fared.management.documents.routes import Routes
from fared.management.documents.spf import SpfNode

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

_PREFIXES_SHOWN = 4
_ARROW = " -> "
_IGNORED: Columns = {"What": "key", "Why": lambda entry: yellow(entry.reason)}


class IgnoredEntry(Facts):
    """An entry of the database that was ignored.

    ``reason`` is maxage, checksum, malformed or unsupported (``key``: an LSA by type, link
    state id and advertising router, or by its place in the file), one-way (``A > B``, the
    link that B does not confirm), overload or unreachable (a router).
    """

    key: str
    reason: str


class OfflineRoutes(Routes, tag="fared-routes/1", kw_only=True):
    """``fared-cli spf``: ``fared-routes/1`` with the SPF result and ignored entries."""

    nodes: list[SpfNode]
    ignored: list[IgnoredEntry]

    def show(self, paper: Paper) -> None:
        """Print the routes, then what was ignored."""
        super().show(paper)
        _show_ignored(self.ignored, paper)


class RouteFacts(Facts):
    """The facts of a route, besides its next hops, that a difference compares."""

    metric: int
    type: str
    area: str | None
    connected: bool


class HopFacts(Facts):
    """The facts of a next hop that a difference compares."""

    weight: int
    share: Ratio
    capacity: BytesPerSecond


class HopDifference(Facts):
    """A next hop of either side; ``before`` None: added, ``after`` None: removed."""

    interface: str | None
    address: str | None
    neighbor: str
    hostname: str | None
    before: HopFacts | None
    after: HopFacts | None

    @property
    def weights(self) -> tuple[int | None, int | None]:
        """The weight on either side."""
        before, after = self.before, self.after
        return None if before is None else before.weight, None if after is None else after.weight


class RouteDifference(Facts):
    """A route that changes; ``before`` None: new, ``after`` None: lost."""

    prefix: str
    before: RouteFacts | None
    after: RouteFacts | None
    nexthops: list[HopDifference]

    @property
    def moves(self) -> bool:
        """Whether the metric or a weight changes; a change of capacity alone moves no traffic."""
        weights = (hop.weights for hop in self.nexthops)
        return self.before != self.after or any(old != new for old, new in weights)


class RoutesDiff(Answer, tag="fared-routes-diff/1"):
    """``fared-cli spf --diff``: routes whose forwarding changes.

    ``changes`` are the options that made the difference (``fail-link S1-L2``), ``unchanged``
    counts the other routes (their capacities may differ), ``nodes`` and ``ignored`` are those
    after the change.
    """

    root: str
    af: str
    changes: list[str]
    routes: list[RouteDifference]
    unchanged: int
    nodes: list[SpfNode]
    ignored: list[IgnoredEntry]

    def show(self, paper: Paper) -> None:
        """Print the changes, what they change, and what was ignored."""
        _show_changes(self.changes, paper)
        self.show_routes(paper)
        _show_ignored(self.ignored, paper)

    def show_routes(self, paper: Paper, *, first: bool = True) -> None:
        """Print routes with equal changes once, with all their prefixes."""
        changed = len(self.routes)
        total = count(changed + self.unchanged, "route")
        paper.heading(f"{_root(self)}: {changed} of {total} change", first=first)
        groups: dict[str, list[RouteDifference]] = {}
        for route in self.routes:
            groups.setdefault(_likeness(route), []).append(route)
        for routes in groups.values():
            _show_group(routes, paper)
        if groups:
            paper.rates()


class RoutesAll(Answer, tag="fared-routes-all/1"):
    """``fared-cli spf --all``: one document for each router as root."""

    roots: list[OfflineRoutes | RoutesDiff]

    def show(self, paper: Paper) -> None:
        """Print each router's routes, or changes, and once what all ignore."""
        differences = [entry for entry in self.roots if isinstance(entry, RoutesDiff)]
        if differences:
            _show_changes(differences[0].changes, paper)
        shown = [entry for entry in self.roots if entry.routes or not differences]
        for index, entry in enumerate(shown):
            if isinstance(entry, RoutesDiff):
                entry.show_routes(paper, first=index == 0)
            else:
                paper.heading(f"From {_root(entry)}", first=index == 0)
                Routes.show(entry, paper)
        if len(shown) < len(self.roots):
            others = count(len(self.roots) - len(shown), "other router" if shown else "router")
            paper.heading(f"Nothing changes on {others}", first=not shown)
        _show_ignored(_everywhere(self.roots), paper)


class OfflineBier(Bier, tag="fared-bier/1", kw_only=True):
    """``fared-cli spf --bier``: ``fared-bier/1`` as router ``root`` has it, without counters."""

    root: str


def _everywhere(roots: list[OfflineRoutes | RoutesDiff]) -> list[IgnoredEntry]:
    """Return what was ignored, with how many roots ignore it unless all do."""
    seen: dict[tuple[str, str], int] = {}
    for item in (item for entry in roots for item in entry.ignored):
        seen[item.key, item.reason] = seen.get((item.key, item.reason), 0) + 1
    return [
        IgnoredEntry(key=key, reason=f"{reason}{'' if n == len(roots) else _from(n)}")
        for (key, reason), n in seen.items()
    ]


def _from(roots: int) -> str:
    return f" from {count(roots, 'root')}"


def _root(document: OfflineRoutes | RoutesDiff) -> str:
    root = document.root
    name = next((node.hostname for node in document.nodes if node.id == root), None)
    return f"{name} ({root})" if name else root


def _show_changes(changes: list[str], paper: Paper) -> None:
    paper.line(dim(f"What if: {', '.join(changes)}\n"))


def _show_ignored(entries: Iterable[IgnoredEntry], paper: Paper) -> None:
    found = list(entries)
    if found:
        paper.heading("Ignored")
        paper.table(found, _IGNORED)


# -- differences -----------------------------------------------------------------------------


def _likeness(route: RouteDifference) -> str:
    hops = [(hop.interface, hop.address, hop.neighbor, hop.weights) for hop in route.nexthops]
    return repr((_metrics(route), hops))


def _show_group(routes: list[RouteDifference], paper: Paper) -> None:
    prefixes, route = [route.prefix for route in routes], routes[0]
    more = len(prefixes) - _PREFIXES_SHOWN
    named = ", ".join(prefixes[:_PREFIXES_SHOWN]) + (f" and {more} more" if more > 0 else "")
    paper.line()
    paper.line((named, dim(f"  {_metrics(route)}")))
    if route.after is not None and route.nexthops:
        paper.grid(_HOPS, map(_hop, route.nexthops))


_HOPS = ("", "Next hop", "Via", ">Weight", ">Share", ">Path")


def _metrics(route: RouteDifference) -> str:
    before, after = route.before, route.after
    if after is None:
        return "lost"
    if before is None:
        return f"new, metric {after.metric}"
    kinds = [_kind(before), _kind(after)]
    metric = _change(str(before.metric), str(after.metric))
    return f"metric {metric}" + (f", {_ARROW.join(kinds)}" if kinds[0] != kinds[1] else "")


def _kind(part: RouteFacts) -> str:
    local = part.connected and not part.type.startswith("external")
    return "connected" if local else part.type


def _hop(hop: HopDifference) -> list[Cell]:
    """Return the row of a next hop, in the colour of its change."""
    mark, style = _mark(hop)
    texts = (
        mark,
        hop.address or "direct",
        hop.interface or human.router(hop.neighbor, hop.hostname),
        _both(hop, lambda part: str(part.weight)),
        _both(hop, lambda part: human.share(part.share)),
        _both(hop, lambda part: human.bandwidth(part.capacity)),
    )
    return [Styled(text, style) for text in texts]


def _mark(hop: HopDifference) -> tuple[str, str]:
    before, after = hop.before, hop.after
    if before is None:
        return "+", "green"
    if after is None:
        return "-", "red"
    same = (before.weight, before.share) == (after.weight, after.share)
    return ("", "dim") if same else ("~", "yellow")


def _both(hop: HopDifference, show: Callable[[HopFacts], str]) -> str:
    parts = [show(part) for part in (hop.before, hop.after) if part is not None]
    return _change(parts[0], parts[-1])


def _change(old: str, new: str) -> str:
    return old if old == new else f"{old}{_ARROW}{new}"
