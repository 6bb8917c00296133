"""Path attributes, one class each: code, name, flags, format, and what an error in it leads to.

RFC 7606 has three answers to an attribute that is malformed: the session is reset, the routes are
treated as withdrawn, or the attribute is discarded. MP_REACH_NLRI, MP_UNREACH_NLRI and NEXT_HOP are
not here but in ``update``: they say what a message is about, the others what its routes are like.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable
from typing import ClassVar, Final, TypeVar

import msgspec

from fared.core.ids import dotted
from fared.core.text import type_name
from fared.core.wire import U8, U32, DecodeError
from fared.protocols.bgp.packet.as_path import (
    Path,
    decode_path,
    encode_path,
    path_length,
    path_text,
)
from fared.protocols.bgp.packet.coded import AS_TRANS, MAX_TWO_OCTET_AS, Coded, Coding, Json, known
from fared.protocols.bgp.packet.communities import (
    COMMUNITY,
    EXTENDED_COMMUNITY,
    LARGE_COMMUNITY,
    SHARED_LIMIT,
    LargeCommunity,
    SharedLimit,
    available_bandwidth,
    link_bandwidth,
)

OPTIONAL, TRANSITIVE, PARTIAL, EXTENDED_LENGTH = 0x80, 0x40, 0x20, 0x10
WELL_KNOWN: Final = TRANSITIVE
NEXT_HOP, MP_REACH, MP_UNREACH = 3, 14, 15
_ROUTER_ID: Final = U32.shown(dotted)


class Action(enum.IntEnum):
    """What an error leads to, in ascending strength (RFC 7606 §2)."""

    DISCARD = 0
    WITHDRAW = 1
    RESET = 2

    @property
    def words(self) -> str:
        """The words for an operator."""
        return ("attribute discarded", "treated as withdrawn", "session reset")[self]


class Attribute(Coded, frozen=True, gc=False):
    """A path attribute.

    ``flags`` are the Optional and Transitive bits that it must have, ``malformed`` what follows if
    it is not well-formed. ``internal_only``: discarded if an external neighbor sends it.
    """

    flags: ClassVar[int] = OPTIONAL | TRANSITIVE
    malformed: ClassVar[Action] = Action.WITHDRAW
    internal_only: ClassVar[bool] = False

    @classmethod
    def claims(cls, flags: int, value: bytes, /) -> bool:
        """Whether it is this attribute; else it counts as unknown."""
        del flags, value
        return True


class OriginType(enum.IntEnum):
    """Values of ORIGIN; the lower is preferred."""

    IGP = 0
    EGP = 1
    INCOMPLETE = 2


class Origin(Attribute, frozen=True, gc=False):
    """ORIGIN (RFC 4271 §5.1.1)."""

    code, label, flags = 1, "origin", WELL_KNOWN
    shape = U8.shown(lambda value: type_name(OriginType, value))
    origin: int

    @classmethod
    def decode(cls, value: bytes, coding: Coding, /) -> Origin:
        """Decode a value of the three that there are."""
        found = super().decode(value, coding)
        if found.origin > OriginType.INCOMPLETE:
            raise DecodeError("type", 0, f"origin {found.origin}")
        return found


class _AsPaths(Attribute, frozen=True, gc=False):
    """A path as value."""

    path: Path

    @classmethod
    def _size(cls, coding: Coding) -> int:
        return 4 if coding.four_octet_as else 2

    @classmethod
    def decode(cls, value: bytes, coding: Coding, /) -> _AsPaths:
        """Decode the segments."""
        return cls(decode_path(value, cls._size(coding)))

    def encode(self, coding: Coding, /) -> bytes:
        """Encode the segments."""
        return encode_path(self.path, self._size(coding))

    def document(self) -> str:
        """Return the usual text."""
        return path_text(self.path)


class AsPath(_AsPaths, frozen=True, gc=False):
    """AS_PATH (RFC 4271 §5.1.2)."""

    code, label, flags = 2, "as_path", WELL_KNOWN

    @property
    def length(self) -> int:
        """Its length for the decision."""
        return path_length(self.path)


class As4Path(_AsPaths, frozen=True, gc=False):
    """AS4_PATH, from neighbors that know two octets only (RFC 6793 §3)."""

    # RFC 6793 §6
    code, label, malformed = 17, "as4_path", Action.DISCARD

    @classmethod
    def _size(cls, _: Coding) -> int:
        return 4


class Med(Attribute, frozen=True, gc=False):
    """MULTI_EXIT_DISC (RFC 4271 §5.1.4)."""

    code, label, flags, shape = 4, "med", OPTIONAL, U32
    metric: int


class LocalPref(Attribute, frozen=True, gc=False):
    """LOCAL_PREF (RFC 4271 §5.1.5)."""

    code, label, flags, shape = 5, "local_pref", WELL_KNOWN, U32
    internal_only = True
    preference: int


class AtomicAggregate(Attribute, frozen=True, gc=False):
    """ATOMIC_AGGREGATE (RFC 4271 §5.1.6)."""

    code, label, flags, malformed = 6, "atomic_aggregate", WELL_KNOWN, Action.DISCARD


class _Aggregators(Attribute, frozen=True, gc=False):
    """AS and address of a router that has aggregated routes."""

    malformed = Action.DISCARD
    number: int
    address: int

    @classmethod
    def _struct(cls, coding: Coding) -> struct.Struct:
        return _WIDE if coding.four_octet_as else _NARROW

    @classmethod
    def decode(cls, value: bytes, coding: Coding, /) -> _Aggregators:
        """Decode both."""
        form = cls._struct(coding)
        if len(value) != form.size:
            raise DecodeError("length", 0, f"{cls.label} of {len(value)} bytes, not {form.size}")
        number, address = form.unpack(value)
        if not number:  # RFC 7607 §2
            raise DecodeError("type", 0, f"{cls.label} of AS 0")
        return cls(number, address)

    def encode(self, coding: Coding, /) -> bytes:
        """Encode both; a number that needs four octets is AS_TRANS in two."""
        form = self._struct(coding)
        wide = form is _WIDE or self.number <= MAX_TWO_OCTET_AS
        return form.pack(self.number if wide else AS_TRANS, self.address)

    def document(self) -> Json:
        """Return both."""
        return {"as": self.number, "address": dotted(self.address)}


_NARROW, _WIDE = struct.Struct(">HI"), struct.Struct(">II")


class AsAggregator(_Aggregators, frozen=True, gc=False):
    """AGGREGATOR (RFC 4271 §5.1.7)."""

    code, label = 7, "aggregator"


class As4Aggregator(_Aggregators, frozen=True, gc=False):
    """AS4_AGGREGATOR (RFC 6793 §3)."""

    code, label = 18, "as4_aggregator"

    @classmethod
    def _struct(cls, _: Coding) -> struct.Struct:
        return _WIDE


class Communities(Attribute, frozen=True, gc=False):
    """COMMUNITIES (RFC 1997)."""

    code, label, shape, many = 8, "communities", COMMUNITY, True
    communities: tuple[int, ...]


class OriginatorId(Attribute, frozen=True, gc=False):
    """ORIGINATOR_ID of route reflection (RFC 4456 §8)."""

    code, label, flags, shape = 9, "originator_id", OPTIONAL, _ROUTER_ID
    internal_only = True
    identifier: int


class ClusterList(Attribute, frozen=True, gc=False):
    """CLUSTER_LIST of route reflection (RFC 4456 §8)."""

    code, label, flags, shape, many = 10, "cluster_list", OPTIONAL, _ROUTER_ID, True
    internal_only = True
    clusters: tuple[int, ...]


class ExtendedCommunities(Attribute, frozen=True, gc=False):
    """EXTENDED_COMMUNITIES, each of eight octets (RFC 4360)."""

    code, label, shape, many = 16, "extended_communities", EXTENDED_COMMUNITY, True
    communities: tuple[bytes, ...]


class LargeCommunities(Attribute, frozen=True, gc=False):
    """LARGE_COMMUNITY (RFC 8092)."""

    code, label, shape, many = 32, "large_communities", LARGE_COMMUNITY, True
    communities: tuple[LargeCommunity, ...]


class SharedLimits(Attribute, frozen=True, gc=False):
    """Routers that all paths of the sender pass through, the sender first, and what each carries.

    Optional and not transitive: who does not know it ignores it, and nobody passes it on (RFC 4271
    §5), so that it always is the word of the neighbor itself. The code is the one for development
    (RFC 2042), so that its value begins with four octets that others do not use.
    """

    code, label, flags = 255, "shared_limits", OPTIONAL
    shape, many, malformed = SHARED_LIMIT, True, Action.DISCARD
    limits: tuple[SharedLimit, ...]

    @classmethod
    def claims(cls, flags: int, value: bytes, /) -> bool:
        """Whether it is not the attribute of somebody else."""
        return not flags & TRANSITIVE and value.startswith(_OURS)

    @classmethod
    def decode(cls, value: bytes, coding: Coding, /) -> SharedLimits:
        """Decode sixteen octets for each router."""
        return super().decode(value[len(_OURS) :], coding)

    def encode(self, coding: Coding, /) -> bytes:
        """Encode them."""
        return _OURS + super().encode(coding)


_OURS: Final = b"FARE"


class UnknownAttribute(Attribute, frozen=True, gc=False):
    """An optional attribute carried as bytes; ``bits`` are its flags.

    A transitive one has been marked Partial, and is passed on (RFC 4271 §5); another one is not.
    """

    label = "unknown"
    type: int
    bits: int
    value: bytes

    @property
    def transitive(self) -> bool:
        """Whether it is passed on."""
        return bool(self.bits & TRANSITIVE)

    def encode(self, _: Coding, /) -> bytes:
        """Return the bytes."""
        return self.value

    def document(self) -> Json:
        """Return code, flags and bytes."""
        return {"code": self.type, "flags": self.bits, "hex": self.value.hex()}


KNOWN: Final = known(Attribute)
_A = TypeVar("_A", bound=Attribute)


class PathAttributes(msgspec.Struct, frozen=True, gc=False):
    """The attributes of routes, by ascending code.

    ``partial`` are the codes of those that a router before this one passed on without knowing them.
    """

    items: tuple[Attribute, ...] = ()
    partial: tuple[int, ...] = ()

    def find(self, kind: type[_A]) -> _A | None:
        """Return the attribute of a class, or None."""
        for item in self.items:
            if type(item) is kind:
                return item
        return None

    @property
    def link_bandwidth(self) -> float | None:
        """The lowest valid Link Bandwidth, bytes/s (RFC 10005 §4); None without one."""
        found = self.find(ExtendedCommunities)
        return None if found is None else link_bandwidth(found.communities)

    @property
    def available_bandwidth(self) -> float | None:
        """What load leaves of the path, bytes/s; None: the neighbor does not say so."""
        found = self.find(ExtendedCommunities)
        return None if found is None else available_bandwidth(found.communities)

    @property
    def shared_limits(self) -> tuple[SharedLimit, ...]:
        """The routers that all paths pass through, as far as the neighbor said so."""
        found = self.find(SharedLimits)
        return () if found is None else tuple([one for one in found.limits if one.valid])

    def replaced(self, *items: Attribute) -> PathAttributes:
        """Return these with others in place of those of the same classes."""
        codes = {code_of(item) for item in items}
        others = [one for one in self.items if code_of(one) not in codes]
        return attributes_of([*others, *items], [n for n in self.partial if n not in codes])

    def document(self) -> Json:
        """Return the attributes by name, those that are not known in a list."""
        out: Json = {"partial": list(self.partial)} if self.partial else {}
        for item in self.items:
            if isinstance(item, UnknownAttribute):
                out.setdefault(item.label, []).append(item.document())
            else:
                out[item.label] = item.document()
        return out


def code_of(item: Attribute) -> int:
    """Return the type code of an attribute."""
    return item.type if isinstance(item, UnknownAttribute) else item.code


def attributes_of(items: Iterable[Attribute], partial: Iterable[int] = ()) -> PathAttributes:
    """Return the attributes in their order."""
    return PathAttributes(tuple(sorted(items, key=code_of)), tuple(sorted(partial)))


def write_attribute(flags: int, code: int, value: bytes) -> bytes:
    """Encode an attribute; its length has two octets if it needs them."""
    if len(value) > 0xFF:
        return bytes((flags | EXTENDED_LENGTH, code)) + len(value).to_bytes(2, "big") + value
    return bytes((flags, code, len(value))) + value
