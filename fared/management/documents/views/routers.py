"""The routers of the graph: in BGP, groups of prefixes are vertices too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from fared.core.ids import GROUP_NODE, NodeId, is_group
from fared.paths.ted.model import NodeBlock
from fared.router.protocols import BGP

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.router.instance import ProtocolInstance


def routers(instance: ProtocolInstance, nodes: Iterable[NodeId]) -> list[NodeId]:
    """Return the vertices that are no groups."""
    if instance.name != BGP:
        return list(nodes)
    return [node for node in nodes if not is_group(node)]


def router_blocks(
    context: ViewContext, instance: ProtocolInstance, blocks: Mapping[NodeId, NodeBlock]
) -> Mapping[NodeId, NodeBlock]:
    """Return the blocks of routers, with their hostnames, without their links to groups."""
    if instance.name != BGP:
        return blocks
    names = context.hostnames
    return {
        node: _of_router(block, names.get(node))
        for node, block in blocks.items()
        if not is_group(node)
    }


def _of_router(block: NodeBlock, hostname: str | None) -> NodeBlock:
    kept = block.neighbors & GROUP_NODE == 0
    if np.all(kept) and hostname == block.hostname:
        return block
    return replace(
        block,
        hostname=hostname,
        neighbors=block.neighbors[kept],
        metrics=block.metrics[kept],
        capacities=block.capacities[kept],
        availables=block.availables[kept],
        local_ids=block.local_ids[kept],
        remote_ids=block.remote_ids[kept],
    )
