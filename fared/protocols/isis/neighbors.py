"""The IS neighbors of a circuit with TE, by topology (RFC 5305, 5307, 5120, 8570).

Our LSPs advertise them, and the TED derives local links from them.
"""

from __future__ import annotations

from collections.abc import Iterator

from fared.core.ids import FAMILY_IPV6
from fared.paths.te.advertise import te_attributes
from fared.protocols.isis.addresses import link_ends, next_hop, own_addresses
from fared.protocols.isis.circuit import Adjacency, Circuit
from fared.protocols.isis.ids import Level
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.tlvs import MT_IPV4, MT_IPV6, TOPOLOGIES, IsNeighbor

_MAX_TE_METRIC = 0xFF_FFFF
Topologies = tuple[int | None, ...]


def topology_of(instance: Instance, family: int) -> int | None:
    """The MT id for a family; None: the TLVs without one."""
    apart = instance.settings.multi_topology and family == FAMILY_IPV6
    return MT_IPV6 if apart else None


def runs_level(instance: Instance, circuit: Circuit, level: Level) -> bool:
    """Whether a circuit takes part in a level."""
    return bool(circuit.settings.levels & instance.settings.levels & level)


def neighbors(
    instance: Instance, circuit: Circuit, level: Level
) -> Iterator[tuple[IsNeighbor, Topologies, list[Adjacency]]]:
    """The neighbors of a circuit: the entry, its topologies, its adjacencies."""
    if circuit.loopback or not circuit.up:
        return
    # RFC 8706 §3.2.2: not those that ask for it
    adjacencies = [a for a in circuit.adjacencies(level) if not a.suppressed]
    if not circuit.broadcast:
        for adjacency in adjacencies:
            # Not in ISO 10589: one that cannot forward would attract packets and lose them.
            if not _forwards(instance, circuit, adjacency):
                continue
            entry = _point_to_point(instance, circuit, adjacency)
            yield entry, _shared_topologies(instance, [adjacency]), [adjacency]
        return
    # ISO 10589 §7.3.7, §7.3.9: on a LAN the pseudonode is the neighbor
    lan = circuit.lan.get(level)
    if lan is not None and lan.dis and adjacencies:
        entry = _to_network(instance, circuit, lan.dis)
        yield entry, _shared_topologies(instance, adjacencies), adjacencies


def _forwards(instance: Instance, circuit: Circuit, adjacency: Adjacency) -> bool:
    """Whether packets of any family can be sent to a neighbor."""
    families = instance.settings.families
    return any(next_hop(instance, circuit, adjacency, family) for family in families)


def _shared_topologies(instance: Instance, adjacencies: list[Adjacency]) -> Topologies:
    """Topologies to advertise a circuit in (RFC 5120 §3); None: the TLVs without MT id."""
    # §2.1, §2.2: those that at least one neighbor has in its hellos
    if not instance.settings.multi_topology:
        return (None,)
    theirs = {topology for adjacency in adjacencies for topology in adjacency.topologies}
    ours = [TOPOLOGIES[family] for family in sorted(instance.settings.families)]
    return tuple([None if t == MT_IPV4 else t for t in ours if t in theirs])


def _point_to_point(instance: Instance, circuit: Circuit, adjacency: Adjacency) -> IsNeighbor:
    # RFC 5305 §3.2, §3.3: the addresses of both ends; RFC 5307 §1.1: the ids of both ends, of which
    # the remote one is the neighbor's extended local circuit id (RFC 5303), 0 if unknown
    ends = link_ends(instance, circuit, adjacency)
    return IsNeighbor(
        neighbor=adjacency.system_id << 8,
        metric=circuit.settings.metric,
        attributes=te_attributes(circuit, min(circuit.settings.metric, _MAX_TE_METRIC)),
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
        attributes=te_attributes(circuit, min(circuit.settings.metric, _MAX_TE_METRIC)),
        local_addresses=tuple(own[:1]),
        local_id=circuit.ifindex,
        remote_id=0,
    )
