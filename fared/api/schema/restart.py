"""The document of ``show graceful-restart``."""

from __future__ import annotations

from typing import TypedDict

from fared.api.schema.common import JsonDocument, Seconds


class HelpedNeighbor(TypedDict):
    """A neighbor that restarts, and that this router helps; ``remaining``: of the grace period.

    ``reason`` is that of the neighbor's grace LSA: ``software-restart``.
    """

    interface: str
    router_id: str
    hostname: str | None
    reason: str
    since: Seconds
    remaining: Seconds


class EndedHelp(TypedDict):
    """A restart of a neighbor that is over; ``result``: ``completed``, or why helping ended."""

    interface: str
    router_id: str
    hostname: str | None
    ended: Seconds
    result: str


class ProtocolRestart(TypedDict):
    """Graceful restart of one protocol; ``ended``: seconds ago, the oldest first."""

    proto: str
    helper: bool
    helping: list[HelpedNeighbor]
    ended: list[EndedHelp]


class GracefulRestart(JsonDocument):
    """``show graceful-restart``."""

    protocols: list[ProtocolRestart]
