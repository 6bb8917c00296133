"""What is to be sent out of a circuit: the SRM and SSN flags, seen from the circuit's side.

The flags live twice, in the LSP (whoever shows the database reads them there) and here, so that
a drain looks at what is flagged and never at the whole database. An ``Outlet`` exists while the
circuit has an adjacency, an ``OutletLevel`` for each level of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from fared.core.reduction import Turn
from fared.core.timers import Timer
from fared.isis.circuit import Circuit
from fared.isis.ids import FIRST_LSP, Level, LspId
from fared.isis.lsdb import Lsdb, StoredLsp
from fared.isis.pdu.model import LspEntry

RESEND_GUARD = 0.3
"""Seconds: who asks for an LSP that was sent less long ago has it on the way to him."""
_MOST_REQUESTS = 16384


@dataclass(slots=True, eq=False)
class OutletLevel:
    """The flags of one level on one circuit. All dicts are in the order of flagging.

    ``pending``: SRM is set, to be sent with the next burst. ``unacknowledged``: sent on a
    point-to-point circuit, with the time of the next transmission; SRM is still set. ``acks``:
    SSN is set; the value is what to say of an LSP that is not in the database. ``requests``:
    LSPs that the other side has newer than we, with how often we asked. ``deferred``: SRM is set,
    and they become pending at their time if the neighbor has not shown by then that it has them.
    """

    circuit: Circuit
    level: Level
    database: Lsdb
    pending: dict[LspId, None] = field(default_factory=dict)
    unacknowledged: dict[LspId, float] = field(default_factory=dict)
    acks: dict[LspId, LspEntry | None] = field(default_factory=dict)
    requests: dict[LspId, int] = field(default_factory=dict)
    deferred: dict[LspId, float] = field(default_factory=dict)
    deferred_due: float = math.inf
    """Not after the first of these times."""
    turn: Turn = field(default_factory=Turn)
    held_until: float = -math.inf
    """Until then LSPs wait: for the neighbor's CSNP, or on a LAN for somebody quicker."""
    acks_due: float = math.inf
    requests_due: float = math.inf
    csnp_due: float = math.inf
    """When to begin the next set of CSNPs."""
    csnp_next: LspId | None = None
    """First LSP id of the rest of a set that is on its way, None between sets."""
    csnp_hurry: int = 0
    """Sets of CSNPs still to be sent at a short interval, since somebody is new on the LAN."""

    @property
    def reliable(self) -> bool:
        """Whether each LSP is repeated until it is acknowledged: on point-to-point circuits."""
        return not self.circuit.broadcast

    def set_srm(self, entry: StoredLsp) -> None:
        """Send this LSP; it supersedes whatever was to be sent or answered before."""
        lsp_id = entry.lsp_id
        self.unacknowledged.pop(lsp_id, None)
        self.acks.pop(lsp_id, None)
        self.requests.pop(lsp_id, None)
        self.deferred.pop(lsp_id, None)
        self.pending[lsp_id] = None
        entry.srm.add(self.circuit.ifindex)
        entry.ssn.discard(self.circuit.ifindex)

    def defer(self, entry: StoredLsp, due: float) -> None:
        """Send this LSP at a time, unless the other side is known by then to have it."""
        self.set_srm(entry)
        del self.pending[entry.lsp_id]
        self.deferred[entry.lsp_id] = due
        self.deferred_due = min(self.deferred_due, due)

    def end_deferral(self, now: float) -> int:
        """What has waited long enough becomes pending; returns how many."""
        ripe = [lsp_id for lsp_id, due in self.deferred.items() if due <= now]
        for lsp_id in ripe:
            del self.deferred[lsp_id]
            self.pending[lsp_id] = None
        self.deferred_due = min(self.deferred.values(), default=math.inf)
        return len(ripe)

    def repeat(self, entry: StoredLsp, now: float) -> None:
        """Send an LSP that the other side turned out not to have, unless it is on the way."""
        due = self.unacknowledged.get(entry.lsp_id)
        if due is not None:
            sent = due - self.circuit.settings.lsp_retransmit_interval
            if now - sent < RESEND_GUARD:
                return
        self.set_srm(entry)

    def clear_srm(self, entry: StoredLsp) -> bool:
        """Send it no more. Returns whether it had been sent before."""
        entry.srm.discard(self.circuit.ifindex)
        self.pending.pop(entry.lsp_id, None)
        self.deferred.pop(entry.lsp_id, None)
        return self.unacknowledged.pop(entry.lsp_id, None) is not None

    def set_ssn(
        self, lsp_id: LspId, entry: StoredLsp | None, heard: LspEntry | None = None
    ) -> None:
        """Acknowledge an LSP: the stored one, or one that is not kept, as it was heard."""
        self.requests.pop(lsp_id, None)
        self.acks[lsp_id] = heard
        if entry is not None:
            entry.ssn.add(self.circuit.ifindex)

    def ask(self, lsp_id: LspId, due: float) -> None:
        """Ask for an LSP unless it comes before ``due``."""
        if lsp_id in self.requests or len(self.requests) >= _MOST_REQUESTS:
            return
        self.requests_due = min(self.requests_due, due) if self.requests else due
        self.requests[lsp_id] = 0

    def forget(self, entry: StoredLsp) -> None:
        """The LSP leaves the database."""
        self.clear_srm(entry)
        self.acks.pop(entry.lsp_id, None)
        entry.ssn.discard(self.circuit.ifindex)

    def received(self, lsp_id: LspId) -> None:
        """A new instance came from here: nothing that was to be said of the old one counts."""
        self.pending.pop(lsp_id, None)
        self.unacknowledged.pop(lsp_id, None)
        self.deferred.pop(lsp_id, None)
        self.acks.pop(lsp_id, None)
        self.requests.pop(lsp_id, None)

    def begin_csnp(self) -> None:
        """Start a complete set with the next burst."""
        self.csnp_next = FIRST_LSP

    def end_csnp(self) -> None:
        """Somebody else sends them from now on."""
        self.csnp_next = None
        self.csnp_due = math.inf
        self.csnp_hurry = 0

    def close(self) -> None:
        """Take all flags of this circuit off the LSPs."""
        ifindex = self.circuit.ifindex
        for lsp_id in (*self.pending, *self.unacknowledged, *self.deferred, *self.acks):
            entry = self.database.get(lsp_id)
            if entry is not None:
                entry.srm.discard(ifindex)
                entry.ssn.discard(ifindex)


@dataclass(slots=True, eq=False)
class Outlet:
    """One circuit with what its levels have to send, and its common pace."""

    circuit: Circuit
    levels: dict[Level, OutletLevel] = field(default_factory=dict)
    paced_until: float = -math.inf
    turn: bool = False
    """Which level comes first: a large database of one must not hold up the other."""
    timer: Timer | None = None
