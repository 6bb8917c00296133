"""The link state database (RFC 2328 §12.2): LSAs as received, with their age at installation.

RFC 2328 §14 increments the age of every LSA each second. Here an entry holds its age and the time
of its installation; the present age is computed from both, without a pass over the database.
"""

from __future__ import annotations

import enum
import math
import operator
from collections import Counter
from collections.abc import Iterable, Iterator

from fared.core.ids import AreaId
from fared.protocols.igp.database_limit import Originators
from fared.protocols.ospf.packet.body import LsaBody
from fared.protocols.ospf.packet.lsa import (
    LSA_HEADER_SIZE,
    MAX_AGE,
    MAX_AGE_DIFF,
    Lsa,
    LsaHeader,
    LsaKey,
    LsType,
    decode_header,
    sequence_number_of,
)
from fared.protocols.ospf.packet.opaque import OpaqueType


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
_FIRST_OPAQUE, _LAST_OPAQUE = int(min(OPAQUE_TYPES)), int(max(OPAQUE_TYPES))
_ROUTER_ADDRESS, _ROUTER_ADDRESS_SIZE = b"\0\1", LSA_HEADER_SIZE + 8
"""A TLV of RFC 3630 §2.4.1, and the size of an LSA that has it alone."""
_GENERATION = 2048
MAX_AGE_BYTES = MAX_AGE.to_bytes(2, "big")
"""MaxAge, as an LSA begins."""
CURRENT, FLOODED_IN, WITHIN_MIN_LS_ARRIVAL, USED, EXPIRED = 1, 2, 4, 8, 16
"""The bits of ``LsaEntry.marks``."""
DEFERRED_SHIFT = 8
"""Of the neighbors in ``LsaEntry.marks``: an integer below 256 takes no memory of its own."""


class LsaEntry:
    """One LSA in a database: the bytes received, decoded at first use.

    ``unacknowledged``: the neighbors whose link state retransmission list holds this instance
    (``participants``). Its place in the order of ages is ``due_second``. What is true of it or not
    is a bit of ``marks`` each, and above them are the bits of those neighbors that it has not been
    sent to yet. There may be a hundred thousand, and with one slot more each takes 16 bytes more.
    """

    __slots__ = (
        "body",
        "due_second",
        "installed_at",
        "key",
        "lsdb",
        "marks",
        "raw",
        "unacknowledged",
    )

    def __init__(
        self, lsdb: Lsdb, key: LsaKey, raw: bytes, now: float, marks: int = CURRENT
    ) -> None:
        self.lsdb = lsdb
        self.raw = raw
        self.key = key
        self.installed_at = now
        self.marks = marks
        self.unacknowledged = 0
        self.due_second = 0
        self.body: LsaBody | None = None

    @property
    def current(self) -> bool:
        """Whether it has not been replaced or removed."""
        return self.marks & CURRENT != 0

    @property
    def flooded_in(self) -> bool:
        """Whether it was received from a neighbor."""
        return self.marks & FLOODED_IN != 0

    @property
    def within_min_ls_arrival(self) -> bool:
        """Whether it follows its predecessor so soon that neighbors may discard it (§13 (5)(a))."""
        return self.marks & WITHIN_MIN_LS_ARRIVAL != 0

    @property
    def used(self) -> bool:
        """Whether the TED has the prefix that this LSA, or its predecessor, advertises."""
        return self.marks & USED != 0

    @property
    def deferred(self) -> int:
        """The neighbors whose list holds it, but to which it has not been sent yet."""
        return self.marks >> DEFERRED_SHIFT

    @property
    def base_age(self) -> int:
        """The age at installation; MaxAge if it has reached that here."""
        if self.marks & EXPIRED:
            return MAX_AGE
        raw = self.raw
        age = raw[0] << 8 | raw[1]
        return min(age, MAX_AGE)

    @property
    def at_max_age(self) -> bool:
        """Whether it was installed at MaxAge, or MaxAge here has been noticed."""
        return self.marks & EXPIRED != 0 or self.raw >= MAX_AGE_BYTES

    @property
    def flushed(self) -> bool:
        """Whether it was at MaxAge when it was installed."""
        return self.raw[:2] == MAX_AGE_BYTES

    def mark(self, bit: int, *, on: bool) -> None:
        """Set or clear one of the marks."""
        self.marks = self.marks | bit if on else self.marks & ~bit

    @property
    def instance(self) -> bytes:
        """All fields of the header but the age."""
        return self.raw[2:LSA_HEADER_SIZE]

    @property
    def sequence_number(self) -> int:
        """The LS sequence number, signed (§12.1.6)."""
        return sequence_number_of(self.raw)

    @property
    def lsa(self) -> Lsa:
        """The LSA as installed."""
        return Lsa(decode_header(self.raw), self.raw)

    def age(self, now: float) -> int:
        """LS age in seconds at ``now``, at most MaxAge."""
        if self.marks & EXPIRED:
            return MAX_AGE
        raw = self.raw
        return min(MAX_AGE, (raw[0] << 8 | raw[1]) + int(now - self.installed_at))

    def is_maxage(self, now: float) -> bool:
        """Whether it has reached MaxAge, and is to be removed from the database (§14)."""
        raw = self.raw  # asked several times for each LSA that comes: no call
        age = (raw[0] << 8 | raw[1]) + (now - self.installed_at)
        return age >= MAX_AGE or self.marks & EXPIRED != 0

    def header(self, now: float) -> LsaHeader:
        """The header with the age at ``now``."""
        return decode_header(self.aged(self.age(now)))

    def aged(self, age: int) -> bytes:
        """The LSA with its age updated."""
        return age.to_bytes(2, "big") + self.raw[2:]


class RecentInstances:
    """LSAs installed recently, by all their bytes but the age.

    Most copies of a flood arrive soon after the first. Two generations of at most ``_GENERATION``
    LSAs each. What is replaced or removed leaves them: else a flood of new instances would fill
    them with LSAs that no database has.
    """

    __slots__ = ("_begun", "_new", "_old", "_oldest")

    def __init__(self) -> None:
        self._new: dict[bytes, LsaEntry] = {}
        self._old: dict[bytes, LsaEntry] = {}
        self._begun = self._oldest = -math.inf
        """When the first LSA of each generation was installed."""

    def add(self, entry: LsaEntry) -> None:
        """Add an LSA, unless it is at MaxAge: it has few copies, and leaves the database soon."""
        raw = entry.raw
        if raw[:2] == MAX_AGE_BYTES:
            return
        if len(self._new) >= _GENERATION:
            self._old, self._new = self._new, {}
            self._oldest, self._begun = self._begun, entry.installed_at
        self._new[raw[2:]] = entry

    def discard(self, entry: LsaEntry) -> None:
        """Take an LSA out, if it is there: it leaves the database."""
        if entry.installed_at < self._oldest or entry.flushed:
            return
        contents = entry.raw[2:]
        for generation in (self._new, self._old):
            if generation.get(contents) is entry:
                del generation[contents]

    def copied(self, lsas: Iterable[bytes]) -> list[LsaEntry | None]:
        """For each of these LSAs, the LSA that it equals, but for the age."""
        new, old = self._new, self._old
        if not new and not old:
            return [None for _ in lsas]
        contents = [raw[2:] for raw in lsas]
        return [new.get(each) or old.get(each) for each in contents]


KEY = operator.attrgetter("key")
"""Sorts LSAs as documents have them."""


class Lsdb:
    """The LSAs of one flooding scope: an area, the AS, or one link (LS type 9).

    ``version`` counts installations and removals, ``routers`` those of router LSAs, ``replaced``
    the LSAs that are no longer current. ``listed``: the LSAs on any link state retransmission
    list, by instance. ``recent``: those installed last. ``described``: all, by instance, while
    neighbors describe their databases. ``originators`` counts the LSAs of each advertising router,
    ``kinds`` those of each ``kind_of``, ``size`` the bytes of all; ``checksum`` is the sum of their
    checksums (RFC 4750).
    """

    __slots__ = (
        "_router",
        "area",
        "checksum",
        "described",
        "entries",
        "ifindex",
        "kinds",
        "listed",
        "originators",
        "recent",
        "replaced",
        "routers",
        "scope",
        "size",
        "version",
    )

    def __init__(
        self, scope: Scope, area: AreaId | None = None, ifindex: int | None = None
    ) -> None:
        self.scope = scope
        self.area = area
        self.ifindex = ifindex
        self.entries: dict[LsaKey, LsaEntry] = {}
        self.originators = Originators()
        self.kinds: Counter[int] = Counter()
        self.size = self.checksum = 0
        self.listed: dict[bytes, LsaEntry] = {}
        self.recent = RecentInstances()
        self.described: dict[bytes, LsaEntry] | None = None
        self.version = self.routers = self.replaced = 0
        self._router = 0

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[LsaEntry]:
        return iter(self.entries.values())

    def get(self, key: LsaKey) -> LsaEntry | None:
        """Look up an LSA by its key (§12.2)."""
        return self.entries.get(key)

    def count(self, key: LsaKey, raw: bytes, old: bytes | None) -> None:
        """Count an LSA that enters, in place of the instance ``old`` if there is one."""
        if old is None:
            self.size += len(raw)
            self.checksum += raw[16] << 8 | raw[17]
            self.originators[key.advertising_router] += 1
            self.kinds[kind_of(key, raw)] += 1
            return
        self.size += len(raw) - len(old)
        self.checksum += (raw[16] << 8 | raw[17]) - (old[16] << 8 | old[17])
        if len(raw) <= _ROUTER_ADDRESS_SIZE or len(old) <= _ROUTER_ADDRESS_SIZE:
            before, kind = kind_of(key, old), kind_of(key, raw)
            if kind != before:
                self.kinds[before] -= 1
                self.kinds[kind] += 1

    def count_out(self, key: LsaKey, raw: bytes) -> None:
        """Count an LSA that leaves."""
        self.originators.left(key.advertising_router)
        self.kinds[kind_of(key, raw)] -= 1
        self.size -= len(raw)
        self.checksum -= raw[16] << 8 | raw[17]

    def forget_counts(self) -> None:
        """Count nothing: the database is empty."""
        self.originators.clear()
        self.kinds.clear()
        self.size = self.checksum = 0

    def shared(self, key: LsaKey) -> LsaKey:
        """Return the key with the integer of the last router, if it has the same.

        A router may originate a hundred thousand LSAs.
        """
        if key.advertising_router != self._router:
            self._router = key.advertising_router
            return key
        return LsaKey(key.ls_type, key.link_state_id, self._router)

    def instances(self) -> dict[bytes, LsaEntry]:
        """All LSAs by instance, kept up to date until ``described`` is None again."""
        if self.described is None:
            self.described = {entry.instance: entry for entry in self}
        return self.described


def kind_of(key: LsaKey, raw: bytes) -> int:
    """Return LS type and opaque type of an LSA as one number, negative for a TE router address.

    FRR puts the router address before each link: only an LSA of nothing else is one.
    """
    ls_type = key.ls_type
    if ls_type < _FIRST_OPAQUE or ls_type > _LAST_OPAQUE:
        return ls_type << 8
    kind = ls_type << 8 | key.link_state_id >> 24
    alone = len(raw) <= _ROUTER_ADDRESS_SIZE and raw[LSA_HEADER_SIZE:].startswith(_ROUTER_ADDRESS)
    return -kind if alone and kind & 0xFF == OpaqueType.TRAFFIC_ENGINEERING else kind


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
