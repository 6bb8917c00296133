"""The election of the designated IS of a LAN, when it takes place, and what follows.

ISO 10589 §8.4.5: the highest priority wins, then the highest SNPA; a better router preempts the
DIS. One deviation: the best neighbor is elected only once the LAN id in its hellos is its own. A
new router waits two hello intervals before it elects itself (§8.4.1 d)). If the present DIS
resigned before that, no router would originate a pseudonode LSP, and the LAN would be partitioned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from fared.core.ids import format_node, isis_node
from fared.protocols.isis.adjacency.fsm import AdjacencyWatcher
from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.ids import Level
from fared.protocols.isis.instance import Instance


class Candidate(msgspec.Struct, frozen=True):
    """One IS on the LAN; ``lan_id`` in its hellos is system id << 8 | pseudonode number."""

    system_id: int
    snpa: int
    priority: int
    lan_id: int

    @property
    def rank(self) -> tuple[int, int]:
        """The key that the election compares (§8.4.5)."""
        return (self.priority, self.snpa)

    @property
    def declares_itself(self) -> bool:
        """Whether the LAN id in its hellos is its own: it has elected itself."""
        return self.lan_id >> 8 == self.system_id and self.lan_id & 0xFF != 0


def elect(own: Candidate, neighbors: Iterable[Candidate], *, current: int, eligible: bool) -> int:
    """Elect among this router and its two-way neighbors; return a LAN id, 0 for none.

    ``own.lan_id`` is the LAN id that this router would assign, ``current`` the present one (0:
    none). ``eligible``: this router may elect itself, since its waiting time is over.
    """
    ranked = sorted(neighbors, key=lambda candidate: candidate.rank, reverse=True)
    # without a neighbor there is no pseudonode to originate
    if not ranked:
        return 0
    # §8.4.5: the highest priority, then the highest SNPA; §8.4.1 d): not before the waiting time
    if eligible and own.rank > ranked[0].rank:
        return own.lan_id
    if ranked[0].declares_itself:
        return ranked[0].lan_id
    # deviation: until the best has elected itself, the present DIS stays, else the best that has
    declared = [candidate.lan_id for candidate in ranked if candidate.declares_itself]
    if current and current in (*declared, own.lan_id):
        return current
    return declared[0] if declared else 0


_WAITING_HELLOS = 2
"""Hello intervals before a router elects itself (ISO 10589 §8.4.1 d))."""


class DisElection:
    """Sets ``dis`` and ``is_dis`` of each level of a LAN; ``send_now`` sends a hello at once."""

    def __init__(
        self,
        instance: Instance,
        watcher: AdjacencyWatcher,
        send_now: Callable[[Circuit, Level | None], None],
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._watcher = watcher
        self._send_now = send_now

    def wait(self, circuit: Circuit, level: Level) -> None:
        """Start the waiting time of a level that has come up (ISO 10589 §8.4.1 d))."""
        due = self._process.now + _WAITING_HELLOS * circuit.settings.hello_interval
        circuit.lan[level].elect_timer = self._process.timers.arm(
            due, partial(self._waited, circuit, level)
        )

    def leave(self, circuit: Circuit, level: Level) -> None:
        """The level goes down on this circuit: resign, or forget the DIS."""
        self._process.timers.cancel(circuit.lan[level].elect_timer)
        self._set_dis(circuit, level, 0)

    def elect(self, circuit: Circuit, level: Level) -> None:
        """Elect the designated IS and act on the result (ISO 10589 §8.4.5)."""
        lan = circuit.lan[level]
        settings = circuit.settings
        own_lan_id = self._instance.system_id << 8 | circuit.circuit_id
        own = Candidate(
            self._instance.system_id, circuit.link.hardware_address, settings.priority, own_lan_id
        )
        # §8.4.5: this system, and those with an adjacency in state Up in this level
        neighbors = [
            Candidate(a.system_id, a.snpa, a.priority, a.lan_id) for a in circuit.adjacencies(level)
        ]
        # RFC 8706 §3.3.1: a DIS that restarts stays the DIS, as its neighbors' hellos say
        remains = self._instance.restart is not None and any(
            neighbor.lan_id == own_lan_id for neighbor in neighbors
        )
        found = elect(own, neighbors, current=lan.dis, eligible=lan.may_elect or remains)
        self._set_dis(circuit, level, found)

    def _waited(self, circuit: Circuit, level: Level) -> None:
        circuit.lan[level].may_elect = True
        self.elect(circuit, level)

    def _set_dis(self, circuit: Circuit, level: Level, lan_id: int) -> None:
        """Another system is the DIS of a LAN, or none: note, log and announce it."""
        lan = circuit.lan[level]
        previous = lan.dis
        if previous == lan_id:
            return
        # §8.4.5: the LAN id begins with the system id of the DIS
        lan.dis = lan_id
        lan.is_dis = lan_id >> 8 == self._instance.system_id
        self._process.log(
            "info",
            "isis-dis-changed",
            interface=circuit.name,
            of_level=level.label,
            dis=_name(lan_id),
            previous=_name(previous),
        )
        # the LAN id of the next hello differs; the DIS originates the pseudonode LSP (§7.3.8)
        self._send_now(circuit, level)
        self._watcher.dis_changed(circuit, level, previous)


def _name(lan_id: int) -> str:
    return format_node(isis_node(lan_id >> 8, lan_id & 0xFF)) if lan_id else "none"
