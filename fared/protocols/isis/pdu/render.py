"""IS-IS PDUs as plain dictionaries for JSON: ``decode``, ``show isis database``.

Conventions:

- system ids, node ids, LSP ids, area addresses, MAC and IP addresses are text in their usual form;
  a neighbor has its pseudonode number, ``0102.5500.0002.00``;
- numbers of the protocol are integers as on the wire; some have a name beside them: ``state`` and
  ``state_name``, ``protocols`` and ``protocols_names``;
- bandwidths are in bytes/s, delays in microseconds, loss in per cent; an optional field is there
  only if it was sent;
- a float that JSON does not have is text: ``"NaN"``, ``"Infinity"``, ``"-Infinity"``;
- bytes that are not decoded are hexadecimal text;
- several TLVs of one type become one list; ``tlv_order`` has their order and sizes.
"""

from __future__ import annotations

from typing import Final

from fared.core.ids import format_node, format_system_id, isis_node
from fared.protocols.isis.ids import LevelSet, format_lsp_id, system_of
from fared.protocols.isis.pdu.codec import kind_of
from fared.protocols.isis.pdu.header import read_pdu
from fared.protocols.isis.pdu.model import Csnp, LanHello, Lsp, P2pHello, Pdu, Psnp
from fared.protocols.isis.pdu.tlv import Json, format_neighbor
from fared.protocols.isis.pdu.tlv_lists import render_tlvs
from fared.protocols.isis.pdu.triplet import read_triplets

_LEVELS: Final = {
    LevelSet.ONE: "level-1",
    LevelSet.TWO: "level-2",
    LevelSet.BOTH: "level-1-2",
}


def render_pdu(pdu: Pdu, raw: bytes | None = None) -> Json:
    """A PDU, ``pdu`` first; with ``tlv_order`` if the bytes it came from are given."""
    out: Json = {"pdu": kind_of(pdu).label}
    match pdu:
        case LanHello():
            out |= _lan_hello(pdu)
        case P2pHello():
            out |= _p2p_hello(pdu)
        case Lsp():
            out |= render_lsp_header(pdu)
        case Csnp():
            out |= {"level": pdu.level, "source": _node(pdu.source_id)}
            out |= {"start": format_lsp_id(pdu.start), "end": format_lsp_id(pdu.end)}
        case Psnp():
            out |= {"level": pdu.level, "source": _node(pdu.source_id)}
    out["tlvs"] = render_tlvs(pdu.tlvs)
    if raw is not None:
        _, data, start = read_pdu(raw)
        out["tlv_order"] = tlv_order(data, start, len(data))
    return out


def tlv_order(data: bytes, start: int, end: int) -> list[list[int]]:
    """Type and length of each TLV between two offsets. Raises DecodeError ``tlv``."""
    return [[kind, last - first] for kind, first, last in read_triplets(data, start, end)]


def _node(source_id: int) -> str:
    return format_node(isis_node(source_id >> 8, source_id & 0xFF))


def _lan_hello(hello: LanHello) -> Json:
    return {
        "level": hello.level,
        "source": format_system_id(hello.source_id),
        "circuit_type": _LEVELS[hello.circuit_type],
        "holding_time": hello.holding_time,
        "priority": hello.priority,
        "lan_id": format_neighbor(hello.lan_id),
    }


def _p2p_hello(hello: P2pHello) -> Json:
    return {
        "level": None,
        "source": format_system_id(hello.source_id),
        "circuit_type": _LEVELS[hello.circuit_type],
        "holding_time": hello.holding_time,
        "local_circuit_id": hello.local_circuit_id,
    }


def render_lsp_header(lsp: Lsp) -> Json:
    """The header of an LSP, without its TLVs."""
    return {
        "level": lsp.level,
        "source": format_system_id(system_of(lsp.lsp_id)),
        "lsp_id": format_lsp_id(lsp.lsp_id),
        "seq": lsp.sequence_number,
        "lifetime": lsp.remaining_lifetime,
        "checksum": lsp.checksum,
        "overload": lsp.overload,
        "attached": lsp.attached,
        "partition_repair": lsp.partition_repair,
        "is_type": lsp.is_type,
    }
