"""External prefixes that lie behind a forwarding address (RFC 2328 §16.4 (3)).

Such a prefix is reached the way the address is, wherever the AS boundary router may be that
announced it. So once routes to everything else are chosen, the prefix is attached to the nodes
that serve the address, at what they say the way to it costs, and chosen like any other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fared.core.ids import NodeId, ipv4_prefix
from fared.rib.prefixes import NO_ROUTE, NOBODY, SEVERAL
from fared.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fared.rib.prefixes import PrefixTable, Reach, Selection
    from fared.ted.model import LocalLink, PrefixAttachment

Owner = tuple[int, NodeId]
Placed = dict[Owner, tuple["PrefixAttachment", ...]]
_LENGTHS = range(32, -1, -1)
_TOTAL = (1 << 33) - 1
_ELSEWHERE = NodeId(-1)
"""Stands for an AS boundary router outside the area: no node has this id."""


class Forwarded:
    """All announcements with a forwarding address, by the node they were attached to."""

    def __init__(self) -> None:
        self._announced: Placed = {}

    def __bool__(self) -> bool:
        return bool(self._announced)

    def take(
        self, area: int, node: NodeId, prefixes: tuple[PrefixAttachment, ...]
    ) -> tuple[PrefixAttachment, ...]:
        """Keep those with a forwarding address; return the others."""
        mine = tuple(item for item in prefixes if item.forward)
        if not mine:
            self._announced.pop((area, node), None)
            return prefixes
        self._announced[area, node] = mine
        return tuple(item for item in prefixes if not item.forward)

    def place(
        self,
        table: PrefixTable,
        selection: Selection,
        reach: Reach,
        links: Mapping[int, tuple[LocalLink, ...]],
    ) -> Placed:
        """Attach each prefix to the nodes that serve its address; ``links`` by area."""
        found: dict[Owner, dict[PrefixAttachment, None]] = {}
        ways: dict[int, list[tuple[Owner, int, float, PathType]]] = {}
        for (area, node), items in sorted(self._announced.items()):
            owner = table.owner(area, node)
            if owner == NOBODY or reach.distance[owner] == NO_ROUTE:
                continue
            if reach.own[owner]:  # what it redistributes itself it has a route to
                mine = found.setdefault((area, node), {})
                local = (item for item in items if item.asbr is None)
                mine.update((replace(item, forward=0), None) for item in local)
                continue
            for item in items:
                if item.asbr is not None and not reach.beyond[owner]:
                    continue
                if item.forward not in ways:
                    ways[item.forward] = list(_serve(item.forward, table, selection, reach, links))
                for at, cost, capacity, kind in ways[item.forward]:
                    found.setdefault(at, {})[_moved(item, cost, capacity, kind)] = None
        return {at: tuple(items) for at, items in found.items()}


def _moved(item: PrefixAttachment, cost: int, capacity: float, kind: PathType) -> PrefixAttachment:
    first = item.path_type is PathType.EXTERNAL_1
    return replace(
        item,
        metric=item.metric + cost if first else item.metric,
        distance=0 if first else cost,
        capacity=capacity if np.isfinite(capacity) else None,
        asbr=None if kind is PathType.INTRA_AREA else _ELSEWHERE,
        forward=0,
    )


def _serve(
    address: int,
    table: PrefixTable,
    selection: Selection,
    reach: Reach,
    links: Mapping[int, tuple[LocalLink, ...]],
) -> Iterator[tuple[Owner, int, float, PathType]]:
    """The nodes that the best match of an address leads to, and the cost from there.

    The match must not itself be external. An address on a link of this router is served by the
    neighbor that has it.
    """
    for length in _LENGTHS:
        number = table.number(ipv4_prefix(address, length))
        if not 0 <= number < len(selection.key) or selection.key[number] == NO_ROUTE:
            continue
        chosen = int(selection.owner[number])
        ends = selection.shared[number] if chosen == SEVERAL else ((chosen, np.inf),)
        _, kinds, _ = table.announcements(selection.row[number : number + 1])
        kind = PathType(int(kinds[0]))
        if kind not in (PathType.INTRA_AREA, PathType.INTER_AREA):
            return
        if any(reach.direct[owner] for owner, _ in ends):
            for area, known in sorted(links.items()):
                for link in known:
                    if link.gateway == address:
                        yield (area, link.neighbor), 0, np.inf, PathType.INTRA_AREA
            return
        total = int(selection.key[number]) & _TOTAL
        for owner, capacity in ends:
            yield table.owners[owner], total - int(reach.distance[owner]), capacity, kind
        return
