"""The circuits of the router on which a database was saved, and the local links over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from fared.core.ids import NodeId, isis_node
from fared.core.links import InterfaceAddress
from fared.extensions.offline.changes import Direction
from fared.paths.ted.links import Blocks
from fared.paths.ted.model import LocalLink, NodeBlock
from fared.protocols.isis.addresses import gateway_of
from fared.protocols.isis.ids import Level


class SavedAdjacency(NamedTuple):
    """An adjacency that is Up in a level. The addresses are those of the neighbor's hellos."""

    system_id: int
    level: Level
    ipv4: tuple[int, ...]
    ipv6: tuple[int, ...]


class SavedCircuit(msgspec.Struct, frozen=True):
    """A circuit of the router on which the database was saved.

    ``ifindex`` 0 means unknown; ``addresses`` are IPv4 addresses; ``bandwidth`` is in bytes/s.
    """

    name: str
    ifindex: int
    broadcast: bool
    addresses: tuple[InterfaceAddress, ...]
    bandwidth: float | None
    adjacencies: tuple[SavedAdjacency, ...]


def links_of_circuits(
    block: NodeBlock,
    blocks: Blocks,
    circuits: Iterable[SavedCircuit],
    *,
    level: Level,
    family: int,
    assumed: Mapping[Direction, float],
) -> tuple[LocalLink, ...]:
    """The local links of the router on which the database was saved.

    A link is included while the router advertises it, so a link that is assumed to fail is not.
    ``assumed`` are bandwidths that replace those of the file.
    """
    claimed: set[int] = set()
    links: list[LocalLink] = []
    for number, circuit in enumerate(circuits, start=1):
        for adjacency in circuit.adjacencies:
            hop = gateway_of(circuit.addresses, adjacency.ipv4, adjacency.ipv6, family)
            rows = _rows(block, blocks, circuit, adjacency)
            row = next((at for at in rows if at not in claimed), None)
            if hop is None or row is None or adjacency.level is not level:
                continue
            if not circuit.broadcast and int(block.local_ids[row]):
                claimed.add(row)
            gateway, gateway_family, onlink = hop
            way = block.node, int(block.neighbors[row])
            links.append(
                LocalLink(
                    ifindex=circuit.ifindex or number,
                    interface=circuit.name,
                    neighbor=isis_node(adjacency.system_id),
                    gateway=gateway,
                    local_id=int(block.local_ids[row]),
                    metric=int(block.metrics[row]),
                    bandwidth=assumed.get(way, circuit.bandwidth),
                    family=gateway_family,
                    onlink=onlink,
                )
            )
    return tuple(sorted(links, key=lambda link: link.ifindex))


def _rows(
    block: NodeBlock, blocks: Blocks, circuit: SavedCircuit, adjacency: SavedAdjacency
) -> Iterator[int]:
    """The rows of the block that can be this adjacency: equal link ids first, then rows without."""
    node = isis_node(adjacency.system_id)
    ids = {*(address.address for address in circuit.addresses), circuit.ifindex}
    leading = [
        row
        for row, far in enumerate(block.neighbors.tolist())
        if (_joins(blocks.get(NodeId(far)), node) if circuit.broadcast else far == node)
    ]
    local_ids = block.local_ids[leading].tolist()
    yield from (row for row, mine in zip(leading, local_ids, strict=True) if mine in ids - {0})
    yield from (row for row, mine in zip(leading, local_ids, strict=True) if not mine)
    if not circuit.ifindex:
        yield from leading


def _joins(network: NodeBlock | None, node: NodeId) -> bool:
    """Whether a pseudonode lists a router."""
    return network is not None and network.network and node in network.neighbors
