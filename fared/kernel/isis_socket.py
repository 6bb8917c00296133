"""IS-IS frames: 802.2 behind an Ethernet header, one packet socket pair per interface.

A PDU travels behind the LLC header FE FE 03 (ISO 10589 §8.4.8). Up to 1500 bytes the header of
the frame holds their number; a jumbo frame cannot (a larger number would be an EtherType) and
has the EtherType 0x8870 in its place, as other implementations send hellos that are padded to a
large MTU. The kernel sorts frames by that field, hence two sockets: one that took all EtherTypes
would cost a look at every packet that the router forwards.

Frames are read with their Ethernet header: it tells the group that a frame was sent to, and
where the PDU ends and the padding of short frames begins. A filter in the kernel drops other
protocols of the OSI family (spanning tree, CLNP, ES-IS), so they never wake the daemon, as well
as our own frames and frames for others.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from fared.isis.ids import ALL_ISS, ALL_L1_ISS, ALL_L2_ISS
from fared.kernel.arrived import arrived, count_error
from fared.kernel.errors import PrivilegeError
from fared.kernel.socketfilter import (
    ALL,
    EQUAL,
    LOAD_BYTE,
    LOAD_HALF,
    PACKET_TYPE,
    RETURN,
    attach_filter,
)

ETH_P_802_2 = 0x0004
ETHERTYPE_LLC = 0x8870
LLC = b"\xfe\xfe\x03"
"""Both service access points those of OSI network layer protocols, and unnumbered information."""
MAX_802_3 = 1500
_FIRST_ETHERTYPE = 1536
_HEADER = struct.Struct("!6s6sH")
_PDU = _HEADER.size + len(LLC)
_ISIS = 0x83
_SOL_PACKET = 263
_PACKET_ADD_MEMBERSHIP, _PACKET_IGNORE_OUTGOING = 1, 23
_PACKET_MR_MULTICAST = 0
_SO_RCVBUFFORCE = 33
_PRIORITY_CONTROL = 7
_BUFFER = 1 << 20
_ETHERNET = 1  # ARPHRD_ETHER

_ONLY_ISIS = (
    (LOAD_BYTE, 0, 0, PACKET_TYPE),
    (EQUAL, 6, 0, socket.PACKET_OTHERHOST),
    (EQUAL, 5, 0, socket.PACKET_OUTGOING),
    (LOAD_HALF, 0, 0, _HEADER.size),
    (EQUAL, 0, 3, 0xFEFE),
    (LOAD_HALF, 0, 0, _HEADER.size + 2),
    (EQUAL, 0, 1, 0x03 << 8 | _ISIS),
    (RETURN, 0, 0, ALL),
    (RETURN, 0, 0, 0),
)

FrameCallback = Callable[[int, int, int, bytes], None]


class Frame(NamedTuple):
    """An IS-IS PDU with the MAC addresses it came from and was sent to, as integers."""

    source: int
    destination: int
    payload: bytes


def strip_ethernet_header(data: bytes) -> Frame | None:
    """Take Ethernet and LLC headers and padding off; None if the lengths do not add up."""
    if len(data) < _PDU or data[_HEADER.size : _PDU] != LLC:
        return None
    destination, source, length = _HEADER.unpack_from(data)
    end = len(data)
    if length < _FIRST_ETHERTYPE:
        end = _HEADER.size + length
        if not _PDU <= end <= len(data):
            return None
    elif length != ETHERTYPE_LLC:
        return None
    return Frame(int.from_bytes(source, "big"), int.from_bytes(destination, "big"), data[_PDU:end])


def frame(source: bytes, destination: int, payload: bytes) -> bytes:
    """Put the headers before a PDU; ``source`` is a MAC address of 6 bytes."""
    length = len(LLC) + len(payload)
    kind = length if length <= MAX_802_3 else ETHERTYPE_LLC
    return _HEADER.pack(destination.to_bytes(6, "big"), source, kind) + LLC + payload


@dataclass(frozen=True, slots=True)
class _Pair:
    """``plain`` sends all and receives frames with a length, ``jumbo`` receives the others."""

    plain: socket.socket
    jumbo: socket.socket


class IsisSockets:
    """The sockets of a router, in the namespace they are opened in.

    ``callback`` gets (ifindex, source, destination, payload), MAC addresses as integers and the
    PDU behind the LLC header. ``counters``: ``received``, ``sent``, ``malformed``,
    ``send-error-<ERRNO>`` (EMSGSIZE: larger than the MTU), ``receive-error-<ERRNO>``,
    ``open-error-<ERRNO>`` (EPROTONOSUPPORT: not Ethernet).
    """

    def __init__(
        self, callback: FrameCallback, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.counters: Counter[str] = Counter()
        self._callback = callback
        self._loop = loop or asyncio.get_running_loop()
        self._sockets: dict[int, _Pair] = {}

    def open(self, ifindex: int) -> None:
        """Open the interface's sockets and join AllL1ISs, AllL2ISs and AllISs; again is fine.

        Which group counts is the engine's to say. An interface that is gone meanwhile is
        counted, not raised. Raises PrivilegeError.
        """
        if ifindex in self._sockets:
            return
        try:
            pair = _open(ifindex)
        except PermissionError as error:
            raise PrivilegeError("CAP_NET_RAW", "open packet sockets for IS-IS") from error
        except OSError as error:
            count_error(self.counters, "open-error", error)
            return
        self._sockets[ifindex] = pair
        for sock in (pair.plain, pair.jumbo):
            self._loop.add_reader(sock, self._readable, ifindex, sock)

    def close(self, ifindex: int) -> None:
        """Close the interface's sockets, if they are open; the kernel leaves the groups."""
        pair = self._sockets.pop(ifindex, None)
        if pair is not None:
            for sock in (pair.plain, pair.jumbo):
                self._loop.remove_reader(sock)
                sock.close()

    def __contains__(self, ifindex: object) -> bool:
        """Whether an interface's socket is open."""
        return ifindex in self._sockets

    def close_all(self) -> None:
        """Close all sockets."""
        for ifindex in list(self._sockets):
            self.close(ifindex)

    def send(self, ifindex: int, destination: int, payload: bytes) -> None:
        """Send one PDU to a MAC address; a failure is counted, not raised: it will be sent again.

        ``payload`` may be as long as the MTU less the three bytes of the LLC header.
        """
        pair = self._sockets.get(ifindex)
        if pair is None:
            self.counters["send-error-ENOTCONN"] += 1
            return
        try:
            # Asked for each time: the address of an interface may be changed while it is up.
            own = pair.plain.getsockname()[4]
            pair.plain.send(frame(own, destination, payload))
        except OSError as error:
            count_error(self.counters, "send-error", error)
        else:
            self.counters["sent"] += 1

    def _readable(self, ifindex: int, sock: socket.socket) -> None:
        for data in arrived(sock, self.counters):
            received = strip_ethernet_header(data)
            if received is None:
                self.counters["malformed"] += 1
                continue
            self.counters["received"] += 1
            self._callback(ifindex, *received)
            if sock.fileno() < 0:
                return  # the callback closed it


def _open(ifindex: int) -> _Pair:
    plain = _open_one(ifindex, ETH_P_802_2)
    try:
        return _Pair(plain, _open_one(ifindex, ETHERTYPE_LLC))
    except OSError:
        plain.close()
        raise


def _open_one(ifindex: int, protocol: int) -> socket.socket:
    kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    # Protocol 0 receives nothing: filter and groups are in place before the first frame.
    sock = socket.socket(socket.AF_PACKET, kind, 0)
    try:
        attach_filter(sock, _ONLY_ISIS)
        try:
            sock.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        except OSError as error:  # before Linux 4.20: the filter sees to it
            if error.errno != errno.ENOPROTOOPT:
                raise
        try:
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, _PRIORITY_CONTROL)
        for group in (ALL_L1_ISS, ALL_L2_ISS, ALL_ISS):
            address = group.to_bytes(6, "big")
            request = struct.pack("=iHH8s", ifindex, _PACKET_MR_MULTICAST, 6, address)
            sock.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, request)
        sock.bind((socket.if_indextoname(ifindex), protocol))
        _refuse_others_than_ethernet(sock)
    except OSError:
        sock.close()
        raise
    return sock


def _refuse_others_than_ethernet(sock: socket.socket) -> None:
    if sock.getsockname()[3] != _ETHERNET:
        raise OSError(errno.EPROTONOSUPPORT, "not an Ethernet interface")
