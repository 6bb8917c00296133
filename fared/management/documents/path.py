"""``path SRC DST``: all shortest paths between two routers; the ends of links in documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from fared.management.documents import human
from fared.management.documents.cells import Columns, delay_column
from fared.management.documents.declare import AF, Answer, Argument, Document
from fared.management.documents.facts import BytesPerSecond, Facts, LinkDelay, Ratio

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


class NamedLink(Facts):
    """One direction of a link, with the names of its ends."""

    from_: str = msgspec.field(name="from")
    from_hostname: str | None
    to: str
    to_hostname: str | None

    @property
    def tail(self) -> str:
        """The name of the router that sends."""
        return human.router(self.from_, self.from_hostname)

    @property
    def head(self) -> str:
        """The name of the router that receives."""
        return human.router(self.to, self.to_hostname)


class PathEdge(NamedLink):
    """One link on a path; ``share`` is the part of the source's traffic over it.

    ``delay`` is left out where it is not flooded.
    """

    metric: int
    capacity: BytesPerSecond
    available: BytesPerSecond
    share: Ratio
    delay: LinkDelay = UNSET


class PathDocument(Answer, tag="fared-path/1"):
    """``path SRC DST``: all shortest paths, with the split at every node.

    Arguments ``source`` and ``destination`` are router ids or hostnames; the destination may
    also be a prefix or an address. Arguments ``af`` and ``proto`` optional: without them the
    preferred protocol that knows both ends is followed, to an IPv4 prefix where there is one.
    ``prefix`` is the followed one. ``capacity``: what the paths carry together; ``delay``: that of
    the longest path, of links that flood one, left out if none does; edges are in order of distance
    from the source.
    """

    protocol: str
    af: str
    prefix: str
    source: str
    source_hostname: str | None
    destination: str
    destination_hostname: str | None
    metric: int
    capacity: BytesPerSecond
    edges: list[PathEdge]
    delay: LinkDelay = UNSET

    def show(self, paper: Paper) -> None:
        """Print the links, each router once."""
        source = human.router(self.source, self.source_hostname)
        target = human.router(self.destination, self.destination_hostname)
        paper.heading(f"{source} to {target}", first=True)
        delay = "" if self.delay is UNSET else f", delay {human.delay(self.delay)}"
        capacity = human.bandwidth(self.capacity)
        paper.line(f"metric {self.metric}, capacity {capacity}{delay}; {human.RATES}\n")
        if not self.edges:
            paper.line("the path continues beyond the database of this router")
            return
        before = dict(zip(map(id, self.edges[1:]), self.edges, strict=False))

        def tail(edge: PathEdge) -> str:
            last = before.get(id(edge))
            return "" if last is not None and last.tail == edge.tail else edge.tail

        paper.table(self.edges, {"From": tail, **_COLUMNS, **delay_column(self.edges), **_SHARE})


_COLUMNS: Columns = {
    "To": "head",
    ">Metric": "metric",
    ">Capacity": "capacity",
    ">Available": "available",
}
_SHARE: Columns = {">Share": "share"}

DOCUMENT = Document(
    PathDocument,
    "path:path",
    "Show all paths from SRC to DST. Each link has its share of the traffic.",
    (
        Argument("source", required=True, word="SRC"),
        Argument("destination", required=True, word="DST"),
        AF,
    ),
    narrowed=True,
)
