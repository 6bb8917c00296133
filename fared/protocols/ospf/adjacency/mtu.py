"""Interface MTUs that change while an adjacency stands (RFC 2328 §10.6 compares them once).

A router whose MTU has changed repeats its last database description with the new one, if it is the
slave: a master discards duplicates, so other implementations are not disturbed. The neighbor takes
the MTU from it and answers in the same way; so a master knows that it can do this, too. Packets
always fit the smaller MTU, so that an adjacency outlives the change, first of one end, then of the
other.

A neighbor that is larger than us is another matter: its packets would be lost, and with them parts
of its database, unless it knows. If it does not answer, the adjacency is formed anew, and by §10.6
it is not before the MTUs agree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fared.core.ids import dotted
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface, Neighbor
from fared.protocols.ospf.neighbor import NeighborEvent, NeighborState
from fared.protocols.ospf.packet.packets import DatabaseDescription

_ANNOUNCEMENTS = 3


class MtuChanges:
    """Announces our MTU to adjacent neighbors, and processes their announcements.

    ``repeat`` sends the last description to a neighbor again, with the present MTU.
    """

    def __init__(self, instance: Instance, repeat: Callable[[Neighbor], None]) -> None:
        self._instance = instance
        self._process = instance.process
        self._repeat = repeat

    def own_changed(self, interface: Interface) -> None:
        """Our MTU, or ``mtu-ignore``, changed: check the adjacencies against it (§10.6)."""
        for neighbor in list(interface.neighbors.values()):
            neighbor.confined = False
        interface.review_largest_packet()
        for neighbor in list(interface.neighbors.values()):
            if neighbor.state < NeighborState.EXCHANGE or not neighbor.mtu:
                continue
            self._report(neighbor)
            if neighbor.state < NeighborState.LOADING or self._disturbs(neighbor):
                self._give_up(neighbor)
            elif not neighbor.master or neighbor.announces_mtu or self._is_larger(neighbor):
                self._announce(neighbor, _ANNOUNCEMENTS)

    def announced(self, neighbor: Neighbor, dd: DatabaseDescription) -> bool:
        """Take the MTU from a duplicate of the last description; False: it is none, or no news."""
        awaited = neighbor.mtu_timer is not None and neighbor.mtu_timer.active
        news = dd.interface_mtu != neighbor.mtu
        if not (awaited or news):
            return False
        self.forget(neighbor)
        neighbor.mtu = dd.interface_mtu
        neighbor.interface.review_largest_packet()
        if news:
            neighbor.announces_mtu = True
            self._report(neighbor)
        if not awaited:
            self._repeat(neighbor)
        return True

    def forget(self, neighbor: Neighbor) -> None:
        """Await no answer any more."""
        self._process.timers.cancel(neighbor.mtu_timer)
        neighbor.mtu_timer = None

    def _announce(self, neighbor: Neighbor, times: int) -> None:
        """Repeat the last description until it is answered."""
        self._process.timers.cancel(neighbor.mtu_timer)
        if not times:
            if self._is_larger(neighbor):
                self._give_up(neighbor)
            return
        self._repeat(neighbor)
        due = self._process.now + neighbor.interface.settings.rxmt_interval
        again = partial(self._announce, neighbor, times - 1)
        neighbor.mtu_timer = self._process.timers.arm(due, again)

    def _give_up(self, neighbor: Neighbor) -> None:
        if self._is_larger(neighbor):
            neighbor.fire(NeighborEvent.MTU_CHANGED)

    def _is_larger(self, neighbor: Neighbor) -> bool:
        """Whether packets of its size are lost at our end."""
        return neighbor.mtu > neighbor.interface.link.mtu

    def _disturbs(self, neighbor: Neighbor) -> bool:
        """Whether a slave may take a duplicate for a lost answer (§10.8), and send its own."""
        return neighbor.master and self._process.now < neighbor.dd_kept_until

    def _report(self, neighbor: Neighbor) -> None:
        """Log that the MTUs differ from now on."""
        interface = neighbor.interface
        if neighbor.mtu == interface.advertised_mtu:
            return
        self._process.log(
            "warning",
            "ospf-mtu-differs",
            interface=interface.name,
            neighbor=dotted(neighbor.router_id),
            mtu=neighbor.mtu,
            own_mtu=interface.advertised_mtu,
        )
