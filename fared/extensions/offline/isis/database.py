"""The LSPs of a saved or captured database that are used; ``viewpoint`` makes blocks of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fared.core.ids import NodeId, SystemId
from fared.core.wire import DecodeError
from fared.extensions.offline.ignored import Ignored
from fared.protocols.isis.ids import Level, LspId, format_lsp_id, lsp_id
from fared.protocols.isis.pdu.codec import decode_raw, read_pdu
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import Tlv

NO_SYSTEM = SystemId(0)
Contents = Mapping[Level, Mapping[LspId, Lsp]]
"""The LSPs that are used, by level and LSP id: one valid, unexpired instance each."""


def system_of_node(node: int) -> SystemId:
    """The system id of a TED vertex."""
    return SystemId(node >> 8 & 0xFFFF_FFFF_FFFF)


def read_lsp(raw: bytes, level: int) -> Lsp:
    """Verify the checksum of an LSP of a level and decode it. Raises DecodeError."""
    whole = read_pdu(raw)
    pdu = decode_raw(whole)
    if not isinstance(pdu, Lsp) or pdu.level != level:
        raise DecodeError("type", 4, f"not an LSP of level {level}")
    if len(whole.data) != len(raw):
        raise DecodeError("length", 8, "bytes behind the LSP")
    return pdu


def newest(lsps: Iterable[Lsp]) -> dict[tuple[Level, LspId], Lsp]:
    """The newest instance of each LSP; of two with one number, the purge (ISO 10589 §7.3.16)."""
    kept: dict[tuple[Level, LspId], Lsp] = {}
    for lsp in lsps:
        key = Level(lsp.level), lsp.lsp_id
        present = kept.get(key)
        if present is None or _age(lsp) > _age(present):
            kept[key] = lsp
    return dict(sorted(kept.items()))


def _age(lsp: Lsp) -> tuple[int, bool]:
    return lsp.sequence_number, not lsp.remaining_lifetime


def screen(lsps: Iterable[Lsp]) -> tuple[Contents, list[tuple[Level, Ignored]]]:
    """The LSPs that a router computes with, and the others with the reason."""
    ignored: list[tuple[Level, Ignored]] = []
    contents: dict[Level, dict[LspId, Lsp]] = {}
    for (level, identifier), lsp in newest(lsps).items():
        if not lsp.remaining_lifetime:  # ISO 10589 §7.3.16.4: a purge
            ignored.append((level, Ignored(format_lsp_id(identifier), "maxage")))
        elif lsp.sequence_number:  # §7.3.15.2 b) 5): number 0 is not an LSP
            contents.setdefault(level, {})[identifier] = lsp
    for level, known in contents.items():
        for identifier in known:
            if LspId(identifier & ~0xFF) not in known:  # ISO 10589 §7.2.5
                shown = format_lsp_id(identifier)
                ignored.append((level, Ignored(shown, "no-first-fragment")))
    return contents, ignored


def own_lsps(contents: Contents, level: Level, node: NodeId) -> list[Lsp]:
    """The fragments of a router or pseudonode, ascending."""
    known = contents.get(level, {})
    first = lsp_id(system_of_node(node), node & 0xFF)
    return [known[key] for key in (LspId(first | n) for n in range(256)) if key in known]


def own_tlvs(contents: Contents, level: Level, node: NodeId) -> tuple[Tlv, ...]:
    """The TLVs of all fragments of a router or pseudonode."""
    return tuple(tlv for lsp in own_lsps(contents, level, node) for tlv in lsp.tlvs)
