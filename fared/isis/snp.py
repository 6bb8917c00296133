"""Reading sequence numbers PDUs: what the other side has, lacks and acknowledges (§7.3.15.2)."""

from __future__ import annotations

import math

from fared.isis.circuit import AdjacencyState, Circuit
from fared.isis.ids import FIRST_LSP, LAST_LSP, Level, LspId, system_of
from fared.isis.instance import Instance
from fared.isis.lsdb import Order, compare
from fared.isis.outlet import OutletLevel
from fared.isis.pdu.model import Csnp, LspEntries, LspEntry, Psnp, of_type
from fared.isis.sender import Sender
from fared.isis.sequence import OwnSequences

LAN_JITTER = 0.02
"""Seconds within which the routers of a LAN answer a CSNP: what one has sent, others need not."""
_ASK_SOON = 0.005
_EARLY = 1.0
_MOST_EARLY = 256


class EarlyCsnps:
    """CSNPs of point-to-point neighbors whose adjacency is up on their side and not yet on ours.

    FRR sends its set once, and the hello that brings us up 50 ms later. To drop the set would
    mean sending the whole database to a neighbor that has it. What it says stays true: whoever
    has an LSP does not go back to an older one while it keeps the adjacency.
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._kept: dict[tuple[int, Level], list[tuple[float, Csnp]]] = {}

    def keep(self, circuit: Circuit, csnp: Csnp) -> bool:
        """Keep one for a moment; returns False if it is none of those."""
        adjacency = circuit.adjacency
        if (
            circuit.broadcast
            or adjacency is None
            or adjacency.state is not AdjacencyState.INITIALIZING
            or adjacency.system_id != csnp.source_id >> 8
        ):
            return False
        kept = self._kept.setdefault((circuit.ifindex, Level(csnp.level)), [])
        if csnp.start == FIRST_LSP or len(kept) >= _MOST_EARLY:
            kept.clear()
        kept.append((self._instance.now, csnp))
        return True

    def take(self, circuit: Circuit, level: Level) -> list[Csnp]:
        """Hand out those that are fresh, and forget all."""
        kept = self._kept.pop((circuit.ifindex, level), [])
        oldest = self._instance.now - _EARLY
        return [csnp for at, csnp in kept if at >= oldest]


class SnpReader:
    """Sets and clears flags by what is listed in SNPs."""

    def __init__(self, instance: Instance, sender: Sender, sequences: OwnSequences) -> None:
        self._instance = instance
        self._sender = sender
        self._sequences = sequences

    def read(self, state: OutletLevel, snp: Csnp | Psnp) -> None:
        """ISO 10589 §7.3.15.2 b) for each LSP listed, c) for those that a CSNP does not list."""
        waiting = len(state.pending)
        listed = {
            entry.lsp_id: entry for tlv in of_type(snp.tlvs, LspEntries) for entry in tlv.entries
        }
        for entry in listed.values():
            self._compare(state, entry)
        if isinstance(snp, Csnp):
            self._unlisted(state, snp, listed)
            if state.reliable and snp.end == LAST_LSP:
                state.held_until = -math.inf
            elif not state.reliable and state.pending and not waiting:
                state.held_until = self._instance.now + LAN_JITTER * self._instance.rng.random()
        self._sender.touch(state)

    def _compare(self, state: OutletLevel, heard: LspEntry) -> None:
        entry = state.database.get(heard.lsp_id)
        own = system_of(heard.lsp_id) == self._instance.system_id
        if entry is None and not (
            heard.sequence_number and heard.remaining_lifetime and heard.checksum
        ):
            return  # 4): a purge of what we never had, or somebody who asks for it
        order = compare(entry, heard)
        if own and order in (Order.NEWER, Order.CONFUSED):
            if heard.remaining_lifetime or (entry is not None and not entry.purged):
                self._sequences.heard(state.level, heard.lsp_id, heard.sequence_number)
            return
        if order is Order.NEWER:  # 3), 4)
            if entry is not None:
                state.clear_srm(entry)
            self._ask(state, heard)
        elif entry is not None and order is Order.SAME:  # 1)
            if state.reliable and state.clear_srm(entry):
                self._instance.counters.lsps["acked"] += 1
        elif entry is not None:  # 2); who gets a confused one will purge it (§7.3.16.2)
            state.repeat(entry, self._instance.now)

    def _ask(self, state: OutletLevel, heard: LspEntry) -> None:
        # On a point-to-point circuit it comes by itself, since SRM is set there as well.
        delay = state.circuit.settings.psnp_interval if state.reliable else _ASK_SOON
        state.ask(heard.lsp_id, self._instance.now + delay)

    def _unlisted(self, state: OutletLevel, csnp: Csnp, listed: dict[LspId, LspEntry]) -> None:
        now = self._instance.now
        for entry in state.database.between(csnp.start, csnp.end):
            if not entry.purged and entry.lsp_id not in listed:
                state.repeat(entry, now)
