"""``show fib``: what is programmed into the kernel, or its differences from the kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from fared.management.documents.cells import Cell, Columns, count, dim, judged, red
from fared.management.documents.declare import PREFIX, Answer, Argument, Document
from fared.management.documents.facts import Facts

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

_MAIN_TABLES = {254: "main", 253: "default"}


class FibNextHop(Facts):
    """A next-hop object; ``discard``: it drops packets, and ``interface`` is empty."""

    id: int
    interface: str
    address: str | None
    onlink: bool
    discard: bool


class FibMember(Facts):
    """A member of a group."""

    nexthop_id: int
    interface: str
    address: str | None
    weight: int


class FibGroup(Facts):
    """A next-hop group and how many routes use it."""

    id: int
    type: str
    routes: int
    members: list[FibMember]


class FibRoute(Facts):
    """A route and the object (next hop or group) it points at.

    ``offloaded``, with FPM: the peer has acknowledged the route as it is now.
    """

    prefix: str
    nexthop_id: int
    offloaded: bool | msgspec.UnsetType = msgspec.UNSET


class FibFpm(Facts):
    """The session of FPM: ``state`` is down, replay or up, ``since`` when it was connected.

    ``waiting``: routes to be sent, or to be acknowledged; ``slow``: the peer does not read.
    ``withheld``: prefixes some of whose next hops SONiC cannot use; ``too_long``: those with too
    many next hops, which are withdrawn. ``warm_restart`` of SONiC: ``off``, or its state.
    """

    address: str
    state: str
    since: float | None
    slow: bool
    announced: int
    waiting: int
    withheld: list[str]
    too_long: list[str]
    warm_restart: str | None = None


class FibDifference(Facts):
    """``object`` is route, group or nexthop; ``wanted`` and ``found`` None where it is absent."""

    object: str
    key: str
    wanted: str | None
    found: str | None


class FibDocument(Answer, tag="fared-fib/1"):
    """``show fib``: the state that the daemon has programmed into the kernel.

    Argument ``diff`` true: ``diff`` instead of lists, the differences from a fresh dump of the
    kernel. Argument ``prefix``: only that route, for an address the best, and what it refers to.
    """

    table: int
    protocol: int
    metric: int
    nexthops: list[FibNextHop] | msgspec.UnsetType = msgspec.UNSET
    groups: Sequence[FibGroup] | msgspec.UnsetType = msgspec.UNSET
    routes: Sequence[FibRoute] | msgspec.UnsetType = msgspec.UNSET
    diff: list[FibDifference] | msgspec.UnsetType = msgspec.UNSET
    fpm: FibFpm | msgspec.UnsetType = msgspec.UNSET

    def show(self, paper: Paper) -> None:
        """Print objects and routes, or differences."""
        if self.diff is msgspec.UNSET:
            paper.facts(self, _FACTS)
            paper.line()
            paper.grid((">Object", "Type", ">Routes", "~Members (weight)"), _objects(self))
            paper.line()
            paper.table(self.routes or (), _ROUTES if self.fpm is msgspec.UNSET else _OFFLOADED)
        elif self.diff:
            paper.table(self.diff, _DIFFERENCES)
        else:
            paper.line(judged("the kernel holds exactly the programmed state", good=True))


def _objects(fib: FibDocument) -> Iterator[tuple[str, ...]]:
    """Yield the groups, then the next hops."""
    users = Counter(route.nexthop_id for route in fib.routes or ())
    for group in fib.groups or ():
        members = ", ".join(f"{member.interface} ({member.weight})" for member in group.members)
        yield str(group.id), group.type, str(group.routes), members
    for hop in fib.nexthops or ():
        way = "discard" if hop.discard else f"{hop.address or 'direct'} {hop.interface}"
        yield str(hop.id), "next hop", str(users[hop.id]), way


def _session(fpm: FibFpm) -> Cell:
    """Return the session in a line; what is wrong is red."""
    troubles = ["the peer does not read"] if fpm.slow else []
    troubles += [f"{len(fpm.withheld)} with next hops withheld"] if fpm.withheld else []
    troubles += [f"{len(fpm.too_long)} too long"] if fpm.too_long else []
    warm = fpm.warm_restart or "off"
    return (
        f"{fpm.address} ",
        judged(fpm.state, good=fpm.state == "up"),
        f", {count(fpm.announced, 'route')} announced, {fpm.waiting} waiting",
        "" if warm == "off" else f", warm restart {warm}",
        *[red(f", {trouble}") for trouble in troubles],
    )


_FACTS: Columns = {
    "Table": lambda fib: _MAIN_TABLES.get(fib.table, str(fib.table)),
    "Protocol": "protocol",
    "Metric": "metric",
    "FPM": lambda fib: None if fib.fpm is msgspec.UNSET else _session(fib.fpm),
}
_ROUTES: Columns = {"Prefix": "prefix", ">Object": "nexthop_id"}
_OFFLOADED: Columns = {
    **_ROUTES,
    "Offloaded": lambda route: judged("yes" if route.offloaded else "no", good=route.offloaded),
}
_DIFFERENCES: Columns = {
    "Object": "object",
    "Key": "key",
    "~Wanted": lambda entry: entry.wanted or dim("nothing"),
    "~Found": lambda entry: red(entry.found or "nothing"),
}

DOCUMENT = Document(
    FibDocument,
    "kernel:fib",
    "The installed FIB, or (PREFIX) one route with its objects.\n\n"
    "With `diff`, its differences from the kernel: exit 1 if there are any.",
    (PREFIX, Argument("diff", "flag")),
)
