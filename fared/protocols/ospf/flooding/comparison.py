"""Comparing LSAs with neighbors that dynamic flooding spares them (``igp.dynamic_flooding``).

A router of the flooding topology may acknowledge LSAs and pass none on. So the two ends of some
links outside of it compare what they have received: one acknowledges an LSA after a second. An end
that lacks it requests it, as during the exchange (RFC 2328 §10.9); the other has it on the
retransmission list meanwhile, and sends it if no acknowledgment has come. Both ends do both with an
LSA at MaxAge, which may have left the database when it is requested. LSAs that only announce
another bandwidth, which are many, are acknowledged by both ends, and only some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fared.protocols.igp.dynamic_flooding import COMPARED_AFTER, MOST_BANDWIDTHS, SENT_AFTER
from fared.protocols.ospf.flooding.limits import DatabaseLimits
from fared.protocols.ospf.flooding.retransmit import Retransmitter
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Neighbor
from fared.protocols.ospf.lsdb import LsaEntry, Lsdb, compare
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, LsaHeader, LsaKey

Request = Callable[[Neighbor, Sequence[LsaKey]], None]


class Comparison:
    """LSAs that are to be compared. ``request`` requests LSAs of a full neighbor."""

    def __init__(
        self,
        instance: Instance,
        retransmitter: Retransmitter,
        limits: DatabaseLimits,
        request: Request,
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._retransmitter = retransmitter
        self._limits = limits
        self._request = request
        self._told: dict[LsaEntry, int] = {}
        """LSAs to be acknowledged, with the neighbors that are spared them."""

    def later(self, entry: LsaEntry, told: int, telling: int, *, bandwidth: bool) -> None:
        """Compare an LSA with neighbors: acknowledge it to some, and wait for that of others.

        ``bandwidth``: it only announces another bandwidth.
        """
        if bandwidth:
            told, telling = told | telling, 0
            if len(self._told) >= MOST_BANDWIDTHS:
                return
        elif entry.at_max_age:
            told = telling = told | telling
        now = self._process.now
        if told:
            if not self._told:
                self._process.timers.arm(now + COMPARED_AFTER, self._tell)
            self._told[entry] = told
        if telling:
            self._retransmitter.defer_until(now + SENT_AFTER, entry, telling)

    def _tell(self) -> None:
        told, self._told = self._told, {}
        instance, now = self._instance, self._process.now
        for entry, neighbors in told.items():
            # a newer instance is told of in its turn; the other end may still have one at MaxAge
            if entry.lsdb.get(entry.key) not in (entry, None):
                continue
            header = entry.aged(entry.age(now))[:LSA_HEADER_SIZE]
            for neighbor in instance.participants.of(neighbors):
                neighbor.interface.tx.ack(header)

    def request_unknown(self, neighbor: Neighbor, told: list[tuple[Lsdb, LsaHeader]]) -> None:
        """Request what a neighbor has acknowledged and this router lacks."""
        wanted: list[LsaKey] = []
        for lsdb, header in told:
            entry = lsdb.get(header.key)
            if entry is None:
                lacks = self._limits.admits(lsdb, header.key, neighbor, len(wanted))
            else:
                lacks = compare(header, entry.header(self._process.now)) > 0
            if lacks:
                wanted.append(header.key)
        if wanted:
            self._request(neighbor, wanted)
