"""Networks of two routers as links between them: most links of a fabric, if nobody set their type.

OSPF and IS-IS describe a broadcast network as a node of its own. People see a cable.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping

import msgspec
import numpy as np
from msgspec.structs import replace

from fared.core.ids import NodeId
from fared.paths.ted.model import NodeBlock

Blocks = Mapping[NodeId, list[NodeBlock]]
_PAIR = 2


class Cabled(msgspec.Struct, frozen=True):
    """Blocks in which networks of two routers, ``pairs``, are links; ``given``: as flooded."""

    given: Blocks
    pairs: Mapping[NodeId, tuple[int, ...]]
    blocks: Blocks


def cabled(given: Blocks, before: Cabled | None) -> Cabled:
    """Replace networks of two routers; what is as in ``before`` is made once."""
    pairs = {
        node: tuple(blocks[0].neighbors.tolist())
        for node, blocks in given.items()
        if blocks[0].network and len(blocks[0].neighbors) == _PAIR
    }
    if not pairs:
        return Cabled(given, pairs, given)
    known = None if before is None or before.pairs != pairs else before
    blocks = {
        node: _same(known, node, mine) or [_across(block, pairs) for block in mine]
        for node, mine in given.items()
        if node not in pairs
    }
    return Cabled(given, pairs, blocks)


def _same(known: Cabled | None, node: NodeId, mine: list[NodeBlock]) -> list[NodeBlock] | None:
    old = None if known is None else known.given.get(node)
    if known is None or old is None or len(old) != len(mine):
        return None
    return known.blocks[node] if all(map(operator.is_, old, mine)) else None


def _across(block: NodeBlock, pairs: Mapping[NodeId, tuple[int, ...]]) -> NodeBlock:
    """Let rows toward networks of two routers lead to the other one."""
    rows = np.flatnonzero(np.isin(block.neighbors, list(pairs)))
    if not len(rows):
        return block
    neighbors = block.neighbors.copy()
    for row in rows.tolist():
        ends = pairs[NodeId(int(neighbors[row]))]
        neighbors[row] = next((end for end in ends if end != block.node), neighbors[row])
    return replace(block, neighbors=neighbors)
