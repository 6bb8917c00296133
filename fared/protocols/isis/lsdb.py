"""The link state database of one level (ISO 10589 §7.3).

An entry keeps the received bytes, which are flooded unchanged except for the remaining lifetime
(§7.3.14), beside the decoded LSP.
"""

from __future__ import annotations

import enum
import operator
from bisect import bisect_left, bisect_right
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from fared.core.ids import SystemId
    from fared.core.timers import Timer
    from fared.protocols.isis.ids import Level, LspId
    from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.igp.database_limit import Originators
from fared.protocols.isis.pdu.lsp_entries import pack_entry
from fared.protocols.isis.pdu.tlvs import LspEntry

ZERO_AGE_LIFETIME = 60.0
"""Seconds for which the header of a purged LSP is kept (ISO 10589 §7.3.16.4)."""
_PSEUDONODE = 0xFF00
"""The pseudonode number in an LSP id."""
MAX_SEQUENCE_NUMBER = 0xFFFF_FFFF


class Order(enum.Enum):
    """How a received or listed LSP compares to the stored one (§7.3.16)."""

    NEWER = "newer"
    SAME = "same"
    OLDER = "older"
    CONFUSED = "confused"
    """Both unexpired, with the same sequence number and different contents (§7.3.16.2)."""


class StoredLsp(msgspec.Struct, eq=False):
    """One LSP of the database.

    ``expires`` is the engine time at which its remaining lifetime reaches zero. ``purged``: only
    the header of a purged LSP, kept for ``ZERO_AGE_LIFETIME``. Its SRM and SSN flags are in the
    queues of circuits (``update.circuit_tx``). ``timer`` is its next event (refresh, expiry,
    removal). A new instance is a new object: what entries say is never modified.
    """

    lsp_id: LspId
    sequence_number: int
    checksum: int
    expires: float
    raw: bytes
    lsp: Lsp
    own: bool = False
    purged: bool = False
    timer: Timer | None = None
    since: float = 0.0
    """Engine time at which it arrived or was generated."""
    packed: bytes = b""
    packed_at: float = -1.0
    """Its entry in SNPs, and when that was right."""
    adjacent: frozenset[SystemId] | None = None
    """The systems it lists as neighbors; None until ``update.suppression`` needs them."""
    renewed: tuple[int, ...] | None = None
    """The places of its TLVs that differ from those of the instance that it replaced.

    None: it replaced none, or more differs (``renewed_tlvs``)."""

    @property
    def ends_sequence(self) -> bool:
        """Whether it is the purge after which the sequence begins again (§7.3.16.1)."""
        return self.purged and self.sequence_number == MAX_SEQUENCE_NUMBER

    def remaining_lifetime(self, now: float) -> int:
        """Seconds left, as SNPs and LSPs carry them; 0 only for a purge (§7.3.16.4)."""
        if self.purged:
            return 0
        return max(1, min(0xFFFF, round(self.expires - now)))

    def described(self, now: float) -> bytes:
        """Its entry in an SNP (``pdu.lsp_entries``).

        It is kept for a moment: an LSP is acknowledged on many circuits at once.
        """
        if self.packed_at != now:
            lifetime = self.remaining_lifetime(now)
            self.packed = pack_entry(lifetime, self.lsp_id, self.sequence_number, self.checksum)
            self.packed_at = now
        return self.packed


def renewed_tlvs(old: StoredLsp | None, lsp: Lsp) -> tuple[int, ...] | None:
    """The places of the TLVs of an LSP that are other objects than those of the instance before.

    TLVs with equal bytes are the same objects (``codec.Former``). None: there is no instance
    before, the number of TLVs or bits of the header differ, or one of both is a purge.
    """
    if old is None or old.purged or not lsp.remaining_lifetime:
        return None
    before = old.lsp
    if len(before.tlvs) != len(lsp.tlvs) or header_bits(before) != header_bits(lsp):
        return None
    same = map(operator.is_, before.tlvs, lsp.tlvs)
    return tuple([place for place, one in enumerate(same) if not one])


def header_bits(lsp: Lsp) -> tuple[int, bool, bool, bool]:
    """The fields of an LSP beside its TLVs that say something about the router."""
    return lsp.is_type, lsp.overload, lsp.attached, lsp.partition_repair


def compare(entry: StoredLsp | None, received: Lsp | LspEntry) -> Order:
    """Compare a received or listed LSP with the stored one (§7.3.16)."""
    if entry is None:
        return Order.NEWER
    # §7.3.16.1: the higher sequence number is newer
    if received.sequence_number != entry.sequence_number:
        newer = received.sequence_number > entry.sequence_number
        return Order.NEWER if newer else Order.OLDER
    # §7.3.16.4: of equal numbers, remaining lifetime zero is newer
    purge = received.remaining_lifetime == 0
    if purge != entry.purged:
        return Order.NEWER if purge else Order.OLDER
    # The checksum of a purge is not compared: §7.3.16.4 removes the body that it was computed of.
    if purge or received.checksum == entry.checksum:
        return Order.SAME
    # §7.3.16.2: equal numbers, both unexpired, different checksums
    return Order.CONFUSED


class Lsdb:
    """All LSPs of one level. Change ``entries`` through ``put`` and ``remove`` only."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.entries: dict[LspId, StoredLsp] = {}
        self.originators = Originators()
        """How many LSPs each system has."""
        self.checksum = 0
        """The sum of the checksums of all LSPs that are not purged."""
        self.live: Counter[bool] = Counter()
        """How many are not purged, those of pseudonodes (True) apart."""
        self._ids: list[LspId] | None = []

    def __len__(self) -> int:
        return len(self.entries)

    def get(self, lsp_id: LspId) -> StoredLsp | None:
        """The LSP of this id, purged or not."""
        return self.entries.get(lsp_id)

    def put(self, entry: StoredLsp) -> StoredLsp | None:
        """Store an LSP; return the one it replaces."""
        previous = self.entries.get(entry.lsp_id)
        if previous is None:
            self._ids = None
            self.originators[entry.lsp_id >> 16] += 1
        else:
            self._count(previous, -1)
        self._count(entry, 1)
        self.entries[entry.lsp_id] = entry
        return previous

    def _count(self, entry: StoredLsp, sign: int) -> None:
        if not entry.purged:
            self.checksum += sign * entry.checksum
            self.live[entry.lsp_id & _PSEUDONODE != 0] += sign

    def remove(self, entry: StoredLsp) -> None:
        """Remove an LSP."""
        self._count(self.entries.pop(entry.lsp_id), -1)
        self._ids = None
        self.originators.left(entry.lsp_id >> 16)

    def ids(self) -> list[LspId]:
        """The LSP ids, ascending. Not to be changed."""
        if self._ids is None:
            self._ids = sorted(self.entries)
        return self._ids

    def between(self, start: int, end: int) -> list[StoredLsp]:
        """The entries of the ids from ``start`` to ``end``, both included, ascending."""
        ids = self.ids()
        return [self.entries[key] for key in ids[bisect_left(ids, start) : bisect_right(ids, end)]]

    def first(self, start: int, count: int) -> list[StoredLsp]:
        """The first ``count`` entries of the ids from ``start`` on, ascending."""
        ids = self.ids()
        begin = bisect_left(ids, start)
        return [self.entries[key] for key in ids[begin : begin + count]]

    def ordered(self) -> list[StoredLsp]:
        """The entries by ascending LSP id."""
        return [self.entries[key] for key in self.ids()]
