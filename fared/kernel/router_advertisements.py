"""Router advertisements on links whose neighbors have no configured address (RFC 4861 §4.2).

A neighbor learns from them where to connect to; with a solicitation (§4.1) it asks for one. Ours
have a router lifetime of 0 and no prefix, and leave the hop limit open: hosts that hear them change
nothing. Of those that come only the source is read, from those that are valid (§6.1.1, §6.1.2); the
kernel verifies checksums, and goes on to process them as ``accept_ra`` says.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Final, NamedTuple

from fared.kernel.packet_sockets import PRIORITY_CONTROL
from fared.kernel.tcp import MakeSocket

ALL_NODES: Final = "ff02::1"
ALL_ROUTERS: Final = "ff02::2"
SOLICITATION: Final = 133
ADVERTISEMENT: Final = 134
_TARGETS: Final = {SOLICITATION: ALL_ROUTERS, ADVERTISEMENT: ALL_NODES}
_HOP_LIMIT: Final = 255
_HEADS: Final = {SOLICITATION: struct.Struct("!BBHI"), ADVERTISEMENT: struct.Struct("!BBHBBHII")}
"""Type, code, checksum, reserved; in place of the last: hop limit, flags, router lifetime,
reachable time, retransmission timer."""
_LIFETIME = slice(6, 8)
_SOURCE_LINK_LAYER_ADDRESS: Final = 1
_OPTION_UNIT: Final = 8
_MAC_SIZE: Final = 6
_ICMP6_FILTER: Final = 1
_WORDS: Final = 8
"""Of a struct icmp6_filter, whose bits are the types that are not to be received."""
_SO_BINDTOIFINDEX = 62
_LONGEST: Final = 1500
_MOST: Final = 16
"""Messages that are read in a turn."""
_ANCILLARY = socket.CMSG_SPACE(4)


class Heard(NamedTuple):
    """What came, and from where; ``mac`` 0: it does not say. ``lifetime``: as a router, seconds."""

    kind: int
    address: int
    mac: int
    lifetime: int = 0


def opened(make: MakeSocket, ifindex: int) -> socket.socket:
    """A socket that sends and hears such messages on one link. Raises OSError."""
    kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    made = make(socket.AF_INET6, kind, socket.IPPROTO_ICMPV6)
    refused = [0xFFFF_FFFF] * _WORDS
    for one in _TARGETS:
        refused[one >> 5] &= ~(1 << (one & 31))
    group = socket.inet_pton(socket.AF_INET6, ALL_ROUTERS) + struct.pack("=i", ifindex)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, struct.pack(f"={_WORDS}I", *refused))
        made.setsockopt(socket.SOL_SOCKET, _SO_BINDTOIFINDEX, ifindex)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, ifindex)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, _HOP_LIMIT)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
        with contextlib.suppress(PermissionError):
            made.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, PRIORITY_CONTROL)
    except OSError:
        made.close()
        raise
    return made


def message(kind: int, mac: int) -> bytes:
    """A message with the link-layer address of its sender, 0: without."""
    head = _HEADS[kind]
    fixed = head.pack(kind, *[0] * (len(head.format) - 2))
    if not mac:
        return fixed
    return fixed + bytes((_SOURCE_LINK_LAYER_ADDRESS, 1)) + mac.to_bytes(_MAC_SIZE, "big")


def send(sock: socket.socket, kind: int, ifindex: int, address: int, mac: int) -> None:
    """Send a message from a link-local address; the kernel adds the checksum.

    Raises OSError, if the kernel does not have the address (yet), for one.
    """
    info = struct.pack("=16si", address.to_bytes(16, "big"), ifindex)
    ancillary = [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, info)]
    sock.sendmsg((message(kind, mac),), ancillary, 0, (_TARGETS[kind], 0, 0, ifindex))


def receive(sock: socket.socket) -> tuple[list[Heard], int]:
    """Read what has come, but not too much at once; also return how many were not valid.

    Raises OSError.
    """
    found: list[Heard] = []
    bad = 0
    for _ in range(_MOST):
        try:
            data, ancillary, _, source = sock.recvmsg(_LONGEST, _ANCILLARY)
        except BlockingIOError:
            break
        limit = [struct.unpack("=i", value)[0] for _, _, value in ancillary if len(value) == 4]
        address = socket.inet_pton(socket.AF_INET6, source[0].partition("%")[0])
        heard = decode(data, address, limit[0] if limit else 0)
        if heard is None:
            bad += 1
        else:
            found.append(heard)
    return found, bad


def decode(data: bytes, source: bytes, hop_limit: int) -> Heard | None:
    """What a message tells; None: it is not valid (RFC 4861 §6.1.1, §6.1.2)."""
    kind = data[0] if data else 0
    head = _HEADS.get(kind)
    if head is None or hop_limit != _HOP_LIMIT or len(data) < head.size or data[1]:
        return None
    near = source[0] == 0xFE and source[1] & 0xC0 == 0x80
    if kind == ADVERTISEMENT and not near:  # who solicits may have no address yet
        return None
    at, mac = head.size, 0
    while at < len(data):
        if at + 2 > len(data):
            return None
        size = data[at + 1] * _OPTION_UNIT
        if not size or at + size > len(data):
            return None
        if data[at] == _SOURCE_LINK_LAYER_ADDRESS:
            mac = int.from_bytes(data[at + 2 : at + 2 + _MAC_SIZE], "big")
        at += size
    lifetime = 0 if kind == SOLICITATION else int.from_bytes(data[_LIFETIME], "big")
    return Heard(kind, int.from_bytes(source, "big"), mac, lifetime)
