"""What goes into a session and comes out of it: plain values, so that a run can be repeated.

Streams are TCP connections. A session opens active ones; passive ones are those that its neighbor
opened, for which whoever accepts connections finds the session by address.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from fared.protocols.bgp.packet.capabilities import GracefulRestartCapability
from fared.protocols.bgp.packet.messages import RouteRefresh, Update

EXTERNAL, INTERNAL = "external", "internal"


class StreamId(NamedTuple):
    """A connection with a neighbor; each side numbers those that it opens."""

    peer: int
    passive: bool
    number: int


class Transport(msgspec.Struct, frozen=True):
    """What the edge needs for a connection; ``link`` is the interface of a link-local address.

    ``ttl`` 255: only from the link (RFC 5082). ``key``: of TCP MD5 (RFC 2385).
    """

    remote: str
    local: str | None = None
    link: str | None = None
    port: int = 179
    ttl: int | None = None
    key: bytes | None = None


class NeighborSettings(msgspec.Struct, frozen=True):
    """How this router speaks with a neighbor; times in seconds.

    ``remote_as`` is a number, ``external`` or ``internal``. ``restart_time`` None: no graceful
    restart. ``hold_time`` 0: no keepalives.
    """

    local_as: int
    identifier: int
    transport: Transport
    remote_as: int | str = EXTERNAL
    families: tuple[int, ...] = (4, 6)
    hold_time: int = 9
    keepalive: float = 3.0
    connect_retry: float = 1.0
    passive: bool = False
    extended_next_hop: bool = False
    restart_time: int | None = None
    enforce_first_as: bool = True


class Agreed(msgspec.Struct, frozen=True):
    """What two OPEN messages have agreed on; times in seconds."""

    number: int
    identifier: int
    internal: bool
    families: tuple[int, ...]
    hold_time: int
    keepalive: float
    four_octet_as: bool
    limit: int
    refresh: bool
    extended_next_hop: bool
    restart: GracefulRestartCapability | None
    """Of the neighbor."""


class StreamOpened(msgspec.Struct, frozen=True):
    """A connection is there, with these addresses."""

    stream: StreamId
    local: str
    remote: str


class StreamReceived(msgspec.Struct, frozen=True):
    """Bytes came."""

    stream: StreamId
    data: bytes


class StreamSent(msgspec.Struct, frozen=True):
    """The kernel took so many of the bytes to send."""

    stream: StreamId
    count: int


class StreamClosed(msgspec.Struct, frozen=True):
    """A connection ended, or could not be opened; ``reason`` in words."""

    stream: StreamId
    reason: str


class Connect(msgspec.Struct, frozen=True):
    """Open a connection; the answer is StreamOpened or StreamClosed."""

    stream: StreamId
    transport: Transport


class SendStream(msgspec.Struct, frozen=True):
    """Send bytes; StreamSent tells how many have gone."""

    stream: StreamId
    data: bytes


class CloseStream(msgspec.Struct, frozen=True):
    """Send what is to be sent, if the neighbor reads it at once, and close."""

    stream: StreamId


class SessionEstablished(msgspec.Struct, frozen=True):
    """Routes may be exchanged."""

    peer: int
    agreed: Agreed


class SessionDown(msgspec.Struct, frozen=True):
    """A session that was established is not any more, or an attempt failed; reason in words.

    ``was_up`` tells which. ``keeps_routes``: the neighbor may be restarting, and has said that it
    goes on forwarding (RFC 4724 §4.2, RFC 8538 §4).
    """

    peer: int
    reason: str
    was_up: bool
    keeps_routes: bool = False


class UpdateReceived(msgspec.Struct, frozen=True):
    """An UPDATE came."""

    peer: int
    update: Update


class RefreshRequested(msgspec.Struct, frozen=True):
    """The neighbor asks for all routes of a family."""

    peer: int
    refresh: RouteRefresh


class RoomToSend(msgspec.Struct, frozen=True):
    """``send`` takes messages again, after it refused one."""

    peer: int


Input = StreamOpened | StreamReceived | StreamSent | StreamClosed
Output = (
    Connect
    | SendStream
    | CloseStream
    | SessionEstablished
    | SessionDown
    | UpdateReceived
    | RefreshRequested
    | RoomToSend
)
