"""Instances that the database has already: RFC 2328 §13 (7), for many neighbors at once.

Neighbors of a fabric flood the same LSAs at the same time, often in the same packets. What they all
have is taken off their retransmission lists by one operation on bitmaps instead of one for each.

``gather`` is a fast path beside ``received``: tests/ospf/test_duplicates_together.py proves them
equal; row ``copies of many neighbors at once``.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fared.protocols.ospf.flooding.acknowledge import acknowledge_directly, acknowledge_implied
from fared.protocols.ospf.flooding.copies import Copies
from fared.protocols.ospf.flooding.retransmit import Retransmitter
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Neighbor
from fared.protocols.ospf.lsdb import DEFERRED_SHIFT, LsaEntry, Lsdb
from fared.protocols.ospf.neighbor import NeighborState
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE
from fared.protocols.ospf.packet.packets import LsUpdate


class _SentAlike(msgspec.Struct, eq=False):
    """An update of copies, and the neighbors that have sent it; ``bits``: theirs."""

    update: LsUpdate
    copies: Copies
    neighbors: list[Neighbor]
    bits: int


class Duplicates:
    """Processes duplicates, those of packets that arrived together at once.

    While it is ``gathering``, updates of copies wait for those of other neighbors until ``settle``.
    That must come before anything else reads or changes retransmission lists and send queues.
    """

    def __init__(self, instance: Instance, retransmitter: Retransmitter) -> None:
        self._instance = instance
        self._retransmitter = retransmitter
        self.gathering = False
        self._gathered: dict[int, _SentAlike] = {}
        """By the identity of the update."""

    def joins(self, neighbor: Neighbor, update: LsUpdate, area: Lsdb) -> bool:
        """Gather an update that waits already, from another neighbor; False: it does not."""
        known = self._gathered.get(id(update))
        if known is None or known.bits & neighbor.bit or known.copies.area is not area:
            return False
        if not _may_wait(neighbor):
            return False
        known.neighbors.append(neighbor)
        known.bits |= neighbor.bit
        return True

    def gather(self, neighbor: Neighbor, update: LsUpdate, copies: Copies) -> bool:
        """Gather an update of nothing but copies; False: it has to be processed now."""
        if not self.gathering or id(update) in self._gathered or not _may_wait(neighbor):
            return False
        self._gathered[id(update)] = _SentAlike(update, copies, [neighbor], neighbor.bit)
        return True

    def settle(self) -> None:
        """Process what was gathered."""
        if self._gathered:
            gathered, self._gathered = self._gathered, {}
            for one in gathered.values():
                self._process(one.copies.entries, one.copies.headers, one.neighbors, one.bits)

    def received(self, neighbor: Neighbor, entries: Sequence[LsaEntry], headers: bytes) -> None:
        """Process duplicates of a neighbor, with their headers as received."""
        self._process(entries, headers, [neighbor], neighbor.bit)

    def _process(
        self, entries: Sequence[LsaEntry], headers: bytes, neighbors: list[Neighbor], bits: int
    ) -> None:
        """RFC 2328 §13 (7); several neighbors are on point-to-point links."""
        self._instance.process.counters.lsdb["duplicate"] += len(entries) * len(neighbors)
        lan = neighbors[0].interface.broadcast
        acknowledged, take_back = self._retransmitter.acknowledged, self._instance.outbox.take_back
        implying: list[tuple[int, int]] = []
        for at, entry in enumerate(entries):
            # §13 (7)(a): an implied acknowledgment if it is listed, unless our copy is not sent
            listed = entry.unacknowledged & bits
            if listed:
                implied = listed & ~(entry.marks >> DEFERRED_SHIFT)
                acknowledged(entry, listed)
                # (7)(b). A copy that was still queued for this neighbor, the only one here, is not
                # needed. But it would have acknowledged the duplicate, so an acknowledgment takes
                # its place.
                if implied and not lan:
                    implied &= ~take_back(entry, implied)
                if implied:
                    implying.append((at * LSA_HEADER_SIZE, implied))
        for neighbor in neighbors:
            # (7)(b); table 19: a direct acknowledgment, unless the duplicate is an implied one
            explicit = _without_implied(neighbor, headers, implying) if implying else headers
            acknowledge_directly(neighbor, explicit)


def _without_implied(
    neighbor: Neighbor, headers: bytes, implying: Sequence[tuple[int, int]]
) -> bytes:
    """The headers that the duplicates of a neighbor did not acknowledge by implication."""
    for at, neighbors in reversed(implying):
        if neighbors & neighbor.bit:
            acknowledge_implied(neighbor, headers[at : at + LSA_HEADER_SIZE])
            headers = headers[:at] + headers[at + LSA_HEADER_SIZE :]
    return headers


def _may_wait(neighbor: Neighbor) -> bool:
    """Whether duplicates of a neighbor change nothing but lists and queues."""
    full = neighbor.state is NeighborState.FULL
    return full and not neighbor.requests and not neighbor.interface.broadcast
