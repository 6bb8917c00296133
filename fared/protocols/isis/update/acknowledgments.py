"""Sends PSNPs with the LSPs whose SSN flag is set (ISO 10589 §7.3.15.4), on all circuits together.

In a dense fabric all neighbors have sent nearly the same LSPs since the last time. The PSNPs that
list those are encoded and signed once; what some neighbors alone have sent follows them.
"""

from __future__ import annotations

import math

from fared.protocols.isis.ids import LspId
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.lsp_entries import ENTRY_SIZE, pack, split
from fared.protocols.isis.pdu.model import Psnp
from fared.protocols.isis.transmit import Transmitter, pdu_space
from fared.protocols.isis.update.circuit_tx import SrmSsnQueue
from fared.protocols.isis.update.shared_flags import SharedFlags

CSNP_HEADER, PSNP_HEADER = 33, 17
_Prepared = dict[tuple[int, int], bytes]
"""PSNPs, by the first and last of the common entries that they list."""
_TLV_HEADER = 2
_ENTRIES_PER_TLV = 15


def entries_per_pdu(transmitter: Transmitter, queue: SrmSsnQueue, header: int) -> int:
    """LSPs that a sequence numbers PDU lists at most.

    It is no larger than our LSPs, which every link carries (RFC 3719 §5): the other end may have a
    smaller MTU.
    """
    size = min(pdu_space(queue.circuit), transmitter.lsp_mtu)
    room = size - header - transmitter.authentication_size(queue.level)
    full, rest = divmod(room, _TLV_HEADER + ENTRY_SIZE * _ENTRIES_PER_TLV)
    return max(1, full * _ENTRIES_PER_TLV + max(0, rest - _TLV_HEADER) // ENTRY_SIZE)


class Acknowledgments:
    """The PSNPs of all circuits of a level."""

    def __init__(self, instance: Instance, transmitter: Transmitter) -> None:
        self._instance = instance
        self._process = instance.process
        self._transmitter = transmitter

    @property
    def at_once(self) -> float:
        """Acknowledgments of a circuit that do not wait (RFC 9681 §4.3); infinite: all wait."""
        return self._instance.settings.fast_flooding.lsps_per_psnp or math.inf

    def send(self, shared: SharedFlags, queues: list[SrmSsnQueue]) -> None:
        """Send acknowledgments, and clear SSN: all that are due, or those of full circuits."""
        if self._process.now >= shared.acks_due:
            shared.acks_due = math.inf
            chosen = [queue for queue in queues if queue.ssn]
        else:
            # others that are nearly full can share the PSNPs now
            chosen = [queue for queue in queues if queue.ssn * 2 >= self.at_once]
        shared.acks_full = False
        # Neighbors with as many acknowledgments mostly have the same: what one of them has sent
        # beyond the others would take PSNPs of its own for each.
        alike: dict[int, list[SrmSsnQueue]] = {}
        for queue in chosen:
            alike.setdefault(queue.ssn, []).append(queue)
        for some in alike.values():
            self._acknowledge(shared, some)
        if not shared.acks:
            shared.acks_due = math.inf

    def _acknowledge(self, shared: SharedFlags, chosen: list[SrmSsnQueue]) -> None:
        """Send all acknowledgments of some circuits, and clear SSN."""
        everyone = sum(queue.bit for queue in chosen)
        common, others = shared.acks_of(everyone)
        now = self._process.now
        prepared: _Prepared = {}
        first = [_entry(queue, lsp_id, now) for queue in chosen[:1] for lsp_id in common]
        known = [one for one in first if one is not None]
        shareable = len(known) == len(common)
        for queue in chosen:
            share = shareable and not queue.strangers
            own = others.get(queue.bit, [])
            entries = known
            if own or not share:
                listed = own if share else common + own
                found = [_entry(queue, lsp_id, now) for lsp_id in listed]
                entries = (known if share else []) + [one for one in found if one is not None]
            self._send(queue, entries, len(common) if share else 0, prepared)
            queue.strangers.clear()
            queue.ssn = 0
        shared.clear_ssn_of(everyone)

    def _send(
        self, queue: SrmSsnQueue, entries: list[bytes], common: int, prepared: _Prepared
    ) -> None:
        """Send PSNPs with these entries; ``prepared`` has those of the first ``common``."""
        limit = entries_per_pdu(self._transmitter, queue, PSNP_HEADER)
        limit = int(min(limit, self.at_once))
        self._process.counters.lsdb["acks-sent"] += len(entries)
        if not self._transmitter.is_open(queue.circuit, queue.level):
            return
        source = self._instance.system_id << 8
        for start in range(0, len(entries), limit):
            end = min(start + limit, len(entries))
            raw = prepared.get((start, end)) if end <= common else None
            if raw is None:
                pdu = Psnp(int(queue.level), source, split(entries[start:end]))
                raw = self._transmitter.signed(queue.level, pdu)
                if end <= common:
                    prepared[start, end] = raw
            self._transmitter.send_signed(queue.circuit, queue.level, raw)


def _entry(queue: SrmSsnQueue, lsp_id: LspId, now: float) -> bytes | None:
    """The entry of an LSP; None if it has left the database."""
    known = queue.database.get(lsp_id)
    if known is not None:
        return known.described(now)
    received = queue.strangers.get(lsp_id)
    return None if received is None else pack(received)
