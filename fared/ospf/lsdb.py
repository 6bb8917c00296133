"""The link state database (RFC 2328 §12.2): LSAs as received, with their age at installation.

RFC 2328 §14 increments the age of every LSA each second. Here an entry holds its age and the time
of its installation; the present age is computed from both, without a pass over the database.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from fared.core.ids import AreaId
from fared.core.timers import Timer
from fared.ospf.packet.body import LsaBody
from fared.ospf.packet.lsa import MAX_AGE, MAX_AGE_DIFF, Lsa, LsaHeader, LsaKey, LsType


class Scope(enum.Enum):
    """How far an LSA is flooded (RFC 2328 §A.4.1, RFC 5250 §3)."""

    LINK = "link"
    AREA = "area"
    AS = "as"


SCOPES: dict[int, Scope] = {
    LsType.ROUTER: Scope.AREA,
    LsType.NETWORK: Scope.AREA,
    LsType.SUMMARY_NETWORK: Scope.AREA,
    LsType.SUMMARY_ASBR: Scope.AREA,
    LsType.AS_EXTERNAL: Scope.AS,
    LsType.OPAQUE_LINK: Scope.LINK,
    LsType.OPAQUE_AREA: Scope.AREA,
    LsType.OPAQUE_AS: Scope.AS,
}
OPAQUE_TYPES = (LsType.OPAQUE_LINK, LsType.OPAQUE_AREA, LsType.OPAQUE_AS)


class LsaEntry:
    """One LSA in a database.

    ``retransmissions`` counts the neighbors whose retransmission list holds this instance.
    ``flooded_in``: received from a neighbor. ``within_min_ls_arrival``: it follows its predecessor
    so soon that neighbors may discard it (§13 (5)(a)). ``body`` is decoded at first use.
    """

    __slots__ = (
        "base_age",
        "body",
        "flooded_in",
        "installed_at",
        "key",
        "lsa",
        "lsdb",
        "retransmissions",
        "timer",
        "within_min_ls_arrival",
    )

    def __init__(self, lsdb: Lsdb, lsa: Lsa, now: float, *, flooded_in: bool) -> None:
        self.lsdb = lsdb
        self.lsa = lsa
        self.key: LsaKey = lsa.header.key
        self.base_age = min(lsa.header.ls_age, MAX_AGE)
        self.installed_at = now
        self.flooded_in = flooded_in
        self.within_min_ls_arrival = False
        self.retransmissions = 0
        self.timer: Timer | None = None
        self.body: LsaBody | None = None

    def age(self, now: float) -> int:
        """LS age in seconds at ``now``, at most MaxAge."""
        return min(MAX_AGE, self.base_age + int(now - self.installed_at))

    def is_maxage(self, now: float) -> bool:
        """Whether it has reached MaxAge, and is to be removed from the database (§14)."""
        return self.age(now) >= MAX_AGE

    def header(self, now: float) -> LsaHeader:
        """The header with the age at ``now``."""
        head = self.lsa.header
        return LsaHeader(
            self.age(now),
            head.options,
            head.ls_type,
            head.link_state_id,
            head.advertising_router,
            head.ls_sequence_number,
            head.ls_checksum,
            head.length,
        )


class Lsdb:
    """The LSAs of one flooding scope: an area, the AS, or one link (LS type 9).

    ``version`` counts installations and removals.
    """

    __slots__ = ("area", "entries", "ifindex", "scope", "version")

    def __init__(
        self, scope: Scope, area: AreaId | None = None, ifindex: int | None = None
    ) -> None:
        self.scope = scope
        self.area = area
        self.ifindex = ifindex
        self.entries: dict[LsaKey, LsaEntry] = {}
        self.version = 0

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[LsaEntry]:
        return iter(self.entries.values())

    def get(self, key: LsaKey) -> LsaEntry | None:
        """Look up an LSA by its key (§12.2)."""
        return self.entries.get(key)


def compare(a: LsaHeader, b: LsaHeader) -> int:
    """Which instance is more recent (§13.1): positive ``a``, negative ``b``, 0 the same.

    Both headers must have their present ages.
    """
    # RFC 2328 §13.1: the higher LS sequence number
    if a.ls_sequence_number != b.ls_sequence_number:
        return 1 if a.ls_sequence_number > b.ls_sequence_number else -1
    # §13.1: the larger LS checksum
    if a.ls_checksum != b.ls_checksum:
        return 1 if a.ls_checksum > b.ls_checksum else -1
    # §13.1: the one of age MaxAge, if only one is
    a_maxed, b_maxed = a.ls_age >= MAX_AGE, b.ls_age >= MAX_AGE
    if a_maxed != b_maxed:
        return 1 if a_maxed else -1
    # §13.1: the smaller age, if they differ by more than MaxAgeDiff
    if abs(a.ls_age - b.ls_age) > MAX_AGE_DIFF:
        return 1 if a.ls_age < b.ls_age else -1
    return 0


def same_age(a: int, b: int) -> bool:
    """Whether copies with equal sequence numbers and checksums are one instance, by their ages.

    The last steps of ``compare``, without MaxAge.
    """
    return a < MAX_AGE and b < MAX_AGE and abs(a - b) <= MAX_AGE_DIFF
