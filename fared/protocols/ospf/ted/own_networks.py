"""The networks of this router, whose hosts can be next hops (RFC 2328 §16.1.1)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fared.core.ids import AreaId, ipv4_prefix
from fared.paths.ted.events import LocalNetworksChanged
from fared.paths.ted.model import LocalNetwork
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface, InterfaceState


class _ChangedNetworks(msgspec.Struct):
    """Interfaces of an area that changed since the last report, by ifindex, and the first cause."""

    cause: str
    since: float
    interfaces: dict[int, None] = msgspec.field(default_factory=dict)


class OwnNetworks:
    """The networks of the interfaces that are up, by area; only changed interfaces are read."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._known: dict[AreaId, dict[int, tuple[LocalNetwork, ...]]] = {}
        self._changed: dict[AreaId, _ChangedNetworks] = {}

    def interface_changed(self, interface: Interface, cause: str) -> None:
        """The state or a property of an interface may have changed."""
        area = interface.settings.area
        if area not in self._changed:
            self._changed[area] = _ChangedNetworks(cause, self._instance.process.now)
        self._changed[area].interfaces[interface.ifindex] = None

    def updates(self) -> Iterable[LocalNetworksChanged]:
        """The areas whose networks differ since the last call."""
        if not self._changed:
            return ()
        changed, self._changed, updates = self._changed, {}, []
        for area, change in changed.items():
            known, differs = self._known.setdefault(area, {}), False
            for ifindex in change.interfaces:
                before, found = known.pop(ifindex, ()), self._read(area, ifindex)
                differs |= found != before
                if found:
                    known[ifindex] = found
            if differs:
                networks = tuple([each for _, found in sorted(known.items()) for each in found])
                updates.append(LocalNetworksChanged(area, networks, change.cause, change.since))
        return updates

    def _read(self, area: AreaId, ifindex: int) -> tuple[LocalNetwork, ...]:
        """The networks of an interface of an area; a host address is none."""
        interface = self._instance.interfaces.get(ifindex)
        if interface is None or interface.settings.area != area or interface.loopback:
            return ()
        if interface.state is InterfaceState.DOWN:
            return ()
        addresses = [address for address in interface.addresses if not address.host]
        refused = [*(a.address for a in addresses), *(a.broadcast for a in addresses)]
        return tuple(
            [
                LocalNetwork(
                    prefix=ipv4_prefix(address.network, address.prefix_length),
                    ifindex=ifindex,
                    interface=interface.name,
                    metric=interface.settings.cost,
                    bandwidth=interface.bandwidth.capacity,
                    refused=frozenset([a for a in refused if a is not None]),
                    onlink=not address.routed,
                )
                for address in addresses
            ]
        )
