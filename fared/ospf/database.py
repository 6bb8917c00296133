"""Putting LSAs into the databases and getting them out: install, ageing, MaxAge, verification.

Each entry has one timer: the refresh of an LSA of our own, or the moment at which one of
somebody else's reaches MaxAge (RFC 2328 §12.4, §14).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

from fared.ospf.instance import Instance
from fared.ospf.lsdb import LsaEntry, Lsdb
from fared.ospf.packet.body import LsaBody
from fared.ospf.packet.lsa import (
    LS_REFRESH_TIME,
    LSA_HEADER_SIZE,
    MAX_AGE,
    Lsa,
    lsa_checksum_ok,
    with_age,
)

MIN_LS_ARRIVAL = 1.0
"""RFC 2328 appendix B: what peers may hold us to."""
HURRIED = 1.2
"""Instances this close to each other here may be within MinLSArrival at a neighbor."""
_REFRESH_JITTER = 0.05
_CHECK_INTERVAL = 10.0
_CHECK_ROUNDS = 30
"""Each LSA's checksum is verified once in 300 s, CheckAge (RFC 2328 §14)."""


class DatabaseWatcher(Protocol):
    """Who acts on what happens to entries."""

    def lsa_changed(self, entry: LsaEntry) -> None:
        """The contents under this key changed, or ``entry`` is at MaxAge."""

    def lsa_expired(self, entry: LsaEntry) -> None:
        """Somebody else's LSA has just reached MaxAge and must be flooded (§14)."""

    def lsa_needs_refresh(self, entry: LsaEntry) -> None:
        """An LSA of our own is LSRefreshTime old."""

    def lsa_removed(self, entry: LsaEntry) -> None:
        """A MaxAge LSA has left the database."""


@dataclass(slots=True)
class _Check:
    """Where the rolling verification of checksums stands."""

    pending: list[LsaEntry]
    step: int = 1


class Database:
    """The operations on all databases of the instance."""

    def __init__(self, instance: Instance, watcher: DatabaseWatcher) -> None:
        self._instance = instance
        self._watcher = watcher
        self._check = _Check([])
        self._checking = False

    def install(
        self, lsdb: Lsdb, lsa: Lsa, *, flooded_in: bool, body: LsaBody | None = None
    ) -> LsaEntry:
        """Replace or add an LSA (RFC 2328 §13.2), decoded already or not; the caller floods it."""
        instance = self._instance
        entry = LsaEntry(lsdb, lsa, instance.now, flooded_in=flooded_in)
        entry.body = body
        old = lsdb.entries.get(entry.key)
        changed = True
        if old is not None:
            self._detach(old)
            entry.hurried = instance.now - old.installed_at < HURRIED
            changed = _contents_differ(old, entry, instance.now)
        lsdb.entries[entry.key] = entry
        lsdb.version += 1
        if entry.base_age >= MAX_AGE:
            instance.dying[entry] = None
        else:
            self._arm(entry)
        self._start_checking()
        if changed:
            self._watcher.lsa_changed(entry)
        return entry

    def age_out(self, entry: LsaEntry) -> LsaEntry:
        """Premature ageing (RFC 2328 §14.1): the same instance at MaxAge."""
        return self.install(entry.lsdb, with_age(entry.lsa, MAX_AGE), flooded_in=False)

    def sweep(self) -> None:
        """Remove MaxAge LSAs that nobody has yet to acknowledge (RFC 2328 §14)."""
        instance = self._instance
        if instance.exchanging or not instance.dying:
            return
        for entry in list(instance.dying):
            if entry.retransmissions == 0:
                self.remove(entry)

    def remove(self, entry: LsaEntry) -> None:
        """Take an entry out of its database."""
        self._detach(entry)
        del entry.lsdb.entries[entry.key]
        entry.lsdb.version += 1
        self._watcher.lsa_removed(entry)

    def drop_all(self, lsdb: Lsdb) -> None:
        """Empty a database whose scope has ceased to exist."""
        for entry in list(lsdb):
            self._detach(entry)
        lsdb.entries.clear()
        lsdb.version += 1

    def _detach(self, entry: LsaEntry) -> None:
        self._instance.timers.cancel(entry.timer)
        entry.timer = None
        self._instance.dying.pop(entry, None)

    def _arm(self, entry: LsaEntry) -> None:
        instance = self._instance
        own = entry.lsa.header.advertising_router == instance.router_id
        if own and not entry.flooded_in:
            wait = LS_REFRESH_TIME * (1 - _REFRESH_JITTER * instance.rng.random())
            action = partial(self._watcher.lsa_needs_refresh, entry)
        else:
            wait = MAX_AGE
            action = partial(self._expire, entry)
        deadline = entry.installed_at + max(0.0, wait - entry.base_age)
        entry.timer = instance.timers.arm(deadline, action)

    def _expire(self, entry: LsaEntry) -> None:
        # RFC 2328 §14: an LSA that ages out is flooded like a new one, by everybody.
        self._instance.dying[entry] = None
        entry.base_age = MAX_AGE
        self._watcher.lsa_changed(entry)
        self._watcher.lsa_expired(entry)

    def _start_checking(self) -> None:
        if not self._checking:
            self._checking = True
            self._instance.timers.arm(self._instance.now + _CHECK_INTERVAL, self._verify_some)

    def _verify_some(self) -> None:
        """Verify a thirtieth of the stored LSAs; stop while there are none."""
        self._checking = False
        check = self._check
        if not check.pending:
            check.pending = [entry for lsdb in self._databases() for entry in lsdb]
            check.step = max(1, -(-len(check.pending) // _CHECK_ROUNDS))
        batch, check.pending = check.pending[: check.step], check.pending[check.step :]
        for entry in batch:
            if entry.lsdb.get(entry.key) is entry and not lsa_checksum_ok(entry.lsa):
                self._instance.counters.errors["lsdb-checksum"] += 1
                self._instance.log("error", "ospf-lsdb-corrupt", lsa=str(entry.key))
        if batch or check.pending:
            self._start_checking()

    def _databases(self) -> list[Lsdb]:
        instance = self._instance
        return [
            *(area.lsdb for area in instance.areas.values()),
            instance.as_scope,
            *(interface.lsdb for interface in instance.interfaces.values()),
        ]


def _contents_differ(old: LsaEntry, new: LsaEntry, now: float) -> bool:
    """RFC 2328 §13.2: whether routes could change; a refresh differs in nothing but its header."""
    return (
        old.maxed(now) != new.maxed(now)
        or old.lsa.header.options != new.lsa.header.options
        or old.lsa.raw[LSA_HEADER_SIZE:] != new.lsa.raw[LSA_HEADER_SIZE:]
    )
