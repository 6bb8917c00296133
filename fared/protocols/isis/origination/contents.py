"""Contents of our LSPs: header, adjacencies with TE, prefixes (RFC 5305, 5307, 5308, 5120, 8570).

Everything here is a function of circuits and settings (ISO 10589 §7.3.7 to §7.3.10). In which
fragment it is advertised, and when, is decided in ``fragments`` and ``lsp_generator``.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from fared.core.ids import ADDRESS_BITS, FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.paths.te.attributes import NO_ATTRIBUTES
from fared.protocols.igp.dynamic_flooding import OWN
from fared.protocols.isis.addresses import global_addresses, router_addresses
from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.ids import Level
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.neighbors import neighbors, topology_of
from fared.protocols.isis.origination.fragment import MAX_VALUE, Item, ItemKey, TlvKind, keyed
from fared.protocols.isis.pdu.codec import entry_size
from fared.protocols.isis.pdu.router_capability import write_capability
from fared.protocols.isis.pdu.tlvs import (
    FLAG_NODE,
    MT_IPV4,
    MT_IPV6,
    NLPIDS,
    TOPOLOGIES,
    AreaAddresses,
    Hostname,
    InterfaceAddresses,
    IpReach,
    IsNeighbor,
    IsReachability,
    LspBufferSize,
    MultiTopology,
    ProtocolsSupported,
    TeRouterId,
    Tlv,
    Topology,
)
from fared.protocols.isis.settings import DEFAULT_LSP_MTU

_LISTED = {FAMILY_IPV4: 63, FAMILY_IPV6: 15}
"""Addresses that fit into one TLV; an LSP has one TLV of each family."""


# The header


def header(instance: Instance, *, overload: bool, attached: bool) -> tuple[Tlv, ...]:
    """The head of fragment 0 of a router: all but prefixes and adjacencies."""
    settings = instance.settings
    # ISO 10589 §9.8: area addresses are in LSP number 0; so are protocols (RFC 1195 §5.2)
    tlvs: list[Tlv] = [
        AreaAddresses(settings.areas),
        ProtocolsSupported(tuple(NLPIDS[family] for family in settings.families)),
    ]
    # RFC 5120 §7.1: in fragment 0
    if settings.multi_topology:
        tlvs.append(MultiTopology(_topologies(instance, overload=overload, attached=attached)))
    # RFC 5301
    if settings.hostname:
        tlvs.append(Hostname(settings.hostname))
    # ISO 10589 §9.8: originatingLSPBufferSize, if not the default
    if settings.lsp_mtu != DEFAULT_LSP_MTU:
        tlvs.append(LspBufferSize(settings.lsp_mtu))
    # RFC 5305 §4.3
    if settings.router_id:
        tlvs.append(TeRouterId(settings.router_id))
    # RFC 9667 §5.1
    if settings.reduction.dynamic:
        tlvs.append(write_capability(settings.router_id or 0, OWN))
    # RFC 1195 §5.2: the same addresses in both levels; RFC 5308 §3: none that is link-local
    for family in settings.families:
        addresses = router_addresses(instance, family)
        if addresses:
            tlvs.append(InterfaceAddresses(family, addresses[: _LISTED[family]]))
    return tuple(tlvs)


def _topologies(instance: Instance, *, overload: bool, attached: bool) -> tuple[Topology, ...]:
    """The topologies, with their own bits; those of topology 0 are in the header (RFC 5120 §4)."""
    return tuple(
        Topology(topology, overload and topology != MT_IPV4, attached and topology != MT_IPV4)
        for topology in sorted(TOPOLOGIES[family] for family in instance.settings.families)
    )


# Adjacencies


def adjacency_items(
    instance: Instance, circuit: Circuit, level: Level
) -> Iterator[tuple[ItemKey, Item]]:
    """The IS reachability entries of a circuit, one for each of its topologies (RFC 5120 §3)."""
    for neighbor, topologies, _ in neighbors(instance, circuit, level):
        for topology in topologies:
            kind = TlvKind(0, topology)
            key = keyed(kind, (circuit.ifindex, neighbor.neighbor))
            yield key, Item(kind, neighbor, entry_size(neighbor), circuit.ifindex)


# Pseudonodes


def pseudonode_number(circuit: Circuit, level: Level) -> int | None:
    """The number of the pseudonode that this router originates; None: it is not DIS, or alone."""
    # ISO 10589 §7.3.8, §7.3.10: the DIS of the level generates the pseudonode LSPs
    lan = circuit.lan.get(level)
    if not circuit.broadcast or not circuit.up or lan is None or not lan.is_dis:
        return None
    return lan.dis & 0xFF if circuit.adjacencies(level) else None


def pseudonode_items(
    instance: Instance, circuit: Circuit, level: Level
) -> Iterator[tuple[ItemKey, Item]]:
    """The routers on a LAN with an adjacency, and this one (ISO 10589 §7.3.8, §7.3.10)."""
    # RFC 5120 §3: in the TLV without MT id, whatever the topologies
    kind = TlvKind(0)
    systems = {adjacency.system_id for adjacency in circuit.adjacencies(level)}
    for system_id in sorted({*systems, instance.system_id}):
        # §7.2.3: from the pseudonode to a router the metric is 0
        neighbor = IsNeighbor(system_id << 8, 0, NO_ATTRIBUTES)
        yield keyed(kind, (0, neighbor.neighbor)), Item(kind, neighbor, entry_size(neighbor))


# Prefixes


def connected(circuit: Circuit, family: int) -> dict[Prefix, IpReach]:
    """The prefixes of a circuit to advertise, never link-local ones (RFC 5308 §2)."""
    found: dict[Prefix, IpReach] = {}
    if not circuit.up or circuit.prefix_suppression:
        return found
    for address in global_addresses(circuit, family):
        width = ADDRESS_BITS[family] - address.prefix_length
        prefix = Prefix(family, address.address >> width << width, address.prefix_length)
        # RFC 7794 §2.1: the N flag marks a host prefix that identifies this router
        identifying = circuit.loopback and width == 0
        found[prefix] = IpReach(
            prefix,
            0 if circuit.loopback else circuit.settings.metric,
            flags=FLAG_NODE if identifying else None,
        )
    return found


def prefix_keys(instance: Instance, prefix: Prefix) -> tuple[ItemKey, ItemKey]:
    """The key of a prefix entry, and its key under the other topology setting."""
    ours = topology_of(instance, prefix.family)
    other = MT_IPV6 if ours is None else None
    rest = (prefix.network, prefix.length)
    return (
        keyed(TlvKind(prefix.family, ours), rest),
        keyed(TlvKind(prefix.family, other), rest),
    )


def prefix_item(instance: Instance, reach: IpReach, group: int) -> Item:
    """The entry of a prefix, reduced to prefix and metric if no TLV has room for more."""
    kind = TlvKind(reach.prefix.family, topology_of(instance, reach.prefix.family))
    try:
        size = entry_size(reach)
    except ValueError:
        size = MAX_VALUE
    if size > MAX_VALUE - kind.head:
        reach = replace(reach, tags=(), unknown=())
        size = entry_size(reach)
    return Item(kind, reach, size, group)


def link_ends(tlvs: tuple[Tlv, ...]) -> int:
    """Count the entries of TLVs that carry a bandwidth."""
    ends = 0
    for tlv in tlvs:
        if isinstance(tlv, IsReachability):
            for neighbor in tlv.neighbors:
                ends += neighbor.attributes.capacity is not None
    return ends
