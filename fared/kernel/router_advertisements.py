"""Router advertisements on links whose neighbors have no configured address (RFC 4861 §4.2).

A neighbor learns from them where to connect to. Ours have a router lifetime of 0 and no prefix, and
leave the hop limit open: hosts that hear them change nothing. Of those that come only the source is
read, from those that are valid (§6.1.2); the kernel verifies checksums, and goes on to process them
as ``accept_ra`` says.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Final, NamedTuple

from fared.kernel.packet_sockets import PRIORITY_CONTROL
from fared.kernel.tcp import MakeSocket

ALL_NODES: Final = "ff02::1"
_ADVERTISEMENT: Final = 134
_HOP_LIMIT: Final = 255
_HEADER = struct.Struct("!BBHBBHII")
"""Type, code, checksum, hop limit, flags, router lifetime, reachable time, retransmission timer."""
_SOURCE_LINK_LAYER_ADDRESS: Final = 1
_OPTION_UNIT: Final = 8
_MAC_SIZE: Final = 6
_ICMP6_FILTER: Final = 1
_ONLY_ADVERTISEMENTS = b"".join(
    struct.pack(
        "=I", 0xFFFF_FFFF & ~(1 << (_ADVERTISEMENT & 31) if n == _ADVERTISEMENT >> 5 else 0)
    )
    for n in range(8)
)
"""struct icmp6_filter: the bits of types that are not to be received."""
_SO_BINDTOIFINDEX = 62
_LONGEST: Final = 1500
_MOST: Final = 16
"""Advertisements that are read in a turn."""
_ANCILLARY = socket.CMSG_SPACE(4)


class Heard(NamedTuple):
    """Where an advertisement came from; ``mac`` 0: it does not say."""

    address: int
    mac: int


def opened(make: MakeSocket, ifindex: int) -> socket.socket:
    """A socket that sends and hears advertisements on one link. Raises OSError."""
    kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    made = make(socket.AF_INET6, kind, socket.IPPROTO_ICMPV6)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, _ONLY_ADVERTISEMENTS)
        made.setsockopt(socket.SOL_SOCKET, _SO_BINDTOIFINDEX, ifindex)
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


def advertisement(mac: int) -> bytes:
    """An advertisement with the link-layer address of its sender, 0: without."""
    head = _HEADER.pack(_ADVERTISEMENT, 0, 0, 0, 0, 0, 0, 0)
    if not mac:
        return head
    return head + bytes((_SOURCE_LINK_LAYER_ADDRESS, 1)) + mac.to_bytes(_MAC_SIZE, "big")


def send(sock: socket.socket, ifindex: int, address: int, mac: int) -> None:
    """Send an advertisement from a link-local address; the kernel adds the checksum.

    Raises OSError, if the kernel does not have the address (yet), for one.
    """
    info = struct.pack("=16si", address.to_bytes(16, "big"), ifindex)
    ancillary = [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, info)]
    sock.sendmsg((advertisement(mac),), ancillary, 0, (ALL_NODES, 0, 0, ifindex))


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
    """What an advertisement tells; None: it is not valid (RFC 4861 §6.1.2)."""
    if hop_limit != _HOP_LIMIT or source[0] != 0xFE or source[1] & 0xC0 != 0x80:
        return None
    if len(data) < _HEADER.size or data[:2] != bytes((_ADVERTISEMENT, 0)):
        return None
    at, mac = _HEADER.size, 0
    while at < len(data):
        if at + 2 > len(data):
            return None
        size = data[at + 1] * _OPTION_UNIT
        if not size or at + size > len(data):
            return None
        if data[at] == _SOURCE_LINK_LAYER_ADDRESS:
            mac = int.from_bytes(data[at + 2 : at + 2 + _MAC_SIZE], "big")
        at += size
    return Heard(int.from_bytes(source, "big"), mac)
