"""Identifiers of IS-IS as integers: LSP ids are compared, sorted and hashed all the time.

Also the code point of the path capacity sub-TLV, which configuration and codec share.
"""

from __future__ import annotations

import enum
from typing import NewType

from fared.core.ids import NodeId, SystemId, format_system_id, isis_node

LspId = NewType("LspId", int)
"""64 bits: system id, pseudonode number, fragment number."""
Snpa = NewType("Snpa", int)
"""A MAC address, 48 bits."""

FIRST_LSP = LspId(0)
LAST_LSP = LspId(0xFFFF_FFFF_FFFF_FFFF)
ALL_L1_ISS = Snpa(0x0180_C200_0014)
ALL_L2_ISS = Snpa(0x0180_C200_0015)
ALL_ISS = Snpa(0x0900_2B00_0005)
"""Destination of all PDUs on point-to-point circuits over a LAN (RFC 5309)."""
MAX_FRAGMENT = 0xFF
PATH_CAPACITY = 250
"""Sub-TLV of TLVs 135, 235, 236 and 237, unassigned by IANA: path capacity of a leaked prefix."""


class Level(enum.IntEnum):
    """One of the two levels of routing; also the number of its area in the TED."""

    ONE = 1
    TWO = 2

    @property
    def label(self) -> str:
        """The name in configuration, logs and JSON."""
        return f"level-{int(self)}"


class LevelSet(enum.IntFlag):
    """Levels of a router or a circuit, with the bits of the circuit type field."""

    NONE = 0
    ONE = 1
    TWO = 2
    BOTH = 3

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels in it, ascending."""
        return tuple([level for level in Level if self & level])


def lsp_id(system_id: int, pseudonode: int = 0, fragment: int = 0) -> LspId:
    """Make an LSP id."""
    return LspId(system_id << 16 | pseudonode << 8 | fragment)


def system_of(identifier: int) -> SystemId:
    """The system id that an LSP id begins with."""
    return SystemId(identifier >> 16)


def pseudonode_of(identifier: int) -> int:
    """The pseudonode number in an LSP id, 0 for a router's own LSP."""
    return identifier >> 8 & 0xFF


def fragment_of(identifier: int) -> int:
    """The fragment number in an LSP id."""
    return identifier & 0xFF


def node_of(identifier: int) -> NodeId:
    """The TED vertex that an LSP belongs to."""
    return isis_node(identifier >> 16, identifier >> 8 & 0xFF)


def format_lsp_id(identifier: int) -> str:
    """Write an LSP id as usual: ``0102.5500.0001.00-00``."""
    system = format_system_id(identifier >> 16)
    return f"{system}.{identifier >> 8 & 0xFF:02x}-{identifier & 0xFF:02x}"


def format_snpa(snpa: int) -> str:
    """Write a MAC address."""
    return ":".join(f"{byte:02x}" for byte in snpa.to_bytes(6, "big"))
