"""The BIER sub-TLV of extended prefix TLVs (RFC 8444 §2.1, §2.2); loaded where BIER runs.

::

    type 9: sub-domain 8 | MT-ID 8 | BFR-id 16 | BAR 8 | IPA 8 | reserved 16 | sub-TLVs
    type 10, in it: max SI 8 | label 24 (low 20 bits) | BS Len 4 | reserved 28
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from fared.core.bier import BierEncapsulation, BierInfo, read_infos
from fared.core.wire import DecodeError
from fared.protocols.ospf.packet.tlv import read_tlvs, write_tlv

BIER: Final = 9
"""BIER sub-TLV of the extended prefix TLV."""
_MPLS: Final = 10
"""BIER MPLS encapsulation sub-TLV, inside it."""
_HEAD = struct.Struct(">BBHBBxx")
_ENCAPSULATION = struct.Struct(">II")
_LABEL: Final = 0xFFFFF


def decode_bier(value: bytes) -> BierInfo:
    """Decode the value of a BIER sub-TLV. Raises DecodeError ``tlv``."""
    if len(value) < _HEAD.size:
        raise DecodeError("tlv", 0, f"BIER sub-TLV of {len(value)} bytes, below 8")
    sub_domain, mt_id, bfr_id, bar, ipa = _HEAD.unpack_from(value)
    offered: list[BierEncapsulation] = []
    unknown: list[tuple[int, bytes]] = []
    for kind, first, last in read_tlvs(value, _HEAD.size, len(value)):
        if kind == _MPLS and last - first == _ENCAPSULATION.size:
            label, length = _ENCAPSULATION.unpack_from(value, first)
            offered.append(BierEncapsulation(label >> 24, label & _LABEL, length >> 28))
        else:
            unknown.append((kind, value[first:last]))
    return BierInfo(sub_domain, bfr_id, mt_id, bar, ipa, (*offered,), (*unknown,))


def encode_bier(info: BierInfo) -> bytes:
    """Encode the value of a BIER sub-TLV."""
    parts = [_HEAD.pack(info.sub_domain, info.mt_id, info.bfr_id, info.bar, info.ipa)]
    for each in info.encapsulations:
        packed = _ENCAPSULATION.pack(each.max_set << 24 | each.label, each.length_code << 28)
        parts.append(write_tlv(_MPLS, packed))
    parts += (write_tlv(kind, value) for kind, value in info.unknown)
    return b"".join(parts)


def read_bier(sub_tlvs: Iterable[tuple[int, bytes]]) -> Iterator[BierInfo]:
    """Return the BIER sub-TLVs among those of a prefix, without malformed ones."""
    return read_infos(sub_tlvs, BIER, decode_bier)
