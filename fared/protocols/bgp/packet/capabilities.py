"""Capabilities of an OPEN (RFC 5492): each is a class. Those of other codes are kept as bytes.

A capability that is malformed is kept as bytes, too: it is as if it were not known, and the session
can do without it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final

import msgspec

from fared.core.ids import FAMILY_IPV4
from fared.core.text import flag_names
from fared.core.wire import U32, DecodeError, Format
from fared.protocols.bgp.packet.coded import Coded, Coding, Json, known, read_pairs, write_pair
from fared.protocols.bgp.packet.nlri import AFI_SAFI, AFIS, FAMILIES, UNICAST, family_name

_PLAIN: Final = Coding()
_CAPABILITIES: Final = 2
"""The only optional parameter that is in use (RFC 5492 §4)."""
_EXTENDED: Final = 255
_NAMES: Final = 2
_LONGEST_NAME: Final = 64
_MAX: Final = 255
_OURS: Final = b"FARE"


class OpenCapability(Coded, frozen=True, gc=False):
    """A capability by its code."""


class AddressFamily(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An address family and what is sent of it."""

    afi: int
    safi: int = UNICAST

    def __str__(self) -> str:
        return family_name(self.afi, self.safi)


class Multiprotocol(OpenCapability, frozen=True, gc=False):
    """A family that its sender uses (RFC 4760 §8); one for each."""

    code, label = 1, "multiprotocol"
    shape = Format(
        "4s",
        lambda raw: AddressFamily(int.from_bytes(raw[:2], "big"), raw[3]),
        lambda family: family.afi.to_bytes(2, "big") + bytes((0, family.safi)),
        str,
    )
    family: AddressFamily


class RouteRefreshCapability(OpenCapability, frozen=True, gc=False):
    """It sends its routes again when asked (RFC 2918)."""

    code, label = 2, "route_refresh"


class NextHopEncoding(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Prefixes of a family, whose next hop may be of another one (RFC 8950 §4)."""

    afi: int
    safi: int
    next_hop_afi: int

    def __str__(self) -> str:
        return f"{family_name(self.afi, self.safi)} via {family_name(self.next_hop_afi)[:4]}"


class ExtendedNextHop(OpenCapability, frozen=True, gc=False):
    """Next hops of other families that it accepts (RFC 8950 §4)."""

    code, label, many = 5, "extended_next_hop", True
    shape = Format(
        "6s",
        lambda raw: NextHopEncoding(*(int.from_bytes(raw[at : at + 2], "big") for at in (0, 2, 4))),
        lambda one: b"".join(n.to_bytes(2, "big") for n in (one.afi, one.safi, one.next_hop_afi)),
        str,
    )
    encodings: tuple[NextHopEncoding, ...]


class ExtendedMessage(OpenCapability, frozen=True, gc=False):
    """It accepts messages of 65,535 octets (RFC 8654)."""

    code, label = 6, "extended_message"


class RestartFlags(enum.IntFlag):
    """Flags of graceful restart (RFC 4724 §3, RFC 8538 §2)."""

    RESTARTED = 0x8000
    NOTIFICATION = 0x4000


class KeptFamily(msgspec.Struct, frozen=True, gc=False):
    """A family whose routes its sender can keep; ``forwarding``: it has kept them."""

    afi: int
    safi: int
    forwarding: bool = False


class GracefulRestartCapability(OpenCapability, frozen=True, gc=False):
    """Graceful restart (RFC 4724 §3): seconds that it takes, and families."""

    code, label = 64, "graceful_restart"
    time: int
    families: tuple[KeptFamily, ...] = ()
    flags: int = 0

    @classmethod
    def decode(cls, value: bytes, _: Coding, /) -> GracefulRestartCapability:
        """Decode flags and time, then four octets for each family."""
        if len(value) % 4 != 2:
            raise DecodeError("length", 0, f"{cls.label} of {len(value)} bytes")
        head = int.from_bytes(value[:2], "big")
        families = []
        for at in range(2, len(value), 4):
            afi, safi = AFI_SAFI.unpack_from(value, at)
            families.append(KeptFamily(afi, safi, bool(value[at + 3] & 0x80)))
        return cls(head & 0xFFF, tuple(families), head & 0xF000)

    def encode(self, _: Coding, /) -> bytes:
        """Encode them."""
        head = (self.flags | self.time).to_bytes(2, "big")
        return head + b"".join(
            [
                AFI_SAFI.pack(one.afi, one.safi) + bytes((one.forwarding * 0x80,))
                for one in self.families
            ]
        )

    def document(self) -> Json:
        """Return time, flags, and the families by name."""
        return {
            "time": self.time,
            "flags": flag_names(RestartFlags, self.flags),
            "families": {
                family_name(one.afi, one.safi): {"forwarding": one.forwarding}
                for one in self.families
            },
        }


class FourOctetAs(OpenCapability, frozen=True, gc=False):
    """Its AS number, and that it reads those of four octets (RFC 6793 §3)."""

    code, label, shape = 65, "four_octet_as", U32
    number: int


class HostnameCapability(OpenCapability, frozen=True, gc=False):
    """Names of its sender, as FRR has them (draft-walton-bgp-hostname-capability)."""

    code, label = 73, "hostname"
    hostname: str
    domain: str = ""

    @classmethod
    def decode(cls, value: bytes, _: Coding, /) -> HostnameCapability:
        """Decode two texts, each behind its length; the domain may be missing."""
        names: list[str] = []
        at = 0
        while at < len(value) and len(names) < _NAMES:
            end = at + 1 + value[at]
            if end > len(value):
                raise DecodeError("length", at, f"{cls.label} of {value[at]} bytes")
            names.append(value[at + 1 : end].decode(errors="replace"))
            at = end
        if not names or at < len(value):
            raise DecodeError("length", at, f"{cls.label} of {len(value)} bytes")
        return cls(*names)

    def encode(self, _: Coding, /) -> bytes:
        """Encode both."""
        parts = [name.encode() for name in (self.hostname, self.domain)]
        return b"".join([bytes((len(part),)) + part for part in parts])

    def document(self) -> Json:
        """Return both names."""
        return {"hostname": self.hostname, "domain": self.domain}


class OwnMinimum(OpenCapability, frozen=True, gc=False):
    """It takes the minimum of a path bandwidth and its own link to the sender itself.

    A sender knows only its own direction of that link. The code is for experiments (RFC 8810 §3),
    so that its value is four octets that others do not use.
    """

    code, label = 254, "own_minimum"

    @classmethod
    def decode(cls, value: bytes, _: Coding, /) -> OwnMinimum:
        """Tell it from the capability of somebody else."""
        if value != _OURS:
            raise DecodeError("value", 0, f"{cls.label} of {value.hex()}")
        return cls()

    def encode(self, _: Coding, /) -> bytes:
        """Encode them."""
        return _OURS


class UnknownCapability(OpenCapability, frozen=True, gc=False):
    """A capability carried as bytes."""

    label = "unknown"
    type: int
    value: bytes

    def encode(self, _: Coding, /) -> bytes:
        """Return the bytes."""
        return self.value

    def document(self) -> Json:
        """Return code and bytes."""
        return {"code": self.type, "hex": self.value.hex()}


_KNOWN: Final = known(OpenCapability)


def decode_parameters(data: bytes, at: int) -> tuple[OpenCapability, ...]:
    """Decode the optional parameters of an OPEN, whose length is at an offset.

    Raises DecodeError: ``type`` for a parameter that is not capabilities, else ``length``.
    """
    size, start, end = data[at], at + 1, len(data)
    wide = bool(size) and data[start : start + 1] == bytes((_EXTENDED,))
    if wide:
        # RFC 9072 §2: the length of all follows, of two octets, and then two for each parameter
        size, start = int.from_bytes(data[start + 1 : start + 3], "big"), start + 3
    if size != end - start:
        raise DecodeError("length", at, f"{size} bytes of parameters, {end - start} received")
    found: list[OpenCapability] = []
    for kind, value in read_pairs(data, start, end, 3 if wide else 2):
        if kind != _CAPABILITIES:
            raise DecodeError("type", at, f"optional parameter {kind}")
        found += [_decode(code, inner) for code, inner in read_pairs(value, 0, len(value))]
    return tuple(found)


def _decode(code: int, value: bytes) -> OpenCapability:
    cls = _KNOWN.get(code)
    if cls is None:
        return UnknownCapability(code, value)
    try:
        return cls.decode(value, _PLAIN)
    except DecodeError:
        return UnknownCapability(code, value)


def encode_parameters(capabilities: Iterable[OpenCapability]) -> bytes:
    """Encode all capabilities, after their length: in one parameter, or in one each if too long.

    Raises OverflowError or struct.error if a value does not fit.
    """
    pairs = [
        write_pair(one.type if isinstance(one, UnknownCapability) else one.code, one.encode(_PLAIN))
        for one in capabilities
    ]
    together = b"".join(pairs)
    if len(together) <= _MAX - 2:
        parameter = write_pair(_CAPABILITIES, together) if together else b""
        return bytes((len(parameter),)) + parameter
    # RFC 9072 §2: only where the usual form has no room, since old speakers do not know the other
    wide = b"".join([bytes((_CAPABILITIES,)) + len(one).to_bytes(2, "big") + one for one in pairs])
    return bytes((_EXTENDED, _EXTENDED)) + len(wide).to_bytes(2, "big") + wide


def families_of(capabilities: Iterable[OpenCapability]) -> tuple[int, ...]:
    """Return the families that both sides can use here: IPv4 where none are told (RFC 4760 §8)."""
    told = [one.family for one in capabilities if isinstance(one, Multiprotocol)]
    if not told:
        return (FAMILY_IPV4,)
    mine = (family for family in told if family.safi == UNICAST and family.afi in FAMILIES)
    return tuple(dict.fromkeys(FAMILIES[family.afi] for family in mine))


def hostname_of(capabilities: Iterable[OpenCapability]) -> str:
    """Return the name of the sender; empty if it has told none that people can read."""
    for one in capabilities:
        if isinstance(one, HostnameCapability) and one.hostname.isprintable():
            return one.hostname
    return ""


def hostname_capability(name: str) -> HostnameCapability:
    """Return the capability of this router's name, cut to what OPEN messages have room for."""
    return HostnameCapability(name.encode()[:_LONGEST_NAME].decode(errors="ignore"))


def multiprotocol(family: int) -> Multiprotocol:
    """Return the capability of a family of unicast."""
    return Multiprotocol(AddressFamily(AFIS[family]))
