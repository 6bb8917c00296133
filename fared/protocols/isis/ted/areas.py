"""The ways out of the area, for the attached bit (ISO 10589 §7.2.9.2).

A router of another area is one whose LSPs share no area address with this router, reached in level
2 over links that SPF may use. Topologies are not distinguished.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from fared.core.ids import NodeId, isis_node
from fared.paths.ted.model import MAX_LINK_METRIC
from fared.protocols.isis.ted.fragment_facts import FragmentFacts, Links

if TYPE_CHECKING:
    from numpy.typing import NDArray

Fragments = Mapping[int, FragmentFacts]
"""The fragments of one node, by their numbers."""


def reaches_other_area(
    own: NodeId, areas: frozenset[bytes], fragments_of: Callable[[NodeId], Fragments]
) -> bool:
    """Whether level 2 reaches a router that shares no area with this one."""
    for node_id in _reached(own, fragments_of):
        theirs = {area for part in fragments_of(node_id).values() for area in part.areas}
        if theirs and not theirs & areas:
            return True
    return False


def is_only_way_out(own: NodeId, fragments_of: Callable[[NodeId], Fragments]) -> bool:
    """Whether level 1 has routers whose attached routers are all overloaded, without this one."""
    seen = {own}
    for near in _two_way(own, fragments_of, seen):
        if near in seen:
            continue
        part = set(_reached(near, fragments_of, without=(own,)))
        if not any(_leads_out(fragments_of(node_id)) for node_id in part):
            return True
        if not _overloaded(near, fragments_of):
            seen |= part
    return False


def _reached(
    root: NodeId, fragments_of: Callable[[NodeId], Fragments], without: Iterable[NodeId] = ()
) -> Iterator[NodeId]:
    """The nodes that SPF reaches from one of them; ``without``: not through these nodes."""
    seen, todo = {root, *without}, [root]
    while todo:
        node_id = todo.pop()
        # §7.2.5: without LSP number 0 the others are ignored
        if 0 not in fragments_of(node_id):
            continue
        yield node_id
        # §7.2.8.1: no transit through an overloaded router
        if node_id == root or not _overloaded(node_id, fragments_of):
            found = _two_way(node_id, fragments_of, seen)
            seen.update(found)
            todo += found


def _two_way(
    node_id: NodeId, fragments_of: Callable[[NodeId], Fragments], seen: set[NodeId]
) -> list[NodeId]:
    """The neighbors not yet seen to which a node has links that SPF may use, ascending."""
    # §7.2.8.2: the far end must list this node, too
    return [
        NodeId(far)
        for far in sorted(_neighbors(fragments_of(node_id), usable=True) - seen)
        if node_id in _neighbors(fragments_of(NodeId(far)), usable=False)
    ]


def _overloaded(node_id: NodeId, fragments_of: Callable[[NodeId], Fragments]) -> bool:
    """Whether a node has the overload bit, which is ignored of a pseudonode (RFC 3787 §4)."""
    first = fragments_of(node_id).get(0)
    return first is not None and first.overload and not node_id & 0xFF


def _leads_out(fragments: Fragments) -> bool:
    """Whether a node is attached, and no last resort."""
    return 0 in fragments and fragments[0].attached and not fragments[0].overload


def same_ways(a: FragmentFacts, b: FragmentFacts) -> bool:
    """Whether two instances of a fragment list the same neighbors, areas and bits."""
    return (
        (a.areas, a.overload, a.attached, a.narrow) == (b.areas, b.overload, b.attached, b.narrow)
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
