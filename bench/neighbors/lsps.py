"""What the routers of a large fabric advertise over IS-IS, as bytes: the LSPs for ``scale``."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Iterator

from bench.neighbors.fabric import RATE, Fabric, Link
from bench.neighbors.lsas import LinkCuts
from fared.core.checksum import fletcher16
from fared.protocols.isis.ids import LspId

LSP_ID, SEQUENCE, CHECKSUM, FLAGS = 12, 20, 24, 26
"""Offsets in an LSP (ISO 10589 §9.9)."""
_TLVS = 27
_EXTENDED_REACHABILITY, _ENTRIES = 22, 9
_NEIGHBOR = 11
"""Size of a neighbor before its sub-TLVs (RFC 5305 §3)."""
_AVAILABLE, _UTILIZED = 38, 39
"""Sub-TLVs of RFC 8570 §4.6 and §4.7."""
_FLOAT = struct.Struct(">f")
_ENTRIES_OF_A_TLV, _ENTRIES_OF_A_PDU = 15, 90
_CSNP, _PSNP = struct.Struct(">BBBBBBBBH7sQQ"), struct.Struct(">BBBBBBBBH7s")
_LAST = 0xFFFFFFFFFFFFFFFF


def entry_of(raw: bytes) -> bytes:
    """Return the entry of an LSP in a sequence numbers PDU."""
    return raw[10:FLAGS]


def csnp(system: int, start: int, end: int, entries: list[bytes]) -> bytes:
    """Encode a level 2 CSNP (ISO 10589 §9.11)."""
    body = _tlvs(entries)
    source = (system << 8).to_bytes(7, "big")
    size = _CSNP.size + len(body)
    return _CSNP.pack(0x83, _CSNP.size, 1, 0, 25, 1, 0, 0, size, source, start, end) + body


def psnp(system: int, entries: list[bytes]) -> Iterator[bytes]:
    """Encode level 2 PSNPs (ISO 10589 §9.13)."""
    source = (system << 8).to_bytes(7, "big")
    for at in range(0, len(entries), _ENTRIES_OF_A_PDU):
        body = _tlvs(entries[at : at + _ENTRIES_OF_A_PDU])
        size = _PSNP.size + len(body)
        yield _PSNP.pack(0x83, _PSNP.size, 1, 0, 27, 1, 0, 0, size, source) + body


def _tlvs(entries: list[bytes]) -> bytes:
    parts = []
    for at in range(0, len(entries), _ENTRIES_OF_A_TLV):
        some = b"".join(entries[at : at + _ENTRIES_OF_A_TLV])
        parts += (bytes((_ENTRIES, len(some))), some)
    return b"".join(parts)


def entries_of(pdu: bytes, start: int) -> bytes:
    """Return the entries of a sequence numbers PDU, 16 bytes each."""
    return b"".join(pdu[at:end] for kind, at, end in _read(pdu, start) if kind == _ENTRIES)


def _read(data: bytes, at: int, end: int | None = None) -> Iterator[tuple[int, int, int]]:
    """Type, start and end of each TLV."""
    end = len(data) if end is None else end
    while at + 2 <= end:
        size = data[at + 1]
        yield data[at], at + 2, at + 2 + size
        at += 2 + size


def neighbors_of(raw: bytes) -> set[bytes]:
    """Return the neighbors that an LSP lists."""
    return {raw[at : at + 7] for at, _ in _neighbors(raw)}


def _neighbors(raw: bytes) -> Iterator[tuple[int, int]]:
    """Start and end of each neighbor in the TLVs of extended reachability."""
    for kind, start, end in _read(raw, _TLVS):
        at = start
        while kind == _EXTENDED_REACHABILITY and at + _NEIGHBOR <= end:
            after = at + _NEIGHBOR + raw[at + _NEIGHBOR - 1]
            yield at, after
            at = after


class Lsps:
    """A database that is offered; one that ``serves`` is sent, too."""

    def __init__(self, lsps: dict[LspId, bytes], *, serves: bool = True) -> None:
        self.lsps, self._serves = lsps, serves

    def served(self) -> Iterable[bytes]:
        """The LSPs to send."""
        return self.lsps.values() if self._serves else ()

    def csnps(self, system: int) -> Iterator[bytes]:
        """List the whole database (ISO 10589 §7.3.15.2)."""
        known = sorted(self.lsps)
        start = 0
        for at in range(0, len(known), _ENTRIES_OF_A_PDU):
            part = known[at : at + _ENTRIES_OF_A_PDU]
            end = _LAST if at + _ENTRIES_OF_A_PDU >= len(known) else part[-1]
            yield csnp(system, start, end, [entry_of(self.lsps[one]) for one in part])
            start = end + 1


class LspContents(Lsps, LinkCuts):
    """The database that all neighbors offer, and its changes."""

    def __init__(self, fabric: Fabric) -> None:
        fabric.describe()
        super().__init__(fabric.lsps)
        self.fabric = fabric
        self._dice = random.Random(19)
        self._ends = [
            (identifier, number)
            for identifier, raw in self.lsps.items()
            for number in range(sum(1 for _ in _neighbors(raw)))
        ]
        self._dice.shuffle(self._ends)
        self._next = 0

    def instances(self) -> set[bytes]:
        """Identify the present instance of each LSP."""
        return {self.instance(raw) for raw in self.lsps.values()}

    def instance(self, raw: bytes) -> bytes:
        """Identify an instance: its entry without the lifetime."""
        return raw[LSP_ID:FLAGS]

    def identity(self, instance: bytes) -> bytes:
        """Identify an LSP by its id."""
        return instance[: SEQUENCE - LSP_ID]

    def packed(self, lsps: Iterable[bytes]) -> list[bytes]:
        """An LSP is a packet."""
        return list(lsps)

    def is_newest(self, raw: bytes) -> bool:
        """Whether an LSP has not been replaced by a later instance."""
        return self.lsps[LspId(int.from_bytes(raw[LSP_ID:SEQUENCE], "big"))] == raw

    def announcement(self) -> bytes:
        """The next instance of a fragment, in which the available bandwidth of a link differs."""
        identifier, number = self._ends[self._next % len(self._ends)]
        self._next += 1
        raw = self.lsps[identifier] = announced(self.lsps[identifier], number, self._dice)
        return raw

    def _reissued(self, link: Link) -> list[bytes]:
        ends = self.fabric.leaf(link[1]), self.fabric.spine(link[0])
        return [raw for end in ends for raw in self.fabric.issue_lsps(end)]


def announced(raw: bytes, number: int, dice: random.Random) -> bytes:
    """The next instance of a fragment: the bandwidth of its neighbor ``number`` differs."""
    lsp = bytearray(raw)
    start, end = list(_neighbors(raw))[number]
    places = {kind: at for kind, at, _ in _read(raw, start + _NEIGHBOR, end)}
    (before,) = _FLOAT.unpack_from(raw, places[_AVAILABLE])
    available = (before + RATE * dice.uniform(0.1, 0.4)) % (RATE / 2) + RATE / 2
    _FLOAT.pack_into(lsp, places[_AVAILABLE], available)
    _FLOAT.pack_into(lsp, places[_UTILIZED], RATE - available)
    sequence = int.from_bytes(raw[SEQUENCE:CHECKSUM], "big") + 1
    lsp[SEQUENCE:CHECKSUM] = sequence.to_bytes(4, "big")
    checksum = fletcher16(bytes(lsp[LSP_ID:]), CHECKSUM - LSP_ID)
    lsp[CHECKSUM:FLAGS] = checksum.to_bytes(2, "big")
    return bytes(lsp)
