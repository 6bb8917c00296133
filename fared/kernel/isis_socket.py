"""IS-IS frames: 802.2 behind an Ethernet header, one packet socket pair per interface.

A PDU travels behind the LLC header FE FE 03 (ISO 10589 §8.4.8). Up to 1500 bytes the header of
the frame holds their number. A jumbo frame cannot (a larger number would be an EtherType) and has
the EtherType 0x8870 in its place, as other implementations send hellos that are padded to a large
MTU. The kernel delivers frames by that field, hence two sockets: a single one for all EtherTypes
would examine every packet that the router forwards.

Frames are read with their Ethernet header, which has the destination group and the length of the
PDU without the padding of short frames. A filter in the kernel drops other protocols of the OSI
family (spanning tree, CLNP, ES-IS), our own frames and frames for others, so that they never wake
the daemon.

Of the first socket, which receives all LSPs, a call reads many frames (``frames``). The last LSPs
are remembered (``recent_pdus``): an LSP comes from all neighbors, and equal ones are the same
object, which is neither copied out of the buffer nor hashed nor compared again.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from fared.kernel.arrived import count_error
from fared.kernel.frames import Frames
from fared.kernel.packet_sockets import (
    PRIORITY_CONTROL,
    PacketCallback,
    PacketSockets,
    Sockets,
    enlarge_buffer,
)
from fared.kernel.readers import Readers
from fared.kernel.recent_pdus import RecentPdus
from fared.kernel.reopening import Report, ignore
from fared.kernel.socketfilter import (
    ALL,
    AND,
    EQUAL,
    LOAD_BYTE,
    LOAD_HALF,
    NOTHING,
    PACKET_TYPE,
    RETURN,
    Instruction,
    attach_filter,
)
from fared.protocols.igp.events import PacketReceived, PacketsReceived, Received, SendPacket
from fared.protocols.isis.ids import ALL_ISS, ALL_L1_ISS, ALL_L2_ISS

ETH_P_802_2 = 0x0004
ETHERTYPE_LLC = 0x8870
LLC = b"\xfe\xfe\x03"
"""Both service access points are those of OSI network layer protocols; unnumbered information."""
MAX_802_3 = 1500
_FIRST_ETHERTYPE = 1536
_HEADER = struct.Struct("!HIHIH")
"""Destination and source in two parts each, and the length."""
_PDU = _HEADER.size + len(LLC)
_ISIS = 0x83
_SOL_PACKET = 263
_PACKET_ADD_MEMBERSHIP, _PACKET_IGNORE_OUTGOING = 1, 23
_PACKET_MR_MULTICAST = 0
_ETHERNET = 1  # ARPHRD_ETHER

_ADDRESSES = 12
_SLOT = 1536
"""Bytes of a frame with a length that are read behind its addresses: all, but for padding."""
_LOOK = 32
"""Packets read from a socket before the next one is looked at: those of a turn, in a flood."""
_MOST_PDUS, _PDUS_OF_EACH = 256, 32
"""LSPs that are remembered, in all 0.7 MB, and of each interface: those of many waves of LSPs, each
of which comes from all neighbors."""

_PDU_TYPE, _TYPE_BITS = 4, 0x1F
_HELLOS = (15, 16, 17)


def _program(hello: int, other: int) -> tuple[Instruction, ...]:
    """Keep so many bytes of hellos, and of other PDUs; drop what is not IS-IS, or for others."""
    kinds = (
        (LOAD_BYTE, 0, 0, _PDU + _PDU_TYPE),
        (AND, 0, 0, _TYPE_BITS),
        *((EQUAL, 3 - number, 0, kind) for number, kind in enumerate(_HELLOS)),
        (RETURN, 0, 0, other),
    )
    if hello == other:
        kinds = ()
    drop = len(kinds) + 1
    return (
        (LOAD_BYTE, 0, 0, PACKET_TYPE),
        (EQUAL, drop + 5, 0, socket.PACKET_OTHERHOST),
        (EQUAL, drop + 4, 0, socket.PACKET_OUTGOING),
        (LOAD_HALF, 0, 0, _HEADER.size),
        (EQUAL, 0, drop + 2, 0xFEFE),
        (LOAD_HALF, 0, 0, _HEADER.size + 2),
        (EQUAL, 0, drop, 0x03 << 8 | _ISIS),
        *kinds,
        (RETURN, 0, 0, hello),
        (RETURN, 0, 0, 0),
    )


_KINDS: Mapping[int, str] = MappingProxyType(
    {
        15: "l1-lan-hello",
        16: "l2-lan-hello",
        17: "p2p-hello",
        18: "l1-lsp",
        20: "l2-lsp",
        24: "l1-csnp",
        25: "l2-csnp",
        26: "l1-psnp",
        27: "l2-psnp",
    }
)
_ONLY_ISIS, _ONLY_HELLOS, _NO_HELLOS = _program(ALL, ALL), _program(ALL, 0), _program(0, ALL)


_LSPS = (18, 20)
_KEY = struct.Struct("31s")
_KEYS = struct.Struct(f"{_KEY.size}s{_SLOT - _KEY.size}x")
"""Of a frame of an LSP, behind its addresses: up to its checksum, which tells instances apart."""
_TYPE_IN_KEY = _PDU - _ADDRESSES + _PDU_TYPE
_ADDRESS = struct.Struct("!HIHI")
"""Destination and source in two parts each."""


class IsisFrame(NamedTuple):
    """An IS-IS PDU with the MAC addresses it came from and was sent to, as integers."""

    source: int
    destination: int
    payload: bytes


def strip_ethernet_header(data: bytes) -> IsisFrame | None:
    """Strip Ethernet and LLC headers and padding; None if the lengths do not add up."""
    found = _stripped(data)
    return None if found is None else IsisFrame(*found)


def _stripped(data: bytes) -> tuple[int, int, bytes] | None:
    """The fields of an ``IsisFrame``: the named tuple itself is a third of the time of a packet."""
    if len(data) < _PDU or data[_HEADER.size : _PDU] != LLC:
        return None
    to_high, to_low, from_high, from_low, length = _HEADER.unpack_from(data)
    end = len(data)
    if length < _FIRST_ETHERTYPE:
        end = _HEADER.size + length
        if not _PDU <= end <= len(data):
            return None
    elif length != ETHERTYPE_LLC:
        return None
    return from_high << 32 | from_low, to_high << 32 | to_low, data[_PDU:end]


def frame(source: bytes, destination: int, payload: bytes) -> bytes:
    """Prepend the headers to a PDU; ``source`` is a MAC address of 6 bytes."""
    length = len(LLC) + len(payload)
    kind = length if length <= MAX_802_3 else ETHERTYPE_LLC
    addresses = destination.to_bytes(6, "big") + source
    return b"".join((addresses, kind.to_bytes(2, "big"), LLC, payload))


class IsisSockets(PacketSockets):
    """A pair of packet sockets per interface, in AllL1ISs, AllL2ISs and AllISs.

    The first sends all PDUs and receives frames with a length, the second receives the others. An
    interface that is not Ethernet fails permanently (EPROTONOSUPPORT).
    """

    purpose = "packet sockets for IS-IS"
    look = _LOOK

    def __init__(
        self,
        callback: PacketCallback,
        loop: asyncio.AbstractEventLoop | None = None,
        report: Report = ignore,
        readers: Readers | None = None,
    ) -> None:
        super().__init__(callback, loop, report, readers)
        self._frames = Frames(_LOOK, _SLOT, _ADDRESSES)
        self._pdus = RecentPdus(self._frames, _MOST_PDUS)
        """The last LSPs."""

    def forget_senders(self) -> None:
        """Forget LSPs: those of neighbors are remembered again at once."""
        self._pdus.clear()

    @staticmethod
    def is_hello(packet: PacketReceived) -> bool:
        """ISO 10589 §9.5 to §9.7: PDU types 15 to 17."""
        payload = packet.payload
        return len(payload) > _PDU_TYPE and payload[_PDU_TYPE] & _TYPE_BITS in _HELLOS

    @staticmethod
    def kind(payload: bytes) -> str:
        """ISO 10589 §9."""
        number = payload[_PDU_TYPE] & _TYPE_BITS if len(payload) > _PDU_TYPE else 0
        return _KINDS.get(number, "unknown")

    def _open(self, ifindex: int) -> Sockets:
        return _open_both(ifindex, _ONLY_ISIS)

    def _open_hellos(self, ifindex: int) -> Sockets:
        return _open_both(ifindex, _ONLY_HELLOS)

    def _receive_hellos(
        self,
        ifindex: int,  # noqa: ARG002 - all frames come from the link
        sock: socket.socket,
        *,
        hellos: bool,
    ) -> None:
        attach_filter(sock, _ONLY_ISIS if hellos else _NO_HELLOS)

    def _receive_only_hellos(self, sock: socket.socket, *, hellos: bool) -> None:
        attach_filter(sock, _ONLY_HELLOS if hellos else NOTHING)

    def _send(self, sockets: Sockets, packet: SendPacket) -> None:
        """Send to a MAC address; a PDU may be as long as the MTU less 3 bytes of LLC header."""
        plain = sockets[0]
        # Read each time: the address of an interface may change while it is up.
        own = plain.getsockname()[4]
        plain.send(frame(own, packet.destination, packet.payload))

    def _arrived(
        self, ifindex: int, sock: socket.socket, most: int
    ) -> tuple[list[Received], int, bool]:
        known = self._sockets.get(ifindex)
        if known is None or sock is not known[0]:
            return super()._arrived(ifindex, sock, most)
        packets: list[Received] = []
        read, hellos, last = 0, False, self._frames.slots
        while read < most and last == self._frames.slots:
            try:
                lengths = self._frames.read(sock, most - read)
            except BlockingIOError:
                break
            except OSError as error:
                count_error(self.counters, "receive-error", error)
                break
            hellos |= self._strip(ifindex, lengths, packets)
            last = len(lengths)
            read += last
        return packets, read, hellos

    def _strip(self, ifindex: int, lengths: list[int], packets: list[Received]) -> bool:
        """Append the packets of frames that were read; return whether one is a hello."""
        frames, pdus, hellos = self._frames, self._pdus, False
        (first,) = _KEY.unpack_from(frames.memory)
        place = pdus.places.get(first)
        copies = [] if place is None else pdus.in_order(place, lengths)
        if copies:
            self._together(ifindex, len(lengths), copies, packets)
            return False
        memory = memoryview(frames.memory)[: len(lengths) * _SLOT]
        keys: list[bytes] = [key for (key,) in _KEYS.iter_unpack(memory)]
        places = map(pdus.places.get, keys)
        for slot, (key, place, length) in enumerate(zip(keys, places, lengths, strict=True)):
            known = None if place is None else pdus.copy(place, slot, length)
            if known is not None:
                copies.append(known)
                continue
            self._together(ifindex, slot, copies, packets)
            packet = self._packet(ifindex, frames.whole(slot, length))
            if packet is not None:
                packets.append(packet)
                if key[_TYPE_IN_KEY] & _TYPE_BITS in _LSPS:
                    self._remember(key, slot, length, packet.payload)
                else:
                    hellos |= self.is_hello(packet)
        self._together(ifindex, len(lengths), copies, packets)
        return hellos

    def _together(
        self, ifindex: int, end: int, copies: list[bytes], packets: list[Received]
    ) -> None:
        """Append copies, those of the slots before ``end``, and forget them here."""
        if not copies:
            return
        frames, first = self._frames, end - len(copies)
        alike = frames.alike(first, len(copies))
        for slot in range(first, first + 1 if alike else end):
            addresses = _ADDRESS.unpack_from(frames.starts, slot * _ADDRESSES)
            to_high, to_low, from_high, from_low = addresses
            source, destination = from_high << 32 | from_low, to_high << 32 | to_low
            some = tuple(copies) if alike else (copies[slot - first],)
            packets.append(PacketsReceived(ifindex, source, destination, some))
        copies.clear()

    def _remember(self, key: bytes, slot: int, length: int, payload: bytes) -> None:
        """Remember the LSP in a slot."""
        if len(self._pdus) >= min(_MOST_PDUS, _PDUS_OF_EACH * len(self._sockets)):
            self._pdus.clear()
        self._pdus.add(key, slot, length, payload)

    def _packet(self, ifindex: int, data: bytes) -> PacketReceived | None:
        found = _stripped(data)
        return None if found is None else PacketReceived(ifindex, *found)


def _open_both(ifindex: int, program: Sequence[Instruction]) -> Sockets:
    plain = _open_one(ifindex, ETH_P_802_2, program)
    try:
        return plain, _open_one(ifindex, ETHERTYPE_LLC, program)
    except OSError:
        plain.close()
        raise


def _open_one(ifindex: int, protocol: int, program: Sequence[Instruction]) -> socket.socket:
    kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    # A socket of protocol 0 receives nothing: filter and groups are set before the first frame.
    sock = socket.socket(socket.AF_PACKET, kind, 0)
    try:
        attach_filter(sock, program)
        try:
            sock.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        except OSError as error:  # before Linux 4.20, where the filter drops our own frames
            if error.errno != errno.ENOPROTOOPT:
                raise
        enlarge_buffer(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, PRIORITY_CONTROL)
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
