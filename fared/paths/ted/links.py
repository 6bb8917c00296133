"""Local links of any router, derived from the blocks of a saved database of either protocol.

Only a router itself knows its own links; ``offline`` guesses those of any other root here.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fared.core.ids import FAMILY_IPV4, NodeId
from fared.paths.ted.model import LocalLink, LocalNetwork, NodeBlock, PathType

HIGHEST_INDEX = 0x00FFFFFF
"""Link data below 1.0.0.0 is an interface index, not an address (RFC 2328 §12.4.1.1); so
are the link identifiers of IS-IS (RFC 5307)."""
Blocks = dict[NodeId, NodeBlock]
_WORD = 0xFFFFFFFF
_HOST_LENGTH, _PAIR_LENGTH = 32, 31


def links_of_block(
    block: NodeBlock, blocks: Blocks, family: int = FAMILY_IPV4
) -> tuple[LocalLink, ...]:
    """Guess the local links of a router from its block: one for each row, without a name.

    A virtual link is none: the next hop is on the way through its transit area. The gateway is the
    far end's IPv4 address as this router floods it, else as the far end floods
    it; 0 where the link is unnumbered. IPv6 next hops are only in hellos: always 0.
    """
    links: list[LocalLink] = []
    rows = zip(
        block.neighbors.tolist(),
        block.metrics.tolist(),
        block.local_ids.tolist(),
        block.remote_ids.tolist(),
        block.capacities.tolist(),
        strict=True,
    )
    for row, (neighbor, metric, local_id, remote_id, capacity) in enumerate(rows, start=1):
        if (neighbor, local_id) in block.virtual:
            continue
        far = blocks.get(NodeId(neighbor))
        if far is not None and far.network:
            ends = _across(block, far, blocks)
        else:
            numbered = remote_id > HIGHEST_INDEX
            gateway = remote_id if numbered else _far_address(block, far, local_id)
            ends = [(NodeId(neighbor), gateway)]
        links += [
            LocalLink(
                ifindex=row,
                interface="",
                neighbor=node,
                gateway=gateway if family == FAMILY_IPV4 else 0,
                local_id=local_id,
                metric=metric,
                bandwidth=None if np.isnan(capacity) else capacity,
                family=family,
            )
            for node, gateway in ends
        ]
    return tuple(links)


def networks_of_block(
    block: NodeBlock, blocks: Blocks, links: Iterable[LocalLink]
) -> tuple[LocalNetwork, ...]:
    """Guess the networks of a router from its block: stub networks, and the LANs that it is on.

    ``links`` are its local links, which tell the interfaces of networks with a neighbor; any other
    network counts as on an interface of its own, without a name.
    """
    found = [
        (item.prefix, metric)
        for neighbor, metric in zip(block.neighbors.tolist(), block.metrics.tolist(), strict=True)
        if (far := blocks.get(NodeId(neighbor))) is not None and far.network
        for item in far.prefixes
    ]
    found += [
        (item.prefix, item.metric)
        for item in block.prefixes
        if item.path_type is PathType.INTRA_AREA and item.prefix.length < _HOST_LENGTH
    ]
    own, ways = block.local_ids.tolist(), tuple(links)
    networks = []
    for number, (prefix, metric) in enumerate(found, start=len(own) + 1):
        link = next((link for link in ways if prefix.contains(link.local_id)), None)
        broadcast = [prefix.network | ~prefix.mask & _WORD] if prefix.length < _PAIR_LENGTH else []
        networks.append(
            LocalNetwork(
                prefix=prefix,
                ifindex=number if link is None else link.ifindex,
                interface="" if link is None else link.interface,
                metric=metric,
                bandwidth=None if link is None else link.bandwidth,
                refused=frozenset([*filter(prefix.contains, own), *broadcast]),
            )
        )
    return tuple(networks)


def _across(block: NodeBlock, network: NodeBlock, blocks: Blocks) -> list[tuple[NodeId, int]]:
    """Return the other routers on a transit network, with addresses (RFC 2328 §16.1.1)."""
    found: list[tuple[NodeId, int]] = []
    for router in network.neighbors.tolist():
        far = blocks.get(NodeId(router))
        if far is None or router == block.node:
            continue
        addresses = far.local_ids[far.neighbors == network.node].tolist()
        found += [(NodeId(router), a if a > HIGHEST_INDEX else 0) for a in addresses]
    return found


def _far_address(block: NodeBlock, far: NodeBlock | None, local_id: int) -> int:
    """Return the far end's address toward us that is closest to ours; 0 if unnumbered."""
    if far is None or local_id <= HIGHEST_INDEX:
        return 0
    candidates = far.local_ids[far.neighbors == block.node]
    numbered = [address for address in candidates.tolist() if address > HIGHEST_INDEX]
    return min(numbered, key=lambda address: address ^ local_id, default=0)
