"""Originating, refreshing and flushing self-originated LSAs (RFC 2328 §12.4, §12.1.6, §14.1).

A ``SelfLsa`` is one LSA that this router may originate: it builds the body and has a throttle.
``Originator`` enters and marks them; ``settle`` originates the marked LSAs whose throttle allows
it, with their present contents. So a burst of events results in one LSA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from fared.core.ids import AreaId
from fared.core.timers import Timer
from fared.protocols.igp.refusals import explain
from fared.protocols.igp.throttle import Throttle
from fared.protocols.ospf.flooding.procedure import Flooding
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.lsdb import LsaEntry, Lsdb
from fared.protocols.ospf.origination.wrap import SequenceWraps
from fared.protocols.ospf.packet.lsa import (
    INITIAL_SEQUENCE_NUMBER,
    LSA_HEADER_SIZE,
    MAX_SEQUENCE_NUMBER,
    LsaKey,
    encode_lsa,
)

_INSTANCE = slice(12, 18)
"""Sequence number and checksum in the header."""


class SelfLsa:
    """One self-originated LSA. ``build`` returns its body, or None if it is not to exist.

    ``may_be_absent``: ``build`` may return None; the LSA is then flushed regardless of the
    throttle. An ``ephemeral`` one is removed once its LSA is flushed and its throttle is quiet.
    ``waits``: it exists, and has not been marked since it was found to be before its time.
    """

    __slots__ = (
        "build",
        "ephemeral",
        "forced",
        "held_until",
        "key",
        "last_sequence_number",
        "lsdb",
        "may_be_absent",
        "options",
        "requested_at",
        "throttle",
        "timer",
        "waits",
        "wraps",
    )

    def __init__(
        self,
        lsdb: Lsdb,
        key: LsaKey,
        options: int,
        throttle: Throttle,
        build: Callable[[], bytes | None],
    ) -> None:
        self.lsdb = lsdb
        self.key = key
        self.options = options
        self.throttle = throttle
        self.build = build
        self.forced = False
        self.held_until = 0.0
        self.requested_at: float | None = None
        self.timer: Timer | None = None
        self.last_sequence_number: int | None = None
        self.wraps = 0
        self.may_be_absent = False
        self.ephemeral = False
        self.waits = False


SelfLsaKey = tuple[AreaId | None, LsaKey]


class SelfLsas:
    """All LSAs that this router originates, by the area of their database and their key."""

    def __init__(self, instance: Instance, flooding: Flooding) -> None:
        self._instance = instance
        self._process = instance.process
        self._flooding = flooding
        self._wraps = SequenceWraps(instance, flooding)
        self._table: dict[SelfLsaKey, SelfLsa] = {}
        self._marked: dict[SelfLsaKey, SelfLsa] = {}

    def __iter__(self) -> Iterator[SelfLsa]:
        return iter(self._table.values())

    def get(self, key_in_area: SelfLsaKey) -> SelfLsa | None:
        """Return an LSA, or None."""
        return self._table.get(key_in_area)

    def enter(
        self, lsdb: Lsdb, options: int, key: LsaKey, build: Callable[[], bytes | None]
    ) -> SelfLsa:
        """Add an LSA, which is marked, and return it."""
        throttle = Throttle(self._instance.settings.throttle)
        own = SelfLsa(lsdb, key, options, throttle, build)
        self._table[lsdb.area, key] = own
        self.mark(own)
        return own

    def remove(self, key_in_area: SelfLsaKey) -> None:
        """Flush and remove an LSA."""
        own = self._table.pop(key_in_area, None)
        if own is not None:
            self._marked.pop(key_in_area, None)
            self._flush(own)

    def flush_all(self) -> None:
        """Flush all self-originated LSAs (§14.1)."""
        for own in self._table.values():
            self._flush(own)
        self._table.clear()
        self._marked.clear()

    def flush_stale(self) -> None:
        """Flush LSAs from before a restart that this router does not originate (RFC 3623 §2.3)."""
        rid, now = self._instance.router_id, self._process.now
        for lsdb in self._instance.databases():
            for entry in list(lsdb):
                if entry.key.advertising_router != rid or not entry.flooded_in:
                    continue
                own = self._self_lsa_of(entry)
                if (own is None or own.build() is None) and not entry.is_maxage(now):
                    self._flooding.flush(entry)

    def _flush(self, own: SelfLsa) -> None:
        self._process.timers.cancel(own.timer)
        entry = own.lsdb.get(own.key)
        if entry is not None and not entry.is_maxage(self._process.now):
            self._flooding.flush(entry)

    # Events

    def mark_key(self, key_in_area: SelfLsaKey) -> None:
        """The contents of an LSA, if there is one, may have changed."""
        own = self._table.get(key_in_area)
        if own is not None:
            self.mark(own)

    def mark(self, own: SelfLsa, *, force: bool = False) -> None:
        """The contents of an LSA may have changed; ``force``: originate it even if not."""
        own.forced = own.forced or force
        own.waits = False
        if own.held_until:
            own.held_until = 0.0
            self._process.timers.cancel(own.timer)
        if own.requested_at is None:
            own.requested_at = self._process.now
        self._marked[own.lsdb.area, own.key] = own

    def reconsider(self, own: SelfLsa) -> None:
        """Mark an LSA that may be absent, and keep it."""
        self._process.timers.cancel(own.timer)  # ``_forget`` may be pending
        own.timer = None
        self.mark(own)

    def received(self, entry: LsaEntry) -> None:
        """Process a self-originated LSA newer than the last one originated (RFC 2328 §13.4)."""
        own = self._self_lsa_of(entry)
        if own is not None:
            # A MaxAge entry may be removed before the throttle expires: keep its sequence number.
            received = entry.sequence_number
            last = own.last_sequence_number
            own.last_sequence_number = received if last is None else max(last, received)
        # RFC 3623 §2: while this router restarts, LSAs from before are accepted and kept
        if self._instance.restarting:
            return
        if entry.key.advertising_router == self._instance.router_id:
            self._note_foreign(entry)
        # §13.4: originate an instance with a higher sequence number
        if own is not None and own.build() is not None:
            self.mark(own, force=True)
        # §13.4: flush an LSA that this router no longer originates
        elif not entry.is_maxage(self._process.now):
            self._flooding.flush(entry)

    def _note_foreign(self, entry: LsaEntry) -> None:
        """Not in RFC 2328: after a restart such an LSA comes once; another router has our id."""
        name = str(entry.key)
        if self._process.foreign_copy(name, entry.raw[_INSTANCE]):
            self._process.log(
                "warning", "ospf-foreign-copies", lsa=name, effect=explain("duplicate-router-id")
            )

    def refresh(self, entry: LsaEntry) -> None:
        """LSRefreshTime (§12.4 (1)): originate with the next sequence number, even if unchanged."""
        own = self._self_lsa_of(entry)
        if own is not None:
            self.mark(own, force=True)

    def removed(self, entry: LsaEntry) -> None:
        """A flushed LSA was removed; after a wrap, originate it from the first number (§12.1.6)."""
        own = self._self_lsa_of(entry)
        wrapped = self._wraps.ended(entry)
        if own is not None and wrapped:
            self.mark(own, force=True)
        elif own is not None:
            self._forget(own)

    # Origination

    @property
    def marked(self) -> bool:
        """Whether ``settle`` has something to do, or awaits a time."""
        return bool(self._marked)

    def settle(self) -> None:
        """Originate every marked LSA whose throttle allows it; arm timers for the others."""
        now = self._process.now
        for key_in_area, own in list(self._marked.items()):
            assert own.requested_at is not None
            # The throttle is in place of MinLSInterval (§12.4); a flush does not wait for it.
            due = max(own.throttle.due(own.requested_at), own.held_until)
            waits = own.waits or own.held_until > now  # what is held exists
            if due > now and (waits or not (own.may_be_absent and own.build() is None)):
                own.waits = True
                if own.timer is None or not own.timer.active:
                    own.timer = self._process.timers.arm(due, _wake)
                continue
            del self._marked[key_in_area]
            requested, own.requested_at, own.held_until = own.requested_at, None, 0.0
            if self._originate(own):
                own.throttle.sent(requested, now)
            own.forced = own.forced and key_in_area in self._wraps

    def _originate(self, own: SelfLsa) -> bool:
        """Originate an LSA if its contents differ (§12.4); return whether one was flooded."""
        entry = own.lsdb.get(own.key)
        body = own.build()
        alive = entry is not None and not entry.is_maxage(self._process.now)
        # §14.1: flush an LSA that is no longer to exist
        if body is None:
            if entry is not None and alive:
                self._flooding.flush(entry)
            elif entry is None:
                self._forget(own)
            return False
        # §12.4: a new instance only if options or body differ, or if forced, by (1) or §13.4
        # §13.4: or if the database copy is from before a restart
        if entry is not None and alive and not own.forced and not entry.flooded_in:
            same = entry.raw[LSA_HEADER_SIZE:] == body
            if same and entry.lsa.header.options == own.options:
                return False
        # §12.1.6: the next sequence number; None while it wraps
        sequence_number = self._next_sequence_number(own, entry)
        if sequence_number is None:
            return False
        own.last_sequence_number = sequence_number
        lsa = encode_lsa(
            ls_age=0,
            options=own.options,
            ls_type=own.key.ls_type,
            link_state_id=own.key.link_state_id,
            advertising_router=own.key.advertising_router,
            ls_sequence_number=sequence_number,
            body=body,
        )
        self._process.counters.lsdb["originated"] += 1
        self._flooding.install_and_flood(own.lsdb, own.key, lsa.raw)
        return True

    def _next_sequence_number(self, own: SelfLsa, entry: LsaEntry | None) -> int | None:
        """The next sequence number (§12.1.6); None while MaxSequenceNumber is being flushed."""
        last = own.last_sequence_number
        if entry is not None:
            last = entry.sequence_number
            if last == MAX_SEQUENCE_NUMBER:
                self._wraps.hold(entry)
                return None
        if last is None:
            return INITIAL_SEQUENCE_NUMBER
        if last == MAX_SEQUENCE_NUMBER:
            # One higher after each further wrap: an acknowledgment of the former first instance may
            # still be on its way, and would end the retransmission of an equal one.
            own.wraps += 1
            return INITIAL_SEQUENCE_NUMBER + own.wraps - 1
        return last + 1

    def _forget(self, own: SelfLsa) -> None:
        """Remove an ephemeral LSA that is not to exist, once its throttle is quiet."""
        if own.ephemeral and own.build() is None:
            self._process.timers.cancel(own.timer)
            quiet_at = own.throttle.quiet_at()
            if quiet_at > self._process.now:  # a flapping one keeps its throttle
                own.timer = self._process.timers.arm(quiet_at, partial(self._forget, own))
                return
            self._table.pop((own.lsdb.area, own.key), None)
            self._marked.pop((own.lsdb.area, own.key), None)

    def _self_lsa_of(self, entry: LsaEntry) -> SelfLsa | None:
        return self._table.get((entry.lsdb.area, entry.key))


def _wake() -> None:
    """Wake the engine: ``settle`` considers all marked LSAs."""
