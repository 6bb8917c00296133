"""``show neighbors``: neighbors of OSPF, adjacencies of IS-IS, and whose hellos are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from fared.management.documents import human
from fared.management.documents.cells import Columns, Styled, judged, plural_list, yellow
from fared.management.documents.declare import Answer, Document
from fared.management.documents.facts import Facts, OfProtocol, Seconds
from fared.management.documents.missing import MissingAdjacency, show_missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fared.management.documents.paper import Paper

_INTERFACES_SHOWN = 6


class ProblemEntry(Facts):
    """Why a neighbor is not used: ``cause`` is a code of logs and counters, ``text`` a sentence."""

    cause: str
    text: str


class RefusedHelloEntry(Facts):
    """The last refused hello of a source, and ``times`` since the first; kept for five minutes.

    ``first`` and ``last``: seconds ago. ``router_id``: the id in it, None if it was not read.
    ``cause`` and ``text`` as in ``ProblemEntry``.
    """

    proto: str
    interface: str
    source: str
    router_id: str | None
    cause: str
    text: str
    first: Seconds
    last: Seconds
    times: int


class NeighborFacts(OfProtocol):
    """One neighbor; ``uptime``: seconds in its state, ``dead_in``: until it is declared down.

    ``router_id`` is a router id, or a system id of IS-IS; ``address`` is the destination of
    packets. ``problem``: why it is not used, or would not be again; None if nothing is known.
    """

    router_id: str
    hostname: str | None
    area: str
    interface: str
    address: str | None
    state: str
    problem: ProblemEntry | None
    uptime: Seconds | None
    dead_in: Seconds | None
    priority: int
    flaps: int
    last_reason: str | None

    @property
    def name(self) -> str:
        """Its hostname, or its id."""
        return human.router(self.router_id, self.hostname)

    def judged(self, good: str) -> Styled:
        """Its state."""
        return judged(self.state, good=self.state == good, bad="yellow")

    @property
    def sessions(self) -> str:
        """Its BFD sessions and their states; empty: there are none."""
        raise NotImplementedError


class MtuMismatch(Facts):
    """The MTU that a neighbor states and the one of our interface, bytes."""

    neighbor: int
    own: int


class OspfNeighborEntry(NeighborFacts, tag="ospf"):
    """One neighbor. ``state`` is that of RFC 2328 §10.1 (``Full``); the lists are lengths (§10).

    ``mtu_mismatch``: the database exchange has not passed and the MTUs differ, which keeps a
    neighbor in ExStart (or Exchange) forever unless the smaller side has ``mtu-ignore``.
    ``waits_for``: it waits in 2-Way while so many adjacencies form (``adjacency-stagger``); else
    null. ``bfd``: the state of its BFD session, None without one.
    """

    retransmission_list: int
    request_list: int
    summary_list: int
    waits_for: int | None
    mtu_mismatch: MtuMismatch | None
    bfd: str | None

    @property
    def sessions(self) -> str:
        """The state of its BFD session; empty: there is none."""
        return self.bfd or ""

    @property
    def waiting(self) -> str:
        """How many LSAs the adjacency waits for."""
        lists = {
            "requested": self.request_list,
            "not acknowledged": self.retransmission_list,
            "to describe": self.summary_list,
        }
        return ", ".join(f"{length} {word}" for word, length in lists.items() if length)


class FloodingSpeed(Facts):
    """How fast a neighbor receives LSPs (RFC 9681), None where it does not say.

    ``transmission_interval`` in microseconds, ``psnp_interval`` in milliseconds.
    """

    burst_size: int | None
    transmission_interval: int | None
    lsps_per_psnp: int | None
    psnp_interval: int | None
    receive_window: int | None


class IsisNeighborEntry(NeighborFacts, tag="isis"):
    """One adjacency. ``state`` is Initializing or Up; ``uptime`` None until it is up.

    ``levels`` are those in use, ``holding_time`` that in its hellos, ``areas`` its area addresses
    (``49.0001``), ``topologies`` MT ids (RFC 5120). ``flooding``: None if its hellos have no
    flooding parameters. ``bfd``: the state of its BFD sessions by address family (``ipv4``,
    ``ipv6``).
    """

    system_id: str
    levels: list[int]
    snpa: str
    holding_time: Seconds
    areas: list[str]
    addresses: list[str]
    topologies: list[int]
    extended_circuit_id: int | None
    flooding: FloodingSpeed | None
    bfd: dict[str, str]

    @property
    def sessions(self) -> str:
        """Its BFD sessions by family; empty: there are none."""
        return ", ".join(f"{family} {state}" for family, state in sorted(self.bfd.items()))


NeighborEntry = OspfNeighborEntry | IsisNeighborEntry


class Neighbors(Answer, tag="fared-neighbors/1"):
    """``show neighbors``; ``refused``: who is none, since its hellos are refused.

    ``missing``: the interfaces without an adjacency.
    """

    router_id: str
    neighbors: list[NeighborEntry]
    refused: list[RefusedHelloEntry] | UnsetType = UNSET
    missing: list[MissingAdjacency] | UnsetType = UNSET

    def show(self, paper: Paper) -> None:
        """Print the neighbors of each protocol, what is wrong with them, and refused hellos."""
        for _, entries in paper.by_protocol(self.neighbors):
            _ospf(paper, [entry for entry in entries if isinstance(entry, OspfNeighborEntry)])
            _isis(paper, [entry for entry in entries if isinstance(entry, IsisNeighborEntry)])
            for entry in entries:
                if entry.problem:
                    where = f"{entry.name} on {entry.interface}"
                    paper.line(yellow(f"{where}: {entry.problem.text}"))
            _bfd(paper, entries)
        refused = self.refused or []
        told = {(row.interface, row.cause) for row in refused}
        show_missing(paper, [m for m in self.missing or [] if (m.interface, m.cause) not in told])
        paper.more(refused, _REFUSED)


def levels_text(levels: list[int]) -> str:
    """Format the levels of IS-IS as ``1-2``."""
    return "-".join(map(str, levels)) or human.DASH


def _ospf(paper: Paper, entries: list[OspfNeighborEntry]) -> None:
    if not entries:
        return
    paper.table(entries, _NEIGHBORS)
    for entry in entries:
        if entry.waiting:
            paper.line(yellow(f"{entry.name}: LSAs {entry.waiting}"))
    if behind := [entry for entry in entries if entry.waits_for]:
        limit = f"adjacency-stagger {behind[0].waits_for}"
        text = f"waiting in 2-Way while other adjacencies form ({limit}): {len(behind)}"
        paper.line(yellow(text))


def _isis(paper: Paper, entries: list[IsisNeighborEntry]) -> None:
    if entries:
        paper.table(entries, _ADJACENCIES)
        paper.more(entries, _ADDRESSES)


def _bfd(paper: Paper, entries: Sequence[NeighborFacts]) -> None:
    """Print the BFD sessions of neighbors, once for all interfaces with the same states."""
    alike: dict[str, list[str]] = {}
    for entry in entries:
        if entry.sessions:
            alike.setdefault(entry.sessions, []).append(entry.interface)
    if alike:
        paper.line()
        rows = ((plural_list(names, _INTERFACES_SHOWN), state) for state, names in alike.items())
        paper.grid(("~BFD on", "~State"), rows)


_NEIGHBORS: Columns = {
    "Neighbor": lambda n: n.name,
    "Router id": "router_id",
    "Area": "area",
    "Interface": "interface",
    "State": lambda n: n.judged("Full"),
    ">For": "uptime",
    ">Dead in": "dead_in",
    ">Flaps": "flaps",
}
_ADJACENCIES: Columns = {
    "Neighbor": "hostname",
    "System id": "system_id",
    "Interface": "interface",
    "Levels": lambda n: levels_text(n.levels),
    "State": lambda n: n.judged("Up"),
    ">For": "uptime",
    ">Holds": "dead_in",
    ">Flaps": "flaps",
}
_ADDRESSES: Columns = {
    "Neighbor": lambda n: n.name,
    "SNPA": "snpa",
    "~Areas": "areas",
    "~Addresses": lambda n: ", ".join(n.addresses) or human.DASH,
}
_REFUSED: Columns = {
    "Refused": "source",
    "Router id": "router_id",
    "Interface": "interface",
    ">Hellos": "times",
    ">Last": "last",
    "~Why": "text",
}

DOCUMENT = Document(
    Neighbors,
    "protocol:neighbors",
    "Neighbors of OSPF, adjacencies of IS-IS.",
    narrowed=True,
)
