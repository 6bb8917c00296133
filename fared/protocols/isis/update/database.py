"""Installing, ageing, purging and removing LSPs (ISO 10589 §7.3.16).

Every LSP has one timer for its next event. Our own are refreshed before they expire (§7.3.5). An
expired LSP of another system is purged (§7.3.16.4), and so is one of which two instances have the
same sequence number (§7.3.16.2). The header of a purged LSP is kept for a minute, so that late
copies are recognized.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container

import msgspec
from msgspec.structs import replace

from fared.core.ids import SystemId
from fared.core.timers import BoundAction
from fared.protocols.igp.dynamic_flooding import FloodPlan
from fared.protocols.igp.reduction import FloodDelay
from fared.protocols.isis.ids import Level, LspId, lsp_id, system_of
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import ZERO_AGE_LIFETIME, StoredLsp, renewed_tlvs
from fared.protocols.isis.pdu.codec import encode_pdu, peek_lsp
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import PurgeOriginator
from fared.protocols.isis.transmit import Transmitter
from fared.protocols.isis.update.bandwidth import only_bandwidth
from fared.protocols.isis.update.circuit_tx import SrmSsnQueue
from fared.protocols.isis.update.dynamic import DynamicLevels
from fared.protocols.isis.update.lsp_transmitter import LspTransmitter
from fared.protocols.isis.update.suppression import SUPPRESSION, covered

_LATEST_REFRESH = 0.9
_RESIGN = 1.0
RECHECK = 0.5
"""Seconds between looks whether neighbors have acknowledged the purge of the last number."""
_IS_TYPES = {Level.ONE: 1, Level.TWO: 3}


class DatabaseWatcher(msgspec.Struct, frozen=True):
    """Callbacks for changes of the database: the TED, and the originator of our own LSPs."""

    changed: Callable[[Level, StoredLsp, StoredLsp | None], None]
    """An LSP replaced the previous one: new, newer, or ``purged``; our own included."""
    removed: Callable[[Level, StoredLsp], None]
    """The header of a purged LSP was removed."""
    own_received: Callable[[Level, LspId, int], None]
    """Another system has, or has purged, an LSP of ours that is newer than ours or unknown to us.

    Answer with ``install_own`` (``next_sequence`` counts from the number received) or with
    ``purge_own``, at a limited rate: the callback is repeated meanwhile.
    """
    own_refresh: Callable[[Level, LspId], None]
    """Generate an LSP of ours again, even if unchanged."""


class Database:
    """The LSPs of all levels and their timers."""

    def __init__(
        self,
        instance: Instance,
        transmitter: Transmitter,
        lsp_transmitter: LspTransmitter,
        watcher: DatabaseWatcher,
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._transmitter = transmitter
        self._lsp_transmitter = lsp_transmitter
        self._watcher = watcher
        self.dynamic = DynamicLevels(instance, lsp_transmitter)
        # one object each, which the timers of all LSPs share
        self._on_removal, self._on_refresh, self._on_expiry = (
            self._remove_purged,
            self._refresh,
            self._expire,
        )
        self._flood_delay = FloodDelay()
        """For all neighbors that receive an LSP from its originator."""

    def install_received(self, queue: SrmSsnQueue, lsp: Lsp, raw: bytes) -> StoredLsp:
        """Store a received LSP, flag its acknowledgment, flood it on all other circuits.

        ISO 10589 §7.3.15.1 e) 1), for purges §7.3.16.4 b) 1). Deviation: a purge without TLV 13 is
        flooded as received, although RFC 6232 adds the TLV there. That would need a new signature,
        and copies of one purge would no longer be equal.
        """
        # RFC 7987 §2: a remaining lifetime below MaxAge is stored as MaxAge. The field is in
        # neither checksum nor digest; corrupted, it would expire the LSP early.
        lifetime = max(lsp.remaining_lifetime, self._instance.settings.lsp_lifetime)
        entry = StoredLsp(
            lsp_id=lsp.lsp_id,
            sequence_number=lsp.sequence_number,
            checksum=lsp.checksum,
            expires=self._process.now + lifetime,
            raw=raw,
            lsp=lsp,
            own=system_of(lsp.lsp_id) == self._instance.system_id,
            purged=lsp.remaining_lifetime == 0,
            since=self._process.now,
            renewed=renewed_tlvs(queue.database.get(lsp.lsp_id), lsp),
        )
        # e) 1) iii: clear SRM on this circuit; iv: set SSN if it is point-to-point
        queue.received(lsp.lsp_id)
        if queue.reliable:
            self._lsp_transmitter.acknowledge(queue, lsp.lsp_id)
        # e) 1) i, ii, v: store it; on other circuits set SRM and clear SSN
        self._install(queue.level, entry, queue)
        return entry

    def install_generated(self, level: Level, lsp: Lsp) -> StoredLsp:
        """Encode and sign an LSP or a purge, store it and flood it on all circuits (§7.3.12)."""
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
            expires=self._process.now + lsp.remaining_lifetime,
            raw=raw,
            lsp=replace(lsp, checksum=checksum),
            own=system_of(lsp.lsp_id) == self._instance.system_id,
            purged=lsp.remaining_lifetime == 0,
            since=self._process.now,
            renewed=renewed_tlvs(self._instance.databases[level].get(lsp.lsp_id), lsp),
        )
        self._install(level, entry, None)
        return entry

    def purge(self, level: Level, identifier: LspId, sequence_number: int) -> StoredLsp:
        """Purge an LSP throughout the network (ISO 10589 §7.3.16.4).

        It keeps the header. Its TLVs are the system id of the purging router (RFC 6232) and, with
        authentication, a new signature (RFC 5304 §2).
        """
        known = self._instance.databases[level].get(identifier)
        bits = _IS_TYPES[level] if known is None else known.lsp.is_type
        empty = Lsp(int(level), identifier, sequence_number, 0, is_type=bits)
        self._process.counters.lsdb["purges-originated"] += 1
        originator = PurgeOriginator(self._instance.system_id)
        return self.install_generated(level, replace(empty, tlvs=(originator,)))

    def refresh_own(self) -> None:
        """Generate all our LSPs again: keys or lifetimes have changed."""
        mine = self._instance.system_id
        for level, database in sorted(self._instance.databases.items()):
            for entry in database.between(lsp_id(mine), lsp_id(mine, 0xFF, 0xFF)):
                if not entry.purged:
                    self._watcher.own_refresh(level, entry.lsp_id)

    def _install(self, level: Level, entry: StoredLsp, source: SrmSsnQueue | None) -> None:
        instance = self._instance
        previous = instance.databases[level].put(entry)
        if previous is not None:
            instance.process.timers.cancel(previous.timer)
        plan = self.dynamic.plan(level, source)
        paced = source is not None and only_bandwidth(previous, entry)
        appears = source is not None and previous is None
        reached: Container[SystemId] = ()
        if source is not None and not paced:
            reached = covered(instance.databases[level], previous, entry)
        # Of the LSPs of a busy fabric nearly all only change bandwidths: they all wait as long.
        if source is not None and paced and plan is None and not instance.settings.reduction.active:
            queues = self._defer_alike(level, entry, source)
        else:
            queues = [each for each in self._lsp_transmitter.active(level) if each is not source]
        for queue in queues:
            # RFC 9667: over the flooding topology, and to neighbors that take no part
            if self._is_listed(queue, entry):
                continue
            if self.dynamic.is_spared(plan, queue, entry.lsp_id):
                self._compare_later(plan, queue, entry, bandwidth=paced)
                continue
            deferred = self.dynamic.is_deferred(plan, queue)
            due = None
            if deferred:
                due = self._flood_delay.due(SUPPRESSION, instance.process.now, instance.process.rng)
            elif deferred is None and source is not None:
                due = self._deferred_until(queue, reached, paced=paced)
            if due is None:
                queue.set_srm(entry, appears=appears)
                self._lsp_transmitter.touch(queue)
            else:
                queue.defer(entry, due)
                self._lsp_transmitter.arm_shared(level)
            instance.process.counters.lsdb["deferred"] += due is not None
        self._watch(level, entry)
        self.dynamic.lsp_changed(level, entry, previous)
        self._watcher.changed(level, entry, previous)

    def _compare_later(
        self, plan: FloodPlan | None, queue: SrmSsnQueue, entry: StoredLsp, *, bandwidth: bool
    ) -> None:
        due = self.dynamic.compare_later(plan, queue, entry, bandwidth=bandwidth)
        if due is not None:
            queue.defer(entry, due)
            self._lsp_transmitter.arm_shared(queue.level)

    def _is_listed(self, queue: SrmSsnQueue, entry: StoredLsp) -> bool:
        """Acknowledge this instance to a neighbor that has listed it; return whether it has."""
        # §7.3.15.2 b) 2): it sends it until acknowledged
        if not queue.has_listed(entry):
            return False
        queue.received(entry.lsp_id)
        self._lsp_transmitter.acknowledge(queue, entry.lsp_id)
        return True

    def _defer_alike(
        self, level: Level, entry: StoredLsp, source: SrmSsnQueue
    ) -> list[SrmSsnQueue]:
        """Defer an LSP for all other neighbors, as ``_deferred_until`` does; return the rest.

        Those are on LANs, still compare their databases, or may have listed this instance. Mostly
        there are none, and none of the others has flags of its own: then no circuit is looked at.
        """
        process, lsp_id = self._instance.process, entry.lsp_id
        now, shared = process.now, self._lsp_transmitter.shared[level]
        others: list[SrmSsnQueue] = []
        bits = shared.used & ~source.bit
        looked_at = bits & ~shared.idle
        bits ^= looked_at
        looked_at |= bits & shared.acks.get(lsp_id, 0)
        for queue in self._lsp_transmitter.active(level) if looked_at else ():
            if not queue.bit & looked_at:
                continue
            if queue.requests or queue.held_until > now or not queue.reliable:
                others.append(queue)
                continue
            bits |= queue.bit
            queue.received(lsp_id)
            queue.is_idle(now)
        if bits:
            shared.clear_deferral(lsp_id, bits)
            due = self._flood_delay.due(SUPPRESSION, now, process.rng)
            shared.defer(lsp_id, bits, due, patient=True)
            self._lsp_transmitter.arm_shared(level)
        process.counters.lsdb["deferred"] += bits.bit_count()
        return others

    def _deferred_until(
        self, queue: SrmSsnQueue, reached: Container[SystemId], *, paced: bool
    ) -> float | None:
        """When to flood to a neighbor that has not shown the LSP by then; None: at once.

        Its originator (``suppression``) or other systems (``igp.reduction``) will probably flood
        to this neighbor. §7.3.15.5 sends at once; a deferred copy is late by this time at most.
        ``paced``: only bandwidths differ from the last instance.
        """
        instance, neighbor = self._instance, queue.circuit.adjacency
        # not on a LAN, nor while the databases are still compared (§7.3.17)
        if not queue.reliable or queue.held_until > instance.process.now:
            return None
        now, rng = instance.process.now, instance.process.rng
        if instance.settings.reduction.active:
            return queue.flood_delay.due(instance.settings.reduction, now, rng)
        if paced or (neighbor is not None and neighbor.system_id in reached):
            return self._flood_delay.due(SUPPRESSION, now, rng)
        return None

    def _watch(self, level: Level, entry: StoredLsp) -> None:
        instance = self._instance
        if entry.purged:
            self._keep_purged(level, entry)
        # §7.3.5: generate our own again before it expires, and before its key does
        elif entry.own:
            wait = min(
                instance.jitter(instance.settings.lsp_refresh_interval),
                (entry.expires - instance.process.now) * _LATEST_REFRESH,
                self._until_key_change(level) + _RESIGN * instance.process.rng.random(),
            )
            entry.timer = instance.process.timers.arm(
                instance.process.now + wait, BoundAction(self._on_refresh, level, entry)
            )
        # §7.3.16.4: others are purged when their remaining lifetime reaches zero
        else:
            entry.timer = instance.process.timers.arm(
                entry.expires, BoundAction(self._on_expiry, level, entry)
            )

    def _until_key_change(self, level: Level) -> float:
        """Seconds until the signing key may change.

        RFC 5304 §2.1: a router that restarts after a key change cannot authenticate its own LSPs
        under the old key, and so never exceeds their sequence numbers. Signed again at the change,
        none remain.
        """
        wall = self._process.wall
        keys = self._instance.settings.lsp_keys(level)
        times = (time for timed in keys for time in (timed.send_start, timed.send_end))
        return min((time for time in times if time > wall), default=math.inf) - wall

    def _refresh(self, level: Level, entry: StoredLsp) -> None:
        # Armed first: generating the LSP replaces the entry and cancels this timer. If no LSP is
        # generated, the present one expires.
        entry.timer = self._process.timers.arm(
            entry.expires, BoundAction(self._on_expiry, level, entry)
        )
        self._watcher.own_refresh(level, entry.lsp_id)

    def _expire(self, level: Level, entry: StoredLsp) -> None:
        self._process.counters.lsdb["expired"] += 1
        self.purge(level, entry.lsp_id, entry.sequence_number)

    def _keep_purged(self, level: Level, entry: StoredLsp) -> None:
        # §7.3.16.4: keep the header of a purged LSP for ZeroAgeLifetime
        due = entry.since + ZERO_AGE_LIFETIME
        if entry.ends_sequence:
            due = min(due, self._process.now + RECHECK)
        action = BoundAction(self._on_removal, level, entry)
        entry.timer = self._process.timers.arm(due, action)

    def _remove_purged(self, level: Level, entry: StoredLsp) -> None:
        """Remove the header of a purged LSP, that of the last number once it is acknowledged.

        Deviation: §7.3.16.4 keeps each for ZeroAgeLifetime, and so delays the LSP with which the
        sequence begins again. As in RFC 2328 §14, it is removed when no neighbor has yet to
        acknowledge it, nor we. On a LAN nothing is acknowledged.
        """
        kept_long_enough = self._process.now >= entry.since + ZERO_AGE_LIFETIME
        if kept_long_enough or all(
            queue.reliable and not queue.is_busy(entry.lsp_id)
            for queue in self._lsp_transmitter.active(level)
        ):
            self._remove(level, entry)
        else:
            self._keep_purged(level, entry)

    def _remove(self, level: Level, entry: StoredLsp) -> None:
        for queue in self._lsp_transmitter.active(level):
            queue.forget(entry)
        self._instance.databases[level].remove(entry)
        self._process.counters.lsdb["removed"] += 1
        self._watcher.removed(level, entry)
