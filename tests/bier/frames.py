"""BIER packets of tests: one frame into the loopback of a router, and what routers deliver."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from fared.core.bier import bift_id
from fared.core.wire import DecodeError
from fared.extensions.lab.namespaces import Netns
from fared.paths.bier.header import ETHERTYPE, BierHeader, decode_header, encode_header

_HEADER = bytes(12) + ETHERTYPE.to_bytes(2, "big")


def frame(
    sub_domain: int,
    string: int,
    note: bytes,
    *,
    length: int = 64,
    set_id: int = 0,
    entropy: int = 0,
    proto: int = 0,
) -> bytes:
    """A packet with a note as payload."""
    number = bift_id(length, sub_domain, set_id)
    return (
        _HEADER
        + encode_header(BierHeader(number, string, length, entropy=entropy, proto=proto))
        + note
    )


def sender(netns: Netns, interface: str = "lo") -> socket.socket:
    """A socket that sends frames out of an interface; the loopback forwards them."""
    with netns.socket(socket.AF_PACKET, socket.SOCK_RAW) as made:
        with netns.entered():
            made.bind((interface, 0))
        return made.dup()


def receiver(netns: Netns) -> socket.socket:
    """A socket that receives what is for the router, or arrives at the host, of a namespace."""
    with netns.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE)) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        made.setblocking(False)
        return made.dup()


def received(sock: socket.socket) -> Iterator[tuple[BierHeader, bytes]]:
    """The queued packets that came from the network: header and note."""
    while True:
        try:
            data, (_, _, kind, *_) = sock.recvfrom(1 << 16)
        except BlockingIOError:
            return
        if kind == socket.PACKET_OUTGOING:
            continue
        try:
            header = decode_header(data, 14)
        except DecodeError:
            continue
        yield header, data[14 + header.size :]
