"""BIER in the kernel: what is to be there, and when to change it.

The kernel forwards by rules that follow the BIFT. A packet arrives at a ``port``; BIFT-id and
entropy select a table; the table has a copy for each neighbor that has any of the packet's bits,
and marks it with the number of the copy. On its way out the mark selects the rules that clear the
other bits, as RFC 8279 §6.5 step 5 has it.

The rules for a mark must be there as long as a packet may have it. Marks are numbers of (neighbor,
F-BM) that are not used again, and the rules of those that the state before used are kept until the
next change, so that a packet that meets a change between two hooks is neither lost nor sent twice.
One change is in progress at a time; after a refusal the next attempt comes after a pause that
doubles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from fared.paths.bier.bift import Bift, BiftTable
from fared.paths.bier.birt import BfrNeighbor

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 30.0


class BierPort(NamedTuple):
    """An interface over which BIER packets come and go; ``mac`` is its own address."""

    ifindex: int
    name: str
    mac: int


class BierCopy(NamedTuple):
    """A copy to a neighbor, with the bits of its F-BM."""

    neighbor: BfrNeighbor
    mask: int


class BierRules(NamedTuple):
    """One table: marks of its copies, ascending, and the bit of this router."""

    marks: tuple[int, ...]
    local: int


class BierFib(msgspec.Struct, frozen=True):
    """The whole state. ``sets``: for each set the tables by entropy, as indexes of ``tables``.

    ``copies`` by mark; those that no table has are of the state before. ``popped``: hosts that get
    payloads without header, by BFR-id, with their interface; tables deliver their bits here.
    """

    sub_domain: int
    length: int
    ports: tuple[BierPort, ...]
    sets: Mapping[int, tuple[int, ...]]
    tables: tuple[BierRules, ...]
    copies: Mapping[int, BierCopy]
    popped: Mapping[int, BierPort] = {}


class BierPlanner:
    """Holds the desired state and what is known of the kernel's.

    ``counters``: ``changes``, ``failed``, ``drift``. ``error`` is the last refusal, until a change
    succeeds; ``busy``: a change is in progress.
    """

    def __init__(self, sub_domain: int, length: int) -> None:
        self.counters: Counter[str] = Counter()
        self.error = ""
        self.busy = False
        self.desired: BierFib | None = None
        self.installed: BierFib | None = None
        self._known = False
        self._sub_domain, self._length = sub_domain, length
        self._marks: dict[BierCopy, int] = {}
        self._used: set[BierCopy] = set()
        self._next = 1
        self._planned: BierFib | None = None
        self._pause = _FIRST_PAUSE
        self._retry_at: float | None = None

    def desire(
        self,
        bifts: Mapping[int, Bift],
        ports: Iterable[BierPort],
        popped: Mapping[int, BierPort] | None = None,
    ) -> None:
        """Derive the desired state from the BIFTs."""
        tables: dict[BiftTable, int] = {}
        sets = {
            set_id: tuple(tables.setdefault(table, len(tables)) for table in bift.tables)
            for set_id, bift in bifts.items()
        }
        listed = [[BierCopy(n, mask) for n, mask in table.masks] for table in tables]
        used = {copy for copies in listed for copy in copies}
        marks = {c: number for c, number in self._marks.items() if c in used | self._used}
        for copies in listed:
            for copy in copies:
                if copy not in marks:
                    marks[copy], self._next = self._next, self._next + 1
        wanted = BierFib(
            self._sub_domain,
            self._length,
            tuple(sorted(ports)),
            {set_id: _shortened(numbers) for set_id, numbers in sets.items()},
            tuple(
                BierRules(tuple(sorted(marks[copy] for copy in copies)), table.local)
                for copies, table in zip(listed, tables, strict=True)
            ),
            {number: copy for copy, number in sorted(marks.items(), key=lambda each: each[1])},
            dict(popped or {}),
        )
        if self.desired is not None and _same_rules(wanted, self.desired):
            return
        self.desired, self._marks, self._used = wanted, marks, used

    # --- the kernel

    def adopt(self, highest: int) -> None:
        """Start: marks up to ``highest`` are those of a former process; ``desire`` again."""
        self._marks, self._used, self.desired = {}, set(), None
        self._next = max(self._next, highest + 1)
        self._known = True

    def reconcile(self, *, intact: bool) -> bool:
        """Take an audit; return whether others have changed something."""
        if intact or self.busy or self.installed is None:
            return False
        self.counters["drift"] += 1
        self.installed = None
        return True

    def plan(self, now: float) -> BierFib | None:
        """Return the state to write now, if there is something to write."""
        waits = self._retry_at is not None and now < self._retry_at
        if not self._known or self.busy or waits or self.desired is None:
            return None
        if self.desired == self.installed:
            return None
        self.counters["changes"] += 1
        self.busy, self._retry_at, self._planned = True, None, self.desired
        return self.desired

    def answered(self, error: str, now: float) -> None:
        """Take the kernel's answer."""
        self.busy, self.error = False, error
        if not error:
            self.installed, self._pause = self._planned, _FIRST_PAUSE
            return
        self.counters["failed"] += 1
        self.installed = None
        self._retry_at = now + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def next_deadline(self) -> float | None:
        """Return when to plan again after a refusal."""
        return None if self.busy else self._retry_at


def _shortened(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return one table if all are the same."""
    return numbers[:1] if len({*numbers}) == 1 else numbers


def _same_rules(a: BierFib, b: BierFib) -> bool:
    """Whether two states forward alike: copies kept for the state before do not count."""
    return (a.ports, a.sets, a.tables, a.popped) == (b.ports, b.sets, b.tables, b.popped)
