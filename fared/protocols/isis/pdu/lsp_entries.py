"""The entries of sequence numbers PDUs as bytes (ISO 10589 §9.10 to §9.13).

A router that joins a fabric gets lists of the same database from all its neighbors, and
acknowledges each LSP to all of them: too many entries for an object each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from fared.protocols.isis.pdu.tlvs import LspEntries, LspEntry, Tlv, of_type

ENTRY_SIZE: Final = 16
_ENTRY = struct.Struct(">HQIH")
_OF_A_TLV: Final = 15 * ENTRY_SIZE


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
