"""What a new description of a router means for routes: how soon to compute.

A link counts once both of its ends tell of it (the two-way check, RFC 2328 §16.1 (2)(b), ISO
10589 §7.2.8.2). When it comes up the first end to speak changes no path yet; when it fails the
second one changes none any more. Its word is not worth a run of its own, and must not use up the
quick first run of the back-off (RFC 8405) just before the other end's word comes in.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from fared.core.ids import NodeId
from fared.ted.compare import announces_less, same_role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fared.ted.database import Ted
    from fared.ted.model import LocalLink, NodeBlock


class News(enum.Enum):
    """How much a change matters."""

    FLOATS = "floats"
    """Capacities only: no path is another."""
    ONE_SIDED = "one-sided"
    """A link that the other end does not tell of: no path is another, prefixes may be."""
    TOPOLOGY = "topology"
    LOSS = "loss"
    """A path is gone, or has become longer behind who announces it: others may be dead."""


def news_of_block(ted: Ted | None, old: NodeBlock | None, new: NodeBlock | None) -> News:
    """What became of a router; ``ted`` may hold its old or its new description.

    Called only where more than capacities changed.
    """
    if ted is None or old is None or new is None:
        return News.TOPOLOGY if new is not None else News.LOSS
    before, after = _rows(old), _rows(new)
    ends = {row[0] for row in before ^ after}
    if ends and same_role(old, new) and not any(_tells_of(ted, end, new.node) for end in ends):
        return News.ONE_SIDED
    lost = len(after) < len(before) if ends else announces_less(old.prefixes, new.prefixes)
    return News.LOSS if lost else News.TOPOLOGY


def news_of_links(
    ted: Ted | None, root: NodeId, old: tuple[LocalLink, ...], new: tuple[LocalLink, ...]
) -> News:
    """What became of the full adjacencies of this router."""
    if len(new) < len(old):
        return News.LOSS
    came = {link.neighbor for link in set(new) ^ set(old)}
    if ted is None or any(_tells_of(ted, end, root) for end in came):
        return News.TOPOLOGY
    return News.ONE_SIDED


def _rows(block: NodeBlock) -> set[tuple[int, ...]]:
    columns: Iterable[list[int]] = (
        column.tolist()
        for column in (block.neighbors, block.metrics, block.local_ids, block.remote_ids)
    )
    return set(zip(*columns, strict=True))


def _tells_of(ted: Ted, end: int, node: int) -> bool:
    """Whether the router at the far end lists this one."""
    block = ted.block(NodeId(end))
    return block is not None and bool((block.neighbors == node).any())
