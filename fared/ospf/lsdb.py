"""The link state database: LSAs as they arrived, and how old they are by now.

Nothing walks the database each second (RFC 2328 §14 describes ages that count up): an entry
keeps the age it was installed with and the time of that, and its age now is arithmetic.
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

    ``retransmissions`` counts the neighbors whose retransmission list holds this instance;
    ``flooded_in`` says that it came from a neighbor, ``hurried`` that it replaced an instance
    so young that neighbors may drop it (§13 (5)(a)). ``body`` is decoded at first use.
    """

    __slots__ = (
        "base_age",
        "body",
        "flooded_in",
        "hurried",
        "installed_at",
        "key",
        "lsa",
        "lsdb",
        "retransmissions",
        "timer",
    )

    def __init__(self, lsdb: Lsdb, lsa: Lsa, now: float, *, flooded_in: bool) -> None:
        self.lsdb = lsdb
        self.lsa = lsa
        self.key: LsaKey = lsa.header.key
        self.base_age = min(lsa.header.ls_age, MAX_AGE)
        self.installed_at = now
        self.flooded_in = flooded_in
        self.hurried = False
        self.retransmissions = 0
        self.timer: Timer | None = None
        self.body: LsaBody | None = None

    def age(self, now: float) -> int:
        """LS age in seconds at ``now``, at most MaxAge."""
        return min(MAX_AGE, self.base_age + int(now - self.installed_at))

    def maxed(self, now: float) -> bool:
        """Whether it has reached MaxAge: on its way out of the database."""
        return self.age(now) >= MAX_AGE

    def header(self, now: float) -> LsaHeader:
        """The header with the age of ``now``, as database descriptions and acks carry it."""
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
    """The LSAs of one flooding scope: an area, the AS, or one link (opaque type 9).

    ``version`` counts what was put in or taken out.
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
        """Find an LSA by its identity."""
        return self.entries.get(key)


def compare(a: LsaHeader, b: LsaHeader) -> int:
    """Which instance is newer (RFC 2328 §13.1): above zero ``a``, below zero ``b``, 0 the same.

    The ages in both headers must be those of now.
    """
    if a.ls_sequence_number != b.ls_sequence_number:
        return 1 if a.ls_sequence_number > b.ls_sequence_number else -1
    if a.ls_checksum != b.ls_checksum:
        return 1 if a.ls_checksum > b.ls_checksum else -1
    a_maxed, b_maxed = a.ls_age >= MAX_AGE, b.ls_age >= MAX_AGE
    if a_maxed != b_maxed:
        return 1 if a_maxed else -1
    if abs(a.ls_age - b.ls_age) > MAX_AGE_DIFF:
        return 1 if a.ls_age < b.ls_age else -1
    return 0
