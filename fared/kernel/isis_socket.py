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

Of the first socket, which receives all LSPs, a call reads many frames (``frames``). What their
headers say is remembered: a neighbor sends the same ones again and again. So are the last PDUs: an
LSP comes from all neighbors, and equal PDUs are the same object, which is neither copied out of the
buffer nor hashed nor compared again.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from fared.core.igp import PacketReceived, SendPacket
from fared.isis.ids import ALL_ISS, ALL_L1_ISS, ALL_L2_ISS
from fared.kernel.arrived import count_error
from fared.kernel.frames import Frames
from fared.kernel.packet_sockets import (
    A_LOOK,
    PRIORITY_CONTROL,
    PacketCallback,
    PacketSockets,
    Sockets,
    enlarge_buffer,
)
from fared.kernel.readers import Readers
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

_SLOT = 2048
"""Bytes of a frame with a length that are read: all, but for padding behind its end."""
_MOST_REMEMBERED, _REMEMBERED_OF_EACH = 1024, 32
"""Headers of frames, in all 0.3 MB, and of each interface: forged ones fill them."""
_SEEN = 4096
"""Places for headers that were seen once: a forged source comes but once, and is not remembered."""
_MOST_PAYLOADS, _PAYLOADS_OF_EACH = 256, 32
"""PDUs, in all 0.5 MB, and of each interface: those of many waves of LSPs, each of which comes from
all neighbors."""

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


_START = struct.Struct(f"{_PDU + _PDU_TYPE + 1}s21s")
"""Of a frame: up to the type of the PDU, and then, of an LSP, up to its checksum."""
_HEADER_END = _PDU + _PDU_TYPE + 1


class _FrameHeader(NamedTuple):
    """What the first bytes of a frame say: its addresses, where it ends, if it is a hello."""

    source: int
    destination: int
    end: int
    hello: bool


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

    def __init__(
        self,
        callback: PacketCallback,
        loop: asyncio.AbstractEventLoop | None = None,
        report: Report = ignore,
        readers: Readers | None = None,
    ) -> None:
        super().__init__(callback, loop, report, readers)
        self._frames = Frames(A_LOOK, _SLOT)
        self._headers: dict[bytes, _FrameHeader] = {}
        self._seen = bytearray(_SEEN)
        self._payloads: dict[bytes, bytes] = {}
        """The last PDUs, by what distinguishes LSPs."""

    def forget_senders(self) -> None:
        """Forget headers and PDUs: those of neighbors are remembered again at once."""
        self._headers.clear()
        self._payloads.clear()

    @staticmethod
    def is_hello(payload: bytes) -> bool:
        """ISO 10589 §9.5 to §9.7: PDU types 15 to 17."""
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

    def _receive_hellos(self, sock: socket.socket, *, hellos: bool) -> None:
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
    ) -> tuple[list[PacketReceived], int, bool]:
        known = self._sockets.get(ifindex)
        if known is None or sock is not known[0]:
            return super()._arrived(ifindex, sock, most)
        packets: list[PacketReceived] = []
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

    def _strip(self, ifindex: int, lengths: list[int], packets: list[PacketReceived]) -> bool:
        """Append the packets of frames that were read; return whether one is a hello."""
        memory, headers, add = self._frames.memory, self._headers, packets.append
        payloads, same, begin = self._payloads, memory.startswith, _START.unpack_from
        hellos, at = False, 0
        for length in lengths:
            # behind a short frame are bytes of others: what was found is compared with the frame
            start, instance = begin(memory, at)
            header = headers.get(start)
            if header is not None and header.end <= length:
                source, destination, end, hello = header
                hellos |= hello
                payload = payloads.get(instance)
                if payload is None or len(payload) != end - _PDU or not same(payload, at + _PDU):
                    payload = self._remembered(instance, memory[at + _PDU : at + end])
                add(PacketReceived(ifindex, source, destination, payload))
            elif (packet := self._unknown(ifindex, bytes(memory[at : at + length]))) is not None:
                hellos |= self.is_hello(packet.payload)
                add(packet)
            at += _SLOT
        return hellos

    def _remembered(self, instance: bytes, payload: bytearray) -> bytes:
        """Remember a PDU, and return it."""
        if len(self._payloads) >= min(_MOST_PAYLOADS, _PAYLOADS_OF_EACH * len(self._sockets)):
            self._payloads.clear()
        found = self._payloads[instance] = bytes(payload)
        return found

    def _unknown(self, ifindex: int, data: bytes) -> PacketReceived | None:
        """A packet with a header that is not remembered yet."""
        packet = self._packet(ifindex, data)
        start = data[:_HEADER_END]
        if packet is not None and len(start) == _HEADER_END and self._was_seen(start):
            most = min(_MOST_REMEMBERED, _REMEMBERED_OF_EACH * len(self._sockets))
            if len(self._headers) >= most:
                self._headers.clear()
            end, hello = _PDU + len(packet.payload), self.is_hello(packet.payload)
            self._headers[start] = _FrameHeader(packet.source, packet.destination, end, hello)
        return packet

    def _was_seen(self, start: bytes) -> bool:
        """Whether a header has come before; of others in its place only the last one counts."""
        mark, place = divmod(hash(start), _SEEN)
        mark = mark % 255 + 1
        known, self._seen[place] = self._seen[place], mark
        return known == mark

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
