"""How far the adjacencies of a router have come: what a start waits for.

The daemon holds the routes of before its start until no adjacency is forming any more.
"""

from __future__ import annotations

from fared.protocols.ospf.adjacency.broadcast import adjacency_due
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import InterfaceState, Neighbor
from fared.protocols.ospf.neighbor import NeighborState


def adjacency_progress(instance: Instance) -> tuple[int, int, int]:
    """Count active interfaces, those with a full neighbor, and adjacencies still forming."""
    speaking = served = forming = 0
    for interface in instance.interfaces.values():
        if not interface.is_active:
            continue
        speaking += 1
        full = False
        for neighbor in interface.neighbors.values():
            if neighbor.state is NeighborState.FULL:
                full = True
            elif _forming(neighbor):
                forming += 1
        served += full
    return speaking, served, forming


def _forming(neighbor: Neighbor) -> bool:
    """Whether an adjacency is still forming; two DR Other routers remain in 2-Way (§10.4)."""
    if neighbor.state is NeighborState.TWO_WAY:
        return neighbor.interface.state is InterfaceState.WAITING or adjacency_due(neighbor)
    return neighbor.state not in (NeighborState.DOWN, NeighborState.FULL)
