"""What goes into a session and comes out of it: plain values, so that a run can be repeated.

What concerns connections is in ``core.streams``.
"""

from __future__ import annotations

import msgspec

from fared.core.streams import (
    CloseStream,
    Connect,
    ReadStream,
    SendStream,
    StreamClosed,
    StreamOpened,
    StreamReceived,
    StreamSent,
    Transport,
)
from fared.protocols.bgp.packet.capabilities import GracefulRestartCapability
from fared.protocols.bgp.packet.messages import RouteRefresh, Update
from fared.protocols.bgp.settings import BgpNeighborSettings

_DEFAULT = BgpNeighborSettings()


class NeighborSettings(msgspec.Struct, frozen=True):
    """How this router speaks with a neighbor; times in seconds.

    ``remote_as`` is a number, ``external`` or ``internal``. ``restart_time`` None: no graceful
    restart. ``keeps``: this router goes on forwarding when it restarts, ``restarting``: it has done
    so. ``hold_time`` 0: no keepalives. ``own_minimum``: the tables take the minimum of what the
    neighbor announces and of the link to it.
    """

    local_as: int
    identifier: int
    transport: Transport
    remote_as: int | str = _DEFAULT.remote_as
    families: tuple[int, ...] = _DEFAULT.families
    hold_time: int = _DEFAULT.hold_time
    keepalive: float = _DEFAULT.keepalive
    connect_retry: float = _DEFAULT.connect_retry
    passive: bool = _DEFAULT.passive
    extended_next_hop: bool = False
    restart_time: int | None = None
    enforce_first_as: bool = _DEFAULT.enforce_first_as
    keeps: bool = True
    restarting: bool = False
    hostname: str = ""
    own_minimum: bool = True


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
    """Octets of a message that the neighbor takes; we take long ones in any case."""
    refresh: bool
    extended_next_hop: bool
    restart: GracefulRestartCapability | None
    """Of the neighbor."""
    hostname: str = ""
    """The neighbor's."""
    own_minimum: bool = False
    """The neighbor takes the minimum with its own direction of the link."""


class MessageRejected(msgspec.Struct, frozen=True):
    """A message ends the session: its type, empty if it is none, and the code of the error."""

    peer: int
    kind: str
    code: int


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
    | ReadStream
    | SessionEstablished
    | SessionDown
    | UpdateReceived
    | RefreshRequested
    | RoomToSend
    | MessageRejected
)
