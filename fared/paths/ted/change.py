"""Kinds of changes of the database: a scale of what they can alter, from TED to SPF schedule.

A link counts once both of its ends list it (the two-way check, RFC 2328 §16.1 (2)(b), ISO 10589
§7.2.8.2). When a link comes up, the first end to list it changes no path yet; when it fails, the
second end to drop it changes no path any more. Such a one-way change must not use up the immediate
first SPF of the back-off (RFC 8405) just before the other end's LSA or LSP arrives.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fared.core.ids import NodeId
from fared.paths.ted.compare import same_role
from fared.paths.ted.graph import anywhere
from fared.paths.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from fared.paths.ted.graph import Graph
    from fared.paths.ted.model import LocalLink, NodeBlock, PrefixReachability
    from fared.paths.ted.rows import LinkRows

Columns = list["NDArray[np.int64]"]
_OUTSIDE = (
    PathType.EXTERNAL_1,
    PathType.EXTERNAL_2,
    PathType.LEVEL_1_REDISTRIBUTED,
    PathType.LEVEL_2_REDISTRIBUTED,
)


class ChangeKind(enum.IntEnum):
    """What a change can alter, in ascending order; of several changes the greatest kind counts."""

    NONE = 0
    LOAD = 1
    """Available bandwidth of links: weights that follow load."""
    DELAY = 2
    """Delay of links: next hops, where they are chosen by it."""
    ADVERTISED = 3
    """The capacity advertised with a prefix from elsewhere, or its tag: weights toward it."""
    CAPACITY = 4
    """Capacity of links: weights."""
    PREFIX = 5
    """Prefixes, or the role of a router: routes, but no path between routers."""
    ONE_WAY = 6
    """A link that its other end does not list yet: no path, but possibly prefixes."""
    DROPPED = 7
    """A lost link that its other end has dropped before: no path, but the network of the link."""
    TOPOLOGY = 8
    """Links or their metrics: paths."""
    LOSS = 9
    """A path, or the route to a prefix behind a router, is gone or longer: traffic may be lost."""


class GraphDelta(msgspec.Struct, frozen=True):
    """The present graph of an area, and how it differs from an earlier version of it.

    ``kind`` is NONE, LOAD, DELAY or CAPACITY if only values of the same graph changed, TOPOLOGY if
    the graph is another object. ``cut``: the edges of the earlier graph (ascending) whose loss is
    the only difference besides capacities; None if there are other differences. ``cut_alone``:
    there is a cut, and all other edges have the same capacities.
    """

    graph: Graph
    version: int
    kind: ChangeKind
    cut: tuple[int, ...] | None
    cut_alone: bool = False


def change_of_links(
    routers: Mapping[NodeId, LinkRows | NodeBlock],
    old: NodeBlock,
    new: NodeBlock,
    lost: NodeId | None = None,
) -> ChangeKind:
    """Compare two descriptions of one router, whose links may differ; capacities are ignored.

    ``routers`` may hold the old or the new description of it; ``lost`` is the far end of
    ``lost_row``.
    """
    before, after = columns_of(old), columns_of(new)
    ends = _ends(before, after) if lost is None else {lost}
    if not ends:
        return ChangeKind.NONE if same_role(old, new) else ChangeKind.PREFIX
    fewer = len(after[0]) < len(before[0])
    # RFC 2328 §16.1 (2)(b), ISO 10589 §7.2.8.2: the graph has no link that one end lists
    if same_role(old, new) and not any(lists(routers, end, new.node) for end in ends):
        return ChangeKind.DROPPED if fewer else ChangeKind.ONE_WAY
    return ChangeKind.LOSS if fewer else ChangeKind.TOPOLOGY


def lost_row(old: NodeBlock, new: NodeBlock) -> int | None:
    """Return the row of the only link to its neighbor, which a router has lost.

    None if links differ more.
    """
    if len(new.neighbors) != len(old.neighbors) - 1:
        return None
    row = one_more(columns_of(old), columns_of(new))
    return None if row is None or anywhere(new.neighbors == old.neighbors[row]) else row


def change_of_adjacencies(
    routers: Mapping[NodeId, LinkRows | NodeBlock],
    root: NodeId,
    old: tuple[LocalLink, ...],
    new: tuple[LocalLink, ...],
) -> ChangeKind:
    """Compare the full adjacencies of this router."""
    if len(new) < len(old):
        return ChangeKind.LOSS
    ends = {link.neighbor for link in set(new) ^ set(old)}
    listed = not routers or any(lists(routers, end, root) for end in ends)
    return ChangeKind.TOPOLOGY if listed else ChangeKind.ONE_WAY


def columns_of(links: NodeBlock | LinkRows) -> Columns:
    """Return the links of a router: neighbor, metric, ids at both ends."""
    return [links.neighbors, links.metrics, links.local_ids, links.remote_ids]


def _ends(old: Columns, new: Columns) -> set[int]:
    """Return the neighbors whose links differ."""
    if abs(len(new[0]) - len(old[0])) == 1:  # usually one link failed or came up
        more, less = (new, old) if len(new[0]) > len(old[0]) else (old, new)
        place = one_more(more, less)
        if place is not None:
            return {int(more[0][place])}
    # Several differ: compare them as sets.
    before, after = (set(zip(*[c.tolist() for c in links], strict=True)) for links in (old, new))
    return {link[0] for link in before ^ after}


def one_more(more: Columns, less: Columns) -> int | None:
    """Return the place of the one link that ``less`` lacks, None if there are other differences."""
    size = more[0].itemsize
    place = _common(more[0].tobytes(), less[0].tobytes(), size)
    for longer, shorter in zip(more, less, strict=True):
        values = longer.tobytes()
        if values[: place * size] + values[(place + 1) * size :] != shorter.tobytes():
            return None
    return place


def _common(longer: bytes, shorter: bytes, size: int) -> int:
    """Count the values of ``size`` bytes with which both begin; quickest as bytes."""
    low, high = 0, len(shorter) // size
    while low < high:
        middle = (low + high + 1) // 2
        if longer[: middle * size] == shorter[: middle * size]:
            low = middle
        else:
            high = middle - 1
    return low


def lists(routers: Mapping[NodeId, LinkRows | NodeBlock], end: int, node: int) -> bool:
    """Whether the router at the far end lists this one."""
    rows = routers.get(NodeId(end))
    return rows is not None and rows.lists(node)


def change_of_prefix(old: PrefixReachability | None, new: PrefixReachability | None) -> ChangeKind:
    """Compare two advertisements of one prefix by one router; None: not advertised.

    A lost external prefix is no LOSS: there may be too many of them to run at once for each.
    """
    if old is new or old == new:
        return ChangeKind.NONE
    if (
        old is not None
        and new is not None
        and replace(old, capacity=new.capacity, tag=new.tag) == new
    ):
        return ChangeKind.ADVERTISED
    if old is None or old.path_type in _OUTSIDE:
        return ChangeKind.PREFIX
    if new is None:
        return change_of_withdrawal(old.path_type)
    longer = new.prefix != old.prefix or new.metric > old.metric
    return ChangeKind.LOSS if longer else ChangeKind.PREFIX


def change_of_withdrawal(path_type: PathType) -> ChangeKind:
    """The kind of change if an advertisement of a path type is withdrawn."""
    return ChangeKind.PREFIX if path_type in _OUTSIDE else ChangeKind.LOSS
