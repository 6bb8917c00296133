"""Inputs and outputs that every engine has, whatever protocol it speaks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fared.core.routes import LocalRoute, RouteKey


@dataclass(frozen=True, slots=True)
class LinkRemoved:
    """The interface is gone from the kernel."""

    ifindex: int


@dataclass(frozen=True, slots=True)
class LoadMeasured:
    """Outbound load of a link averaged over the last window, bytes/s.

    None: what was measured last is too old to stand for anything, and nothing newer is known.
    """

    ifindex: int
    utilized: float | None


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """Flush own LSAs (premature ageing) and say goodbye: an empty hello on each interface."""


@dataclass(frozen=True, slots=True)
class ExternalRoutes:
    """Routes of this router from elsewhere, which may be redistributed; None: it is gone."""

    changes: dict[RouteKey, LocalRoute | None]


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One log line: a stable event name and its fields, already limited in rate per source."""

    level: str
    event: str
    fields: dict[str, object] = field(default_factory=dict)
