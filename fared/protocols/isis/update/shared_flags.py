"""Flags that an LSP has on many circuits at once: a bitmap an LSP, with a bit for each circuit.

In a dense fabric a router hears an LSP from all its neighbors within milliseconds. It acknowledges
each copy (SSN, ISO 10589 §7.3.15.1 e) 2) ii), and defers its own copy for each (SRM, deferred):
with an object for each pair of LSP and circuit that is most of the time and memory that an LSP
takes. The other flags of a circuit, which few LSPs have at a time, are in ``circuit_tx``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain

import msgspec

from fared.core.timers import Timer
from fared.protocols.isis.ids import LspId

_STILL_ARRIVING = 0.05
"""Seconds between two copies of a flood: to read all circuits once may take as long."""
_PATIENCE = 1.0
_LATE = 0.02
"""Seconds: a router that is late by more has not read what arrived meanwhile."""


class Deferral(msgspec.Struct, eq=False):
    """Until ``due`` an LSP is not sent to the circuits with these bits.

    ``patient``: and as long as copies of it arrive, for a second at most. A router that is late
    would else send copies to neighbors whose own wait in its sockets, and be late the more.
    """

    due: float
    circuits: int
    patient: bool = False
    shown: float = -math.inf
    """When the last copy arrived."""

    @property
    def ripe(self) -> float:
        """When to send the LSP, as far as is known."""
        if not self.patient:
            return self.due
        return max(self.due, min(self.shown + _STILL_ARRIVING, self.due + _PATIENCE))


class SharedFlags:
    """The flags of one level; dicts are in the order of flagging."""

    def __init__(self) -> None:
        self.acks: dict[LspId, int] = {}
        """Bits of the circuits on which an LSP is to be acknowledged."""
        self.acks_due = math.inf
        self.acks_full = False
        """Whether a circuit has as many as are acknowledged at once."""
        self.deferred: dict[LspId, list[Deferral]] = {}
        """One for each time at which an LSP becomes pending, mostly a single one."""
        self.deferred_due = math.inf
        """At most the first of these times."""
        self.timer: Timer | None = None
        self.used = self.idle = 0
        """Bits of all circuits; of those point-to-point circuits that are known to have no flags of
        their own, and to hold LSPs back no more."""

    def join(self) -> int:
        """Return a bit that no circuit has."""
        bit = ~self.used & (self.used + 1)
        self.used |= bit
        return bit

    def leave(self, bit: int) -> None:
        """Clear the flags of a circuit, whose bit another one may have then."""
        for lsp_id in [key for key, circuits in self.acks.items() if circuits & bit]:
            self.clear_ssn(lsp_id, bit)
        for lsp_id in self.deferred_for(bit):
            self.clear_deferral(lsp_id, bit)
        self.used &= ~bit
        self.idle &= ~bit

    # SSN

    def set_ssn(self, lsp_id: LspId, bit: int) -> bool:
        """Set SSN; return whether it was not set before."""
        known = self.acks.get(lsp_id, 0)
        self.acks[lsp_id] = known | bit
        return not known & bit

    def clear_ssn(self, lsp_id: LspId, bits: int) -> bool:
        """Clear SSN; return whether it was set."""
        known = self.acks.get(lsp_id, 0)
        if not known & bits:
            return False
        if left := known & ~bits:
            self.acks[lsp_id] = left
        else:
            del self.acks[lsp_id]
        return True

    def acks_of(self, circuits: int) -> tuple[list[LspId], dict[int, list[LspId]]]:
        """The LSPs with SSN set on all of these circuits; of each, by its bit, the others."""
        common: list[LspId] = []
        others: dict[int, list[LspId]] = {}
        for lsp_id, bits in self.acks.items():
            left = bits & circuits
            if left == circuits:
                common.append(lsp_id)
                continue
            while left:
                lowest = left & -left
                others.setdefault(lowest, []).append(lsp_id)
                left ^= lowest
        return common, others

    def clear_ssn_of(self, circuits: int) -> None:
        """Clear SSN of all LSPs on these circuits."""
        left = ((lsp_id, bits & ~circuits) for lsp_id, bits in self.acks.items())
        self.acks = {lsp_id: bits for lsp_id, bits in left if bits}

    # SRM of LSPs that are sent later

    def defer(self, lsp_id: LspId, bits: int, due: float, *, patient: bool = False) -> None:
        """Defer an LSP for circuits, for which it is not deferred so far."""
        self.deferred_due = min(self.deferred_due, due)
        known = self.deferred.setdefault(lsp_id, [])
        for one in known:
            if (one.due, one.patient) == (due, patient):
                one.circuits |= bits
                return
        known.append(Deferral(due, bits, patient))

    def is_deferred(self, lsp_id: LspId, bit: int) -> bool:
        """Whether an LSP is sent later on this circuit."""
        return any(one.circuits & bit for one in self.deferred.get(lsp_id, ()))

    def deferred_for(self, bit: int) -> list[LspId]:
        """The LSPs that are sent later on this circuit."""
        return [lsp_id for lsp_id in self.deferred if self.is_deferred(lsp_id, bit)]

    def clear_deferral(self, lsp_id: LspId, bits: int, shown: float = -math.inf) -> None:
        """Do not send an LSP later on these circuits; ``shown``: the time, if a copy arrived."""
        known = self.deferred.get(lsp_id)
        if known is None:
            return
        left = 0
        for one in known:
            one.circuits &= ~bits
            one.shown = max(one.shown, shown)
            left |= one.circuits
        if not left:
            del self.deferred[lsp_id]

    def end_deferral(self, now: float) -> Iterator[tuple[LspId, int]]:
        """Remove what is due; return LSPs and the bits of circuits to send them on.

        If this is late, copies may wait in the sockets: they are as if one had just arrived.
        """
        if now - self.deferred_due > _LATE:
            for one in chain.from_iterable(self.deferred.values()):
                one.shown = max(one.shown, now) if one.due <= now else one.shown
        for lsp_id, known in list(self.deferred.items()):
            left = [one for one in known if one.ripe > now and one.circuits]
            for one in known:
                if one.ripe <= now:
                    yield lsp_id, one.circuits
            if left:
                self.deferred[lsp_id] = left
            else:
                del self.deferred[lsp_id]
        times = (one.ripe for known in self.deferred.values() for one in known)
        self.deferred_due = min(times, default=math.inf)
