"""What is unusual about links of the fabric: own deratings, and capacities beside their siblings.

A router floods what is left of a link's capacity, not why. The reason is known for own links only;
for others it is the comparison with the links between the same tiers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fared.core.ids import NodeId
from fared.management.documents.context import ViewContext

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tiers = tuple[int | None, int | None]
"""The tiers of the near and the far end; None where there are none."""
LINK_HEALTH = "link-health"
"""What derates sick links; all others are users who drain them."""


class UnusualLink(NamedTuple):
    """The state of an unusual link, and the reason for people (``LinkMark``)."""

    state: str
    reason: str


def own_marks(context: ViewContext, first: Mapping[NodeId, NodeId]) -> dict[NodeId, UnusualLink]:
    """Return why own links are derated, by neighbor."""
    found: dict[NodeId, UnusualLink] = {}
    for instance in context.instances:
        for link in instance.local_links:
            worst = min(context.derated(link.interface), key=lambda d: d.share, default=None)
            if worst is None:
                continue
            state = "sick" if worst.by == LINK_HEALTH else "drained"
            why = f": {worst.reason}" if worst.reason else ""
            text = f"{link.interface} is derated to {worst.share:.0%} by {worst.by}{why}"
            found.setdefault(first.get(link.neighbor, link.neighbor), UnusualLink(state, text))
    return found


def usual_capacities(found: Iterable[tuple[Tiers, NDArray[Any]]]) -> dict[Tiers, float]:
    """Return the capacity that at least half of the links between two tiers have, bytes/s."""
    by: dict[Tiers, list[NDArray[Any]]] = {}
    for tiers, capacities in found:
        by.setdefault(tiers, []).append(capacities)
    usual: dict[Tiers, float] = {}
    for tiers, parts in by.items():
        known = np.concatenate(parts)
        known = np.round(known[np.isfinite(known)])
        values, counts = np.unique(known, return_counts=True)
        if len(values) and 2 * counts.max() >= counts.sum():
            usual[tiers] = float(values[counts.argmax()])
    return usual
