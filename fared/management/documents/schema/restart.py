"""The document of ``show graceful-restart``."""

from __future__ import annotations

from typing import TypedDict

from fared.management.documents.schema.common import JsonDocument, Seconds


class HelpedNeighbor(TypedDict):
    """A neighbor that restarts, and that this router helps; ``remaining``: of the grace period.

    ``reason`` is that of the neighbor's grace LSA: ``software-restart``; in IS-IS ``announced`` or
    ``restarting``. ``since`` None: unknown.
    """

    interface: str
    router_id: str
    hostname: str | None
    reason: str
    since: Seconds | None
    remaining: Seconds


class EndedHelp(TypedDict):
    """A restart of a neighbor that is over; ``result``: ``completed``, or why helping ended."""

    interface: str
    router_id: str
    hostname: str | None
    ended: Seconds
    result: str


class RunningRestart(TypedDict):
    """A restart of this router; ``remaining``: of the grace period."""

    planned: bool
    since: Seconds
    remaining: Seconds


class EndedRestart(TypedDict):
    """The last restart of this router; ``result``: ``completed``, or why it ended early."""

    planned: bool
    duration: Seconds
    ended: Seconds
    result: str


class ProtocolRestart(TypedDict):
    """Graceful restart of one protocol; ``ended``: seconds ago, the oldest first.

    ``enabled``: for this router, ``helper``: for its neighbors.
    """

    proto: str
    enabled: bool
    restarting: RunningRestart | None
    restarted: EndedRestart | None
    helper: bool
    helping: list[HelpedNeighbor]
    ended: list[EndedHelp]


class Restarts(JsonDocument):
    """``show graceful-restart``."""

    protocols: list[ProtocolRestart]
