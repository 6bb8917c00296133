"""What happens to the LSPs we have: installing, ageing, purging, forgetting (ISO 10589 §7.3.16).

Every LSP has one timer for the next event of its life. One of ours asks to be refreshed in good
time; one of others that reaches the end of its life is purged for the whole network, and so is
one that nobody can tell from another of the same number. Of a purged LSP the header stays for a
minute, so that late copies of it are recognized.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Protocol

from fared.isis.ids import Level, LspId, lsp_id, system_of
from fared.isis.instance import Instance
from fared.isis.lsdb import ZERO_AGE_LIFETIME, StoredLsp
from fared.isis.outlet import OutletLevel
from fared.isis.pdu.codec import encode_pdu, peek_lsp
from fared.isis.pdu.model import Lsp, PurgeOriginator
from fared.isis.sender import Sender
from fared.isis.transmit import Transmitter

_LATEST_REFRESH = 0.9
_RESIGN = 1.0
_IS_TYPES = {Level.ONE: 1, Level.TWO: 3}


class DatabaseWatcher(Protocol):
    """Who is told of the database: the TED, and the originator of our own LSPs."""

    def lsp_changed(self, level: Level, entry: StoredLsp, previous: StoredLsp | None) -> None:
        """An LSP was installed: new, newer, or (``entry.purged``) taken back; ours included."""

    def lsp_removed(self, level: Level, entry: StoredLsp) -> None:
        """The header of a purged LSP was forgotten."""

    def own_lsp_received(self, level: Level, lsp_id: LspId, sequence_number: int) -> None:
        """Others have, or had purged, an LSP of ours that is newer than ours or unknown to us.

        Answer with ``install_own`` (``next_sequence`` counts from the number heard) or with
        ``purge_own``, not more often than is good for the network: it is repeated meanwhile.
        """

    def own_lsp_refresh(self, level: Level, lsp_id: LspId) -> None:
        """Time to generate an LSP of ours again, whatever it says."""


class Database:
    """The LSPs of all levels and their timers."""

    def __init__(
        self,
        instance: Instance,
        transmitter: Transmitter,
        sender: Sender,
        watcher: DatabaseWatcher,
    ) -> None:
        self._instance = instance
        self._transmitter = transmitter
        self._sender = sender
        self._watcher = watcher

    def install_received(self, state: OutletLevel, lsp: Lsp, raw: bytes) -> StoredLsp:
        """Store an LSP that came in here, acknowledge it, send it everywhere else.

        ISO 10589 §7.3.15.1 e) 1), for purges §7.3.16.4.
        """
        # RFC 7987 §2: a remaining lifetime garbled on its way must not end an LSP early.
        lifetime = max(lsp.remaining_lifetime, self._instance.settings.lsp_lifetime)
        entry = StoredLsp(
            lsp_id=lsp.lsp_id,
            sequence_number=lsp.sequence_number,
            checksum=lsp.checksum,
            expires=self._instance.now + lifetime,
            raw=raw,
            lsp=lsp,
            own=system_of(lsp.lsp_id) == self._instance.system_id,
            purged=lsp.remaining_lifetime == 0,
            since=self._instance.now,
        )
        state.received(lsp.lsp_id)
        if state.reliable:
            state.set_ssn(lsp.lsp_id, entry)
        self._sender.touch(state)
        self._install(state.level, entry, state)
        return entry

    def install_generated(self, level: Level, lsp: Lsp) -> StoredLsp:
        """Encode and sign an LSP or a purge, store it and send it everywhere."""
        raw = encode_pdu(
            replace(lsp, checksum=0),
            self._transmitter.level_key(level),
            capacity_code=self._instance.settings.path_capacity_code,
        )
        checksum = peek_lsp(raw).checksum
        entry = StoredLsp(
            lsp_id=lsp.lsp_id,
            sequence_number=lsp.sequence_number,
            checksum=checksum,
            expires=self._instance.now + lsp.remaining_lifetime,
            raw=raw,
            lsp=replace(lsp, checksum=checksum),
            own=system_of(lsp.lsp_id) == self._instance.system_id,
            purged=lsp.remaining_lifetime == 0,
            since=self._instance.now,
        )
        self._install(level, entry, None)
        return entry

    def purge(self, level: Level, identifier: LspId, sequence_number: int) -> StoredLsp:
        """Take an LSP back for the whole network (ISO 10589 §7.3.16.4).

        Of its contents nothing is left but who purged it (RFC 6232), and, with authentication,
        a new signature (RFC 5304 §2).
        """
        known = self._instance.databases[level].get(identifier)
        bits = _IS_TYPES[level] if known is None else known.lsp.is_type
        empty = Lsp(int(level), identifier, sequence_number, 0, is_type=bits)
        self._instance.counters.lsps["purges-originated"] += 1
        originator = PurgeOriginator(self._instance.system_id)
        return self.install_generated(level, replace(empty, tlvs=(originator,)))

    def refresh_own(self) -> None:
        """Have all our LSPs generated again: they are to be signed with other keys."""
        mine = self._instance.system_id
        for level, database in sorted(self._instance.databases.items()):
            for entry in database.between(lsp_id(mine), lsp_id(mine, 0xFF, 0xFF)):
                if not entry.purged:
                    self._watcher.own_lsp_refresh(level, entry.lsp_id)

    def _install(self, level: Level, entry: StoredLsp, source: OutletLevel | None) -> None:
        instance = self._instance
        previous = instance.databases[level].put(entry)
        if previous is not None:
            instance.timers.cancel(previous.timer)
        for state in self._sender.active(level):
            if state is source:
                continue
            if source is not None and self._may_wait(state):
                due = state.turn.due(instance.settings.reduction, instance.now, instance.rng)
                state.defer(entry, due)
                instance.counters.lsps["deferred"] += 1
            else:
                state.set_srm(entry)
            self._sender.touch(state)
        self._watch(level, entry)
        self._watcher.lsp_changed(level, entry, previous)

    def _may_wait(self, state: OutletLevel) -> bool:
        """Whether the neighbor is likely to get a flood from others as well (core.reduction).

        Not on a LAN, nor while it and we are still comparing databases.
        """
        instance = self._instance
        return (
            instance.settings.reduction.active
            and state.reliable
            and state.held_until <= instance.now
        )

    def _watch(self, level: Level, entry: StoredLsp) -> None:
        instance = self._instance
        if entry.purged:
            action = partial(self._remove, level, entry)
            entry.timer = instance.timers.arm(instance.now + ZERO_AGE_LIFETIME, action)
        elif entry.own:
            wait = min(
                instance.jitter(instance.settings.lsp_refresh_interval),
                (entry.expires - instance.now) * _LATEST_REFRESH,
                self._key_lasts(level) + _RESIGN * instance.rng.random(),
            )
            entry.timer = instance.timers.arm(
                instance.now + wait, partial(self._refresh, level, entry)
            )
        else:
            entry.timer = instance.timers.arm(entry.expires, partial(self._expire, level, entry))

    def _key_lasts(self, level: Level) -> float:
        """Seconds until LSPs may have to be signed with another key.

        Who restarts after the old key has ended must find none that is signed with it.
        """
        wall = self._instance.wall
        keys = self._instance.settings.lsp_keys(level)
        times = (time for timed in keys for time in (timed.send_start, timed.send_end))
        return min((time for time in times if time > wall), default=math.inf) - wall

    def _refresh(self, level: Level, entry: StoredLsp) -> None:
        # Armed first: the answer replaces the entry, and cancels this.
        entry.timer = self._instance.timers.arm(entry.expires, partial(self._expire, level, entry))
        self._watcher.own_lsp_refresh(level, entry.lsp_id)

    def _expire(self, level: Level, entry: StoredLsp) -> None:
        self._instance.counters.lsps["expired"] += 1
        self.purge(level, entry.lsp_id, entry.sequence_number)

    def _remove(self, level: Level, entry: StoredLsp) -> None:
        for state in self._sender.active(level):
            state.forget(entry)
        self._instance.databases[level].remove(entry)
        self._instance.counters.lsps["removed"] += 1
        self._watcher.lsp_removed(level, entry)
