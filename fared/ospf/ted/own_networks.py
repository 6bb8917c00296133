"""The networks of this router, whose hosts can be next hops (RFC 2328 §16.1.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fared.core.ids import ipv4_prefix
from fared.ospf.interface import Interface, InterfaceState
from fared.ted.model import LocalNetwork


def own_networks(interfaces: Iterable[Interface]) -> Iterator[LocalNetwork]:
    """The networks of the interfaces that are up, in their order; a host address is none."""
    for interface in interfaces:
        if interface.loopback or interface.state is InterfaceState.DOWN:
            continue
        addresses = [address for address in interface.addresses if not address.host]
        refused = [*(a.address for a in addresses), *(a.broadcast for a in addresses)]
        for address in addresses:
            yield LocalNetwork(
                prefix=ipv4_prefix(address.network, address.prefix_length),
                ifindex=interface.ifindex,
                interface=interface.name,
                metric=interface.settings.cost,
                bandwidth=interface.bandwidth.capacity,
                refused=frozenset([a for a in refused if a is not None]),
                onlink=not address.routed,
            )
