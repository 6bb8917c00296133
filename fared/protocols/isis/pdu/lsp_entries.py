"""The entries of sequence numbers PDUs as bytes (ISO 10589 §9.10 to §9.13).

A router that joins a fabric gets lists of the same database from all its neighbors, and
acknowledges each LSP to all of them: too many entries for an object each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from fared.protocols.isis.ids import LspId, format_lsp_id
from fared.protocols.isis.pdu.tlv import Json, Tlv, of_type
from fared.protocols.isis.pdu.triplet import (
    MAX_VALUE,
    DecodeOptions,
    check_multiple,
    pack_entries,
    write_triplet,
)

ENTRY_SIZE: Final = 16
_ENTRY = struct.Struct(">HQIH")
_OF_A_TLV: Final = 15 * ENTRY_SIZE


class LspEntry(msgspec.Struct, frozen=True, gc=False):
    """One LSP in an SNP; ``sequence_number`` 0 requests it."""

    lsp_id: LspId
    sequence_number: int
    remaining_lifetime: int
    checksum: int


class LspEntries(Tlv, frozen=True, gc=False):
    """TLV 9. ``packed``: encoded entries that follow ``entries``."""

    code, label = 9, "lsp_entries"
    entries: tuple[LspEntry, ...]
    packed: bytes = b""

    @classmethod
    def decode(cls, data: bytes, start: int, end: int, options: DecodeOptions, /) -> Tlv:
        """Decode the entries, unless they are to stay bytes."""
        check_multiple(start, end, ENTRY_SIZE, "LSP entries")
        packed = data[start:end]
        if options.packed:
            return cls((), packed)
        entries = [
            LspEntry(LspId(identifier), sequence, lifetime, checksum)
            for lifetime, identifier, sequence, checksum in unpack(packed)
        ]
        return cls(tuple(entries))

    def encode(self, _: int | None, /) -> bytes:
        """Encode the entries, in several TLVs if need be."""
        packed = self.packed
        if packed and not self.entries and len(packed) <= MAX_VALUE:
            return write_triplet(self.code, packed)
        rest = (packed[at : at + ENTRY_SIZE] for at in range(0, len(packed), ENTRY_SIZE))
        return pack_entries(self.code, (*map(pack, self.entries), *rest))

    def document(self) -> Json:
        """Return the entries that are not packed."""
        return {
            self.label: [
                {
                    "lsp_id": format_lsp_id(entry.lsp_id),
                    "seq": entry.sequence_number,
                    "lifetime": entry.remaining_lifetime,
                    "checksum": entry.checksum,
                }
                for entry in self.entries
            ]
        }


def pack_entry(lifetime: int, lsp_id: int, sequence_number: int, checksum: int) -> bytes:
    """Encode one entry. Raises struct.error if a field does not fit."""
    return _ENTRY.pack(lifetime, lsp_id, sequence_number, checksum)


def pack(entry: LspEntry) -> bytes:
    """Encode one entry."""
    return _ENTRY.pack(
        entry.remaining_lifetime, entry.lsp_id, entry.sequence_number, entry.checksum
    )


def unpack(packed: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Remaining lifetime, LSP id, sequence number and checksum of each entry."""
    return _ENTRY.iter_unpack(packed)


def packed_of(tlvs: tuple[Tlv, ...]) -> bytes:
    """All entries of a PDU."""
    return b"".join(
        part for tlv in of_type(tlvs, LspEntries) for part in (*map(pack, tlv.entries), tlv.packed)
    )


def split(entries: Iterable[bytes]) -> tuple[LspEntries, ...]:
    """The TLVs of encoded entries."""
    packed = b"".join(entries)
    return tuple(
        [LspEntries((), packed[at : at + _OF_A_TLV]) for at in range(0, len(packed), _OF_A_TLV)]
    )
