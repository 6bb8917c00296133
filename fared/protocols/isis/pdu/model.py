"""PDUs as values: the fields of their headers (ISO 10589 §9), and their TLVs (``tlvs``)."""

from __future__ import annotations

import enum
import functools

import msgspec

from fared.protocols.isis.ids import LevelSet, LspId
from fared.protocols.isis.pdu.tlvs import Tlv


class PduType(enum.IntEnum):
    """PDU types (ISO 10589 §9)."""

    L1_LAN_HELLO = 15
    L2_LAN_HELLO = 16
    P2P_HELLO = 17
    L1_LSP = 18
    L2_LSP = 20
    L1_CSNP = 24
    L2_CSNP = 25
    L1_PSNP = 26
    L2_PSNP = 27

    @functools.cached_property
    def label(self) -> str:
        """The name in counters and JSON: ``l2-lsp``."""
        return self.name.lower().replace("_", "-")

    @functools.cached_property
    def level(self) -> int:
        """1 or 2; 0 for the point-to-point hello, which serves both."""
        return {15: 1, 16: 2, 17: 0, 18: 1, 20: 2, 24: 1, 25: 2, 26: 1, 27: 2}[self]


class LanHello(msgspec.Struct, frozen=True):
    """LAN IS to IS hello (ISO 10589 §9.5, §9.6). ``lan_id`` is system id << 8 | pseudonode."""

    level: int
    circuit_type: LevelSet
    source_id: int
    holding_time: int
    priority: int
    lan_id: int
    tlvs: tuple[Tlv, ...] = ()


class P2pHello(msgspec.Struct, frozen=True):
    """Point-to-point IS to IS hello (ISO 10589 §9.7)."""

    circuit_type: LevelSet
    source_id: int
    holding_time: int
    local_circuit_id: int
    tlvs: tuple[Tlv, ...] = ()


class Lsp(msgspec.Struct, frozen=True):
    """Link state PDU (ISO 10589 §9.8, §9.9). ``attached`` is the default-metric bit.

    ``is_type`` has the bits of LevelSet (1 or 3). A purge has remaining lifetime 0, and its
    checksum is not examined.
    """

    level: int
    lsp_id: LspId
    sequence_number: int
    remaining_lifetime: int
    checksum: int = 0
    partition_repair: bool = False
    attached: bool = False
    overload: bool = False
    is_type: int = 3
    tlvs: tuple[Tlv, ...] = ()


class Csnp(msgspec.Struct, frozen=True):
    """Complete sequence numbers PDU (ISO 10589 §9.10, §9.11). ``source_id``: system id << 8."""

    level: int
    source_id: int
    start: LspId
    end: LspId
    tlvs: tuple[Tlv, ...] = ()


class Psnp(msgspec.Struct, frozen=True):
    """Partial sequence numbers PDU (ISO 10589 §9.12, §9.13). ``source_id``: system id << 8."""

    level: int
    source_id: int
    tlvs: tuple[Tlv, ...] = ()


Pdu = LanHello | P2pHello | Lsp | Csnp | Psnp
