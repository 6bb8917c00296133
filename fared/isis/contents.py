"""What our own LSPs say: header, adjacencies with TE, prefixes (RFC 5305, 5307, 5308, 5120, 8570).

Everything here is a function of circuits and settings; which fragment it goes into and when it
is flooded is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.core.links import InterfaceAddress
from fared.isis.circuit import Adjacency, Circuit
from fared.isis.fragments import MAX_VALUE, Item, ItemKey, TlvKind, keyed
from fared.isis.ids import Level
from fared.isis.instance import Instance
from fared.isis.pdu.codec import entry_size
from fared.isis.pdu.model import (
    MT_IPV4,
    MT_IPV6,
    NLPID_IPV4,
    NLPID_IPV6,
    AreaAddresses,
    Hostname,
    InterfaceAddresses,
    IpReach,
    IsNeighbor,
    LspBufferSize,
    MultiTopology,
    ProtocolsSupported,
    TeRouterId,
    Tlv,
    Topology,
)
from fared.isis.settings import DEFAULT_LSP_MTU
from fared.te.attributes import NO_ATTRIBUTES, TeAttributes

FLAG_EXTERNAL = 0x80
FLAG_READVERTISED = 0x40
FLAG_NODE = 0x20
"""Prefix attribute flags X, R, N (RFC 7794 §2.1)."""
BITS = {FAMILY_IPV4: 32, FAMILY_IPV6: 128}
NLPIDS = {FAMILY_IPV4: NLPID_IPV4, FAMILY_IPV6: NLPID_IPV6}
_TOPOLOGIES = {FAMILY_IPV4: MT_IPV4, FAMILY_IPV6: MT_IPV6}
_LINK_LOCAL = 0xFE80 >> 6
_PRIORITIES = 8
_MAX_TE_METRIC = 0xFF_FFFF
_LISTED = {FAMILY_IPV4: 63, FAMILY_IPV6: 15}
"""Addresses that one TLV holds; one is all we send."""


def link_local(address: int) -> bool:
    """Whether an IPv6 address is in fe80::/10."""
    return address >> 118 == _LINK_LOCAL


def topology_of(instance: Instance, family: int) -> int | None:
    """The MT id of what concerns a family; None: the TLVs without one."""
    apart = instance.settings.multi_topology and family == FAMILY_IPV6
    return MT_IPV6 if apart else None


def runs_level(instance: Instance, circuit: Circuit, level: Level) -> bool:
    """Whether a circuit takes part in a level."""
    return bool(circuit.settings.levels & instance.settings.levels & level)


# The header


def header(instance: Instance, *, overload: bool, attached: bool) -> tuple[Tlv, ...]:
    """What fragment 0 of a router begins with, prefixes and adjacencies aside."""
    settings = instance.settings
    tlvs: list[Tlv] = [
        AreaAddresses(settings.areas),
        ProtocolsSupported(tuple(NLPIDS[family] for family in settings.families)),
    ]
    if settings.multi_topology:
        tlvs.append(MultiTopology(_topologies(instance, overload=overload, attached=attached)))
    if settings.hostname:
        tlvs.append(Hostname(settings.hostname))
    if settings.lsp_mtu != DEFAULT_LSP_MTU:
        tlvs.append(LspBufferSize(settings.lsp_mtu))  # ISO 10589 §9.8
    if settings.router_id:
        tlvs.append(TeRouterId(settings.router_id))
    for family in settings.families:
        addresses = router_addresses(instance, family)
        if addresses:
            tlvs.append(InterfaceAddresses(family, addresses[: _LISTED[family]]))
    return tuple(tlvs)


def _topologies(instance: Instance, *, overload: bool, attached: bool) -> tuple[Topology, ...]:
    """The bits of topology 0 are those of the LSP header (RFC 5120 §7.1)."""
    return tuple(
        Topology(topology, overload and topology != MT_IPV4, attached and topology != MT_IPV4)
        for topology in sorted(_TOPOLOGIES[family] for family in instance.settings.families)
    )


def router_addresses(instance: Instance, family: int) -> tuple[int, ...]:
    """The addresses that stand for this router: those of its loopbacks, else its first one."""
    found: dict[int, None] = {}
    others: dict[int, None] = {}
    for circuit in instance.ordered_circuits():
        if circuit.up:
            known = (a.address for a in _global_addresses(circuit, family))
            (found if circuit.loopback else others).update(dict.fromkeys(known))
    router_id = instance.settings.router_id
    listed = sorted(found, key=lambda address: address != router_id)
    return tuple(listed or list(others)[:1])


# Adjacencies


def adjacency_items(
    instance: Instance, circuit: Circuit, level: Level
) -> Iterator[tuple[ItemKey, Item]]:
    """The entries of IS reachability for one circuit, in each topology it is used in."""
    for neighbor, topologies, _ in neighbors(instance, circuit, level):
        for topology in topologies:
            kind = TlvKind(0, topology)
            key = keyed(kind, (circuit.ifindex, neighbor.neighbor))
            yield key, Item(kind, neighbor, entry_size(neighbor), circuit.ifindex)


Topologies = tuple[int | None, ...]


def neighbors(
    instance: Instance, circuit: Circuit, level: Level
) -> Iterator[tuple[IsNeighbor, Topologies, list[Adjacency]]]:
    """What a circuit leads to: the entry, the topologies it counts in, the adjacencies behind."""
    if circuit.loopback or not circuit.up:
        return
    adjacencies = circuit.adjacencies(level)
    if not circuit.broadcast:
        for adjacency in adjacencies:
            entry = _point_to_point(instance, circuit, adjacency)
            yield entry, _shared_topologies(instance, [adjacency]), [adjacency]
        return
    lan = circuit.lan.get(level)
    if lan is not None and lan.dis and adjacencies:
        entry = _to_network(instance, circuit, lan.dis)
        yield entry, _shared_topologies(instance, adjacencies), adjacencies


def _shared_topologies(instance: Instance, adjacencies: list[Adjacency]) -> Topologies:
    """The topologies to announce a circuit in (RFC 5120 §3); None: the one without an MT id."""
    if not instance.settings.multi_topology:
        return (None,)
    theirs = {topology for adjacency in adjacencies for topology in adjacency.topologies}
    ours = [_TOPOLOGIES[family] for family in sorted(instance.settings.families)]
    return tuple(None if t == MT_IPV4 else t for t in ours if t in theirs)


def _point_to_point(instance: Instance, circuit: Circuit, adjacency: Adjacency) -> IsNeighbor:
    ends = link_ends(instance, circuit, adjacency)
    return IsNeighbor(
        neighbor=adjacency.system_id << 8,
        metric=circuit.settings.metric,
        attributes=te_attributes(circuit),
        local_addresses=() if ends is None else ends[:1],
        remote_addresses=() if ends is None else ends[1:],
        local_id=circuit.ifindex,
        remote_id=adjacency.extended_circuit_id or 0,
    )


def _to_network(instance: Instance, circuit: Circuit, network: int) -> IsNeighbor:
    own = [a.address for a in own_addresses(instance, circuit)]
    return IsNeighbor(
        neighbor=network,
        metric=circuit.settings.metric,
        attributes=te_attributes(circuit),
        local_addresses=tuple(own[:1]),
        local_id=circuit.ifindex,
        remote_id=0,
    )


def own_addresses(instance: Instance, circuit: Circuit) -> list[InterfaceAddress]:
    """The IPv4 addresses that are this circuit's alone, none borrowed from a loopback."""
    return [a for a in circuit.addresses(FAMILY_IPV4) if a.address not in instance.lent]


def lent_addresses(instance: Instance) -> frozenset[int]:
    """The IPv4 addresses of loopbacks, which unnumbered links borrow."""
    return frozenset(
        address.address
        for circuit in instance.circuits.values()
        if circuit.loopback
        for address in circuit.addresses(FAMILY_IPV4)
    )


def link_ends(instance: Instance, circuit: Circuit, adjacency: Adjacency) -> tuple[int, int] | None:
    """The IPv4 addresses of both ends of a point-to-point link; None for an unnumbered one.

    Where there are several, both ends choose the same: the lowest in a subnet they share.
    """
    own = own_addresses(instance, circuit)
    if not own or not adjacency.ipv4:
        return None
    pairs = [
        (min(a.address, far), a.address, far)
        for a in own
        for far in adjacency.ipv4
        if a.address != far and on_link(a, far)
    ]
    if not pairs:
        return own[0].address, adjacency.ipv4[0]
    _, near, far = min(pairs)
    return near, far


def on_link(own: InterfaceAddress, far: int) -> bool:
    """Whether an address is in the subnet of one of ours."""
    if own.peer is not None:
        return own.peer == far
    width = BITS[own.family] - own.prefix_length
    return own.address >> width == far >> width


def te_attributes(circuit: Circuit) -> TeAttributes:
    """The bandwidths last decided to be announced, not the load of this moment.

    Reservations are not made here, so all of the capacity is reservable and unreserved.
    """
    bandwidth = circuit.announced.bandwidth if circuit.announced else circuit.bandwidth
    capacity = bandwidth.capacity
    te_metric = min(circuit.settings.metric, _MAX_TE_METRIC)
    if capacity is None:
        return TeAttributes(te_metric=te_metric)
    available, utilized = bandwidth.told
    return TeAttributes(
        te_metric=te_metric,
        max_bandwidth=capacity,
        max_reservable_bandwidth=capacity,
        unreserved_bandwidth=(capacity,) * _PRIORITIES,
        residual_bandwidth=capacity,
        available_bandwidth=available,
        utilized_bandwidth=utilized,
    )


# Pseudonodes


def pseudonode_number(circuit: Circuit, level: Level) -> int | None:
    """The number of the pseudonode that this router speaks for; None: it is not DIS, or alone."""
    lan = circuit.lan.get(level)
    if not circuit.broadcast or not circuit.up or lan is None or not lan.is_dis:
        return None
    return lan.dis & 0xFF if circuit.adjacencies(level) else None


def pseudonode_items(
    instance: Instance, circuit: Circuit, level: Level
) -> Iterator[tuple[ItemKey, Item]]:
    """ISO 10589 §7.2.3, §7.3.8: the routers on a LAN, this one first, at metric 0."""
    kind = TlvKind(0)
    systems = {adjacency.system_id for adjacency in circuit.adjacencies(level)}
    for system_id in sorted({*systems, instance.system_id}):
        neighbor = IsNeighbor(system_id << 8, 0, NO_ATTRIBUTES)
        yield keyed(kind, (0, neighbor.neighbor)), Item(kind, neighbor, entry_size(neighbor))


# Prefixes


def connected(circuit: Circuit, family: int) -> dict[Prefix, IpReach]:
    """The prefixes of a circuit as it announces them, link-local ones never."""
    found: dict[Prefix, IpReach] = {}
    if not circuit.up:
        return found
    for address in _global_addresses(circuit, family):
        width = BITS[family] - address.prefix_length
        prefix = Prefix(family, address.address >> width << width, address.prefix_length)
        stable = circuit.loopback and width == 0
        found[prefix] = IpReach(
            prefix,
            0 if circuit.loopback else circuit.settings.metric,
            flags=FLAG_NODE if stable else None,  # RFC 7794 §2.1: a host prefix of this node
        )
    return found


def prefix_keys(instance: Instance, prefix: Prefix) -> tuple[ItemKey, ItemKey]:
    """The key of the entry for a prefix, and what it would be if topologies were otherwise."""
    ours = topology_of(instance, prefix.family)
    other = MT_IPV6 if ours is None else None
    rest = (prefix.network, prefix.length)
    return (
        keyed(TlvKind(prefix.family, ours), rest),
        keyed(TlvKind(prefix.family, other), rest),
    )


def prefix_item(instance: Instance, reach: IpReach, group: int) -> Item:
    """The entry for a prefix. What no TLV has room for is cut down to prefix and metric."""
    kind = TlvKind(reach.prefix.family, topology_of(instance, reach.prefix.family))
    try:
        size = entry_size(reach)
    except ValueError:
        size = MAX_VALUE
    if size > MAX_VALUE - kind.head:
        reach = replace(reach, tags=(), unknown=())
        size = entry_size(reach)
    return Item(kind, reach, size, group)


def _global_addresses(circuit: Circuit, family: int) -> list[InterfaceAddress]:
    return [
        a for a in circuit.addresses(family) if family == FAMILY_IPV4 or not link_local(a.address)
    ]
