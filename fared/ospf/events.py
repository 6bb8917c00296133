"""Inputs and outputs of the OSPF engine: plain values, so a run can be recorded and replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fared.core.events import (
    ExternalRoutes,
    LinkRemoved,
    LoadMeasured,
    LogRecord,
    ShutdownRequested,
)
from fared.ted.events import LocalLinksChanged, RouteFacts, RoutesComputed, TedUpdated

if TYPE_CHECKING:
    from fared.core.links import Link
    from fared.ospf.settings import InterfaceSettings, OspfSettings

__all__ = [
    "ExternalRoutes",
    "Input",
    "JoinGroup",
    "LeaveGroup",
    "LinkChanged",
    "LinkRemoved",
    "LoadMeasured",
    "LocalLinksChanged",
    "LogRecord",
    "NeighborChanged",
    "Output",
    "PacketReceived",
    "RouteFacts",
    "RoutesComputed",
    "SendPacket",
    "SettingsApplied",
    "ShutdownRequested",
    "TedUpdated",
]


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
class SettingsApplied:
    """New engine-wide settings (reload); per-interface ones come with LinkChanged."""

    settings: OspfSettings


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
class NeighborChanged:
    """A neighbor moved from one state to another; states are display labels (``Full``)."""

    ifindex: int
    interface: str
    router_id: int
    previous: str
    state: str
    reason: str


Output = (
    SendPacket
    | JoinGroup
    | LeaveGroup
    | TedUpdated
    | LocalLinksChanged
    | NeighborChanged
    | LogRecord
)
