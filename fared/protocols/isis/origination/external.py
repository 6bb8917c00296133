"""Redistribution: which routes of other sources this router advertises in its LSPs, and where.

Routes arrive with ``ExternalRoutes``; settings decide which kinds are advertised, in which levels
and how. With wide metrics an external prefix has the same preference as any other, but is marked:
by the X bit of IPv6 entries (RFC 5308 §2) and the X flag of either family (RFC 7794 §2.1). A prefix
that a circuit advertises is not redistributed. The path capacity of a route goes with its entry.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from fared.core.filters import Withheld
from fared.core.ids import FAMILY_IPV6, Prefix
from fared.paths.te.redistributed import RedistributedCapacities
from fared.protocols.igp.redistribution import ExternalRouteTable, LocalInterfaces, tag_of
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.origination.contents import connected
from fared.protocols.isis.origination.originate import Originator
from fared.protocols.isis.pdu.tlvs import FLAG_EXTERNAL, IpReach
from fared.protocols.isis.settings import Redistribution

_DEFAULTS = (Prefix(4, 0, 0), Prefix(6, 0, 0))


class External:
    """Decides which routes of other sources this router advertises."""

    def __init__(self, instance: Instance, originator: Originator) -> None:
        self._instance = instance
        self._originator = originator
        self.routes = ExternalRouteTable[Redistribution, LocalInterfaces](
            _DEFAULTS, LocalInterfaces()
        )
        self._advertised: dict[Prefix, tuple[Redistribution, IpReach]] = {}
        self._announced = RedistributedCapacities(
            instance.process.timers,
            lambda: instance.process.now,
            instance.budgets.values,
            carrier=originator.carrier_of,
            again=self.routes.examine,
        )

    def everything_changed(self) -> None:
        """Examine all routes again, and the families that circuits advertise."""
        self.routes.stale = True
        self.routes.examine_all(self._advertised)

    def withheld(self, prefix: Prefix) -> Iterator[Withheld]:
        """Yield the filters that keep a prefix out of what is redistributed."""
        return self.routes.withheld(prefix, self._instance.settings.redistribute)

    def settle(self) -> None:
        """Advertise, change or withdraw the prefixes whose entries have changed."""
        for prefix in self.routes.take_changed(self._read_interfaces, self._advertised):
            self._put(prefix)

    def _read_interfaces(self) -> LocalInterfaces:
        circuits, families = self._instance.circuits, self._instance.settings.families
        return LocalInterfaces(
            frozenset(circuits),
            frozenset(
                prefix
                for circuit in circuits.values()
                for family in families
                for prefix in connected(circuit, family)
            ),
        )

    def _put(self, prefix: Prefix) -> None:
        wanted, old = self._wanted(prefix), self._advertised.pop(prefix, None)
        if wanted is None:
            self._announced.withdraw(prefix)
        else:
            known = None if old is None else old[1].capacity
            rules, reach = self._instance.settings.advertise, wanted[1]
            capacity = self._announced.advertise(prefix, known, reach.capacity, rules)
            wanted = wanted[0], replace(reach, capacity=capacity)
            self._advertised[prefix] = wanted
        if wanted == old:
            return
        for level in self._instance.databases:
            there = wanted is not None and wanted[0].levels & level
            self._originator.redistribute(level, prefix, wanted[1] if wanted and there else None)

    def _wanted(self, prefix: Prefix) -> tuple[Redistribution, IpReach] | None:
        """The entry for a prefix and how it is advertised; None if it is not."""
        if prefix.family not in self._instance.settings.families:
            return None
        chosen = self.routes.choose(prefix, self._instance.settings.redistribute)
        if chosen is None:
            return None
        source, settings, route = chosen
        tag = tag_of(source, route, settings)
        return settings, IpReach(
            prefix,
            self._originator.behind(settings.metric),
            # RFC 5308 §2; TLV 135 has no such bit
            external=prefix.family == FAMILY_IPV6,
            tags=(tag,) if tag else (),
            flags=FLAG_EXTERNAL,
            capacity=None if self._instance.settings.path_capacity_code is None else route.capacity,
        )
