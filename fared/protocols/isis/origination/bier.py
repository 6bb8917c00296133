"""BIER info sub-TLVs of this router's own prefixes (RFC 8401 §6.1); loaded where BIER runs."""

from __future__ import annotations

from msgspec.structs import replace

from fared.core.bier import BierSettings
from fared.core.ids import FAMILY_IPV4, Prefix
from fared.protocols.isis.addresses import borrowed_addresses, global_addresses
from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.bier import BIER, encode_bier
from fared.protocols.isis.pdu.tlvs import IpReach

_HOST_LENGTH = 32


def with_bier(
    instance: Instance,
    settings: BierSettings,
    circuit: Circuit,
    prefixes: dict[Prefix, IpReach],
) -> dict[Prefix, IpReach]:
    """Return the prefixes of a circuit with BIER: the BFR-prefix, and the hosts on the circuit.

    The BFR-prefix is the router id if that is an address of a loopback, else the lowest of those.
    """
    found = dict(prefixes)
    loopbacks = borrowed_addresses(instance)
    if circuit.loopback and loopbacks:
        own = min(loopbacks, key=lambda address: (address != instance.settings.router_id, address))
        prefix = _host(own)
        if prefix in found:
            found[prefix] = _attached(found[prefix], settings, settings.bfr_id)
    addresses = [] if circuit.loopback or not circuit.up else global_addresses(circuit, FAMILY_IPV4)
    for host, bfr_id in settings.hosts:
        if any(address.contains(host) for address in addresses):
            reach = IpReach(_host(host), circuit.settings.metric)
            found[reach.prefix] = _attached(reach, settings, bfr_id)
    return found


def _host(address: int) -> Prefix:
    return Prefix(FAMILY_IPV4, address, _HOST_LENGTH)


def _attached(reach: IpReach, settings: BierSettings, bfr_id: int) -> IpReach:
    return replace(reach, unknown=(*reach.unknown, (BIER, encode_bier(settings.info(bfr_id)))))
