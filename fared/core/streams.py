"""Streams: TCP connections of a routing protocol, as values between its engine and the edge.

An engine opens active streams; passive ones are those that neighbors opened, for which the edge
finds the neighbor by address (``Listen``). ``peer`` is a number by which the engine knows a
neighbor. Addresses are text.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple, Self

import msgspec

BGP_PORT = 179
FROM_LINK = 255
"""TTL of packets that are accepted from the link only (RFC 5082)."""


class StreamId(NamedTuple):
    """A connection with a neighbor; each side numbers those that it opens."""

    peer: int
    passive: bool
    number: int


class StreamKey(msgspec.Struct, frozen=True):
    """A key of TCP MD5 (RFC 2385), which no text or recording has in clear."""

    content: bytes

    def __repr__(self) -> str:
        return "StreamKey()"

    def hidden(self, salt: bytes) -> Self:
        """Another key in its place, equal for equal ones: an engine only compares them."""
        return type(self)(hashlib.blake2b(self.content, key=salt, digest_size=16).digest())


class Transport(msgspec.Struct, frozen=True):
    """What the edge needs for a connection; ``link`` is the interface of a link-local address.

    ``local``: the address to send from, None: the kernel's choice. ``port``: of the neighbor.
    ``ttl``: of packets that are sent, None: the kernel's; with ``FROM_LINK``, others that come are
    dropped.
    """

    remote: str
    local: str | None = None
    link: str | None = None
    port: int = BGP_PORT
    ttl: int | None = None
    key: StreamKey | None = None


def unanswered(transport: Transport) -> str:
    """Why a connection could not be opened that nobody answered, in words."""
    silent = [
        words
        for words, wanted in (
            ("a wrong key", transport.key is not None),
            ("a TTL below 255", transport.ttl == FROM_LINK),
        )
        if wanted
    ]
    return "no answer" + (f"; {' or '.join(silent)} gets none" if silent else "")


class StreamOpened(msgspec.Struct, frozen=True):
    """Input: a connection is there, with these addresses."""

    stream: StreamId
    local: str
    remote: str


class StreamReceived(msgspec.Struct, frozen=True):
    """Input: bytes came."""

    stream: StreamId
    data: bytes


class StreamSent(msgspec.Struct, frozen=True):
    """Input: the kernel took so many of the bytes to send."""

    stream: StreamId
    count: int


class StreamClosed(msgspec.Struct, frozen=True):
    """Input: a connection is gone, or could not be opened."""

    stream: StreamId
    reason: str


class Connect(msgspec.Struct, frozen=True):
    """Output: open a connection; the answer is StreamOpened or StreamClosed."""

    stream: StreamId
    transport: Transport


class SendStream(msgspec.Struct, frozen=True):
    """Output: send bytes; StreamSent tells how many have gone."""

    stream: StreamId
    data: bytes


class CloseStream(msgspec.Struct, frozen=True):
    """Output: send what is to be sent, if the neighbor reads it at once, and close.

    Nothing is told of the stream any more, StreamClosed neither.
    """

    stream: StreamId


class ReadStream(msgspec.Struct, frozen=True):
    """Output: stop reading a stream, or go on; at first every stream is read.

    Bytes that were read before may still be passed on. ``wanted`` again: what has come is read now,
    before that of others.
    """

    stream: StreamId
    wanted: bool


class Listener(msgspec.Struct, frozen=True):
    """A neighbor that may connect: from ``transport.remote``, to ``transport.local`` if it is set.

    Over ``transport.link``, where it is set; its TTL and its MD5 key are those of ``transport``.
    """

    peer: int
    transport: Transport


class Listen(msgspec.Struct, frozen=True):
    """Output: accept connections of exactly these neighbors on ``port``, instead of others before.

    Connections that are open stay. Without neighbors nothing listens.
    """

    listeners: tuple[Listener, ...]
    port: int = BGP_PORT


class AdvertiseRouter(msgspec.Struct, frozen=True):
    """Output: send router advertisements on a link, lifetime 0, and report those heard there.

    The neighbor of an unnumbered session connects once it has heard one (RFC 4861 §4.2).
    ``address`` is the link-local address to send from; None: no longer.
    """

    ifindex: int
    interface: str
    address: int | None
    mac: int = 0


class RouterHeard(msgspec.Struct, frozen=True):
    """Input: a router advertisement came on a link, from this link-local address.

    It comes again if the address changes, and with each advertisement that follows a start. ``mac``
    is the source link-layer address, 0 without one.
    """

    ifindex: int
    address: int
    mac: int = 0


StreamInput = StreamOpened | StreamReceived | StreamSent | StreamClosed | RouterHeard
StreamOutput = Connect | SendStream | CloseStream | ReadStream | Listen | AdvertiseRouter
