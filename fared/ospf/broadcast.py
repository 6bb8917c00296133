"""Broadcast networks: who is designated router, and what follows from it (RFC 2328 §9.4, §10.4).

The link manager runs the interface state machine; on broadcast networks the actions of its rows
and the wait timer are here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fared.ospf.election import Candidate, Elected, elect
from fared.ospf.instance import Instance
from fared.ospf.interface import Interface, InterfaceEvent, InterfaceState
from fared.ospf.neighbor import Neighbor, NeighborEvent, NeighborState


def adjacency_due(neighbor: Neighbor) -> bool:
    """Whether to become (or stay) adjacent with a bidirectional neighbor (RFC 2328 §10.4)."""
    interface = neighbor.interface
    if not interface.broadcast or interface.state in (InterfaceState.DR, InterfaceState.BACKUP):
        return True
    return neighbor.address in (interface.designated_router, interface.backup_designated_router)


def transit(interface: Interface) -> bool:
    """Whether a network is one to pass through, with a network LSA of its own (§12.4.1.2).

    It is for who is fully adjacent to the designated router, and for that one itself as soon as
    it is fully adjacent to anybody.
    """
    if interface.state not in _ELECTED:
        return False
    own = interface.state is InterfaceState.DR
    return any(
        neighbor.state is NeighborState.FULL
        and (own or neighbor.address == interface.designated_router)
        for neighbor in interface.neighbors.values()
    )


_ELECTED = (InterfaceState.DR, InterfaceState.BACKUP, InterfaceState.DR_OTHER)


class BroadcastNetworks:
    """Waiting, election and its consequences.

    ``fire`` runs an event through the interface state machine; ``changed`` is told when the
    description of a network may read differently: another designated router.
    """

    def __init__(
        self,
        instance: Instance,
        fire: Callable[[Interface, InterfaceEvent], None],
        changed: Callable[[Interface], None],
    ) -> None:
        self._instance = instance
        self._fire = fire
        self._changed = changed

    def start(self, interface: Interface) -> InterfaceState:
        """InterfaceUp on a broadcast network (§9.3): wait, unless never eligible."""
        if interface.settings.passive or interface.settings.router_priority == 0:
            return InterfaceState.DR_OTHER
        due = self._instance.now + interface.settings.router_dead_interval
        expire = partial(self._fire, interface, InterfaceEvent.WAIT_TIMER)
        interface.wait_timer = self._instance.timers.arm(due, expire)
        return InterfaceState.WAITING

    def stop(self, interface: Interface) -> None:
        """InterfaceDown: nobody is elected any more."""
        self._instance.timers.cancel(interface.wait_timer)
        interface.wait_timer = None
        interface.designated_router = interface.backup_designated_router = 0

    def elect(self, interface: Interface) -> InterfaceState:
        """WaitTimer, BackupSeen or NeighborChange (§9.4): return the state that follows."""
        self._instance.timers.cancel(interface.wait_timer)
        own = interface.address
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
                if neighbor.state >= NeighborState.TWO_WAY
            ),
        )
        state = _state(found, own)
        before = Elected(interface.designated_router, interface.backup_designated_router)
        interface.designated_router = found.designated_router
        interface.backup_designated_router = found.backup_designated_router
        if found != before:
            self._install(interface, state)
        return state

    def _install(self, interface: Interface, state: InterfaceState) -> None:
        """§9.4 (5) and (7): others are in office now, so other adjacencies are due."""
        interface.state = state
        for neighbor in list(interface.neighbors.values()):
            if neighbor.state >= NeighborState.TWO_WAY:
                neighbor.fire(NeighborEvent.ADJ_OK)
        # Telling the others at once saves them a hello interval.
        interface.hello_due = True
        self._instance.unsent[interface.ifindex] = interface
        self._changed(interface)


def _state(found: Elected, own: int) -> InterfaceState:
    if found.designated_router == own:
        return InterfaceState.DR
    if found.backup_designated_router == own:
        return InterfaceState.BACKUP
    return InterfaceState.DR_OTHER
