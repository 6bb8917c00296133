"""The block of one router or pseudonode: the contents of its fragments except prefixes.

``patch`` is a fast path beside ``build``: tests/isis/test_ted.py proves them equal; row ``IS-IS:
block of a router with other bandwidths``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from fared.core.ids import NodeId, Prefix
from fared.paths.ted.model import NodeBlock, PathType, PrefixReachability
from fared.protocols.isis.pdu.tlvs import MT_IPV4, NLPIDS
from fared.protocols.isis.settings import LAST_RESORT
from fared.protocols.isis.ted.fragment_facts import FragmentFacts, Links, joined, narrow_links

if TYPE_CHECKING:
    from numpy.typing import NDArray

Changed = dict[tuple[int, int | None], dict[int, None]]
"""Rows of links that changed, by the number of their fragment and the topology."""


def build(
    node_id: NodeId, fragments: Sequence[FragmentFacts], topologies: Mapping[int, int | None]
) -> dict[int, NodeBlock]:
    """The block of each family that a node takes part in, of fragments from number 0 on.

    ``topologies`` has the MT id of each family, None for the TLVs without one.
    """
    network = bool(node_id & 0xFF)
    blocks: dict[int, NodeBlock] = {}
    shared: dict[int | None, Links] = {}
    for family, topology in topologies.items():
        if not network and not _takes_part(fragments, family, topology):
            continue
        at = links_topology(node_id, topology)
        if at not in shared:
            shared[at] = _all_links(fragments, at)
        links = shared[at]
        blocks[family] = NodeBlock(
            node=node_id,
            neighbors=links.neighbors,
            metrics=links.metrics,
            capacities=links.capacities,
            availables=links.availables,
            local_ids=links.local_ids,
            remote_ids=links.remote_ids,
            # ISO 10589 §7.2.8.1; RFC 3787 §4: the overload bit of a pseudonode is ignored
            transit=network or not _overloaded(fragments[0], topology),
            hostname=next((part.hostname for part in fragments if part.hostname), None),
            network=network,
            delays=links.delays,
        )
    return blocks


def links_topology(node_id: NodeId, topology: int | None) -> int | None:
    """The topology of the TLVs that list the links of a node in ``topology``."""
    # RFC 5120 §3: the LSP of a pseudonode has no topologies; it belongs to all of them.
    return None if node_id & 0xFF else topology


def patch(
    blocks: Mapping[int, NodeBlock],
    fragments: Mapping[int, FragmentFacts],
    changed: Changed,
    topologies: Mapping[int, int | None],
    begins: Callable[[int | None], Mapping[int, int]],
) -> dict[int, NodeBlock]:
    """Copy the bandwidths of the blocks of a node, and update those of changed links.

    ``topologies`` has the topology of the links of each family, ``begins`` are the ``first_rows``
    of one. Returns the blocks of all families; those of one topology share arrays as before.
    """
    made = dict(blocks)
    columns: dict[int | None, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
    for family, topology in topologies.items():
        block = blocks[family]
        wanted = [(number, some) for (number, at), some in changed.items() if at == topology]
        if not any(some for _, some in wanted):
            continue
        found = dict(_changed_links(fragments, sorted(wanted), topology, begins(topology)))
        if topology not in columns:
            columns[topology] = block.capacities.copy(), block.availables.copy()
            for row, (capacity, available) in found.items():
                columns[topology][0][row], columns[topology][1][row] = capacity, available
        capacities, availables = columns[topology]
        made[family] = replace(block, capacities=capacities, availables=availables)
    return made


def first_rows(fragments: Mapping[int, FragmentFacts], topology: int | None) -> dict[int, int]:
    """The row of the block at which the links of each fragment begin, by its number."""
    found, first = dict[int, int](), 0
    for number in sorted(fragments):
        links = fragments[number].links.get(topology)
        if links is not None:
            found[number] = first
            first += len(links.neighbors)
    return found


def _changed_links(
    fragments: Mapping[int, FragmentFacts],
    wanted: Iterable[tuple[int, Iterable[int]]],
    topology: int | None,
    begins: Mapping[int, int],
) -> Iterator[tuple[int, tuple[float, float]]]:
    """Rows of the block with their bandwidths: it has the links of all fragments, by number."""
    for number, rows in wanted:
        links = fragments[number].links[topology]
        for row in rows:
            bandwidths = float(links.capacities[row]), float(links.availables[row])
            yield begins[number] + row, bandwidths


def default_route(
    first: FragmentFacts, family: int, topology: int | None
) -> PrefixReachability | None:
    """The default route out of the area (ISO 10589 §7.2.9.1): toward an attached router.

    ``first`` is fragment 0 of a router of level 1. One that is overloaded is the last resort: what
    lies behind it may have no other way.
    """
    # RFC 5120 §4: topologies but 0 have an attached bit of their own
    known = first.topologies.get(topology or MT_IPV4)
    attached = first.attached if topology is None else known is not None and known.attached
    if not attached:
        return None
    # the metric is that of the way to the router: the nearest one is used (§7.2.9.1)
    metric = LAST_RESORT if _overloaded(first, topology) else 0
    return PrefixReachability(Prefix(family, 0, 0), metric, PathType.LEVEL_1_DOWN)


def _takes_part(fragments: Sequence[FragmentFacts], family: int, topology: int | None) -> bool:
    """Whether a router forwards packets of a family.

    Deviation: SPF of RFC 1195 §3.10 does not look at the protocols of a router, since all routers
    of an area must support the same ones (§1.4). Here a router that lacks a family is left out of
    the graph of that family, so that no packets are sent to a router that would drop them.
    """
    # RFC 1195 §5.2, RFC 5308 §4
    if not any(NLPIDS[family] in part.nlpids for part in fragments):
        return False
    # RFC 5120 §7.1: a router without the multi-topology TLV is in topology 0 only
    if not any(part.multi_topology for part in fragments):
        return topology is None
    return topology is None or any(topology in part.topologies for part in fragments)


def _overloaded(first: FragmentFacts, topology: int | None) -> bool:
    """Whether a topology is overloaded (RFC 5120 §4); that of topology 0 is in the LSP header."""
    if topology is None:
        return first.overload
    known = first.topologies.get(topology)
    return known is not None and known.overload


def _all_links(fragments: Sequence[FragmentFacts], topology: int | None) -> Links:
    links = [part.links[topology] for part in fragments if topology in part.links]
    narrow = [neighbor for part in fragments for neighbor in part.narrow]
    # Deviation: RFC 3787 §5.2 takes the lower metric of a neighbor in TLVs 2 and 22. Narrow ones
    # end at 63; here the wide entry counts, as with routers that send TLV 22 only.
    if narrow and topology is None:
        known = {far for part in links for far in part.neighbors.tolist()}
        links.append(narrow_links(narrow, known))
    return joined(links)
