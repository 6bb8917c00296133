"""What the routers of a large fabric advertise, as bytes ready to send: the contents for ``scale``.

The device under test is leaf 0. All packets of the scripted neighbors are made of parts that are
encoded once: a packet for another neighbor differs in its router id and checksum only. So 64
neighbors that offer a database of 66,000 LSAs cost less than the one router that learns it.
"""

from __future__ import annotations

import random
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bench.neighbors.fabric import RATE, Fabric, Link
from fared.core.checksum import fletcher16
from fared.paths.te.attributes import OSPF_TE
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, LsaKey, LsType
from fared.protocols.ospf.packet.packets import DdFlags, Options, PacketType

MTU = 9000
_HEADERS = 20 + 24
_ONES = 0xFFFF
_HEAD = struct.Struct(">BBHIIHHQ")
_DESCRIPTION = struct.Struct(">HBBI")
_COUNT = struct.Struct(">I")
_ROOM = MTU - _HEADERS - _COUNT.size
_REQUEST = struct.Struct(">3xBII")
_AVAILABLE, _UTILIZED = (
    struct.pack(">HH", kind, 4)
    for kind in OSPF_TE.types(("available_bandwidth", "utilized_bandwidth"))
)
_FLOAT = struct.Struct(">f")
_SEQUENCE = struct.Struct(">i")


class Content(NamedTuple):
    """A packet without its header; ``total`` is what it adds to the sum of the packet."""

    kind: int
    data: bytes
    total: int


def content(kind: int, data: bytes) -> Content:
    """Prepare a packet that several neighbors send."""
    return Content(kind, data, int.from_bytes(data, "big") % _ONES)


def packet(router_id: int, body: Content) -> bytes:
    """Encode a packet of area 0, without authentication."""
    kind, data, total = body
    length = 24 + len(data)
    total += (0x0200 | kind) + length + (router_id >> 16) + (router_id & _ONES)
    checksum = _ONES - (total % _ONES or _ONES)
    return _HEAD.pack(2, kind, length, router_id, 0, checksum, 0, 0) + data


def key_of(header: bytes) -> bytes:
    """Return the key of an LSA as link state requests write it (RFC 2328 §A.3.4)."""
    return b"\0\0\0" + header[3:12]


def updates(lsas: Iterable[bytes]) -> Iterator[Content]:
    """Pack LSAs into as few update packets as the MTU allows."""
    batch: list[bytes] = []
    used = 0
    for raw in lsas:
        if batch and used + len(raw) > _ROOM:
            yield _update(batch)
            batch, used = [], 0
        batch.append(raw)
        used += len(raw)
    if batch:
        yield _update(batch)


def _update(batch: list[bytes]) -> Content:
    return content(PacketType.LS_UPDATE, b"".join((_COUNT.pack(len(batch)), *batch)))


class LinkCuts(ABC):
    """A database of which links are taken out, and put back."""

    fabric: Fabric

    def cut(self, link: Link) -> list[bytes]:
        """Take a link out of what both of its ends advertise; return that."""
        self.fabric.cut.add(link)
        return self._reissued(link)

    def restore(self, link: Link) -> list[bytes]:
        """Put it back."""
        self.fabric.cut.discard(link)
        return self._reissued(link)

    @abstractmethod
    def _reissued(self, link: Link) -> list[bytes]:
        """Return what the ends of a link advertise now."""


class Lsas(ABC):
    """A database that is offered; keys are as requests write them."""

    @abstractmethod
    def described(self) -> list[bytes]:
        """The headers of all LSAs, a part for each description packet."""

    @abstractmethod
    def find(self, key: bytes) -> bytes | None:
        """An LSA, if it is there."""

    def requested(self, keys: bytes) -> Iterator[bytes]:
        """The keys of a request that are in the database."""
        found = (keys[at : at + _REQUEST.size] for at in range(0, len(keys), _REQUEST.size))
        return (key for key in found if self.find(key) is not None)

    def answer(self, wanted: dict[bytes, None]) -> Content:
        """Move LSAs from those wanted, one at least, into one update."""
        batch: list[bytes] = []
        room = _ROOM
        while wanted:
            key = next(iter(wanted))
            raw = self.find(key)
            assert raw is not None
            if batch and len(raw) > room:
                break
            del wanted[key]
            batch.append(raw)
            room -= len(raw)
        return _update(batch)


def headers_of(lsas: Iterable[bytes]) -> list[bytes]:
    """Return the headers of LSAs, a part for each description packet."""
    headers = b"".join(raw[:LSA_HEADER_SIZE] for raw in lsas)
    step = (MTU - _HEADERS - _DESCRIPTION.size) // LSA_HEADER_SIZE * LSA_HEADER_SIZE
    return [headers[at : at + step] for at in range(0, len(headers), step)]


class FabricLsas(Lsas):
    """The LSAs of a fabric as they are at each moment; nothing, unless it ``serves`` them."""

    def __init__(self, fabric: Fabric, *, serves: bool) -> None:
        self._lsas, self._serves = fabric.lsas, serves

    def described(self) -> list[bytes]:
        """The headers of all LSAs, a part for each description packet."""
        return headers_of(lsa.raw for lsa in self._lsas.values()) if self._serves else []

    def find(self, key: bytes) -> bytes | None:
        """An LSA, if it is there."""
        found = self._lsas.get(LsaKey(*_REQUEST.unpack(key)))
        return None if found is None else found.raw


class LsaContents(Lsas, LinkCuts):
    """The database that all neighbors offer, and its changes."""

    def __init__(self, fabric: Fabric) -> None:
        fabric.originate()
        self.fabric = fabric
        self.lsas = {key_of(lsa.raw): lsa.raw for lsa in fabric.lsas.values()}
        te = [lsa for key, lsa in fabric.lsas.items() if key.ls_type == LsType.OPAQUE_AREA]
        self._ends = [key_of(lsa.raw) for lsa in te]
        self._dice = random.Random(19)
        self._dice.shuffle(self._ends)
        self._next = 0
        self._described = headers_of(self.lsas.values())

    def described(self) -> list[bytes]:
        """The headers of all LSAs, a part for each description packet."""
        return self._described

    def find(self, key: bytes) -> bytes | None:
        """An LSA, if it is there."""
        return self.lsas.get(key)

    def instances(self) -> set[bytes]:
        """Identify the present instance of each LSA."""
        return {self.instance(raw) for raw in self.lsas.values()}

    def instance(self, raw: bytes) -> bytes:
        """Identify an instance: its header without the age."""
        return raw[2:LSA_HEADER_SIZE]

    def identity(self, instance: bytes) -> bytes:
        """Identify an LSA by type, link state id and advertising router."""
        return instance[1:10]

    def packed(self, lsas: Iterable[bytes]) -> list[Content]:
        """Pack LSAs into updates."""
        return list(updates(lsas))

    def announcement(self) -> bytes:
        """The next instance of a TE LSA, with another available bandwidth.

        Link ends take turns in random order; each changes by a tenth of its capacity at least.
        """
        key = self._ends[self._next % len(self._ends)]
        self._next += 1
        raw = self.lsas[key] = announced(self.lsas[key], self._dice)
        return raw

    def is_newest(self, raw: bytes) -> bool:
        """Whether an LSA has not been replaced by a later instance."""
        return self.lsas[key_of(raw)] == raw

    def _reissued(self, link: Link) -> list[bytes]:
        lsas = [
            self.fabric.router_lsa(router)
            for router in (self.fabric.leaf(link[1]), self.fabric.spine(link[0]))
        ]
        self.lsas.update((key_of(lsa.raw), lsa.raw) for lsa in lsas)
        return [lsa.raw for lsa in lsas]


def announced(raw: bytes, dice: random.Random) -> bytes:
    """The next instance of a TE LSA: available and utilized bandwidth differ, age is 1."""
    lsa = bytearray(raw)
    at, used = (_found(raw, mark) + len(mark) for mark in (_AVAILABLE, _UTILIZED))
    (before,) = _FLOAT.unpack_from(raw, at)
    available = (before + RATE * dice.uniform(0.1, 0.4)) % (RATE / 2) + RATE / 2
    _FLOAT.pack_into(lsa, at, available)
    _FLOAT.pack_into(lsa, used, RATE - available)
    (sequence,) = _SEQUENCE.unpack_from(raw, 12)
    _SEQUENCE.pack_into(lsa, 12, sequence + 1)
    lsa[0:2] = b"\0\1"
    lsa[16:18] = fletcher16(bytes(lsa[2:]), 14).to_bytes(2, "big")
    return bytes(lsa)


def _found(raw: bytes, mark: bytes) -> int:
    """Where a sub-TLV begins: an address may have the same bytes, but not at a multiple of four."""
    at = raw.index(mark, LSA_HEADER_SIZE)
    while (at - LSA_HEADER_SIZE) % 4:
        at = raw.index(mark, at + 1)
    return at


def description(sequence: int, headers: bytes, *, more: bool) -> Content:
    """Encode a database description of the slave (RFC 2328 §10.8)."""
    flags = DdFlags.M if more else 0
    fixed = _DESCRIPTION.pack(MTU, Options.E | Options.O, flags, sequence)
    return content(PacketType.DATABASE_DESCRIPTION, fixed + headers)
