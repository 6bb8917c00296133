"""Externals that are withdrawn together: RFC 2328 §13 (5) for a whole update at once.

A router that loses its external routes flushes their LSAs (§14.1): a hundred thousand, in updates
of nothing else. Each is an instance of the database at MaxAge, so it needs no verification, no
room, no decoding, and goes to the same neighbors as the one before. All that is left to do for each
of them is to note that it is at MaxAge, and where it has been sent.

A fast path beside ``procedure.Flooding._receive``: tests/ospf/test_withdrawals.py proves them
equal; row ``withdrawn externals``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fared.protocols.ospf.flooding.acknowledge import acknowledge
from fared.protocols.ospf.flooding.database import ARRIVAL_MARGIN, Database
from fared.protocols.ospf.flooding.flood import Flooder
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Neighbor
from fared.protocols.ospf.lsdb import MAX_AGE_BYTES, LsaEntry
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, MAX_AGE, LsType, key_of

_LS_TYPE = 3
_LEAST = 2
"""Fewer of them are processed one by one."""
Covered = Callable[[Neighbor, LsaEntry | None, LsaEntry], int]


class Withdrawals:
    """Processes the externals at MaxAge that an update begins with.

    ``covered`` returns the neighbors that probably receive an LSA from others (``suppression``).
    """

    def __init__(
        self, instance: Instance, database: Database, flooder: Flooder, covered: Covered
    ) -> None:
        self._instance = instance
        self._database = database
        self._flooder = flooder
        self._covered = covered

    def process(self, neighbor: Neighbor, lsas: Sequence[bytes]) -> Sequence[bytes]:
        """Process those that ``lsas`` begin with; return the rest."""
        if len(lsas) < _LEAST or lsas[0][:2] != MAX_AGE_BYTES or not self._are_alike(neighbor):
            return lsas
        found = self._found(lsas)
        if len(found) < _LEAST:
            return lsas
        withdrawn = lsas[: len(found)]
        # §13 (5)(d) before (b), as for each LSA alone; none of them is on a list (c)
        entries = self._database.withdraw(found, withdrawn)
        # §13 (5)(b)
        covered = self._covered(neighbor, found[0], entries[0])
        self._flooder.flood_alike(entries, neighbor, covered)
        # §13 (5)(e): none was flooded back out of the receiving interface (table 19)
        acknowledge(neighbor, b"".join([raw[:LSA_HEADER_SIZE] for raw in withdrawn]))
        return lsas[len(found) :]

    def _are_alike(self, neighbor: Neighbor) -> bool:
        """Whether all externals of this neighbor are processed in the same way."""
        area = self._instance.areas[neighbor.interface.settings.area]
        # §13 (6); §13 (3)
        if neighbor.requests or area.settings.stub:
            return False
        return self._flooder.alike(self._instance.as_scope)

    def _found(self, lsas: Sequence[bytes]) -> list[LsaEntry]:
        """Database copies of the externals at MaxAge, of one router, that ``lsas`` begin with.

        They are neither at MaxAge, nor new, nor on a retransmission list, nor self-originated.
        """
        instance = self._instance
        settings, entries = instance.settings, instance.as_scope.entries
        now, found, taken = instance.process.now, [], set()
        # §13 (5)(a), and acknowledgments of an instance that wait (``Flooding._replaced``)
        latest = now - max(settings.min_ls_arrival, settings.ack_delay, ARRIVAL_MARGIN)
        originator = key_of(lsas[0]).advertising_router
        if originator == instance.router_id:
            return []
        for raw in lsas:
            if raw[:2] != MAX_AGE_BYTES or raw[_LS_TYPE] != LsType.AS_EXTERNAL:
                break
            key = key_of(raw)
            entry = entries.get(key)
            if (
                entry is None
                or entry.raw[2:] != raw[2:]
                or entry.installed_at > latest
                or entry.base_age + (now - entry.installed_at) >= MAX_AGE
                or entry.unacknowledged
                or key.advertising_router != originator
                or entry in taken
            ):
                break
            taken.add(entry)
            found.append(entry)
        return found
