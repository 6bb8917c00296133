"""How many prefixes each router has that no other one advertises: those of its hosts and loopbacks.

Both ends of a link advertise its prefix. What border and AS boundary routers pass on from elsewhere
is not theirs. Views rank routers by these numbers (``ted.tiers``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from fared.paths.rib.rows import path_types
from fared.paths.ted.model import PathType

if TYPE_CHECKING:
    from fared.core.ids import NodeId, Prefix
    from fared.paths.rib.prefixes import PrefixTable

_INSIDE = (PathType.INTRA_AREA, PathType.LEVEL_1, PathType.LEVEL_2)


def own_prefixes(
    table: PrefixTable, externals: Iterable[tuple[NodeId, Prefix]]
) -> dict[NodeId, int]:
    """Return the number of own prefixes of each router that has any.

    ``externals`` are prefixes of others that a router advertises with a path type of ``_INSIDE``.
    """
    content, (_, nodes) = table.read(), table.advertiser_arrays()
    inside = (content.advertiser > 0) & np.isin(path_types(content.key), _INSIDE)
    for node, prefix in externals:
        for row in table.rows_of_one(table.number(prefix)):
            inside[row] &= nodes[content.advertiser[row]] != node
    (rows,) = inside.nonzero()
    numbers, ends = content.number[rows], nodes[content.advertiser[rows]]
    last = np.zeros(len(table.prefixes), np.int64)
    last[numbers] = np.arange(len(rows))
    others = ends != ends[last[numbers]]
    shared = np.zeros(len(table.prefixes), bool)
    shared[numbers[others]] = True
    # of a prefix that a router advertises in several areas, the last row counts
    alone = ~shared[numbers] & (last[numbers] == np.arange(len(rows)))
    found, counts = np.unique(ends[alone], return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))
