"""The links that this router can forward over: one for each adjacency, level and family."""

from __future__ import annotations

from collections.abc import Iterator

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, isis_node
from fared.core.links import InterfaceAddress
from fared.isis import contents
from fared.isis.circuit import Circuit
from fared.isis.contents import NLPIDS, link_local, on_link
from fared.isis.described import link_ids
from fared.isis.ids import Level
from fared.isis.instance import Instance
from fared.ted.model import LocalLink


def local_links(
    instance: Instance, circuit: Circuit, level: Level, family: int
) -> Iterator[LocalLink]:
    """The links of a level over which packets of a family may be sent out of one circuit."""
    if not contents.runs_level(instance, circuit, level):
        return
    topology = contents.topology_of(instance, family)
    for neighbor, topologies, adjacencies in contents.neighbors(instance, circuit, level):
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
    """Address, its family and whether it must be taken to be on the link; None: there is none.

    ``own`` are our IPv4 addresses on the link, ``ipv4`` and ``ipv6`` those of the neighbor. IPv4
    goes by way of IPv6 where one end has no IPv4 address on the link (RFC 5549 of BGP has the
    same idea); a fabric then needs no addresses on links at all.
    """
    far6 = next((address for address in ipv6 if link_local(address)), None)
    if family == FAMILY_IPV6:
        return None if far6 is None else (far6, FAMILY_IPV6, False)
    if own and ipv4:
        return ipv4_gateway(own, ipv4)
    if far6 is not None:
        return far6, FAMILY_IPV6, False
    return (ipv4[0], FAMILY_IPV4, True) if ipv4 else None


def ipv4_gateway(
    own: tuple[InterfaceAddress, ...], theirs: tuple[int, ...]
) -> tuple[int, int, bool]:
    """An address in one of our subnets; one that is in none is still there (unnumbered)."""
    shared = [far for far in theirs if any(on_link(mine, far) for mine in own)]
    return (min(shared), FAMILY_IPV4, False) if shared else (theirs[0], FAMILY_IPV4, True)
