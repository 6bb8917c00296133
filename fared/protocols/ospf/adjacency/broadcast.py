"""Broadcast networks: the designated router and its adjacencies (RFC 2328 §9.4, §10.4).

``links`` runs the interface state machine. The actions of its rows on broadcast networks, and the
wait timer, are here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fared.protocols.ospf.adjacency.election import Candidate, Elected, elect
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface, InterfaceEvent, InterfaceState, Neighbor
from fared.protocols.ospf.neighbor import NeighborEvent, NeighborState


def adjacency_due(neighbor: Neighbor) -> bool:
    """Whether to become, or stay, adjacent with a bidirectional neighbor (RFC 2328 §10.4)."""
    interface = neighbor.interface
    # RFC 2328 §10.4: a point-to-point link, or this router is DR or BDR
    if not interface.broadcast or interface.state in (InterfaceState.DR, InterfaceState.BACKUP):
        return True
    # §10.4: the neighbor is DR or BDR
    return neighbor.address in (interface.designated_router, interface.backup_designated_router)


def transit(interface: Interface) -> bool:
    """Whether a network is a transit network, described by a network LSA (§12.4.1.2).

    A router must be fully adjacent to the DR; the DR itself, to any router.
    """
    if interface.state not in _ELECTED:
        return False
    own = interface.state is InterfaceState.DR
    return any(
        neighbor.adjacent and (own or neighbor.address == interface.designated_router)
        for neighbor in interface.neighbors.values()
    )


_ELECTED = (InterfaceState.DR, InterfaceState.BACKUP, InterfaceState.DR_OTHER)


class BroadcastNetworks:
    """Wait timer, election, and the adjacencies that follow from it.

    ``fire`` runs an event through the interface state machine. ``designated_changed`` is called
    when the DR or BDR changed, since LSAs may change then (§12.4 (3)).
    """

    def __init__(
        self,
        instance: Instance,
        fire: Callable[[Interface, InterfaceEvent], None],
        designated_changed: Callable[[Interface], None],
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._fire = fire
        self._designated_changed = designated_changed

    def start(self, interface: Interface) -> InterfaceState:
        """InterfaceUp on a broadcast network (§9.3): Waiting if eligible, else DR Other."""
        # RFC 2328 §9.3: not eligible to become DR
        if interface.settings.passive or interface.settings.router_priority == 0:
            return InterfaceState.DR_OTHER
        # §9.3: start the wait timer, of RouterDeadInterval (§9)
        due = self._process.now + interface.settings.router_dead_interval
        expire = partial(self._fire, interface, InterfaceEvent.WAIT_TIMER)
        interface.wait_timer = self._process.timers.arm(due, expire)
        return InterfaceState.WAITING

    def stop(self, interface: Interface) -> None:
        """InterfaceDown (§9.3): reset DR and BDR, disable the wait timer."""
        self._process.timers.cancel(interface.wait_timer)
        interface.wait_timer = None
        interface.designated_router = interface.backup_designated_router = 0

    def elect(self, interface: Interface) -> InterfaceState:
        """WaitTimer, BackupSeen or NeighborChange (§9.4): return the new interface state."""
        self._process.timers.cancel(interface.wait_timer)
        own = interface.address
        # RFC 2328 §9.4: among this router and the neighbors in state 2-Way or greater
        found = elect(
            Candidate(
                own,
                self._instance.router_id,
                interface.settings.router_priority,
                interface.designated_router,
                interface.backup_designated_router,
            ),
            (
                Candidate(
                    neighbor.address,
                    neighbor.router_id,
                    neighbor.priority,
                    neighbor.designated_router,
                    neighbor.backup_designated_router,
                )
                for neighbor in interface.neighbors.values()
                if neighbor.bidirectional
            ),
        )
        # §9.4 (5): the new interface state
        state = _state_of(found, own)
        before = Elected(interface.designated_router, interface.backup_designated_router)
        interface.designated_router = found.designated_router
        interface.backup_designated_router = found.backup_designated_router
        if found != before:
            self._install(interface, state)
        return state

    def _install(self, interface: Interface, state: InterfaceState) -> None:
        """Adopt a new DR or BDR (§9.4): form and destroy adjacencies."""
        interface.state = state
        # RFC 2328 §9.4 (7): AdjOK? for all neighbors in state 2-Way or greater; (6) is for NBMA
        for neighbor in list(interface.neighbors.values()):
            if neighbor.state >= NeighborState.TWO_WAY:
                neighbor.fire(NeighborEvent.ADJ_OK)
        # Not in §9.4: a hello at once, so that the others do not wait for HelloInterval
        interface.tx.hello()
        self._designated_changed(interface)


def _state_of(found: Elected, own: int) -> InterfaceState:
    if found.designated_router == own:
        return InterfaceState.DR
    if found.backup_designated_router == own:
        return InterfaceState.BACKUP
    return InterfaceState.DR_OTHER
