"""The links that this router can forward over: one for each adjacency, level and family."""

from __future__ import annotations

from collections.abc import Iterator

from fared.core.ids import isis_node
from fared.paths.ted.model import LocalLink
from fared.protocols.isis.addresses import next_hop
from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.ids import Level
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.neighbors import neighbors, runs_level, topology_of
from fared.protocols.isis.ted.fragment_facts import link_ids


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
            hop = next_hop(instance, circuit, adjacency, family)
            if hop is None:
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
