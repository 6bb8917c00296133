"""Running the election of the designated IS on LANs (ISO 10589 §8.4.5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fared.core.ids import format_node, isis_node
from fared.isis.adjacency import AdjacencyWatcher
from fared.isis.circuit import Circuit
from fared.isis.election import Candidate, elect
from fared.isis.ids import Level
from fared.isis.instance import Instance

_WAITING_HELLOS = 2
"""Hello intervals before a router elects itself (§8.4.4)."""


class Designation:
    """Keeps ``dis`` and ``is_dis`` of each level of a LAN; ``hurry`` sends a hello at once."""

    def __init__(
        self,
        instance: Instance,
        watcher: AdjacencyWatcher,
        hurry: Callable[[Circuit, Level | None], None],
    ) -> None:
        self._instance = instance
        self._watcher = watcher
        self._hurry = hurry

    def wait(self, circuit: Circuit, level: Level) -> None:
        """Begin the waiting time of a level that has come up."""
        due = self._instance.now + _WAITING_HELLOS * circuit.settings.hello_interval
        circuit.lan[level].elect_timer = self._instance.timers.arm(
            due, partial(self._waited, circuit, level)
        )

    def leave(self, circuit: Circuit, level: Level) -> None:
        """Resign, or forget who is designated: the level goes down here."""
        self._instance.timers.cancel(circuit.lan[level].elect_timer)
        self._appoint(circuit, level, 0)

    def elect(self, circuit: Circuit, level: Level) -> None:
        """Calculate who is designated, and follow."""
        lan = circuit.lan[level]
        settings = circuit.settings
        own_lan_id = self._instance.system_id << 8 | circuit.circuit_id
        own = Candidate(
            self._instance.system_id, circuit.link.hardware_address, settings.priority, own_lan_id
        )
        neighbors = [
            Candidate(a.system_id, a.snpa, a.priority, a.lan_id) for a in circuit.adjacencies(level)
        ]
        found = elect(own, neighbors, office=lan.dis, eligible=lan.may_elect)
        self._appoint(circuit, level, found)

    def _waited(self, circuit: Circuit, level: Level) -> None:
        circuit.lan[level].may_elect = True
        self.elect(circuit, level)

    def _appoint(self, circuit: Circuit, level: Level, lan_id: int) -> None:
        lan = circuit.lan[level]
        previous = lan.dis
        if previous == lan_id:
            return
        lan.dis = lan_id
        lan.is_dis = lan_id >> 8 == self._instance.system_id
        self._instance.log(
            "info",
            "isis-dis-changed",
            interface=circuit.name,
            of_level=level.label,
            dis=_name(lan_id),
            previous=_name(previous),
        )
        self._hurry(circuit, level)
        self._watcher.dis_changed(circuit, level, previous)


def _name(lan_id: int) -> str:
    return format_node(isis_node(lan_id >> 8, lan_id & 0xFF)) if lan_id else "none"
