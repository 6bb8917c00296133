"""The link state database of one level: LSPs with their flooding flags (ISO 10589 §7.3).

An entry keeps the bytes as they came (they are flooded on as they are, but for the remaining
lifetime) beside what the codec made of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fared.core.timers import Timer
    from fared.isis.ids import Level, LspId
    from fared.isis.pdu.model import Lsp

ZERO_AGE_LIFETIME = 60.0
"""Seconds for which the header of a purged LSP is kept (ISO 10589 §7.3.16.4)."""
MAX_AGE = 1200


@dataclass(slots=True, eq=False)
class StoredLsp:
    """One LSP of the database.

    ``expires`` is the engine time at which its remaining lifetime reaches zero. ``srm`` and
    ``ssn`` hold the ifindexes of circuits on which it is to be sent, or acknowledged (or asked
    for) in a PSNP. ``lsp`` is None for a header that only asks: an LSP heard of in an SNP, with
    ``sequence_number`` 0. ``timer`` is the next event of its life (refresh, expiry, removal).
    """

    lsp_id: LspId
    sequence_number: int
    checksum: int
    expires: float
    raw: bytes
    lsp: Lsp | None
    own: bool = False
    purged: bool = False
    srm: set[int] = field(default_factory=set)
    ssn: set[int] = field(default_factory=set)
    timer: Timer | None = None
    since: float = 0.0
    """Engine time at which it arrived or was generated."""

    def remaining_lifetime(self, now: float) -> int:
        """Seconds left, as SNPs and LSPs carry it; 0 for a purge."""
        if self.purged:
            return 0
        return max(0, min(0xFFFF, round(self.expires - now)))


class Lsdb:
    """All LSPs of one level."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.entries: dict[LspId, StoredLsp] = {}

    def ordered(self) -> list[StoredLsp]:
        """The entries by ascending LSP id."""
        return [self.entries[key] for key in sorted(self.entries)]
