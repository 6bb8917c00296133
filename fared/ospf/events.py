"""Inputs and outputs of the OSPF engine: plain values, so a run can be recorded and replayed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fared.core.ids import AreaId, NodeId, Prefix
    from fared.core.links import Link
    from fared.core.routes import LocalRoute, RouteKey
    from fared.ospf.settings import InterfaceSettings, OspfSettings
    from fared.ted.model import LocalLink, NodeBlock, PathType


@dataclass(frozen=True, slots=True)
class PacketReceived:
    """The payload of an IP protocol 89 datagram; addresses as integers, IP header removed."""

    ifindex: int
    source: int
    destination: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class LinkChanged:
    """A link appeared, changed or (``link.up`` False) went down.

    ``settings`` None: OSPF does not run on it (any more).
    """

    link: Link
    settings: InterfaceSettings | None


@dataclass(frozen=True, slots=True)
class LinkRemoved:
    """The interface is gone from the kernel."""

    ifindex: int


@dataclass(frozen=True, slots=True)
class LoadMeasured:
    """Outbound load of a link averaged over the last window, bytes/s."""

    ifindex: int
    utilized: float


@dataclass(frozen=True, slots=True)
class SettingsApplied:
    """New engine-wide settings (reload); per-interface ones come with LinkChanged."""

    settings: OspfSettings


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """Flush own LSAs (premature ageing) and say goodbye: an empty hello on each interface."""


@dataclass(frozen=True, slots=True)
class RouteFacts:
    """What a border router needs to know of a route to announce it into other areas.

    ``areas`` are those its next hops belong to. ``capacity`` is what this router can carry to
    the prefix, bytes/s; None where that is unknown or unlimited.
    """

    metric: int
    path_type: PathType
    areas: tuple[AreaId, ...]
    capacity: float | None


@dataclass(frozen=True, slots=True)
class RoutesComputed:
    """What the routing table became: the engine knows databases, routes are computed elsewhere.

    ``changes`` maps to None where a route is gone; ``asbrs`` holds all AS boundary routers
    that are reached. Only routers in several areas need to be told.
    """

    changes: dict[Prefix, RouteFacts | None]
    asbrs: dict[NodeId, RouteFacts]


@dataclass(frozen=True, slots=True)
class ExternalRoutes:
    """Routes of this router from elsewhere, which may be redistributed; None: it is gone."""

    changes: dict[RouteKey, LocalRoute | None]


Input = (
    PacketReceived
    | LinkChanged
    | LinkRemoved
    | LoadMeasured
    | SettingsApplied
    | ShutdownRequested
    | RoutesComputed
    | ExternalRoutes
)


@dataclass(frozen=True, slots=True)
class SendPacket:
    """Send ``payload`` (an OSPF packet) to ``destination`` out of ``ifindex``.

    ``source`` is the address to send from, 0 where that is for the kernel to choose.
    """

    ifindex: int
    destination: int
    payload: bytes
    source: int = 0


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """Open a socket on this interface and join AllSPFRouters (224.0.0.5)."""

    ifindex: int


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """OSPF no longer runs on this interface."""

    ifindex: int


@dataclass(frozen=True, slots=True)
class TedUpdated:
    """The flooded description of one router changed; ``block`` None: it is gone.

    ``topology`` is False when only capacities differ from the block before. ``cause`` names
    the LSA in words, ``since`` is the time at which the first change arrived.
    """

    area: AreaId
    node: NodeId
    block: NodeBlock | None
    topology: bool
    cause: str
    since: float


@dataclass(frozen=True, slots=True)
class LocalLinksChanged:
    """The full adjacencies of this router in one area, complete, in ifindex order."""

    area: AreaId
    links: tuple[LocalLink, ...]
    cause: str
    since: float


@dataclass(frozen=True, slots=True)
class NeighborChanged:
    """A neighbor moved from one state to another; states are display labels (``Full``)."""

    ifindex: int
    interface: str
    router_id: int
    previous: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One log line: a stable event name and its fields, already limited in rate per source."""

    level: str
    event: str
    fields: dict[str, object] = field(default_factory=dict)


Output = (
    SendPacket
    | JoinGroup
    | LeaveGroup
    | TedUpdated
    | LocalLinksChanged
    | NeighborChanged
    | LogRecord
)
