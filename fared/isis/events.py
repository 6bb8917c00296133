"""Inputs and outputs of the IS-IS engine: plain values, so a run can be recorded and replayed."""

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
    from fared.isis.settings import CircuitSettings, IsisSettings

__all__ = [
    "AdjacencyChanged",
    "CircuitChanged",
    "CloseCircuit",
    "ExternalRoutes",
    "Input",
    "LinkRemoved",
    "LoadMeasured",
    "LocalLinksChanged",
    "LogRecord",
    "OpenCircuit",
    "Output",
    "PduReceived",
    "RouteFacts",
    "RoutesComputed",
    "SendPdu",
    "SettingsApplied",
    "ShutdownRequested",
    "TedUpdated",
]


@dataclass(frozen=True, slots=True)
class PduReceived:
    """An IS-IS PDU: the payload of an 802.2 frame behind its LLC header (0xFE 0xFE 0x03).

    ``source`` and ``destination`` are MAC addresses as integers; ``destination`` is 0 where the
    socket does not tell it.
    """

    ifindex: int
    source: int
    destination: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class CircuitChanged:
    """A link appeared, changed or (``link.up`` False) went down.

    ``settings`` None: IS-IS does not run on it (any more).
    """

    link: Link
    settings: CircuitSettings | None


@dataclass(frozen=True, slots=True)
class SettingsApplied:
    """New engine-wide settings (reload); those of circuits come with CircuitChanged."""

    settings: IsisSettings


Input = (
    PduReceived
    | CircuitChanged
    | LinkRemoved
    | LoadMeasured
    | SettingsApplied
    | ShutdownRequested
    | RoutesComputed
    | ExternalRoutes
)


@dataclass(frozen=True, slots=True)
class SendPdu:
    """Send ``payload`` (an IS-IS PDU) out of ``ifindex`` to a MAC address."""

    ifindex: int
    destination: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class OpenCircuit:
    """Open a socket on this interface and join the multicast groups of IS-IS."""

    ifindex: int


@dataclass(frozen=True, slots=True)
class CloseCircuit:
    """IS-IS no longer runs on this interface."""

    ifindex: int


@dataclass(frozen=True, slots=True)
class AdjacencyChanged:
    """An adjacency moved from one state to another; states are display labels (``Up``).

    ``level`` is 1 or 2; an adjacency of both levels on a point-to-point circuit tells of each.
    """

    ifindex: int
    interface: str
    system_id: int
    level: int
    previous: str
    state: str
    reason: str


Output = (
    SendPdu
    | OpenCircuit
    | CloseCircuit
    | TedUpdated
    | LocalLinksChanged
    | AdjacencyChanged
    | LogRecord
)
