"""State shared by all parts of one OSPF process: settings, databases, interfaces.

The parts (hello, exchange, flooding, origination...) are objects with a reference to this state and
to the parts that they call; the engine connects them and dispatches inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fared.core.ids import dotted
from fared.core.links import OwnAddresses
from fared.protocols.igp.process import Process
from fared.protocols.ospf.auth.sequence import AuthSequences
from fared.protocols.ospf.bandwidth_rate import BandwidthRate
from fared.protocols.ospf.lsdb import LsaEntry, Lsdb, Scope
from fared.protocols.ospf.outbox import Outbox
from fared.protocols.ospf.participants import Participants

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fared.core.ids import AreaId
    from fared.core.rng import Rng
    from fared.paths.te.budget import AnnounceBudget
    from fared.protocols.ospf.events import Output
    from fared.protocols.ospf.interface import Interface, Neighbor
    from fared.protocols.ospf.settings import AreaSettings, OspfSettings


class Area:
    """The area data structure (RFC 2328 §6): settings and database."""

    __slots__ = ("area_id", "lsdb", "settings")

    def __init__(self, settings: AreaSettings) -> None:
        self.area_id = settings.area
        self.settings = settings
        self.lsdb = Lsdb(Scope.AREA, area=settings.area)


class Instance:
    """The protocol data structure of one router (RFC 2328 §5)."""

    def __init__(self, settings: OspfSettings, rng: Rng) -> None:
        self.settings = settings
        self.process: Process[Output] = Process("ospf", settings.epoch, rng, dotted)
        self.sequences = AuthSequences()
        self.areas: dict[AreaId, Area] = {}
        self.interfaces: dict[int, Interface] = {}
        self.own_addresses = OwnAddresses()
        self.as_scope = Lsdb(Scope.AS)
        self.unsent: dict[int, Interface] = {}
        """Interfaces with something queued (``outgoing``), by ifindex."""
        self.exchanging: dict[Neighbor, None] = {}
        """Neighbors in state Exchange or Loading: while there are any, MaxAge LSAs stay (§14)."""
        self.maxage_list: dict[LsaEntry, None] = {}
        """MaxAge LSAs that are still in the databases (§14)."""
        self.maxage_acknowledged: list[LsaEntry] = []
        """Those that may be removed, once no neighbor is in state Exchange or Loading."""
        self.participants = Participants()
        self.outbox = Outbox(self.participants)
        self.bandwidth_rate = BandwidthRate()
        self.border = False
        """Whether this is an area border router (RFC 3509), set by ``origination.border``."""
        self.budgets: Mapping[AreaId, AnnounceBudget] = {}
        """The budgets of announcements by area, of ``origination.originate``."""
        self.starting = False
        """Whether this router has just started, and is a stub router for a time (RFC 6987 §2)."""
        self.restarting = False
        """Whether this router restarts gracefully: it originates no LSAs (RFC 3623 §2)."""
        self._by_area: dict[AreaId, list[Interface]] | None = None

    @property
    def router_id(self) -> int:
        """The router id of this router."""
        return self.settings.router_id

    @property
    def stub_router(self) -> bool:
        """Whether others are to keep transit traffic away (RFC 6987)."""
        return self.settings.stub_router or self.starting

    def apply(self, settings: OspfSettings) -> None:
        """Apply new settings (a reload)."""
        self.settings = settings
        self.process.epoch = settings.epoch

    def databases(self) -> Iterator[Lsdb]:
        """The databases of all flooding scopes."""
        yield from (area.lsdb for area in self.areas.values())
        yield self.as_scope
        yield from (interface.lsdb for interface in self.interfaces.values())

    def ordered_interfaces(self) -> list[Interface]:
        """The interfaces by ifindex."""
        return [interface for _, interface in sorted(self.interfaces.items())]

    def neighbors(self) -> list[Neighbor]:
        """The neighbors of all interfaces, by ifindex and key."""
        interfaces = self.ordered_interfaces()
        return [n for interface in interfaces for _, n in sorted(interface.neighbors.items())]

    def retransmissions(self) -> dict[Neighbor, int]:
        """The lengths of the link state retransmission lists (§10)."""
        listed = Counter(
            e.unacknowledged for lsdb in self.databases() for e in lsdb.listed.values()
        )
        return {
            neighbor: sum(n for bitmap, n in listed.items() if bitmap & neighbor.bit)
            for neighbor in self.neighbors()
        }

    def add_interface(self, interface: Interface) -> None:
        """Run OSPF on an interface from now on."""
        self.interfaces[interface.ifindex] = interface
        self.process.counters.interfaces[interface.ifindex] = interface.counters
        self._by_area = None

    def remove_interface(self, ifindex: int) -> None:
        """Remove an interface."""
        del self.interfaces[ifindex]
        self.sequences.closed(ifindex)
        self.process.forget(ifindex)
        self._by_area = None

    def area_interfaces(self, area: AreaId) -> list[Interface]:
        """The interfaces of an area, by ifindex."""
        if self._by_area is None:
            self._by_area = {}
            for _, interface in sorted(self.interfaces.items()):
                self._by_area.setdefault(interface.settings.area, []).append(interface)
        return self._by_area.get(area, [])
