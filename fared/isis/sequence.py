"""Sequence numbers of our own LSPs: the highest ever heard, and what to do behind the last one.

A router that restarts, or whose LSPs somebody forged, meets its own LSPs with numbers it never
gave; it must go on from them. Behind the last number there is none: the LSP is purged and does
not exist until every copy of the purge has died, then counting starts again.

ISO 10589 §7.3.16.1 waits for MaxAge more, in case that a purge does not reach everybody: no
router gets there by counting (136 years at one LSP a second), only a forgery does, and an LSP
that is gone for 21 minutes is all that a forger could wish for. A copy that the purge has missed
is purged when it turns up.
"""

from __future__ import annotations

from functools import partial

from fared.core.timers import Timer
from fared.isis.database import Database, DatabaseWatcher
from fared.isis.ids import Level, LspId, format_lsp_id
from fared.isis.instance import Instance
from fared.isis.lsdb import MAX_SEQUENCE_NUMBER, ZERO_AGE_LIFETIME

_MARGIN = 5.0
"""Seconds for the purge to get everywhere and be forgotten there."""
_Key = tuple[Level, LspId]


class OwnSequences:
    """The highest sequence number known of each LSP of ours."""

    def __init__(self, instance: Instance, database: Database, watcher: DatabaseWatcher) -> None:
        self._instance = instance
        self._database = database
        self._watcher = watcher
        self._highest: dict[_Key, int] = {}
        self._exhausted: dict[_Key, Timer] = {}

    def highest(self, level: Level, lsp_id: LspId) -> int:
        """The highest number used or heard of, 0 for an LSP that never was."""
        return self._highest.get((level, lsp_id), 0)

    def used(self, level: Level, lsp_id: LspId, sequence_number: int) -> None:
        """We generated this one. Raises ValueError for one that does not fit into 32 bits."""
        if not 0 < sequence_number <= MAX_SEQUENCE_NUMBER:
            raise ValueError(f"sequence number {sequence_number} of an LSP")
        self.note(level, lsp_id, sequence_number)

    def heard(self, level: Level, lsp_id: LspId, sequence_number: int) -> None:
        """Others have this one, and it is not ours any more, or never was."""
        self._instance.counters.lsps["own-received"] += 1
        self.note(level, lsp_id, sequence_number)
        if sequence_number >= MAX_SEQUENCE_NUMBER:
            self._exhaust(level, lsp_id)
        else:
            self._watcher.own_lsp_received(level, lsp_id, sequence_number)

    def next(self, level: Level, lsp_id: LspId) -> int | None:
        """What the next issue must carry; None: there is none, ask again when told to refresh."""
        if (level, lsp_id) in self._exhausted:
            return None
        highest = self.highest(level, lsp_id)
        if highest < MAX_SEQUENCE_NUMBER:
            return highest + 1
        self._exhaust(level, lsp_id)
        return None

    def note(self, level: Level, lsp_id: LspId, sequence_number: int) -> None:
        """This number was used, by whomever."""
        self._highest[level, lsp_id] = max(sequence_number, self.highest(level, lsp_id))

    def _exhaust(self, level: Level, lsp_id: LspId) -> None:
        """Purge it, and wait until everybody has forgotten the purge."""
        instance = self._instance
        wait = ZERO_AGE_LIFETIME + _MARGIN
        waiting = self._exhausted.get((level, lsp_id))
        if waiting is None:
            where = {"lsp": format_lsp_id(lsp_id), "database": level.label}
            instance.log("warning", "isis-sequence-exhausted", wait=wait, **where)
        instance.timers.cancel(waiting)
        self._exhausted[level, lsp_id] = instance.timers.arm(
            instance.now + wait, partial(self._begin_again, level, lsp_id)
        )
        self._database.purge(level, lsp_id, MAX_SEQUENCE_NUMBER)

    def _begin_again(self, level: Level, lsp_id: LspId) -> None:
        del self._exhausted[level, lsp_id]
        del self._highest[level, lsp_id]
        self._watcher.own_lsp_refresh(level, lsp_id)
