"""Whether level 2 reaches other areas, for the attached bit (ISO 10589 §7.2.9.2).

A router of another area is one whose LSPs share no area address with this router, reached over
links that SPF may use. Topologies are not distinguished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from fared.core.ids import NodeId, isis_node
from fared.isis.ted.fragment_facts import FragmentFacts, Links
from fared.ted.model import MAX_LINK_METRIC

if TYPE_CHECKING:
    from numpy.typing import NDArray

Fragments = Mapping[int, FragmentFacts]
"""The fragments of one node, by their numbers."""


def reaches_other_area(
    own: NodeId, areas: frozenset[bytes], fragments_of: Callable[[NodeId], Fragments]
) -> bool:
    """Whether level 2 reaches a router that shares no area with this one."""
    seen, todo = {own}, [own]
    while todo:
        node_id = todo.pop()
        here = fragments_of(node_id)
        # §7.2.5: without LSP number 0 the others are ignored
        if 0 not in here:
            continue
        theirs = {area for part in here.values() for area in part.areas}
        if theirs and not theirs & areas:
            return True
        # §7.2.8.1: no transit through an overloaded router; RFC 3787 §4: ignored of a pseudonode
        if here[0].overload and node_id != own and not node_id & 0xFF:
            continue
        # §7.2.8.2: the far end must list this node, too
        for far in sorted(_neighbors(here, usable=True) - seen):
            if node_id in _neighbors(fragments_of(NodeId(far)), usable=False):
                seen.add(NodeId(far))
                todo.append(NodeId(far))
    return False


def same_ways(a: FragmentFacts, b: FragmentFacts) -> bool:
    """Whether two instances of a fragment list the same neighbors and areas."""
    return (
        (a.areas, a.overload, a.narrow) == (b.areas, b.overload, b.narrow)
        and a.links.keys() == b.links.keys()
        and all(_same_links(a.links[t], b.links[t]) for t in a.links)
    )


def _same_links(a: Links, b: Links) -> bool:
    """Whether links lead to the same neighbors, and the same of them are usable."""
    if a.neighbors is b.neighbors and a.metrics is b.metrics:  # only bandwidths were read again
        return True
    return np.array_equal(a.neighbors, b.neighbors) and np.array_equal(_usable(a), _usable(b))


def _usable(links: Links) -> NDArray[np.bool_]:
    """The links that SPF may use: none with the maximum link metric (RFC 5305 §3)."""
    return links.metrics < MAX_LINK_METRIC


def _neighbors(fragments: Fragments, *, usable: bool) -> set[int]:
    """Neighbors that a node lists in any topology; ``usable``: over links that SPF may use."""
    found = {
        far
        for part in fragments.values()
        for links in part.links.values()
        for far in (links.neighbors[_usable(links)] if usable else links.neighbors).tolist()
    }
    for part in fragments.values():
        found.update(isis_node(n.neighbor >> 8, n.neighbor & 0xFF) for n in part.narrow)
    return found
