"""Addresses of circuits: those that identify the router, those in hellos, the ends of a link.

Hellos, LSPs and next hops read them here, so that all three describe the same link.
"""

from __future__ import annotations

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, is_link_local
from fared.core.links import InterfaceAddress, needs_onlink
from fared.protocols.isis.circuit import Adjacency, Circuit
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.tlvs import NLPIDS


def link_local(address: int) -> bool:
    """Whether an IPv6 address is in fe80::/10."""
    return is_link_local(FAMILY_IPV6, address)


def global_addresses(circuit: Circuit, family: int) -> list[InterfaceAddress]:
    """The addresses of a circuit that may be advertised beyond the link."""
    return [a for a in circuit.addresses(family) if not a.link_local]


def router_addresses(instance: Instance, family: int) -> tuple[int, ...]:
    """The addresses that identify this router: those of its loopbacks, else its first one."""
    found: dict[int, None] = {}
    others: dict[int, None] = {}
    for circuit in instance.ordered_circuits():
        if circuit.up:
            known = (a.address for a in global_addresses(circuit, family))
            (found if circuit.loopback else others).update(dict.fromkeys(known))
    router_id = instance.settings.router_id
    listed = sorted(found, key=lambda address: address != router_id)
    return tuple(listed or list(others)[:1])


def hello_addresses(instance: Instance, circuit: Circuit, family: int) -> tuple[int, ...]:
    """The interface addresses in hellos, TLV 132 or 232.

    Those of IPv6 are link-local (RFC 5308 §3). An interface without an IPv4 address uses that of a
    loopback, else of another interface: RFC 1195 §5.2 allows an empty list, but neighbors such as
    FRR then forward no IPv4 to this router (RFC 3787 §10).
    """
    addresses = (entry.address for entry in circuit.addresses(family))
    if family == FAMILY_IPV6:
        return tuple([address for address in addresses if link_local(address)])
    return tuple(addresses) or router_addresses(instance, family)[:1]


def own_addresses(instance: Instance, circuit: Circuit) -> list[InterfaceAddress]:
    """The IPv4 addresses of this circuit only, none borrowed from a loopback."""
    return [a for a in circuit.addresses(FAMILY_IPV4) if a.address not in instance.borrowed]


def borrowed_addresses(instance: Instance) -> frozenset[int]:
    """The IPv4 addresses of loopbacks, which unnumbered links borrow."""
    return frozenset(
        address.address
        for circuit in instance.circuits.values()
        if circuit.loopback
        for address in circuit.addresses(FAMILY_IPV4)
    )


def link_ends(instance: Instance, circuit: Circuit, adjacency: Adjacency) -> tuple[int, int] | None:
    """The IPv4 addresses of both ends of a point-to-point link; None for an unnumbered one.

    Of several, both ends choose the same: the lowest in a common subnet.
    """
    own = own_addresses(instance, circuit)
    if not own or not adjacency.ipv4:
        return None
    pairs = [
        (min(a.address, far), a.address, far)
        for a in own
        for far in adjacency.ipv4
        if a.address != far and a.contains(far)
    ]
    if not pairs:
        return own[0].address, adjacency.ipv4[0]
    _, near, far = min(pairs)
    return near, far


def next_hop(
    instance: Instance, circuit: Circuit, adjacency: Adjacency, family: int
) -> tuple[int, int, bool] | None:
    """Where packets of a family go to a neighbor, as ``gateway_of``; None: nowhere."""
    # RFC 1195 §4: to neighbors that support the protocol
    if NLPIDS[family] not in adjacency.nlpids:
        return None
    usable = tuple([a for a in adjacency.ipv4 if instance.own_addresses.can_be_next_hop(a)])
    return gateway_of(circuit.addresses(FAMILY_IPV4), usable, adjacency.ipv6, family)


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
    shared = [far for far in theirs if any(mine.contains(far) for mine in own)]
    gateway = min(shared) if shared else theirs[0]
    return gateway, FAMILY_IPV4, needs_onlink(own, gateway)
