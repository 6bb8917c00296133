"""The links that this router can forward over: one for each adjacency, level and family."""

from __future__ import annotations

from collections.abc import Iterator

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, isis_node
from fared.core.links import InterfaceAddress
from fared.isis.addresses import link_local, on_link
from fared.isis.circuit import Circuit
from fared.isis.ids import Level
from fared.isis.instance import Instance
from fared.isis.neighbors import neighbors, runs_level, topology_of
from fared.isis.pdu.tlvs import NLPIDS
from fared.isis.ted.fragment_facts import link_ids
from fared.ted.model import LocalLink


def local_links(
    instance: Instance, circuit: Circuit, level: Level, family: int
) -> Iterator[LocalLink]:
    """The links of a level over which packets of a family may be sent out of one circuit."""
    if not runs_level(instance, circuit, level):
        return
    # RFC 5120 §3: adjacencies of the topology; RFC 1195: neighbors that support the protocol
    topology = topology_of(instance, family)
    for neighbor, topologies, adjacencies in neighbors(instance, circuit, level):
        if topology not in topologies:
            continue
        for adjacency in adjacencies:
            own = circuit.addresses(FAMILY_IPV4)
            hop = gateway_of(own, adjacency.ipv4, adjacency.ipv6, family)
            if hop is None or NLPIDS[family] not in adjacency.nlpids:
                continue
            gateway, gateway_family, onlink = hop
            yield LocalLink(
                ifindex=circuit.ifindex,
                interface=circuit.name,
                neighbor=isis_node(adjacency.system_id),
                gateway=gateway,
                local_id=link_ids(neighbor)[0],
                metric=circuit.settings.metric,
                bandwidth=circuit.bandwidth.capacity,
                family=gateway_family,
                onlink=onlink,
            )


def gateway_of(
    own: tuple[InterfaceAddress, ...],
    ipv4: tuple[int, ...],
    ipv6: tuple[int, ...],
    family: int,
) -> tuple[int, int, bool] | None:
    """The next hop: address, its family, and the onlink flag; None: there is none.

    ``own`` are our IPv4 addresses on the link, ``ipv4`` and ``ipv6`` those of the neighbor's
    hellos. Without an IPv4 address in its hellos, a neighbor such as FRR forwards no IPv4 on this
    link, whatever its LSPs advertise. If this end has no IPv4 address on the link, IPv4 uses an
    IPv6 next hop, as RFC 8950 does in BGP; then the links of a fabric need no addresses.
    """
    # RFC 5308 §3: the IPv6 addresses of hellos are link-local
    far6 = next((address for address in ipv6 if link_local(address)), None)
    if family == FAMILY_IPV6:
        return None if far6 is None else (far6, FAMILY_IPV6, False)
    if not ipv4:
        return None
    if own or far6 is None:
        return ipv4_gateway(own, ipv4)
    return far6, FAMILY_IPV6, False


def ipv4_gateway(
    own: tuple[InterfaceAddress, ...], theirs: tuple[int, ...]
) -> tuple[int, int, bool]:
    """An address in one of our subnets, else one that is onlink (an unnumbered link)."""
    shared = [far for far in theirs if any(on_link(mine, far) for mine in own)]
    return (min(shared), FAMILY_IPV4, False) if shared else (theirs[0], FAMILY_IPV4, True)
