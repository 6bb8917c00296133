"""Sequence numbers of our own LSPs: the highest received, and the wrap after the last one.

A router that restarts, or whose LSPs were forged, receives its own LSPs with numbers it never used,
and must continue from them (ISO 10589 §7.3.16.1). After the last number the LSP is purged and does
not exist until every copy of the purge has expired; then the sequence begins again.

Deviation: §7.3.16.1 waits for MaxAge + ZeroAgeLifetime, in case the purge does not reach every
system. At one LSP a second the last number is reached in 136 years, so that only a forged LSP
brings it about, and MaxAge would add 20 minutes of outage to the attack. A copy that the purge has
missed is purged when it appears. Nor is ZeroAgeLifetime awaited if the neighbors acknowledge the
purge (``database`` then removes it), unless a system has answered the first number with the purge
before: it keeps the purge for that long.
"""

from __future__ import annotations

from functools import partial

from fared.core.timers import Timer
from fared.protocols.igp.refusals import explain
from fared.protocols.isis.ids import Level, LspId, format_lsp_id
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import MAX_SEQUENCE_NUMBER, ZERO_AGE_LIFETIME
from fared.protocols.isis.update.database import RECHECK, Database, DatabaseWatcher

_FLOODED = 5.0
"""Seconds for the purge to be flooded and acknowledged everywhere: two partialSNPIntervals."""
_LONGEST = ZERO_AGE_LIFETIME + _FLOODED
_Key = tuple[Level, LspId]


class OwnSequences:
    """The highest sequence number known of each LSP of ours."""

    def __init__(self, instance: Instance, database: Database, watcher: DatabaseWatcher) -> None:
        self._instance = instance
        self._process = instance.process
        self._database = database
        self._watcher = watcher
        self._highest: dict[_Key, int] = {}
        self._exhausted: dict[_Key, Timer] = {}
        self._began: set[_Key] = set()
        """LSPs that began again a short time ago: if purged, they wait for ZeroAgeLifetime."""

    def highest(self, level: Level, lsp_id: LspId) -> int:
        """The highest number used or received, 0 for an LSP that never existed."""
        return self._highest.get((level, lsp_id), 0)

    def used(self, level: Level, lsp_id: LspId, sequence_number: int) -> None:
        """This router generated an LSP with this number. Raises ValueError beyond 32 bits."""
        if not 0 < sequence_number <= MAX_SEQUENCE_NUMBER:
            raise ValueError(f"sequence number {sequence_number} of an LSP")
        self.record(level, lsp_id, sequence_number)

    def received(
        self, level: Level, lsp_id: LspId, sequence_number: int, *, purge: bool = False
    ) -> None:
        """Another system has this instance of an LSP of ours, which we did not generate."""
        if self._process.foreign_copy(f"{format_lsp_id(lsp_id)} {level.label}", sequence_number):
            self._process.log(
                "warning",
                "isis-foreign-copies",
                lsp=format_lsp_id(lsp_id),
                database=level.label,
                notification="isisOwnLSPPurge" if purge else "isisSequenceNumberSkip",  # RFC 4444
                effect=explain("duplicate-system-id"),
            )
        # §7.3.16.1: the next instance has a number above the one received
        self._process.counters.lsdb["own-received"] += 1
        self.record(level, lsp_id, sequence_number)
        if sequence_number >= MAX_SEQUENCE_NUMBER:
            self._exhaust(level, lsp_id)
        else:
            self._watcher.own_received(level, lsp_id, sequence_number)

    def next(self, level: Level, lsp_id: LspId) -> int | None:
        """The number of the next instance; None: there is none before ``own_refresh``."""
        if (level, lsp_id) in self._exhausted:
            return None
        highest = self.highest(level, lsp_id)
        if highest < MAX_SEQUENCE_NUMBER:
            return highest + 1
        self._exhaust(level, lsp_id)
        return None

    def record(self, level: Level, lsp_id: LspId, sequence_number: int) -> None:
        """Keep the number of an instance that exists or existed."""
        self._highest[level, lsp_id] = max(sequence_number, self.highest(level, lsp_id))

    def _exhaust(self, level: Level, lsp_id: LspId) -> None:
        """Purge the LSP, and wait until all systems have removed the purge (§7.3.16.1)."""
        process, key = self._process, (level, lsp_id)
        waiting = self._exhausted.get(key)
        if waiting is None:
            where = {"lsp": format_lsp_id(lsp_id), "database": level.label}
            process.log("warning", "isis-sequence-exhausted", wait=_LONGEST, **where)
        process.timers.cancel(waiting)
        ends = process.now + _LONGEST
        self._look_again(key, ends if key in self._began else process.now + _FLOODED, ends)
        self._database.purge(level, lsp_id, MAX_SEQUENCE_NUMBER)

    def _look_again(self, key: _Key, due: float, ends: float) -> None:
        self._exhausted[key] = self._process.timers.arm(due, partial(self._look, key, ends))

    def _look(self, key: _Key, ends: float) -> None:
        """Begin again if the purge has been removed, at ``ends`` in any case."""
        level, lsp_id = key
        now = self._process.now
        if now < ends and self._instance.databases[level].get(lsp_id) is not None:
            self._look_again(key, min(now + RECHECK, ends), ends)
            return
        self._began.add(key)
        self._process.timers.arm(now + _LONGEST, partial(self._began.discard, key))
        self._begin_again(level, lsp_id)

    def _begin_again(self, level: Level, lsp_id: LspId) -> None:
        del self._exhausted[level, lsp_id]
        del self._highest[level, lsp_id]
        self._watcher.own_refresh(level, lsp_id)
