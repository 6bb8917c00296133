"""OSPF's raw IP sockets, one per interface (RFC 2328 §8.1, appendix A.1).

One socket per interface, because a single one could join groups on 20 interfaces only
(net.ipv4.igmp_max_memberships) and would need the arrival interface from ancillary data.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from fared.kernel.arrived import RECEIVE_SIZE
from fared.kernel.on_link import REFUSE, Program, admitting, to, unless
from fared.kernel.packet_sockets import (
    PRIORITY_CONTROL,
    PacketSockets,
    Sockets,
    enlarge_buffer,
)
from fared.kernel.socketfilter import (
    ALL,
    EQUAL,
    LENGTH_OF_IPV4,
    LOAD_BYTE_BEHIND,
    NOTHING,
    RETURN,
    attach_filter,
)
from fared.protocols.igp.events import PacketReceived, SendPacket

IPPROTO_OSPF = 89
ALL_SPF_ROUTERS = 0xE000_0005
ALL_DR_ROUTERS = 0xE000_0006
TTL = 1
"""RFC 2328 appendix A.1, for unicast packets too: no router forwards a packet with TTL 1."""
_TOS_INTERNETWORK_CONTROL = 0xC0  # RFC 2328 appendix A.1: precedence above that of user traffic
_SO_BINDTOIFINDEX = 62
_IP_MTU_DISCOVER, _IP_PMTUDISC_DONT = 10, 0
_IP_PKTINFO = 8
_MOST_BEFORE_BOUND = 1024  # more than fit into the queue before its buffer is enlarged
_KINDS: Mapping[bytes, str] = MappingProxyType(
    {
        b"\x01": "hello",
        b"\x02": "database-description",
        b"\x03": "ls-request",
        b"\x04": "ls-update",
        b"\x05": "ls-ack",
    }
)
_HELLO = 1
_IS_HELLO = (LENGTH_OF_IPV4, 0, 0, 0), (LOAD_BYTE_BEHIND, 0, 0, 1), (EQUAL, 0, 1, _HELLO)
_KEEP: Program = ((RETURN, 0, 0, ALL),)
# RFC 2328 §9.5: hellos are sent to AllSPFRouters; others are refused, and none overtakes.
_TO_ALL = to(ALL_SPF_ROUTERS)
_ONLY_HELLOS = (*unless([_TO_ALL], REFUSE), *unless([_IS_HELLO], REFUSE), *_KEEP)
_NO_HELLOS = (*unless([_TO_ALL], _KEEP), *unless([_IS_HELLO], _KEEP), *REFUSE)
_IPV4_HEADER = struct.Struct("!BxH4xBB2xII")
_FRAGMENT_HEADER = struct.Struct("!BBHHHBBHII")
_VERSION_AND_LENGTH, _MORE_FRAGMENTS = 0x45, 0x2000
_MULTICAST: Mapping[int, tuple[str, int]] = MappingProxyType(
    {
        group: (socket.inet_ntoa(group.to_bytes(4, "big")), 0)
        for group in (ALL_SPF_ROUTERS, ALL_DR_ROUTERS)
    }
)


class OspfDatagram(msgspec.Struct, frozen=True):
    """An OSPF datagram without its IPv4 header; addresses as integers."""

    source: int
    destination: int
    ttl: int
    payload: bytes


def strip_ipv4_header(data: bytes) -> OspfDatagram | None:
    """Strip the IPv4 header of a raw socket's datagram; None if its lengths are inconsistent."""
    if len(data) < _IPV4_HEADER.size or data[0] >> 4 != 4:
        return None
    first, total, ttl, protocol, source, destination = _IPV4_HEADER.unpack_from(data)
    header = (first & 0xF) * 4
    shortest = _IPV4_HEADER.size
    if header < shortest or not header <= total <= len(data) or protocol != IPPROTO_OSPF:
        return None
    return OspfDatagram(source, destination, ttl, data[header:total])


class OspfSockets(PacketSockets):
    """One raw socket per interface, in AllSPFRouters and AllDRouters."""

    purpose = "raw sockets for OSPF"

    @staticmethod
    def is_hello(packet: PacketReceived) -> bool:
        """RFC 2328 §A.3.1: type 1; §9.5: to AllSPFRouters."""
        return packet.payload[1:2] == b"\x01" and packet.destination == ALL_SPF_ROUTERS

    @staticmethod
    def kind(payload: bytes) -> str:
        """RFC 2328 §A.3.1."""
        return _KINDS.get(payload[1:2], "unknown")

    def _open(self, ifindex: int) -> Sockets:
        return (_open(ifindex, self._program(ifindex, hellos=True)),)

    def _program(self, ifindex: int, *, hellos: bool) -> Program:
        """What comes from the link of an interface, with its hellos or without."""
        admitted = admitting(_MULTICAST, self._unicasts.get(ifindex))
        return admitted + (_KEEP if hellos else _NO_HELLOS)

    def _open_hellos(self, ifindex: int) -> Sockets:
        """Without joining the groups: a socket receives those that another one has joined."""
        kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        sock = socket.socket(socket.AF_INET, kind, IPPROTO_OSPF)
        try:
            attach_filter(sock, _ONLY_HELLOS)
            sock.setsockopt(socket.SOL_SOCKET, _SO_BINDTOIFINDEX, ifindex)
            _forget_others(sock)
            enlarge_buffer(sock)
        except OSError:
            sock.close()
            raise
        return (sock,)

    def _receive_hellos(self, ifindex: int, sock: socket.socket, *, hellos: bool) -> None:
        attach_filter(sock, self._program(ifindex, hellos=hellos))

    def _receive_only_hellos(self, sock: socket.socket, *, hellos: bool) -> None:
        attach_filter(sock, _ONLY_HELLOS if hellos else NOTHING)

    def _send(self, sockets: Sockets, packet: SendPacket) -> None:
        """Send from ``packet.source``; 0: the kernel chooses the address."""
        ancillary = []
        if packet.source:
            # struct in_pktinfo: interface, source, and a field for received packets only
            source = packet.source.to_bytes(4, "big")
            info = struct.pack("=i4s4s", packet.ifindex, source, bytes(4))
            ancillary.append((socket.IPPROTO_IP, _IP_PKTINFO, info))
        if packet.ttl != TTL:
            ancillary.append((socket.IPPROTO_IP, socket.IP_TTL, struct.pack("=i", packet.ttl)))
        address = _MULTICAST.get(packet.destination)
        if address is None:
            address = (socket.inet_ntoa(packet.destination.to_bytes(4, "big")), 0)
        if packet.mtu and packet.mtu < _IPV4_HEADER.size + len(packet.payload):
            _send_fragments(sockets[0], packet, address)
        elif ancillary:
            sockets[0].sendmsg((packet.payload,), ancillary, 0, address)
        else:
            sockets[0].sendto(packet.payload, address)

    def _packet(self, ifindex: int, data: bytes) -> PacketReceived | None:
        found = strip_ipv4_header(data)
        if found is None:
            return None
        return PacketReceived(ifindex, found.source, found.destination, found.payload, found.ttl)


def _send_fragments(sock: socket.socket, packet: SendPacket, address: tuple[str, int]) -> None:
    """Send a packet in fragments smaller than the MTU of the link, which the kernel would take.

    It sets length, checksum, and a source of 0 (raw(7), IP_HDRINCL).
    """
    step = (packet.mtu - _IPV4_HEADER.size) & ~7
    number = int.from_bytes(os.urandom(2), "big") | 1  # the kernel replaces 0 in each fragment
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)
    try:
        for at in range(0, len(packet.payload), step):
            part = packet.payload[at : at + step]
            more = _MORE_FRAGMENTS if at + step < len(packet.payload) else 0
            header = _FRAGMENT_HEADER.pack(
                _VERSION_AND_LENGTH,
                _TOS_INTERNETWORK_CONTROL,
                0,
                number,
                at // 8 | more,
                packet.ttl,
                IPPROTO_OSPF,
                0,
                packet.source,
                packet.destination,
            )
            sock.sendto(header + part, address)
    finally:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 0)


def _open(ifindex: int, program: Program) -> socket.socket:
    kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    sock = socket.socket(socket.AF_INET, kind, IPPROTO_OSPF)
    try:
        attach_filter(sock, program)
        sock.setsockopt(socket.SOL_SOCKET, _SO_BINDTOIFINDEX, ifindex)
        _forget_others(sock)
        for group in (ALL_SPF_ROUTERS, ALL_DR_ROUTERS):
            request = struct.pack("=4s4si", group.to_bytes(4, "big"), bytes(4), ifindex)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        outgoing = struct.pack("=4s4si", bytes(4), bytes(4), ifindex)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, outgoing)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, TTL)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, TTL)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, _TOS_INTERNETWORK_CONTROL)
        # RFC 2328 appendix A.1: OSPF depends on IP fragmentation of packets above the MTU.
        sock.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DONT)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, PRIORITY_CONTROL)
        enlarge_buffer(sock)
    except OSError:
        sock.close()
        raise
    return sock


def _forget_others(sock: socket.socket) -> None:
    """Discard packets received so far: until bound, a raw socket receives from all interfaces."""
    with contextlib.suppress(OSError):
        for _ in range(_MOST_BEFORE_BOUND):
            sock.recv(RECEIVE_SIZE)
