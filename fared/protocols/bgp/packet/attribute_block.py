"""All attributes of an UPDATE: reading them by RFC 7606, and writing them.

Routes with equal attributes fill several messages, one behind the other: a block of bytes that came
just before is not read again. The reader of a session keeps a few blocks, and none that is long: it
would otherwise hold all that its neighbor has told once more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from fared.core.wire import DecodeError
from fared.protocols.bgp.packet.as_path import is_wide, merge_paths
from fared.protocols.bgp.packet.attributes import (
    EXTENDED_LENGTH,
    KNOWN,
    MP_REACH,
    MP_UNREACH,
    NEXT_HOP,
    OPTIONAL,
    PARTIAL,
    TRANSITIVE,
    WELL_KNOWN,
    Action,
    As4Aggregator,
    As4Path,
    AsAggregator,
    AsPath,
    Attribute,
    LocalPref,
    Origin,
    PathAttributes,
    UnknownAttribute,
    attributes_of,
    code_of,
    write_attribute,
)
from fared.protocols.bgp.packet.coded import AS_TRANS, MAX_TWO_OCTET_AS, Coding
from fared.protocols.bgp.packet.notification import Fault, MessageError

_BLOCKS: Final = 16
_LONGEST: Final = 1024
"""Blocks that a reader keeps, and octets of one at most: with what was read, 40 kB."""
_FLAG_BITS: Final = OPTIONAL | TRANSITIVE


class Finding(msgspec.Struct, frozen=True, gc=False):
    """An error in an UPDATE, and what it led to; ``code`` is that of the attribute, 0 for none."""

    code: int
    action: Action
    what: str

    def __str__(self) -> str:
        return f"{self.what}: {self.action.words}"


class AttributeBlock(msgspec.Struct, frozen=True, gc=False):
    """What a block of attributes says. ``next_hop`` is NEXT_HOP, an IPv4 address.

    ``missing`` are findings that matter only if the message has routes.
    """

    attributes: PathAttributes
    next_hop: int | None
    findings: tuple[Finding, ...]
    missing: tuple[Finding, ...]


class RawBlock(NamedTuple):
    """A block before it is read: what describes routes, the two that list them, and an error."""

    plain: bytes
    reach: bytes | None
    unreach: bytes | None
    broken: Finding | None


def split_block(data: bytes, start: int, end: int) -> RawBlock:
    """Take MP_REACH_NLRI and MP_UNREACH_NLRI out of a block.

    Raises MessageError if one of them comes twice (RFC 7606 §3 (g)).
    """
    lists: dict[int, bytes] = {}
    parts, begun, broken = [], start, None
    while start < end:
        head = 4 if data[start] & EXTENDED_LENGTH else 3
        first = start + head
        last = first + int.from_bytes(data[start + 2 : first], "big")
        if first > end or last > end:
            # RFC 7606 §4: the length of all of them tells where the prefixes begin
            broken = Finding(0, Action.WITHDRAW, "attributes exceed their length")
            break
        code = data[start + 1]
        if code in (MP_REACH, MP_UNREACH):
            if code in lists:
                twice = f"attribute {code} comes twice"
                raise MessageError(Fault.MALFORMED_ATTRIBUTE_LIST, twice, offset=start)
            if code == MP_REACH and data[start] & _FLAG_BITS != OPTIONAL:
                # RFC 7606 §3 (c); those that are withdrawn are so anyway
                broken = Finding(
                    code, Action.WITHDRAW, f"mp_reach_nlri has flags {data[start]:#04x}"
                )
            lists[code] = data[first:last]
            parts.append(data[begun:start])
            begun = last
        start = last
    parts.append(data[begun:start])
    return RawBlock(b"".join(parts), lists.get(MP_REACH), lists.get(MP_UNREACH), broken)


def block_reader(coding: Coding) -> Callable[[bytes], AttributeBlock]:
    """Return what reads the ``plain`` part of blocks for one session, each once if possible.

    It raises MessageError for a well-known attribute that is not known.
    """
    read = functools.partial(_read, coding=coding)
    kept = functools.lru_cache(maxsize=_BLOCKS)(read)

    def reader(plain: bytes) -> AttributeBlock:
        return kept(plain) if len(plain) <= _LONGEST else read(plain)

    return reader


def _read(plain: bytes, coding: Coding) -> AttributeBlock:
    found: dict[int, Attribute] = {}
    seen: set[int] = set()
    partial: list[int] = []
    findings: list[Finding] = []
    next_hop, start = None, 0
    while start < len(plain):
        flags, code = plain[start], plain[start + 1]
        first = start + (4 if flags & EXTENDED_LENGTH else 3)
        start = first + int.from_bytes(plain[start + 2 : first], "big")
        value = plain[first:start]
        if code in seen:
            # RFC 7606 §3 (g)
            findings.append(Finding(code, Action.DISCARD, f"attribute {code} comes twice"))
            continue
        seen.add(code)
        if code == NEXT_HOP:
            if len(value) != 4 or flags & _FLAG_BITS != WELL_KNOWN:
                findings.append(Finding(code, Action.WITHDRAW, "next_hop is malformed"))
            else:
                next_hop = int.from_bytes(value, "big")
            continue
        one = _attribute(flags, code, value, coding)
        if isinstance(one, Finding):
            findings.append(one)
        elif one is not None:
            found[code] = one
            if flags & PARTIAL and one.flags == _FLAG_BITS and code in KNOWN:
                partial.append(code)
    if not coding.four_octet_as:
        _widen(found)
    attributes = attributes_of(found.values(), partial)
    return AttributeBlock(attributes, next_hop, tuple(findings), _missing(found, seen, coding))


def _attribute(flags: int, code: int, value: bytes, coding: Coding) -> Attribute | Finding | None:
    cls = KNOWN.get(code)
    if cls is None or not cls.claims(flags, value):
        if not flags & OPTIONAL:
            # RFC 4271 §6.3
            what = f"unrecognized well-known attribute {code}"
            raise MessageError(Fault.UNRECOGNIZED_WELL_KNOWN_ATTRIBUTE, what)
        # §5: an attribute that this router passes on without knowing it
        partial = PARTIAL if flags & TRANSITIVE else 0
        return UnknownAttribute(code, (flags | partial) & ~EXTENDED_LENGTH & 0xF0, value)
    # RFC 7606 §7.5, §7.9, §7.10: whatever its value
    if cls.internal_only and not coding.internal:
        return Finding(code, Action.DISCARD, f"{cls.label} of an external neighbor")
    # RFC 7606 §3 (c)
    if flags & _FLAG_BITS != cls.flags:
        return Finding(code, Action.WITHDRAW, f"{cls.label} has flags {flags:#04x}")
    # RFC 6793 §4.1: a neighbor that sends four octets has no use for these
    if coding.four_octet_as and cls in (As4Path, As4Aggregator):
        return None
    try:
        return cls.decode(value, coding)
    except DecodeError as error:
        return Finding(code, cls.malformed, error.what)


def _widen(found: dict[int, Attribute]) -> None:
    """Put numbers of four octets where AS_TRANS stands for them (RFC 6793 §4.2.3)."""
    four, of_four = found.pop(As4Path.code, None), found.pop(As4Aggregator.code, None)
    path, aggregator = found.get(AsPath.code), found.get(AsAggregator.code)
    if isinstance(aggregator, AsAggregator) and isinstance(of_four, As4Aggregator):
        if aggregator.number != AS_TRANS:
            # somebody who knows two octets only has aggregated since
            return
        found[AsAggregator.code] = AsAggregator(of_four.number, of_four.address)
    if isinstance(path, AsPath) and isinstance(four, As4Path):
        found[AsPath.code] = AsPath(merge_paths(path.path, four.path))


def _missing(found: dict[int, Attribute], seen: set[int], coding: Coding) -> tuple[Finding, ...]:
    """Check what routes must have."""
    needed = (Origin, AsPath, LocalPref) if coding.internal else (Origin, AsPath)
    # RFC 7606 §3 (d)
    missing = [
        Finding(cls.code, Action.WITHDRAW, f"{cls.label} is missing")
        for cls in needed
        if cls.code not in seen
    ]
    path = found.get(AsPath.code)
    if coding.first_as and isinstance(path, AsPath):
        first = path.path[0].numbers[0] if path.path else None
        # RFC 4271 §6.3
        if first != coding.first_as:
            what = f"as_path begins with {first}, not {coding.first_as}"
            missing.append(Finding(AsPath.code, Action.WITHDRAW, what))
    return tuple(missing)


def write_block(attributes: PathAttributes, coding: Coding) -> bytes:
    """Encode the attributes for a neighbor.

    Raises struct.error or OverflowError if a number does not fit.
    """
    parts = []
    for item in attributes.items:
        code = code_of(item)
        flags = item.bits if isinstance(item, UnknownAttribute) else item.flags
        flags |= PARTIAL * (code in attributes.partial)
        parts.append(write_attribute(flags, code, item.encode(coding)))
    if not coding.four_octet_as:
        parts += _narrowed(attributes, coding)
    return b"".join(parts)


def _narrowed(attributes: PathAttributes, coding: Coding) -> list[bytes]:
    """What a neighbor that knows two octets only needs besides (RFC 6793 §4.2.2)."""
    path, aggregator = attributes.find(AsPath), attributes.find(AsAggregator)
    more: list[Attribute] = []
    if path is not None and is_wide(path.path):
        more.append(As4Path(path.path))
    if aggregator is not None and aggregator.number > MAX_TWO_OCTET_AS:
        more.append(As4Aggregator(aggregator.number, aggregator.address))
    return [write_attribute(one.flags, one.code, one.encode(coding)) for one in more]
