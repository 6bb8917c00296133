"""The TLVs; all but those of reachability, LSP entries and flooding parameters are declared here.

A decoded PDU is encoded to the same bytes if its sender packed its TLVs as the encoder does. Other
packages import the classes from here.
"""

# Annotations are evaluated here, not text: formats are read from them at start.
import enum
import functools
import struct
from typing import Annotated, Final

import msgspec
from msgspec.structs import asdict

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, dotted, format_address
from fared.core.text import flag_names
from fared.core.wire import U8, U16, U32, DecodeError, Format, integer
from fared.protocols.isis.ids import Snpa, format_snpa
from fared.protocols.isis.pdu.flooding_parameters import FloodingParameters
from fared.protocols.isis.pdu.ip_reach import IpReach, IpReachability
from fared.protocols.isis.pdu.is_reach import IsNeighbor, IsReachability
from fared.protocols.isis.pdu.lsp_entries import LspEntries, LspEntry
from fared.protocols.isis.pdu.narrow import (
    NarrowIpReach,
    NarrowIpReachability,
    NarrowIsReachability,
    NarrowNeighbor,
)
from fared.protocols.isis.pdu.tlv import (
    SYSTEM_ID,
    TOPOLOGY_ID,
    Decoder,
    FixedTlv,
    Json,
    ListTlv,
    Tlv,
    UnknownTlv,
    decoder_of_list,
    of_type,
)
from fared.protocols.isis.pdu.triplet import DecodeOptions, pack_entries, write_triplet

__all__ = [
    "FLAG_EXTERNAL",
    "FLAG_NODE",
    "FLAG_READVERTISED",
    "MT_IPV4",
    "MT_IPV6",
    "NLPIDS",
    "NLPID_IPV4",
    "NLPID_IPV6",
    "TOPOLOGIES",
    "AreaAddresses",
    "Authentication",
    "BfdEnabled",
    "FloodingParameters",
    "Hostname",
    "InterfaceAddresses",
    "IpReach",
    "IpReachability",
    "IsNeighbor",
    "IsNeighbors",
    "IsReachability",
    "LspBufferSize",
    "LspEntries",
    "LspEntry",
    "MultiTopology",
    "NarrowIpReach",
    "NarrowIpReachability",
    "NarrowIsReachability",
    "NarrowNeighbor",
    "Padding",
    "ProtocolsSupported",
    "PurgeOriginator",
    "Restart",
    "RestartFlag",
    "TeRouterId",
    "ThreeWay",
    "ThreeWayState",
    "Tlv",
    "Topology",
    "UnknownTlv",
    "format_area",
    "of_type",
]

NLPID_IPV4 = 0xCC
NLPID_IPV6 = 0x8E
NLPIDS = {FAMILY_IPV4: NLPID_IPV4, FAMILY_IPV6: NLPID_IPV6}
FLAG_EXTERNAL = 0x80
FLAG_READVERTISED = 0x40
FLAG_NODE = 0x20
"""Prefix attribute flags X, R, N (RFC 7794 §2.1)."""
MT_IPV4 = 0
MT_IPV6 = 2
TOPOLOGIES = {FAMILY_IPV4: MT_IPV4, FAMILY_IPV6: MT_IPV6}
"""The MT id of each family (RFC 5120 §7.5)."""
_PROTOCOLS: Final = {NLPID_IPV4: "ipv4", NLPID_IPV6: "ipv6"}
_OVERLOAD: Final = 0x8000
_ATTACHED: Final = 0x4000
_MAX_AREA_ADDRESS: Final = 13
_GENERIC: Final = 3
_KEY_ID_SIZE: Final = 2
_BFD_ENABLED = struct.Struct(">HB")
_AUTHENTICATION_NAMES: Final = {1: "cleartext", 54: "md5"}
_SHA_NAMES: Final = {
    20: "hmac-sha-1",
    32: "hmac-sha-256",
    48: "hmac-sha-384",
    64: "hmac-sha-512",
}


class AreaAddresses(Tlv, frozen=True, gc=False):
    """TLV 1: area addresses of 1 to 13 bytes."""

    code, label = 1, "area_addresses"
    addresses: tuple[bytes, ...]

    @classmethod
    def decode(cls, data: bytes, start: int, end: int, _: DecodeOptions, /) -> Tlv:
        """Decode the addresses, each after its size."""
        addresses = []
        while start < end:
            size = data[start]
            first = start + 1
            start = first + size
            if not 1 <= size <= _MAX_AREA_ADDRESS or start > end:
                raise DecodeError("tlv", first - 1, f"area address of {size} bytes")
            addresses.append(data[first:start])
        return cls(tuple(addresses))

    def encode(self, _: int | None, /) -> bytes:
        """Encode each address after its size."""
        return pack_entries(self.code, (bytes((len(a),)) + a for a in self.addresses))

    def document(self) -> Json:
        """Return the addresses in their usual form."""
        return {self.label: [format_area(address) for address in self.addresses]}


def format_area(address: bytes) -> str:
    """Write an area address: ``49.0001``."""
    digits = address.hex()
    groups = [digits[:2], *(digits[at : at + 4] for at in range(2, len(digits), 4))]
    return ".".join(groups)


class IsNeighbors(ListTlv, frozen=True, gc=False):
    """TLV 6: MAC addresses of the neighbors received on the LAN."""

    code, label, what = 6, "is_neighbors", "SNPAs"
    item = integer(6, format_snpa)
    snpas: tuple[Snpa, ...]


class Padding(Tlv, frozen=True, gc=False):
    """TLV 8: that many zero bytes (0..255)."""

    code, label = 8, "padding"
    size: int

    @classmethod
    def decode(cls, data: bytes, start: int, end: int, _: DecodeOptions, /) -> Tlv:
        """Count the bytes; others than zeros are kept."""
        value = data[start:end]
        return UnknownTlv(cls.code, value) if any(value) else cls(len(value))

    def encode(self, _: int | None, /) -> bytes:
        """Encode the zeros."""
        return write_triplet(self.code, bytes(self.size))


class Authentication(Tlv, frozen=True, gc=False):
    """TLV 10: ``kind`` 1 clear text, 54 HMAC-MD5 (RFC 5304), 3 generic (RFC 5310).

    ``value`` is the password, the digest, or key id (2 bytes) and digest.
    """

    code, label = 10, "authentication"
    kind: int
    value: bytes

    @classmethod
    def decode(cls, data: bytes, start: int, end: int, _: DecodeOptions, /) -> Tlv:
        """Decode the type; the value depends on it."""
        if start == end:
            raise DecodeError("tlv", start, "authentication without a type")
        return cls(data[start], data[start + 1 : end])

    def encode(self, _: int | None, /) -> bytes:
        """Encode type and value."""
        return write_triplet(self.code, bytes((self.kind,)) + self.value)

    @property
    def name(self) -> str:
        """The algorithm as the configuration names it, or ``type-42``."""
        if self.kind == _GENERIC:
            return _SHA_NAMES.get(len(self.value) - _KEY_ID_SIZE, "cryptographic")
        return _AUTHENTICATION_NAMES.get(self.kind, f"type-{self.kind}")

    def document(self) -> Json:
        """Return its parts; a clear text password is not shown."""
        out: Json = {"type": self.kind, "type_name": self.name}
        if self.kind == _GENERIC and len(self.value) >= _KEY_ID_SIZE:
            out["key_id"] = int.from_bytes(self.value[:_KEY_ID_SIZE], "big")
            out["digest"] = self.value[_KEY_ID_SIZE:].hex()
        elif self.kind != 1:
            out["digest"] = self.value.hex()
        return {self.label: [out]}


class PurgeOriginator(Tlv, frozen=True, gc=False):
    """TLV 13 (RFC 6232): the system that purged the LSP.

    If another system adds the TLV, ``system_id`` is that system and ``received_from`` its neighbor.
    """

    code, label = 13, "purge_originator"
    system_id: Annotated[int, SYSTEM_ID]
    received_from: Annotated[int | None, SYSTEM_ID] = None

    @classmethod
    def decode(cls, data: bytes, start: int, end: int, _: DecodeOptions, /) -> Tlv:
        """Decode one id or two, after their number."""
        size = end - start
        if not size or data[start] not in (1, 2) or size != 1 + SYSTEM_ID.size * data[start]:
            raise DecodeError("tlv", start, f"purge originator of {size} bytes")
        return cls(*[SYSTEM_ID.load(data, at) for at in range(start + 1, end, SYSTEM_ID.size)])

    def encode(self, _: int | None, /) -> bytes:
        """Encode the number of ids, and them."""
        systems = [id_ for id_ in (self.system_id, self.received_from) if id_ is not None]
        value = bytes((len(systems),)) + b"".join(map(SYSTEM_ID.dump, systems))
        return write_triplet(self.code, value)


class LspBufferSize(FixedTlv, frozen=True, gc=False):
    """TLV 14."""

    code, label, what = 14, "lsp_buffer_size", "LSP buffer size"
    size: Annotated[int, U16]


def _protocol_name(nlpid: int) -> str:
    return _PROTOCOLS.get(nlpid, f"nlpid-{nlpid:#04x}")


class ProtocolsSupported(ListTlv, frozen=True, gc=False):
    """TLV 129: NLPIDs."""

    code, label, what = 129, "protocols", "NLPIDs"
    item = U8
    nlpids: tuple[int, ...]

    def document(self) -> Json:
        """Return the NLPIDs and their names."""
        return {**super().document(), "protocols_names": [*map(_protocol_name, self.nlpids)]}


_IPV4_ADDRESSES: Final = 132
_IPV6_ADDRESSES: Final = 232
_ADDRESSES: Final = {FAMILY_IPV4: U32, FAMILY_IPV6: integer(16)}


class InterfaceAddresses(Tlv, frozen=True, gc=False):
    """TLV 132 or 232 by ``family``."""

    codes = (_IPV4_ADDRESSES, _IPV6_ADDRESSES)
    family: int
    addresses: tuple[int, ...]

    @classmethod
    def decoder(cls, code: int, /) -> Decoder:
        """Return what decodes addresses of the family."""
        family = FAMILY_IPV4 if code == _IPV4_ADDRESSES else FAMILY_IPV6
        return decoder_of_list(_ADDRESSES[family], "addresses", functools.partial(cls, family))

    def encode(self, _: int | None, /) -> bytes:
        """Encode the addresses, in several TLVs if need be."""
        code = _IPV4_ADDRESSES if self.family == FAMILY_IPV4 else _IPV6_ADDRESSES
        return pack_entries(code, map(_ADDRESSES[self.family].dump, self.addresses))

    def document(self) -> Json:
        """Return the addresses."""
        addresses = [format_address(self.family, address) for address in self.addresses]
        return {"ip_addresses" if self.family == FAMILY_IPV4 else "ipv6_addresses": addresses}


class TeRouterId(FixedTlv, frozen=True, gc=False):
    """TLV 134: an IPv4 address."""

    code, label, what = 134, "te_router_id", "TE router id"
    address: Annotated[int, U32.shown(dotted)]


class Hostname(Tlv, frozen=True, gc=False):
    """TLV 137 (RFC 5301)."""

    code, label = 137, "hostname"
    name: str

    @classmethod
    def decode(cls, data: bytes, start: int, end: int, _: DecodeOptions, /) -> Tlv:
        """Decode it; what is not printable text is kept as bytes, since terminals show it."""
        value = data[start:end]
        try:
            name = value.decode()
        except UnicodeDecodeError:
            return UnknownTlv(cls.code, value)
        return cls(name) if name.isprintable() else UnknownTlv(cls.code, value)

    def encode(self, _: int | None, /) -> bytes:
        """Encode the name."""
        return write_triplet(self.code, self.name.encode())


def _read_bfd(value: bytes) -> tuple[int, int]:
    field, nlpid = _BFD_ENABLED.unpack(value)
    return field & TOPOLOGY_ID, nlpid


def _bfd_document(pair: tuple[int, int]) -> Json:
    topology, nlpid = pair
    return {"topology": topology, "nlpid": nlpid, "protocol": _protocol_name(nlpid)}


class BfdEnabled(ListTlv, frozen=True, gc=False):
    """TLV 148 (RFC 6213 §2): pairs of topology and NLPID for which BFD is in use."""

    code, label, what = 148, "bfd_enabled", "BFD protocols"
    item = Format("3s", _read_bfd, lambda pair: _BFD_ENABLED.pack(*pair), _bfd_document)
    protocols: tuple[tuple[int, int], ...]


class RestartFlag(enum.IntFlag):
    """Flags of TLV 211 (RFC 8706 §3.1)."""

    RR = 0x01
    RA = 0x02
    SA = 0x04
    PR = 0x08
    PA = 0x10


class Restart(FixedTlv, frozen=True, gc=False):
    """TLV 211 (RFC 8706); ``system_id`` is that of the neighbor that an answer is for, on a LAN."""

    code, label, what = 211, "restart", "restart"
    # RFC 8706 §3.1: the remaining time and the system id are optional
    forms = (1, 2, 3)
    flags: Annotated[int, U8]
    remaining_time: Annotated[int | None, U16] = None
    system_id: Annotated[int | None, SYSTEM_ID] = None

    def document(self) -> Json:
        """Return the fields, and the names of the flags."""
        fields, names = self.fields(), flag_names(RestartFlag, self.flags)
        return {self.label: {"flags": fields.pop("flags"), "flags_names": names, **fields}}


class Topology(msgspec.Struct, frozen=True, gc=False):
    """One entry of TLV 229 (RFC 5120 §7.1)."""

    topology: int
    overload: bool = False
    attached: bool = False


def _read_topology(field: int) -> Topology:
    return Topology(field & TOPOLOGY_ID, bool(field & _OVERLOAD), bool(field & _ATTACHED))


def _write_topology(topology: Topology) -> int:
    flags = topology.overload * _OVERLOAD | topology.attached * _ATTACHED
    return topology.topology | flags


class MultiTopology(ListTlv, frozen=True, gc=False):
    """TLV 229."""

    code, label, what = 229, "mt_topologies", "topologies"
    item = Format("H", _read_topology, _write_topology, asdict)
    topologies: tuple[Topology, ...]


class ThreeWayState(enum.IntEnum):
    """Adjacency three-way states (RFC 5303 §3.1)."""

    UP = 0
    INITIALIZING = 1
    DOWN = 2


class ThreeWay(FixedTlv, frozen=True, gc=False):
    """TLV 240 (RFC 5303); the last three None where the short form was sent."""

    code, label, what = 240, "three_way", "three-way adjacency"
    # RFC 5303 §3.1: all fields but the state are optional
    forms = (1, 2, 4)
    state: Annotated[int, U8]
    extended_local_circuit_id: Annotated[int | None, U32] = None
    neighbor_system_id: Annotated[int | None, SYSTEM_ID] = None
    neighbor_extended_local_circuit_id: Annotated[int | None, U32] = None

    def document(self) -> Json:
        """Return the fields, and the name of the state."""
        fields = self.fields()
        names = {int(state): state.name.lower() for state in ThreeWayState}
        name = names.get(self.state, f"state-{self.state}")
        return {self.label: {"state": fields.pop("state"), "state_name": name, **fields}}
