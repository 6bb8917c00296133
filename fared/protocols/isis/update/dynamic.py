"""Dynamic flooding (RFC 9667) in IS-IS: from LSPs to ``igp.dynamic_flooding``, and back.

As in ``ospf.flooding.dynamic``. Over a link that has come into the topology, both ends send a
complete set of CSNPs: each then sends what the other lacks, and requests what is newer there.

Some of the neighbors that are spared an LSP compare it: one end lists it in a PSNP after a second.
An end that lacks it requests it (§7.3.15.2 b) 4), 5)); the other sends it later, unless it has been
listed by then (b) 2)). LSPs that only announce another bandwidth, which are many, are listed by
both ends, and only some of them.
"""

from __future__ import annotations

from collections.abc import Container

from fared.core.ids import SystemId
from fared.protocols.igp.dynamic_flooding import (
    COMPARED_AFTER,
    MOST_BANDWIDTHS,
    SENT_AFTER,
    DynamicFlooding,
    FloodPlan,
    TopologyView,
)
from fared.protocols.igp.flooding_scopes import FloodingScopes
from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.ids import Level, LspId, lsp_id, system_of
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.router_capability import ROUTER_CAPABILITY, read_capability
from fared.protocols.isis.pdu.tlvs import Tlv, UnknownTlv
from fared.protocols.isis.update.circuit_tx import SrmSsnQueue
from fared.protocols.isis.update.lsp_transmitter import LspTransmitter
from fared.protocols.isis.update.suppression import adjacent, neighbors


class DynamicLevels:
    """Dynamic flooding of both levels; does nothing unless ``reduction`` is dynamic."""

    def __init__(self, instance: Instance, lsp_transmitter: LspTransmitter) -> None:
        self._instance = instance
        self._process = instance.process
        self._lsp_transmitter = lsp_transmitter
        self._scopes: FloodingScopes[Level] = FloodingScopes(
            instance.process, instance.system_id, self._links_added
        )
        self._told: dict[StoredLsp, list[SrmSsnQueue]] = {}
        """LSPs to be listed, with the neighbors that were spared them."""

    def plan(self, level: Level, source: SrmSsnQueue | None) -> FloodPlan | None:
        """To whom an LSP from ``source`` is flooded; None: to all."""
        state = self._scopes.states.get(level)
        if state is None:
            return None
        sender = None if source is None else _neighbor(source.circuit)
        # over a detour: to all, since its way over the topology ends somewhere
        if sender is not None and state.is_detour(sender, self._process.now):
            return None
        return state.plan(sender)

    def is_spared(self, plan: FloodPlan | None, queue: SrmSsnQueue, identifier: LspId) -> bool:
        """Whether a neighbor is not sent an LSP, and owes no acknowledgment of a former one."""
        if plan is None or not self._is_synchronized(queue):
            return False
        return _neighbor(queue.circuit) in plan.spared and not queue.owes(identifier)

    def compare_later(
        self, plan: FloodPlan | None, queue: SrmSsnQueue, entry: StoredLsp, *, bandwidth: bool
    ) -> float | None:
        """Compare an LSP that a neighbor is spared; return when to send it if it is not listed.

        ``bandwidth``: it only announces another bandwidth.
        """
        neighbor, now = _neighbor(queue.circuit), self._process.now
        if plan is None or (neighbor not in plan.told and neighbor not in plan.telling):
            return None
        if neighbor in plan.telling and not bandwidth:
            return now + SENT_AFTER
        if not bandwidth or entry in self._told or len(self._told) < MOST_BANDWIDTHS:
            if not self._told:
                self._process.timers.arm(now + COMPARED_AFTER, self._tell)
            self._told.setdefault(entry, []).append(queue)
        return None

    def _tell(self) -> None:
        """List what was received lately to the neighbors that were spared it."""
        told, self._told = self._told, {}
        for entry, queues in told.items():
            for queue in queues:
                active = queue in self._lsp_transmitter.active(queue.level)
                # a newer one is listed in its turn
                if active and queue.database.get(entry.lsp_id) is entry:
                    self._lsp_transmitter.acknowledge(queue, entry.lsp_id)

    def is_deferred(self, plan: FloodPlan | None, queue: SrmSsnQueue) -> bool | None:
        """Whether a neighbor in the topology is sent an LSP later; None: it takes no part."""
        if plan is None or not self._is_synchronized(queue):
            return None
        neighbor = _neighbor(queue.circuit)
        return True if neighbor in plan.later else False if neighbor in plan.now else None

    def _is_synchronized(self, queue: SrmSsnQueue) -> bool:
        return queue.reliable and queue.held_until <= self._process.now

    def level(self, level: Level) -> DynamicFlooding | None:
        """The state of a level; None: no dynamic flooding."""
        return self._scopes.states.get(level)

    def views(self) -> tuple[TopologyView, ...]:
        """The topologies, by level."""
        return self._scopes.views()

    # Events

    def lsp_changed(self, level: Level, entry: StoredLsp, previous: StoredLsp | None) -> None:
        """Process an LSP that is new, changed or purged, and in the database."""
        if not self._instance.settings.reduction.dynamic:
            return
        system = system_of(entry.lsp_id)
        if previous is None or adjacent(previous) != adjacent(entry):
            self._read_links(level, system)
        if _tells(entry) or (previous is not None and _tells(previous)):
            self._read_capability(level, system)
        self._scopes.arm(level)

    def adjacencies_changed(self, level: Level) -> None:
        """An adjacency has come up or gone down."""
        if self._instance.settings.reduction.dynamic:
            found = (_neighbor(queue.circuit) for queue in self._lsp_transmitter.active(level))
            neighbors_up = [neighbor for neighbor in found if neighbor is not None]
            self._scopes.state(level).adjacent(neighbors_up)

    def settings_changed(self) -> None:
        """Begin or end dynamic flooding."""
        if not self._instance.settings.reduction.dynamic:
            self._scopes.clear()
            return
        for level, database in self._instance.databases.items():
            if level not in self._scopes.states:
                for system in {system_of(entry.lsp_id) for entry in database.ordered()}:
                    self._read_links(level, system)
                    self._read_capability(level, system)
                self.adjacencies_changed(level)
                self._scopes.arm(level)

    def _read_links(self, level: Level, system: SystemId) -> None:
        found = neighbors(self._instance.databases[level], system)
        self._scopes.state(level).links(system, found, self._process.now)

    def _read_capability(self, level: Level, system: SystemId) -> None:
        mine = self._instance.databases[level].between(lsp_id(system), lsp_id(system, 0, 0xFF))
        tlvs: list[Tlv] = [tlv for entry in mine if not entry.purged for tlv in entry.lsp.tlvs]
        self._scopes.state(level).capability(system, read_capability(tlvs), self._process.now)

    # The topology

    def _links_added(self, level: Level, added: Container[int]) -> None:
        for queue in self._lsp_transmitter.active(level):
            if queue.reliable and _neighbor(queue.circuit) in added:
                queue.begin_csnp()
                self._lsp_transmitter.touch(queue)


def _neighbor(circuit: Circuit) -> SystemId | None:
    """The neighbor of a point-to-point circuit."""
    adjacency = circuit.adjacency
    return None if circuit.broadcast or adjacency is None else adjacency.system_id


def _tells(entry: StoredLsp) -> bool:
    return any(
        isinstance(tlv, UnknownTlv) and tlv.type == ROUTER_CAPABILITY for tlv in entry.lsp.tlvs
    )
