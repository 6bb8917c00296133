"""The BIER info sub-TLV of reachable prefixes (RFC 8401 §6.1, §6.2); loaded where BIER runs.

::

    type 32: BAR 8 | IPA 8 | sub-domain 8 | BFR-id 16 | sub-sub-TLVs
    type 1, in it: max SI 8 | BS Len 4 | label 20
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from fared.core.bier import BierEncapsulation, BierInfo, read_infos
from fared.core.wire import DecodeError
from fared.protocols.isis.pdu.triplet import read_triplets, write_triplet

BIER: Final = 32
"""BIER info sub-TLV."""
_MPLS: Final = 1
"""BIER MPLS encapsulation sub-sub-TLV."""
_HEAD = struct.Struct(">BBBH")
_ENCAPSULATION = struct.Struct(">I")
_LABEL: Final = 0xFFFFF


def decode_bier(value: bytes) -> BierInfo:
    """Decode the value of a BIER info sub-TLV. Raises DecodeError ``tlv``."""
    if len(value) < _HEAD.size:
        raise DecodeError("tlv", 0, f"BIER sub-TLV of {len(value)} bytes, below 5")
    bar, ipa, sub_domain, bfr_id = _HEAD.unpack_from(value)
    offered: list[BierEncapsulation] = []
    unknown: list[tuple[int, bytes]] = []
    for kind, first, last in read_triplets(value, _HEAD.size, len(value)):
        if kind == _MPLS and last - first == _ENCAPSULATION.size:
            (word,) = _ENCAPSULATION.unpack_from(value, first)
            offered.append(BierEncapsulation(word >> 24, word & _LABEL, word >> 20 & 0xF))
        else:
            unknown.append((kind, value[first:last]))
    return BierInfo(sub_domain, bfr_id, 0, bar, ipa, (*offered,), (*unknown,))


def encode_bier(info: BierInfo) -> bytes:
    """Encode the value of a BIER info sub-TLV; the topology is that of the prefix's TLV."""
    parts = [_HEAD.pack(info.bar, info.ipa, info.sub_domain, info.bfr_id)]
    for each in info.encapsulations:
        word = each.max_set << 24 | each.length_code << 20 | each.label
        parts.append(write_triplet(_MPLS, _ENCAPSULATION.pack(word)))
    parts += (write_triplet(kind, value) for kind, value in info.unknown)
    return b"".join(parts)


def read_bier(sub_tlvs: Iterable[tuple[int, bytes]]) -> Iterator[BierInfo]:
    """Return the BIER info sub-TLVs among those of a prefix, without malformed ones."""
    return read_infos(sub_tlvs, BIER, decode_bier)
