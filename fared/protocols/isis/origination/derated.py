"""Follows neighbors that derate a link: the entries of their LSPs for us (``te.far_ends``)."""

from __future__ import annotations

from collections.abc import Iterator

from fared.paths.te.far_ends import FarEnd, FarEnds
from fared.protocols.isis.circuit import Adjacency, Circuit
from fared.protocols.isis.ids import Level
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.tlvs import IsReachability, of_type

_SYSTEM_ID_SIZE = 6


class DeratedLinks:
    """The shares that neighbors leave of links to this router; point-to-point links only."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._far_ends = FarEnds()

    def lsp_changed(self, level: Level, entry: StoredLsp) -> Iterator[Circuit]:
        """Read an LSP that is new, changed or purged; yield circuits with another share."""
        if entry.own:
            return
        ends = () if entry.purged else self._read(entry)
        if self._far_ends.put(level, entry.lsp_id >> 16, entry.lsp_id, ends):
            for circuit in self._instance.circuits.values():
                if self.changed(circuit):
                    yield circuit

    def changed(self, circuit: Circuit) -> bool:
        """Determine the share of a link anew; return whether it is another one."""
        before, circuit.far_share = circuit.far_share, self._share(circuit.adjacency)
        return circuit.far_share != before

    def _share(self, adjacency: Adjacency | None) -> float:
        if adjacency is None:
            return 1.0
        there = (circuit.adjacency for circuit in self._instance.circuits.values())
        links = sum(a is not None and a.system_id == adjacency.system_id for a in there)
        shares = (
            self._far_ends.share(
                level,
                adjacency.system_id,
                adjacency.ipv4,
                adjacency.extended_circuit_id or 0,
                alone=links == 1,
            )
            for level in adjacency.levels.levels
        )
        return min(shares, default=1.0)

    def _read(self, entry: StoredLsp) -> tuple[FarEnd, ...]:
        us = self._instance.system_id
        # most LSPs do not name us: looking for six bytes costs less than decoding
        if us.to_bytes(_SYSTEM_ID_SIZE, "big") not in entry.raw:
            return ()
        return tuple(
            FarEnd(neighbor.attributes.share, neighbor.local_addresses, neighbor.local_id or 0)
            for tlv in of_type(entry.lsp.tlvs, IsReachability)
            for neighbor in tlv.neighbors
            if neighbor.neighbor == us << 8 and neighbor.attributes.share < 1.0
        )
