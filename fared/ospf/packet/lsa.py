"""LSA headers and the envelope in which an LSA travels and is stored (RFC 2328 §12.1, §A.4.1).

An LSA is kept as the bytes it arrived in: flooding forwards those bytes with the age patched,
never a re-encoding, so that unknown LSA types pass through unharmed (RFC 5250 §3).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple


class LsType(enum.IntEnum):
    """LS types this router knows (RFC 2328 §A.4.1, RFC 5250)."""

    ROUTER = 1
    NETWORK = 2
    SUMMARY_NETWORK = 3
    SUMMARY_ASBR = 4
    AS_EXTERNAL = 5
    NSSA_EXTERNAL = 7
    OPAQUE_LINK = 9
    OPAQUE_AREA = 10
    OPAQUE_AS = 11


class LsaKey(NamedTuple):
    """What names an LSA (RFC 2328 §12.1): three instances with one key differ only in age."""

    ls_type: int
    link_state_id: int
    advertising_router: int


@dataclass(frozen=True, slots=True)
class LsaHeader:
    """The 20 bytes at the head of each LSA; ``ls_sequence_number`` is signed."""

    ls_age: int
    options: int
    ls_type: int
    link_state_id: int
    advertising_router: int
    ls_sequence_number: int
    ls_checksum: int
    length: int

    @property
    def key(self) -> LsaKey:
        """The LSA's identity."""
        return LsaKey(self.ls_type, self.link_state_id, self.advertising_router)


@dataclass(frozen=True, slots=True)
class Lsa:
    """One LSA: its header and all its bytes (header included, exactly ``header.length``)."""

    header: LsaHeader
    raw: bytes
