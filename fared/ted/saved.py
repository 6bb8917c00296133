"""What can be read off the blocks of a saved database, whatever protocol they came by.

A router's own links are known to itself only; for anybody else they are guessed from what is
flooded. ``Ignored`` is how the offline tool says what did not count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fared.core.ids import FAMILY_IPV4, NodeId, format_node
from fared.ted.model import LocalLink, NodeBlock

HIGHEST_INDEX = 0x00FFFFFF
"""Link data below 1.0.0.0 is an interface index, not an address (RFC 2328 §12.4.1.1); so
are the link identifiers of IS-IS (RFC 5307)."""
Blocks = dict[NodeId, NodeBlock]


class Ignored(NamedTuple):
    """What did not count, and why.

    ``reason``: maxage, checksum, malformed, unsupported, no-first-fragment, one-way, overload
    or unreachable.
    """

    key: str
    reason: str


def one_way(blocks: Blocks) -> list[Ignored]:
    """Links that their far end does not confirm (RFC 2328 §16.1 (2)(b))."""
    toward = {node: set(block.neighbors.tolist()) for node, block in blocks.items()}
    return [
        Ignored(f"{format_node(node)} -> {format_node(far)}", "one-way")
        for node, neighbors in toward.items()
        for far in sorted(neighbors)
        if node not in toward.get(far, ())
    ]


def overloaded(blocks: Blocks) -> list[Ignored]:
    """Routers that are not to be passed through (RFC 6987)."""
    return [
        Ignored(format_node(node), "overload")
        for node, block in blocks.items()
        if not block.transit
    ]


def links_of_block(
    block: NodeBlock, blocks: Blocks, family: int = FAMILY_IPV4
) -> tuple[LocalLink, ...]:
    """Local links of any router, guessed from what is flooded: one a row, without a name.

    The far end's IPv4 address is what this router floods as such, else what the far end does
    of its own; 0 where the link is unnumbered. IPv6 next hops are in hellos alone: always 0.
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


def _across(block: NodeBlock, network: NodeBlock, blocks: Blocks) -> list[tuple[NodeId, int]]:
    """The other routers on a transit network and the addresses they have there (§16.1.1)."""
    found: list[tuple[NodeId, int]] = []
    for router in network.neighbors.tolist():
        far = blocks.get(NodeId(router))
        if far is None or router == block.node:
            continue
        addresses = far.local_ids[far.neighbors == network.node].tolist()
        found += [(NodeId(router), a if a > HIGHEST_INDEX else 0) for a in addresses]
    return found


def _far_address(block: NodeBlock, far: NodeBlock | None, local_id: int) -> int:
    """The far end of a numbered link: of its addresses toward us the one most like ours."""
    if far is None or local_id <= HIGHEST_INDEX:
        return 0
    candidates = far.local_ids[far.neighbors == block.node]
    numbered = [address for address in candidates.tolist() if address > HIGHEST_INDEX]
    return min(numbered, key=lambda address: address ^ local_id, default=0)
