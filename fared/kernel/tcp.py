"""TCP sockets of routing protocols, with the options that keep strangers out.

All are non-blocking, and send with the precedence of network control, without delay. ``FROM_LINK``
as TTL is RFC 5082, a key RFC 2385; both are in force before the first segment leaves, and on a
listener for each neighbor. Every function raises OSError.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Final

from fared.core.ids import FAMILY_IPV6, is_link_local
from fared.core.streams import FROM_LINK, StreamKey, Transport
from fared.kernel.packet_sockets import PRIORITY_CONTROL

MakeSocket = Callable[[int, int, int], socket.socket]
"""Makes a socket of a family, type and protocol; tests make theirs in network namespaces."""
MOST_KEY: Final = 80
"""Bytes of a key, TCP_MD5SIG_MAXKEYLEN."""
_BACKLOG: Final = 128
_TCP_MD5SIG, _TCP_SAVE_SYN, _TCP_SAVED_SYN = 14, 27, 28
_IP_MINTTL, _IPV6_MINHOPCOUNT = 21, 73
_TCP_NOTSENT_LOWAT = 25
_SO_BINDTOIFINDEX = 62
_MOST_UNSENT: Final = 131072
"""Bytes that wait in the kernel until the neighbor's window opens."""
_CONTROL: Final = 0xC0
"""DSCP CS6: network control."""
_ADDRESS_SIZE: Final = 128
"""Bytes of a struct sockaddr_storage."""
_MD5SIG = struct.Struct(f"={_ADDRESS_SIZE}sBBHi{MOST_KEY}s")
"""struct tcp_md5sig: the address of the neighbor, no flags, the key's length, no interface."""
_LIKE_RESET = struct.pack("=ii", 1, 0)
_TTL_OFFSET: Final = {4: 8, 6: 7}


def family_of(address: str) -> int:
    """AF_INET or AF_INET6."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def packed(address: str) -> bytes:
    """An address in network byte order: text has several forms."""
    return socket.inet_pton(family_of(address), address)


def of_one_link(address: bytes) -> bool:
    """Whether a packed address is meaningful on one link only (fe80::/10)."""
    return len(address) > 4 and is_link_local(FAMILY_IPV6, int.from_bytes(address))


def listening(make: MakeSocket, family: int, port: int) -> socket.socket:
    """A socket that listens on all addresses of a family."""
    made = _made(make, family)
    with _closed_on_error(made):
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        with contextlib.suppress(OSError):  # before Linux 4.2
            made.setsockopt(socket.IPPROTO_TCP, _TCP_SAVE_SYN, 1)
        # the answer to a neighbor that takes nothing from beyond the link
        _set_ttl(made, FROM_LINK)
        made.bind(("", port))
        made.listen(_BACKLOG)
    return made


def connecting(make: MakeSocket, transport: Transport, ifindex: int) -> socket.socket:
    """A socket that is being connected; ``ifindex`` is that of ``transport.link``, or 0."""
    family = family_of(transport.remote)
    made = _made(make, family)
    with _closed_on_error(made):
        scope = 0
        if of_one_link(packed(transport.remote)):
            scope = ifindex
        elif ifindex:
            made.setsockopt(socket.SOL_SOCKET, _SO_BINDTOIFINDEX, ifindex)
        if transport.key:
            set_key(made, transport.remote, transport.key)
        restrict(made, transport.ttl)
        if transport.local is not None:
            made.bind(_endpoint(transport.local, 0, scope))
        number = made.connect_ex(_endpoint(transport.remote, transport.port, scope))
        if number not in (0, errno.EINPROGRESS):
            raise OSError(number, os.strerror(number))
    return made


def prepare(accepted: socket.socket, ttl: int | None) -> None:
    """Set what an accepted socket does not have of its listener."""
    accepted.setblocking(False)
    _set_priority(accepted)
    restrict(accepted, ttl)


def restrict(sock: socket.socket, ttl: int | None) -> None:
    """Send with this TTL, None: the kernel's; with ``FROM_LINK`` drop segments with another."""
    ipv6 = sock.family == socket.AF_INET6
    _set_ttl(sock, -1 if ttl is None else ttl)
    least = FROM_LINK if ttl == FROM_LINK else 0
    if ipv6:
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MINHOPCOUNT, least)
    else:
        sock.setsockopt(socket.IPPROTO_IP, _IP_MINTTL, least)


def set_key(sock: socket.socket, remote: str, key: StreamKey | None) -> None:
    """Sign what goes to an address, and drop what comes from it otherwise; None: neither.

    On a listener, it concerns those who connect from there.
    """
    address = packed(remote)
    if len(address) > 4:
        where = struct.pack("=HHI16sI", socket.AF_INET6, 0, 0, address, 0)
    else:
        where = struct.pack("=HH4s", socket.AF_INET, 0, address)
    content = b"" if key is None else key.content
    if len(content) > MOST_KEY:
        raise OSError(errno.EINVAL, f"a key has {MOST_KEY} bytes at most")
    request = _MD5SIG.pack(where.ljust(_ADDRESS_SIZE, b"\0"), 0, 0, len(content), 0, content)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, _TCP_MD5SIG, request)
    except FileNotFoundError:
        if key:
            raise  # else there was none


def came_from_link(accepted: socket.socket) -> bool:
    """Whether the SYN of an accepted socket had the TTL that no router forwards."""
    try:
        syn = accepted.getsockopt(socket.IPPROTO_TCP, _TCP_SAVED_SYN, 256)
    except OSError:
        return True  # before Linux 4.2; all that follows is compared by the kernel
    offset = _TTL_OFFSET.get(syn[0] >> 4) if syn else None
    return offset is None or syn[offset] == FROM_LINK


def reset(sock: socket.socket) -> None:
    """Close a connection so that the kernel keeps nothing of it."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LIKE_RESET)
    sock.close()


def _made(make: MakeSocket, family: int) -> socket.socket:
    kind = socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    made = make(family, kind, socket.IPPROTO_TCP)
    with _closed_on_error(made):
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, _MOST_UNSENT)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, _CONTROL)
        else:
            made.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, _CONTROL)
        _set_priority(made)
    return made


def _set_priority(sock: socket.socket) -> None:
    with contextlib.suppress(PermissionError):  # without CAP_NET_ADMIN; the DSCP is there
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, PRIORITY_CONTROL)


def _set_ttl(sock: socket.socket, ttl: int) -> None:
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, ttl)
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)


def _endpoint(address: str, port: int, scope: int) -> tuple[str, int] | tuple[str, int, int, int]:
    if family_of(address) == socket.AF_INET:
        return address, port
    return address, port, 0, scope if of_one_link(packed(address)) else 0


@contextlib.contextmanager
def _closed_on_error(sock: socket.socket) -> Iterator[None]:
    try:
        yield
    except OSError:
        sock.close()
        raise
