"""The SRM and SSN flags of each circuit (ISO 10589 §7.3.15): which LSPs to send and acknowledge.

An LSP has no flags of its own: they are kept here and in ``shared_flags``, which has those that an
LSP has on many circuits at once. So a flush visits flagged LSPs only, and an LSP of a large fabric
takes no memory for each circuit. A ``CircuitTx`` exists while the circuit has an adjacency, with an
``SrmSsnQueue`` for each level of it.
"""

from __future__ import annotations

import math

import msgspec

from fared.core.timers import Timer
from fared.protocols.igp.reduction import FloodDelay
from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.ids import FIRST_LSP, Level, LspId
from fared.protocols.isis.lsdb import Lsdb, Order, StoredLsp, compare
from fared.protocols.isis.pdu.tlvs import LspEntry
from fared.protocols.isis.update.shared_flags import SharedFlags

RESEND_GUARD = 0.3
"""Seconds: an LSP sent more recently is still on its way to the neighbor that requests it."""
_MOST_REQUESTS = 16384
MOST_REQUESTS_SENT = 3
"""Requests for an LSP at most; a neighbor that still has it answers one of them."""


class Request(msgspec.Struct, eq=False):
    """An LSP that the neighbor has: the instance that it listed, and how often we requested it.

    ``due``: when to request it, next or again.
    """

    listed: LspEntry
    due: float
    sent: int = 0


class SrmSsnQueue(msgspec.Struct, eq=False):
    """The flags of one level on one circuit. All dicts are in the order of flagging.

    ``pending``: SRM is set, to be sent with the next burst. ``unacknowledged``: sent on a
    point-to-point circuit, with the time of the next transmission; SRM stays set (§7.3.15.5).
    ``requests``: SSN of LSPs of which the neighbor has a newer instance; on a point-to-point
    circuit in the order in which they are due. ``unlisted``: SRM is set since the adjacency came
    up; the neighbor's CSNPs show which of them it has, and the rest becomes pending in ``offer``.
    ``shared`` has this queue's ``bit`` for LSPs to be acknowledged, and those that are deferred.
    """

    circuit: Circuit
    level: Level
    database: Lsdb
    shared: SharedFlags
    bit: int
    reliable: bool
    """Whether LSPs are retransmitted until acknowledged: on point-to-point circuits."""
    pending: dict[LspId, None] = msgspec.field(default_factory=dict)
    unacknowledged: dict[LspId, float] = msgspec.field(default_factory=dict)
    strangers: dict[LspId, LspEntry] = msgspec.field(default_factory=dict)
    """What acknowledgments say of LSPs that are not in the database."""
    ssn: int = 0
    """LSPs to be acknowledged."""
    requests: dict[LspId, Request] = msgspec.field(default_factory=dict)
    listed: dict[LspId, LspEntry] = msgspec.field(default_factory=dict)
    """LSPs that the neighbor has, but did not send however often they were requested."""
    unlisted: dict[LspId, None] = msgspec.field(default_factory=dict)
    comparing: bool = False
    """Whether the neighbor's first set of CSNPs is still awaited, and nothing has been offered."""
    offer_at: float = -math.inf
    """When to offer ``unlisted``, or to ask again whether too many others are being offered all."""
    offering: bool = False
    """Whether the neighbor is sent all that its CSNPs did not list."""
    flood_delay: FloodDelay = msgspec.field(default_factory=FloodDelay)
    held_until: float = -math.inf
    """Until then LSPs wait for the neighbor's CSNPs, or on a LAN for a faster router."""
    requests_due: float = math.inf
    """When to request LSPs; infinite if none is to be requested, or requested again."""
    csnp_due: float = math.inf
    """When to begin the next set of CSNPs."""
    csnp_next: LspId | None = None
    """First LSP id of the rest of the set being sent, None between sets."""
    quick_csnps: int = 0
    """Sets of CSNPs still to be sent at a short interval, for a new router on the LAN."""

    def is_idle(self, now: float) -> bool:
        """Whether it is a point-to-point circuit with shared flags only; they remember that."""
        flags = self.pending or self.unacknowledged or self.unlisted or self.requests or self.listed
        if flags or not self.reliable or self.held_until > now:
            return False
        self.shared.idle |= self.bit
        return True

    @property
    def waiting(self) -> int:
        """The number of LSPs whose SRM flag is set."""
        sent = len(self.pending) + len(self.unacknowledged)
        return sent + len(self.shared.deferred_for(self.bit)) + len(self.unlisted)

    def set_srm(self, entry: StoredLsp, *, appears: bool = False) -> None:
        """Set SRM, clear SSN: send this LSP (§7.3.15.1 e) 1) ii and v, e) 3), §7.3.15.2 b) 3)).

        If it ``appears`` in the database, the CSNPs that are awaited may yet list it.
        """
        lsp_id = entry.lsp_id
        self.unacknowledged.pop(lsp_id, None)
        self.requests.pop(lsp_id, None)
        self.listed.pop(lsp_id, None)
        self.unlisted.pop(lsp_id, None)
        self._clear_shared(lsp_id)
        flags = self.unlisted if appears and self.comparing else self.pending
        flags[lsp_id] = None
        self.shared.idle &= ~self.bit

    def set_srm_all(self) -> None:
        """Set SRM, clear SSN for all LSPs of the database (§7.3.17 a)), on a new adjacency."""
        known = self.database.ids()
        for lsp_id in known if self.waiting or self.ssn or self.requests else ():
            self.received(lsp_id)
        self.unlisted = dict.fromkeys(known)
        self.comparing = True
        self.shared.idle &= ~self.bit

    def offer(self) -> None:
        """Send all LSPs that the neighbor's CSNPs have not listed so far."""
        self.pending.update(self.unlisted)
        self.unlisted.clear()
        self.comparing, self.offering = False, True

    def defer(self, entry: StoredLsp, due: float) -> None:
        """Send this LSP at ``due``, unless the neighbor has shown by then that it has it."""
        self.received(entry.lsp_id)
        self.shared.defer(entry.lsp_id, self.bit, due)

    def repeat(self, entry: StoredLsp, now: float) -> None:
        """Set SRM for an LSP that the neighbor lacks, unless it was just sent."""
        due = self.unacknowledged.get(entry.lsp_id)
        if due is not None:
            sent = due - self.circuit.settings.lsp_retransmit_interval
            if now - sent < RESEND_GUARD:
                return
        self.set_srm(entry)

    def answer(self, entry: StoredLsp, now: float) -> None:
        """Set SRM for an LSP of which the neighbor has an older instance.

        As RFC 2328 §13 (8), not if it is the purge of the last number: the older instance may be
        the first of the next sequence, which the neighbor sends until we have removed the purge.
        """
        if not entry.ends_sequence:
            self.repeat(entry, now)

    def clear_srm(self, entry: StoredLsp) -> bool:
        """Clear SRM. Return whether the LSP had been sent before."""
        lsp_id = entry.lsp_id
        self.shared.clear_deferral(lsp_id, self.bit)
        self.pending.pop(lsp_id, None)
        self.unlisted.pop(lsp_id, None)
        return self.unacknowledged.pop(lsp_id, None) is not None

    def is_flagged(self, lsp_id: LspId) -> bool:
        """Whether SRM is set."""
        return self.owes(lsp_id) or self.shared.is_deferred(lsp_id, self.bit)

    def owes(self, lsp_id: LspId) -> bool:
        """Whether SRM is set, and the LSP not only deferred."""
        own = self.pending, self.unacknowledged, self.unlisted
        return any(lsp_id in flags for flags in own)

    def is_busy(self, lsp_id: LspId) -> bool:
        """Whether SRM or SSN is set: either side has yet to acknowledge the LSP."""
        return self.is_flagged(lsp_id) or bool(self.shared.acks.get(lsp_id, 0) & self.bit)

    def set_ssn(self, lsp_id: LspId, received: LspEntry | None = None) -> None:
        """Set SSN: acknowledge the stored LSP, or a received one that is not stored."""
        self.requests.pop(lsp_id, None)
        if received is not None:
            self.strangers[lsp_id] = received
        self.ssn += self.shared.set_ssn(lsp_id, self.bit)

    def clear_ssn(self, lsp_id: LspId) -> None:
        """Clear SSN of an LSP: it is not acknowledged."""
        self.ssn -= self.shared.clear_ssn(lsp_id, self.bit)
        self.strangers.pop(lsp_id, None)

    def _clear_shared(self, lsp_id: LspId) -> None:
        shared = self.shared
        if lsp_id in shared.deferred:
            shared.clear_deferral(lsp_id, self.bit)
        if lsp_id in shared.acks:
            self.clear_ssn(lsp_id)

    def request(self, listed: LspEntry, due: float) -> None:
        """Request a listed LSP at ``due`` unless it arrives before."""
        known = self.requests.get(listed.lsp_id)
        if known is not None:
            known.listed = listed
            return
        if len(self.requests) + len(self.listed) >= _MOST_REQUESTS:
            return
        self.listed.pop(listed.lsp_id, None)
        self.requests_due = min(self.requests_due, due)
        self.requests[listed.lsp_id] = Request(listed, due)
        self.shared.idle &= ~self.bit

    def requested(self, lsp_id: LspId, now: float) -> None:
        """An LSP is requested, from this neighbor or another one, and again after an interval."""
        request = self.requests.pop(lsp_id)
        request.sent += 1
        if request.sent >= MOST_REQUESTS_SENT:
            self.listed[lsp_id] = request.listed
            return
        request.due = now + self.circuit.settings.psnp_interval
        self.requests[lsp_id] = request

    def has_listed(self, entry: StoredLsp) -> bool:
        """Whether the neighbor of a point-to-point circuit has listed this very instance."""
        request = self.requests.get(entry.lsp_id)
        listed = self.listed.get(entry.lsp_id) if request is None else request.listed
        return listed is not None and self.reliable and compare(entry, listed) is Order.SAME

    def forget(self, entry: StoredLsp) -> None:
        """The LSP leaves the database."""
        self.clear_srm(entry)
        self.clear_ssn(entry.lsp_id)

    def received(self, lsp_id: LspId) -> None:
        """A new instance was received here: clear all flags of the old (§7.3.15.1 e) 1) iii)."""
        # most are empty: an LSP has many circuits, a circuit few LSPs
        srm = self.pending, self.unacknowledged, self.unlisted
        for flags in (*srm, self.requests, self.listed):
            if flags:
                flags.pop(lsp_id, None)
        self._clear_shared(lsp_id)

    def begin_csnp(self) -> None:
        """Start a complete set of CSNPs with the next burst."""
        self.csnp_next = FIRST_LSP

    def end_csnp(self) -> None:
        """Stop sending CSNPs: another router is the DIS (§7.3.15.3)."""
        self.csnp_next = None
        self.csnp_due = math.inf
        self.quick_csnps = 0


class CircuitTx(msgspec.Struct, eq=False):
    """The queues of one circuit, and their common pacing."""

    circuit: Circuit
    levels: dict[Level, SrmSsnQueue] = msgspec.field(default_factory=dict)
    paced_until: float = -math.inf
    turn: bool = False
    """Which level is first: a large database of one level must not block the other."""
    timer: Timer | None = None
