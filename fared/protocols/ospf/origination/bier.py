"""The extended prefix LSA of a BFR: its own prefix and those of its hosts (RFC 8444 §2).

One LSA for an area, opaque id 0; ``border`` numbers those of summaries from 1. It is loaded where
BIER runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from fared.core.bier import BierSettings
from fared.core.ids import AreaId, Prefix, ipv4_prefix
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import InterfaceState
from fared.protocols.ospf.origination.contents import hosts_on, loopback_addresses
from fared.protocols.ospf.packet.bier import BIER, encode_bier
from fared.protocols.ospf.packet.extended_prefix import (
    ExtendedPrefixLsa,
    PrefixFacts,
    RouteType,
    encode_extended_prefix,
)

NODE_FLAG = 0x40
"""RFC 7684 §2.1: the prefix identifies the advertising router."""
_HOST_LENGTH = 32


def bier_prefixes(instance: Instance, area: AreaId) -> bytes | None:
    """Return the body of the LSA; None where this router has nothing to advertise."""
    settings = instance.settings.bier
    if settings is None:
        return None
    found = dict(_hosts(instance, area, settings))
    found.update(_own(instance, area, settings))
    listed = [
        PrefixFacts(
            RouteType.INTRA_AREA, prefix, flags, ((BIER, encode_bier(settings.info(bfr_id))),)
        )
        for prefix, (flags, bfr_id) in found.items()
    ]
    return encode_extended_prefix(ExtendedPrefixLsa((*listed,))) if listed else None


def _own(
    instance: Instance, area: AreaId, settings: BierSettings
) -> Iterator[tuple[Prefix, tuple[int, int]]]:
    """Yield the BFR-prefix, a loopback address (RFC 8279 §2), in the area that has it."""
    addresses = loopback_addresses(instance)[:1]
    for interface in instance.area_interfaces(area):
        for address in interface.addresses if interface.loopback else ():
            if address.address in addresses:
                yield ipv4_prefix(address.address, _HOST_LENGTH), (NODE_FLAG, settings.bfr_id)


def _hosts(
    instance: Instance, area: AreaId, settings: BierSettings
) -> Iterator[tuple[Prefix, tuple[int, int]]]:
    ids = dict(settings.hosts)
    for interface in instance.area_interfaces(area):
        if interface.state is not InterfaceState.DOWN:
            for host in hosts_on(instance, interface):
                yield ipv4_prefix(host, _HOST_LENGTH), (0, ids[host])
