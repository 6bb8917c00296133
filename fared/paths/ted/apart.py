"""The routers that have no two-way link: in no path, and so not in the graph.

Who has a neighbor that lists him back is in the graph, and stays there until he is removed. Of the
others only the blocks are kept.
"""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING, Any, cast

from fared.paths.ted.change import ChangeKind, change_of_links
from fared.paths.ted.compare import same_role
from fared.paths.ted.rows import same_links

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from fared.core.ids import NodeId
    from fared.paths.ted.model import NodeBlock
    from fared.paths.ted.rows import LinkRows


_FIRST = 4
"""Neighbors of which one mostly shows whether a router is linked."""


class Apart:
    """Their blocks by node id; ``rows`` has the routers in the graph."""

    def __init__(self, rows: MutableMapping[NodeId, LinkRows]) -> None:
        self._rows = rows
        self.blocks: dict[NodeId, NodeBlock] = {}
        self.all = cast(
            "Mapping[NodeId, LinkRows | NodeBlock]", ChainMap[Any, Any](rows, self.blocks)
        )
        """Those in the graph, too."""

    def linked(self, block: NodeBlock) -> bool:
        """Whether any neighbor of a router lists it back."""
        if self._linked_to(block.neighbors[:_FIRST].tolist(), block.node):
            return True
        ends = block.neighbors[_FIRST:].tolist()
        # While a database is loaded most neighbors are there, or none.
        nowhere = self._rows.keys().isdisjoint(ends) and self.blocks.keys().isdisjoint(ends)
        return not nowhere and self._linked_to(ends, block.node)

    def _linked_to(self, ends: list[NodeId], node: NodeId) -> bool:
        rows, blocks = self._rows, self.blocks
        for end in ends:
            known = rows.get(end) or blocks.get(end)
            if known is not None and end != node and known.lists(node):
                return True
        return False

    def joined_by(self, block: NodeBlock) -> list[NodeBlock]:
        """Remove and return those to which a router in the graph has a two-way link."""
        if not self.blocks:
            return []
        ends = dict.fromkeys([end for end in block.neighbors.tolist() if end in self.blocks])
        return [self.blocks.pop(end) for end in ends if self.blocks[end].lists(block.node)]

    def put(self, block: NodeBlock) -> ChangeKind:
        """Store a block without two-way links; return the kind of change, prefixes ignored."""
        old, self.blocks[block.node] = self.blocks.get(block.node), block
        if old is None:
            return ChangeKind.ONE_WAY
        if same_links(old, block):
            return ChangeKind.NONE if same_role(old, block) else ChangeKind.PREFIX
        return change_of_links(self._rows, old, block)
