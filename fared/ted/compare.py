"""What two descriptions of one router differ in: engines tell news of capacity from the rest."""

from __future__ import annotations

import math
from enum import Enum, auto
from typing import TYPE_CHECKING

from fared.ted.model import PathType

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from fared.ted.model import NodeBlock, PrefixAttachment


_OUTSIDE = (
    PathType.EXTERNAL_1,
    PathType.EXTERNAL_2,
    PathType.LEVEL_1_REDISTRIBUTED,
    PathType.LEVEL_2_REDISTRIBUTED,
)


class Difference(Enum):
    """How far two descriptions of a router lie apart."""

    NONE = auto()
    DETAILS = auto()
    """Nothing but capacities, or what the router is called."""
    SHAPE = auto()


def difference(a: NodeBlock | None, b: NodeBlock | None) -> Difference:
    """What two blocks of one router differ in; None is a router that is not there."""
    if a is b:
        return Difference.NONE
    if a is None or b is None or not _same_shape(a, b):
        return Difference.SHAPE
    same = (
        a.prefixes == b.prefixes
        and a.hostname == b.hostname
        and _same(a.capacities, b.capacities)
        and _same(a.availables, b.availables)
    )
    return Difference.NONE if same else Difference.DETAILS


def same_role(a: NodeBlock, b: NodeBlock) -> bool:
    """Whether two blocks are of the same kind of router, whatever their links and prefixes."""
    return (a.transit, a.network, a.boundary, a.leads_to) == (
        b.transit,
        b.network,
        b.boundary,
        b.leads_to,
    )


def same_announced(a: tuple[PrefixAttachment, ...], b: tuple[PrefixAttachment, ...]) -> bool:
    """Whether the same prefixes are announced in the same way, announced capacities aside."""
    return len(a) == len(b) and all(
        x is y
        or (
            x.prefix == y.prefix
            and x.metric == y.metric
            and x.path_type is y.path_type
            and (x.asbr, x.distance, x.forward) == (y.asbr, y.distance, y.forward)
        )
        for x, y in zip(a, b, strict=True)
    )


def announces_less(
    before: tuple[PrefixAttachment, ...], after: tuple[PrefixAttachment, ...]
) -> bool:
    """Whether a prefix is announced no longer, or farther away than before.

    What comes from outside does not count: there are too many of those to hurry for each.
    """
    kept = set(map(id, after))
    gone = [x for x in before if id(x) not in kept and x.path_type not in _OUTSIDE]
    if not gone:
        return False
    now = {x.prefix: x.metric for x in after}
    return any(now.get(x.prefix, math.inf) > x.metric for x in gone)


def _same_shape(a: NodeBlock, b: NodeBlock) -> bool:
    """Whether two blocks differ in nothing but capacities."""
    return (
        same_role(a, b)
        and same_announced(a.prefixes, b.prefixes)
        and _same(a.neighbors, b.neighbors)
        and _same(a.metrics, b.metrics)
        and _same(a.local_ids, b.local_ids)
        and _same(a.remote_ids, b.remote_ids)
    )


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two arrays of one type hold the same bytes; of NaN the builders make one kind.

    Most are a few numbers long: NumPy's own comparison costs twenty times as much there.
    """
    return a is b or a.tobytes() == b.tobytes()
