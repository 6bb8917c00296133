"""OSPF's raw IP sockets, one per interface (RFC 2328 §8.1, appendix A.1).

One socket per interface, because a single one could join groups on 20 interfaces only
(net.ipv4.igmp_max_memberships) and would need the arrival interface from ancillary data.
All sockets are non-blocking; each wake-up drains many datagrams, which halves the cost of each.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from fared.kernel.arrived import RECEIVE_SIZE, arrived, count_error
from fared.kernel.errors import PrivilegeError

IPPROTO_OSPF = 89
ALL_SPF_ROUTERS = 0xE000_0005
ALL_DR_ROUTERS = 0xE000_0006
_TTL = 1
_TOS_INTERNETWORK_CONTROL = 0xC0  # RFC 2328 appendix A.1: precedence above that of user traffic
_PRIORITY_CONTROL = 7
_SO_BINDTOIFINDEX = 62
_SO_RCVBUFFORCE = 33
_IP_MTU_DISCOVER, _IP_PMTUDISC_DONT = 10, 0
_IP_PKTINFO = 8
_BUFFER = 1 << 20
_MOST_BEFORE_BOUND = 1024  # more than the kernel queues before the buffer is enlarged
_IPV4_HEADER = 20

PacketCallback = Callable[[int, int, int, bytes], None]


@dataclass(frozen=True, slots=True)
class Datagram:
    """An OSPF datagram without its IPv4 header; addresses as integers."""

    source: int
    destination: int
    payload: bytes


def strip_ipv4_header(data: bytes) -> Datagram | None:
    """Take the IPv4 header off what a raw socket returned; None if its lengths do not add up."""
    if len(data) < _IPV4_HEADER or data[0] >> 4 != 4:
        return None
    header = (data[0] & 0xF) * 4
    total, _, _, _, protocol = struct.unpack_from("!HHHBB", data, 2)
    if header < _IPV4_HEADER or not header <= total <= len(data) or protocol != IPPROTO_OSPF:
        return None
    source, destination = struct.unpack_from("!II", data, 12)
    return Datagram(source, destination, data[header:total])


class OspfSockets:
    """The sockets of a router, in the namespace they are opened in.

    ``callback`` gets (ifindex, source, destination, payload). ``counters``: ``received``,
    ``sent``, ``malformed``, ``send-error-<ERRNO>``, ``receive-error-<ERRNO>``,
    ``open-error-<ERRNO>``.
    """

    def __init__(
        self, callback: PacketCallback, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.counters: Counter[str] = Counter()
        self._callback = callback
        self._loop = loop or asyncio.get_running_loop()
        self._sockets: dict[int, socket.socket] = {}

    def open(self, ifindex: int) -> None:
        """Open the interface's socket and join AllSPFRouters and AllDRouters; again is fine.

        Which of both groups counts is the engine's to say (RFC 2328 §8.2). An interface that is
        gone meanwhile is counted, not raised. Raises PrivilegeError.
        """
        if ifindex in self._sockets:
            return
        try:
            sock = _open(ifindex)
        except PermissionError as error:
            raise PrivilegeError("CAP_NET_RAW", "open raw sockets for OSPF") from error
        except OSError as error:
            count_error(self.counters, "open-error", error)
            return
        self._sockets[ifindex] = sock
        self._loop.add_reader(sock, self._readable, ifindex, sock)

    def close(self, ifindex: int) -> None:
        """Close the interface's socket, if it is open; the kernel leaves the groups."""
        sock = self._sockets.pop(ifindex, None)
        if sock is not None:
            self._loop.remove_reader(sock)
            sock.close()

    def __contains__(self, ifindex: object) -> bool:
        """Whether an interface's socket is open."""
        return ifindex in self._sockets

    def close_all(self) -> None:
        """Close all sockets."""
        for ifindex in list(self._sockets):
            self.close(ifindex)

    def send(self, ifindex: int, destination: int, payload: bytes, source: int = 0) -> None:
        """Send one packet; a failure is counted, not raised: the protocol sends again.

        ``source`` is an address of this host to send from, on whichever interface it is; 0: the
        kernel takes one of the interface.
        """
        sock = self._sockets.get(ifindex)
        if sock is None:
            self.counters["send-error-ENOTCONN"] += 1
            return
        try:
            ancillary = []
            if source:
                # struct in_pktinfo: interface, source, and a field for received packets only
                info = struct.pack("=i4s4s", ifindex, source.to_bytes(4, "big"), bytes(4))
                ancillary.append((socket.IPPROTO_IP, _IP_PKTINFO, info))
            address = (socket.inet_ntoa(destination.to_bytes(4, "big")), 0)
            sock.sendmsg((payload,), ancillary, 0, address)
        except OSError as error:
            count_error(self.counters, "send-error", error)
        else:
            self.counters["sent"] += 1

    def _readable(self, ifindex: int, sock: socket.socket) -> None:
        for data in arrived(sock, self.counters):
            datagram = strip_ipv4_header(data)
            if datagram is None:
                self.counters["malformed"] += 1
                continue
            self.counters["received"] += 1
            self._callback(ifindex, datagram.source, datagram.destination, datagram.payload)
            if self._sockets.get(ifindex) is not sock:
                return  # the callback closed it


def _open(ifindex: int) -> socket.socket:
    kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    sock = socket.socket(socket.AF_INET, kind, IPPROTO_OSPF)
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_BINDTOIFINDEX, ifindex)
        _forget_others(sock)
        for group in (ALL_SPF_ROUTERS, ALL_DR_ROUTERS):
            request = struct.pack("=4s4si", group.to_bytes(4, "big"), bytes(4), ifindex)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        outgoing = struct.pack("=4s4si", bytes(4), bytes(4), ifindex)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, outgoing)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, _TTL)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, _TOS_INTERNETWORK_CONTROL)
        sock.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DONT)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, _PRIORITY_CONTROL)
        try:
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
    except OSError:
        sock.close()
        raise
    return sock


def _forget_others(sock: socket.socket) -> None:
    """Throw away what has arrived so far: until it is bound, a raw socket hears all interfaces."""
    with contextlib.suppress(OSError):
        for _ in range(_MOST_BEFORE_BOUND):
            sock.recv(RECEIVE_SIZE)
