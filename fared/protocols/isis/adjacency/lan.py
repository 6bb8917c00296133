"""Hellos on LANs, of one level each (ISO 10589 §8.4.2)."""

from __future__ import annotations

from collections.abc import Callable

from fared.core.ids import SystemId, format_system_id
from fared.protocols.igp.events import PacketReceived
from fared.protocols.isis.adjacency.checks import (
    LEVEL_MISMATCH,
    HelloFacts,
    advertised_facts,
    judge_lan,
    levels_on,
    read_hello,
    store_hello,
)
from fared.protocols.isis.adjacency.fsm import AdjacencyEvent
from fared.protocols.isis.adjacency.processing import HelloParts
from fared.protocols.isis.circuit import Circuit, LanLevel
from fared.protocols.isis.ids import Level, LevelSet
from fared.protocols.isis.pdu.codec import kind_of
from fared.protocols.isis.pdu.model import LanHello
from fared.protocols.isis.pdu.tlvs import IsNeighbors, of_type

MAX_LAN_ADJACENCIES = 200
"""Neighbors on a LAN at most: about as many SNPAs fit into a hello of 1500 bytes."""


class LanHellos:
    """Processes the hellos of neighbors on LANs. ``elect`` runs the election of the DIS."""

    def __init__(self, parts: HelloParts, elect: Callable[[Circuit, Level], None]) -> None:
        self._instance, self._processing, self._adjacencies, self._helper, self._reacquirer = parts
        self._elect = elect

    def receive(self, circuit: Circuit, received: PacketReceived, hello: LanHello) -> None:
        """Process a LAN hello of one level (ISO 10589 §8.4.2)."""
        source = received.source
        if self._processing.is_ignored(circuit, source, hello, of_lan=True):
            return
        level = Level(hello.level)
        lan = circuit.lan.get(level)
        facts = read_hello(hello)
        levels, reason = judge_lan(self._instance, circuit, level, facts)
        adjacency = None if lan is None else lan.adjacencies.get(source)
        # §8.4.2.4: an existing adjacency has this SNPA, level and system id; another system id is
        # that of another system
        if adjacency is not None and adjacency.system_id != hello.source_id:
            self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, "neighbor changed its id")
            adjacency = None
        # §8.4.2.2, §8.4.2.3
        if lan is None or not levels:
            self._turn_away(circuit, source, hello, facts, reason)
            if adjacency is not None:
                self._adjacencies.fire(adjacency, AdjacencyEvent.KILLED, reason)
            return
        # §8.4.2.5: a new adjacency
        if adjacency is None:
            if not self._make_room(lan):
                self._processing.reject(circuit, source, hello, "too-many-neighbors")
                return
            adjacency = self._adjacencies.create(circuit, SystemId(hello.source_id), source, levels)
        before = (adjacency.state, advertised_facts(adjacency))
        standing = (adjacency.priority, adjacency.lan_id)
        store_hello(adjacency, facts)
        self._processing.accept(adjacency, received, hello)
        adjacency.priority, adjacency.lan_id = hello.priority, hello.lan_id
        # §8.4.2.5.1: two-way once the neighbor lists our SNPA; §8.4.2.5.3: no longer
        listed = any(
            circuit.link.hardware_address in tlv.snpas for tlv in of_type(hello.tlvs, IsNeighbors)
        )
        event = AdjacencyEvent.TWO_WAY_RECEIVED if listed else AdjacencyEvent.ONE_WAY_RECEIVED
        # RFC 8706 §3.2.1: so does that of one on a LAN, and so does the election
        if self._helper.receive(adjacency, hello):
            adjacency.priority, adjacency.lan_id = standing
            self._processing.keep(adjacency, before)
            return
        self._reacquirer.follow(adjacency, hello, event)
        self._processing.run_state_machine(adjacency, hello.holding_time, event, before)
        # §8.4.5: the priority decides; the LAN id shows whether the neighbor has elected itself
        if standing != (adjacency.priority, adjacency.lan_id):
            self._elect(circuit, level)
        self._processing.settle(adjacency, event, received)

    def _turn_away(
        self, circuit: Circuit, source: int, hello: LanHello, facts: HelloFacts, reason: str
    ) -> None:
        """Discard a hello of a level that we do not run, and reject others (§8.4.2).

        The reason is kept if the neighbor cannot be used in its other level.
        """
        process, other = self._instance.process, facts.circuit_type & ~LevelSet(hello.level)
        if not levels_on(self._instance, circuit) & other:
            self._processing.reject(circuit, source, hello, reason)
        elif reason == LEVEL_MISMATCH:
            process.discard(reason)
        else:
            system_id = format_system_id(hello.source_id)
            kind = kind_of(hello).label
            process.reject(reason, source, interface=circuit, kind=kind, system_id=system_id)

    def _make_room(self, lan: LanLevel) -> bool:
        """Whether one more neighbor fits; the oldest that is not two-way is removed for it.

        Source addresses are easily forged, and TLV 6 must fit into a hello.
        """
        if len(lan.adjacencies) < MAX_LAN_ADJACENCIES:
            return True
        idle = [adjacency for adjacency in lan.adjacencies.values() if not adjacency.up]
        if not idle:
            return False
        oldest = min(idle, key=lambda adjacency: (adjacency.last_hello, adjacency.snpa))
        self._adjacencies.fire(oldest, AdjacencyEvent.KILLED, "too many neighbors")
        return True
