"""Sends the database's description in complete sets of CSNPs (ISO 10589 §7.3.15.3).

A queue's ``csnp_next`` is the first LSP id that the set being sent has not covered yet;
``lsp_transmitter`` sends the rest with its bursts.
"""

from __future__ import annotations

from fared.protocols.isis.ids import LAST_LSP, LspId
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.lsp_entries import split
from fared.protocols.isis.pdu.model import Csnp
from fared.protocols.isis.transmit import Transmitter
from fared.protocols.isis.update.acknowledgments import CSNP_HEADER, entries_per_pdu
from fared.protocols.isis.update.circuit_tx import SrmSsnQueue

QUICK_CSNP = 1.2
"""Seconds between CSNPs while a router is new on the LAN: its adjacency may not be up yet."""


class CsnpSender:
    """The CSNPs of all circuits."""

    def __init__(self, instance: Instance, transmitter: Transmitter) -> None:
        self._instance = instance
        self._transmitter = transmitter

    def interval(self, queue: SrmSsnQueue) -> float:
        """Seconds from one set to the next on a LAN."""
        if queue.quick_csnps:
            queue.quick_csnps -= 1
            return min(QUICK_CSNP, queue.circuit.settings.csnp_interval)
        return self._instance.jitter(queue.circuit.settings.csnp_interval)

    def send(self, queue: SrmSsnQueue, room: int) -> int:
        """Send the next PDUs of a set; returns the room left."""
        while queue.csnp_next is not None and room > 0:
            self._send(queue, queue.csnp_next)
            room -= 1
        return room

    def _send(self, queue: SrmSsnQueue, start: LspId) -> None:
        """One PDU of a set; their ranges together cover every LSP id (§7.3.15.3, RFC 3719 §11)."""
        limit = entries_per_pdu(self._transmitter, queue, CSNP_HEADER)
        listed = queue.database.first(start, limit)
        last = len(listed) < limit or listed[-1].lsp_id == LAST_LSP
        end = LAST_LSP if last else listed[-1].lsp_id
        queue.csnp_next = None if last else LspId(end + 1)
        now = self._instance.process.now
        entries = (entry.described(now) for entry in listed)
        source = self._instance.system_id << 8
        pdu = Csnp(int(queue.level), source, start, end, split(entries))
        self._transmitter.send(queue.circuit, queue.level, pdu)
