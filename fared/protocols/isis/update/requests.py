"""Requests LSPs by PSNP that SNPs have listed and that have not arrived (ISO 10589 §7.3.15.4).

A router that joins a fabric gets lists of the same database from all its neighbors. If it asked all
of them for each LSP, it would be sent each as many times: so for a partial SNP interval after a
request no other neighbor is asked for the same LSP.
"""

from __future__ import annotations

import math
from itertools import islice

from fared.protocols.isis.ids import Level, LspId
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.lsp_entries import pack_entry, split
from fared.protocols.isis.pdu.model import Psnp
from fared.protocols.isis.transmit import Transmitter
from fared.protocols.isis.update.acknowledgments import PSNP_HEADER, entries_per_pdu
from fared.protocols.isis.update.circuit_tx import SrmSsnQueue

MOST_ASKED = 16384
"""LSPs of which the last request is remembered; of others several neighbors may be asked."""
REQUEST_GAP = 0.05
"""Seconds between two PSNPs with requests for different LSPs."""
_SLACK = 0.1
_FORGET_REQUEST = 30.0


class LspRequests:
    """The requests of all circuits, and when each LSP was requested."""

    def __init__(self, instance: Instance, transmitter: Transmitter) -> None:
        self._instance = instance
        self._process = instance.process
        self._transmitter = transmitter
        self._asked_at: dict[tuple[Level, LspId], float] = {}
        """When an LSP was requested last, from any neighbor; in this order."""

    def send(self, queue: SrmSsnQueue) -> None:
        """Request from this neighbor what is due, and find when the next request is."""
        now = self._process.now
        if not queue.requests:
            queue.requests_due = math.inf
        if now < queue.requests_due:
            return
        entries, left = self._due(queue)
        self._process.counters.lsdb["requested"] += len(entries)
        if entries:
            pdu = Psnp(int(queue.level), self._instance.system_id << 8, split(entries))
            self._transmitter.send(queue.circuit, queue.level, pdu)
        waiting = (request.due for request in queue.requests.values())
        due = next(waiting, math.inf) if queue.reliable else min(waiting, default=math.inf)
        queue.requests_due = now + REQUEST_GAP if left else due

    def _due(self, queue: SrmSsnQueue) -> tuple[list[bytes], bool]:
        """The entries of the PSNP to be sent now, and whether more are due than it has room for."""
        now = self._process.now
        entries: list[bytes] = []
        limit = entries_per_pdu(self._transmitter, queue, PSNP_HEADER)
        interval = queue.circuit.settings.psnp_interval
        for lsp_id, request in list(queue.requests.items()):
            if request.due > now:
                if queue.reliable:
                    break
                continue
            asked = self._asked_at.get((queue.level, lsp_id), -math.inf)
            elsewhere = now - asked < interval * (1 - _SLACK)
            if not elsewhere and len(entries) == limit:
                return entries, True
            queue.requested(lsp_id, now)
            if not elsewhere:
                self._asked(queue.level, lsp_id)
                # §7.3.15.2 b) 5): an unknown LSP has sequence number 0
                known = queue.database.get(lsp_id)
                if known is None:
                    entries.append(pack_entry(0, lsp_id, 0, 0))
                else:
                    entries.append(known.described(now))
        return entries, False

    def _asked(self, level: Level, lsp_id: LspId) -> None:
        """Record a request, and forget old ones."""
        now = self._process.now
        self._asked_at.pop((level, lsp_id), None)
        self._asked_at[level, lsp_id] = now
        for key, at in list(islice(self._asked_at.items(), 2)):
            if now - at > _FORGET_REQUEST or len(self._asked_at) > MOST_ASKED:
                del self._asked_at[key]
