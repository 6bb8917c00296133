"""Events between an engine and its surroundings, the same for all protocols.

They are plain values, so a run can be recorded and replayed. An engine knows its own protocol only;
the router, which may run several, adds the name of the protocol (``router.events``). Addresses are
those of the layer that carries the protocol, as integers: IPv4 for OSPF, MAC for IS-IS. A protocol
over TCP has streams instead of packets (``core.streams``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from fared.core.bfd import BfdChanged, BfdWanted
from fared.core.ids import NodeId
from fared.core.links import InterfaceAddress, Link
from fared.core.streams import StreamInput, StreamOutput

if TYPE_CHECKING:
    from fared.core.routes import LocalRoute, RouteKey

EngineT = TypeVar("EngineT")
LinkT = TypeVar("LinkT")


class PacketReceived(msgspec.Struct, frozen=True, gc=False):
    """A packet: its payload, and the addresses of the headers before it.

    ``destination`` is 0 where the socket does not report it. ``ttl`` is that of the received IP
    header, 0 where there is none.
    """

    ifindex: int
    source: int
    destination: int
    payload: bytes
    ttl: int = 0


class PacketsReceived(msgspec.Struct, frozen=True, gc=False):
    """Packets that one neighbor sent one after another, no hellos: each as ``PacketReceived``."""

    ifindex: int
    source: int
    destination: int
    payloads: tuple[bytes, ...]


Received = PacketReceived | PacketsReceived


def number_of(packets: Iterable[Received]) -> int:
    """How many packets these are."""
    number = 0
    for one in packets:  # mostly one
        number += len(one.payloads) if type(one) is PacketsReceived else 1
    return number


def each(packets: Iterable[Received]) -> Iterator[PacketReceived]:
    """Each packet by itself."""
    for one in packets:
        if isinstance(one, PacketReceived):
            yield one
        else:
            for payload in one.payloads:
                yield PacketReceived(one.ifindex, one.source, one.destination, payload)


class LinkChanged(msgspec.Struct, Generic[LinkT], frozen=True):
    """A link appeared, changed or (``link.up`` False) went down.

    ``settings`` None: the protocol does not run on it (any more).
    """

    link: Link
    settings: LinkT | None


class LinkRemoved(msgspec.Struct, frozen=True):
    """The interface is gone from the kernel."""

    ifindex: int


class LoadsMeasured(msgspec.Struct, frozen=True):
    """Outbound loads of links averaged over the last window, bytes/s, by ifindex.

    None: the last measurement is too old to be used.
    """

    loads: dict[int, float | None]


class SettingsApplied(msgspec.Struct, Generic[EngineT], frozen=True):
    """New settings of the engine after a reload; those of its links arrive with LinkChanged."""

    settings: EngineT


class ExternalRoutes(msgspec.Struct, frozen=True):
    """Routes of other sources, which may be redistributed; None: withdrawn."""

    changes: dict[RouteKey, LocalRoute | None]


class ShutdownRequested(msgspec.Struct, frozen=True):
    """Flush own LSAs or LSPs and send a final hello on each interface."""


class GracefulRestartRequested(msgspec.Struct, frozen=True):
    """Announce a restart to the neighbors: they are to forward through this router meanwhile.

    ``period``: seconds that the restart takes at most. The process ends once the neighbors know.
    """

    period: float


class GracefulRestartBegun(msgspec.Struct, frozen=True):
    """This router has restarted, and its routes are still in the kernel.

    It comes before any link. ``remaining``: seconds until neighbors give up; ``planned``: the
    process before this one has announced it.
    """

    remaining: float
    planned: bool


class InformationOffered(msgspec.Struct, frozen=True):
    """All that this router floods for an application, by key (``core.information``).

    ``items`` go to all areas or levels, ``only`` to one each. A key is in one of both.
    """

    items: dict[int, bytes]
    only: dict[int, dict[int, bytes]] = {}


class NeighborCleared(msgspec.Struct, frozen=True):
    """End the adjacency with a neighbor (a node id) on a link; the next hellos form it again.

    ``soft``: only BGP, its routes are asked for, and told, again; the session goes on. ``held``:
    only BGP, the neighbor of that name is tried again, though it has announced too many prefixes.
    """

    ifindex: int
    node: int
    soft: bool = False
    held: str = ""


class LimitsReset(msgspec.Struct, frozen=True):
    """Zero the counts of full databases, and ask neighbors again for what was ignored."""


Input = (
    PacketReceived
    | LinkChanged[LinkT]
    | LinkRemoved
    | LoadsMeasured
    | SettingsApplied[EngineT]
    | ExternalRoutes
    | ShutdownRequested
    | BfdChanged
    | GracefulRestartRequested
    | GracefulRestartBegun
    | LimitsReset
    | NeighborCleared
    | InformationOffered
    | StreamInput
)


class SendPacket(msgspec.Struct, frozen=True, gc=False):
    """Send ``payload`` to ``destination`` out of ``ifindex``.

    ``source`` is the address to send from, 0 where the kernel chooses it. ``ttl`` is for the IP
    header, where there is one: 1 (RFC 2328 appendix A.1), 255 with TTL security. ``mtu``: bytes of
    the largest IP fragment, 0: the MTU of the link.
    """

    ifindex: int
    destination: int
    payload: bytes
    source: int = 0
    ttl: int = 1
    mtu: int = 0


class Unicasts(msgspec.Struct, frozen=True):
    """The unicasts that can have been sent on a link; no others are received there.

    ``destinations``: this router's addresses; ``ttls``: of the received IP header; ``networks``:
    the source is in one of them, none: any source.
    """

    destinations: tuple[int, ...]
    ttls: tuple[int, ...]
    networks: tuple[InterfaceAddress, ...] = ()

    def admits(self, source: int) -> bool:
        """Whether the source of a packet is on the link."""
        return not self.networks or any(one.contains(source) for one in self.networks)


class OpenInterface(msgspec.Struct, frozen=True):
    """Open a socket on this interface and join the multicast groups of the protocol.

    It is to receive ``unicasts`` only; None: the protocol does not run over IP. The event comes
    again when they change.
    """

    ifindex: int
    unicasts: Unicasts | None = None


class CloseInterface(msgspec.Struct, frozen=True):
    """The protocol no longer runs on this interface."""

    ifindex: int


ADJACENT = ("Full", "Up", "Established")
"""The states of adjacencies that carry routes, in OSPF and IS-IS."""


class AdjacencyChanged(msgspec.Struct, frozen=True):
    """A neighbor moved from one state to another; states are display labels (``Full``, ``Up``).

    ``gained_or_lost``: the adjacency started or stopped carrying routes. ``level`` is 1 or 2 in
    IS-IS, where an adjacency of both levels causes one event for each; None without levels.
    """

    ifindex: int
    interface: str
    neighbor: NodeId
    previous: str
    state: str
    reason: str
    gained_or_lost: bool
    level: int | None = None


class InformationUpdated(msgspec.Struct, frozen=True):
    """What another router floods for an application changed; ``value`` None: withdrawn.

    ``area`` is a level in IS-IS.
    """

    area: int
    node: NodeId
    key: int
    value: bytes | None


class LogRecord(msgspec.Struct, frozen=True):
    """One log line: a stable event name and its fields, already limited in rate per source."""

    level: str
    event: str
    fields: dict[str, object] = msgspec.field(default_factory=dict)


Output = (
    SendPacket
    | OpenInterface
    | CloseInterface
    | AdjacencyChanged
    | LogRecord
    | BfdWanted
    | InformationUpdated
    | StreamOutput
)
