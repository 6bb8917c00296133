"""LSAs in the databases: installation, refresh, aging, MaxAge, verification (RFC 2328 §13.2, §14).

A self-originated LSA is due at LSRefreshTime (§12.4 (1)), another one at MaxAge (§14).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from fared.core.tables import shrink
from fared.protocols.ospf.flooding.aging import Aging
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.lsdb import (
    CURRENT,
    EXPIRED,
    FLOODED_IN,
    USED,
    WITHIN_MIN_LS_ARRIVAL,
    LsaEntry,
    Lsdb,
    RecentInstances,
    Scope,
)
from fared.protocols.ospf.packet.body import LsaBody
from fared.protocols.ospf.packet.lsa import (
    LS_REFRESH_TIME,
    LSA_HEADER_SIZE,
    MAX_AGE,
    LsaKey,
    LsType,
    raw_checksum_ok,
)

MIN_LS_ARRIVAL = 1.0
"""Seconds (RFC 2328 appendix B): neighbors may discard an instance that follows within them."""
ARRIVAL_MARGIN = 1.2
"""Instances installed here within this many seconds may be within MinLSArrival elsewhere."""
_REFRESH_JITTER = 0.05
_CHECK_INTERVAL = 10.0
_CHECK_EARLY = 0.2
"""Part of the interval by which a check may be early, to share the wake-up of a hello."""
_CHECK_ROUNDS = 30
"""Checks in a round of 300 s, CheckAge (RFC 2328 §14)."""
_PIECE = 4096
"""Entries of a pass that are looked at together."""


class DatabaseWatcher(msgspec.Struct, frozen=True):
    """Callbacks for events of entries."""

    changed: Callable[[LsaEntry], None]
    """The contents of the LSA changed, or it is at MaxAge (§13.2)."""
    expired: Callable[[LsaEntry], object]
    """An LSA of another router has reached MaxAge and must be reflooded (§14)."""
    refresh: Callable[[LsaEntry], None]
    """A self-originated LSA has reached LSRefreshTime (§12.4 (1))."""
    withdrawn: Callable[[Sequence[LsaEntry]], None]
    """AS-external LSAs of one other router are at MaxAge; ``changed`` is not called for them."""
    removed: Callable[[LsaEntry], None]
    """A MaxAge LSA has left the database."""


class _ChecksumPass(msgspec.Struct):
    """Progress of the rolling checksum verification."""

    pending: list[LsaEntry]
    step: int = 1
    replaced: int = 0
    """The LSAs that had been replaced or removed when such were last taken out of ``pending``."""


class Database:
    """The operations on all databases of the instance."""

    def __init__(self, instance: Instance, watcher: DatabaseWatcher) -> None:
        self._instance = instance
        self._process = instance.process
        self._watcher = watcher
        self._aging = Aging(self._process.timers, self._due)
        self._check = _ChecksumPass([])
        self._checking = False

    def install(
        self,
        lsdb: Lsdb,
        key: LsaKey,
        raw: bytes,
        *,
        flooded_in: bool,
        body: LsaBody | None = None,
    ) -> LsaEntry:
        """Install an LSA (RFC 2328 §13.2), with its body if decoded; the caller floods it."""
        instance = self._instance
        old = lsdb.entries.get(key)
        # The key of the old instance is kept, so that one object serves the dictionary and both.
        key = lsdb.shared(key) if old is None else old.key
        marks = CURRENT | FLOODED_IN if flooded_in else CURRENT
        if old is not None:
            marks |= old.marks & USED
            if instance.process.now - old.installed_at < ARRIVAL_MARGIN:
                marks |= WITHIN_MIN_LS_ARRIVAL
        entry = LsaEntry(lsdb, key, raw, instance.process.now, marks)
        entry.body = body
        changed = True
        if old is not None:
            self._detach(old)
            changed = _contents_differ(old, entry, instance.process.now)
            # Whoever watches decodes what has changed only: a refresh keeps the body.
            if body is None and not changed:
                entry.body = old.body
            # A grace LSA that is sent again begins a new grace period (RFC 3623 §3.1).
            changed = changed or lsdb.scope is Scope.LINK
        lsdb.count(key, raw, None if old is None else old.raw)
        self._put(entry)
        if key.ls_type == LsType.ROUTER:
            lsdb.routers += 1
        # RFC 2328 §14: a MaxAge LSA awaits its removal, all others age
        if entry.at_max_age:
            self._await_removal(entry)
        else:
            self._arm(entry)
        self._start_checking()
        # §13.2: only different contents cause a routing calculation
        if changed:
            self._watcher.changed(entry)
        return entry

    def age_out(self, entry: LsaEntry) -> LsaEntry:
        """Premature aging (RFC 2328 §14.1): the same instance at MaxAge."""
        return self.install(entry.lsdb, entry.key, entry.aged(MAX_AGE), flooded_in=False)

    def withdraw(self, entries: Sequence[LsaEntry], lsas: Sequence[bytes]) -> list[LsaEntry]:
        """Install received AS-external LSAs of one other router, the same instances at MaxAge.

        ``install`` for each of them. The caller floods them.
        """
        lsdb, now, aged = entries[0].lsdb, self._process.now, []
        for old, raw in zip(entries, lsas, strict=True):
            self._detach(old)
            marks = CURRENT | FLOODED_IN | old.marks & USED
            entry = LsaEntry(lsdb, old.key, raw, now, marks)
            self._put(entry)
            self._await_removal(entry)
            aged.append(entry)
        self._watcher.withdrawn(aged)
        return aged

    def sweep(self) -> bool:
        """Remove MaxAge LSAs from the databases (RFC 2328 §14); return whether there were any."""
        instance = self._instance
        # RFC 2328 §14 b): no neighbor is in state Exchange or Loading
        if instance.exchanging or not instance.maxage_acknowledged:
            return False
        # §14 a): on no retransmission list; the retransmitter adds those that leave the last one
        acknowledged, instance.maxage_acknowledged = instance.maxage_acknowledged, []
        for entry in acknowledged:
            if entry.marks & CURRENT and entry.unacknowledged == 0:
                self.remove(entry)
        shrink(instance.maxage_list)
        for lsdb in {entry.lsdb for entry in acknowledged}:
            shrink(lsdb.entries)
        return True

    def remove(self, entry: LsaEntry) -> None:
        """Take an entry out of its database."""
        self._detach(entry)
        lsdb = entry.lsdb
        del lsdb.entries[entry.key]
        lsdb.version += 1
        lsdb.routers += entry.key.ls_type == LsType.ROUTER
        lsdb.count_out(entry.key, entry.raw)
        self._watcher.removed(entry)

    def drop_all(self, lsdb: Lsdb) -> None:
        """Empty a database whose scope no longer exists."""
        for entry in list(lsdb):
            self._detach(entry)
        lsdb.entries.clear()
        lsdb.forget_counts()
        lsdb.recent = RecentInstances()
        lsdb.described = None
        lsdb.version += 1
        lsdb.routers += 1

    def _put(self, entry: LsaEntry) -> None:
        """Put an LSA into its database, in place of its predecessor, if it has one."""
        lsdb = entry.lsdb
        lsdb.entries[entry.key] = entry
        lsdb.recent.add(entry)
        if lsdb.described is not None:
            lsdb.described[entry.instance] = entry
        lsdb.version += 1

    def _detach(self, entry: LsaEntry) -> None:
        entry.marks &= ~CURRENT
        entry.lsdb.replaced += 1
        if entry.lsdb.described is not None:
            entry.lsdb.described.pop(entry.instance, None)
        entry.lsdb.recent.discard(entry)
        if entry.at_max_age:
            self._instance.maxage_list.pop(entry, None)
        else:
            self._aging.cancel(entry)

    def _await_removal(self, entry: LsaEntry) -> None:
        self._instance.maxage_list[entry] = None
        self._instance.maxage_acknowledged.append(entry)

    def _arm(self, entry: LsaEntry) -> None:
        instance = self._instance
        wait: float = MAX_AGE
        # RFC 2328 §12.4 (1): LSRefreshTime; jitter spreads the refreshes of a router
        if not entry.marks & FLOODED_IN and self._is_own(entry):
            wait = LS_REFRESH_TIME * (1 - _REFRESH_JITTER * instance.process.rng.random())
        raw = entry.raw
        self._aging.arm(entry, entry.installed_at + wait - (raw[0] << 8 | raw[1]))

    def _is_own(self, entry: LsaEntry) -> bool:
        own = entry.key.advertising_router == self._instance.router_id
        return own and not entry.flooded_in

    def _due(self, entry: LsaEntry) -> None:
        if self._is_own(entry):
            self._watcher.refresh(entry)
        else:
            self._expire(entry)

    def _expire(self, entry: LsaEntry) -> None:
        # RFC 2328 §14: every router refloods an LSA that reaches MaxAge
        entry.marks |= EXPIRED
        entry.lsdb.routers += entry.key.ls_type == LsType.ROUTER
        self._await_removal(entry)
        self._watcher.changed(entry)
        self._watcher.expired(entry)

    def _start_checking(self) -> None:
        if not self._checking:
            self._checking = True
            now = self._process.now
            earliest = now + _CHECK_INTERVAL * (1 - _CHECK_EARLY)
            self._process.timers.arm(now + _CHECK_INTERVAL, self._verify_some, earliest)

    def _verify_some(self) -> None:
        """Verify the checksums of some LSAs, of all once in CheckAge; stop while there are none.

        §14 verifies an LSA whenever its age is a multiple of CheckAge, and restarts the router if
        a checksum is wrong. Here one timer serves all LSAs, and an error is logged and counted:
        the restart is left to the operator.
        """
        self._checking = False
        check = self._check
        replaced = sum([lsdb.replaced for lsdb in self._instance.databases()])
        if not check.pending:
            check.replaced = replaced
            for lsdb in self._instance.databases():
                check.pending += lsdb  # with room for exactly as many
            check.step = max(1, -(-len(check.pending) // _CHECK_ROUNDS))
        batch = check.pending[: check.step]
        del check.pending[: check.step]
        if replaced != check.replaced:
            check.replaced = replaced
            _keep_current(check.pending)
        for entry in batch:
            if entry.lsdb.get(entry.key) is entry and not raw_checksum_ok(entry.raw):
                self._process.counters.errors["lsdb-checksum"] += 1
                self._process.log("error", "ospf-lsdb-corrupt", lsa=str(entry.key))
        if batch or check.pending:
            self._start_checking()


def _keep_current(entries: list[LsaEntry]) -> None:
    """Remove entries that were replaced: until a pass is over they would stay in memory.

    In pieces: a list of a hundred thousand that grows leaves megabytes of freed memory behind.
    """
    kept = 0
    for begin in range(0, len(entries), _PIECE):
        piece = [entry for entry in entries[begin : begin + _PIECE] if entry.marks & CURRENT]
        entries[kept : kept + len(piece)] = piece
        kept += len(piece)
    del entries[kept:]


def _contents_differ(old: LsaEntry, new: LsaEntry, now: float) -> bool:
    """RFC 2328 §13.2: MaxAge, options, length or body differ; a refresh changes none of them."""
    return (
        old.raw[LSA_HEADER_SIZE:] != new.raw[LSA_HEADER_SIZE:]  # length and body: nearly always
        or old.raw[2] != new.raw[2]  # options
        or old.is_maxage(now) != new.is_maxage(now)
    )
