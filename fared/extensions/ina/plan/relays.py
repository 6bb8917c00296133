"""Relay trees: a leaf that is weak at a root sends through another leaf.

Leaf l, weak at root s, sends over another spine t to another leaf v of the job (l > t > v > s). v
adds that stream to its own, so v > s carries no more; results take the way back. Where two leaves
are weak at different spines, stars waste both spines and relays use them.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

_NOTHING = 1e-9
"""The part of the largest width that is not worth a tree."""


class Relay(msgspec.Struct, frozen=True):
    """The way of one leaf to the root: over column ``spine`` to row ``leaf``."""

    spine: int
    leaf: int


class RelayTree(msgspec.Struct, frozen=True):
    """Indexes into the matrices: the root's column, and the leaves that do not go direct.

    ``relays`` are those of streams up, ``results`` those of results down, which may differ where
    links are damaged in one direction. ``width`` is the rate of the tree alone.
    """

    root: int
    width: float
    relays: dict[int, Relay]
    results: dict[int, Relay]


def widest_tree(
    up: NDArray[np.float64], down: NDArray[np.float64], able: NDArray[np.bool_]
) -> RelayTree | None:
    """Return the tree of the largest bottleneck in capacities (L, S), None if there is none.

    ``able`` (L,) are the leaves that can sum, and copy results, for others.
    """
    leaves, spines = up.shape
    if not leaves or not spines:
        return None
    least = _NOTHING * float(max(up.max(), down.max()))
    found: RelayTree | None = None
    for root in range(spines):
        ways = _ways(up, root, able), _ways(down, root, able)
        reach = (
            np.maximum(up[:, root], ways[0].max(axis=1)).min(),
            np.maximum(down[:, root], ways[1].max(axis=1)).min(),
        )
        wanted = float(min(reach))
        if wanted <= least or (found is not None and wanted <= found.width):
            continue
        relays = _assigned(up, root, wanted, ways[0], able)
        results = _assigned(down, root, wanted, ways[1], able)
        if relays is not None and results is not None:
            found = RelayTree(root, wanted, relays, results)
    return found


def _through(
    widths: NDArray[np.float64], root: int, able: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return what each leaf (L) can take over each spine (S) and pass on to the root."""
    through = np.minimum(widths, widths[:, root, None])
    through[:, root] = 0.0
    through[~able] = 0.0
    return through


def _ways(widths: NDArray[np.float64], root: int, able: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the width of the best way of each leaf over each spine, by another leaf (L, S)."""
    through = _through(widths, root, able)
    columns = np.arange(widths.shape[1])
    best = through.argmax(axis=0)
    highest = through[best, columns]
    others = through.copy()
    others[best, columns] = 0.0
    second = others.max(axis=0)
    by_others = np.where(np.arange(len(widths))[:, None] == best, second, highest)
    found: NDArray[np.float64] = np.minimum(widths, by_others)
    return found


def _assigned(
    widths: NDArray[np.float64],
    root: int,
    wanted: float,
    ways: NDArray[np.float64],
    able: NDArray[np.bool_],
) -> dict[int, Relay] | None:
    """Choose spine and leaf of every relay; None if they would need one spine for two leaves.

    A spine has one parent in a tree (§2.1), so all that relay over it go to the same leaf.
    """
    through = _through(widths, root, able)
    weak = np.flatnonzero(widths[:, root] < wanted)
    relays: dict[int, Relay] = {}
    taken: dict[int, int] = {}
    for leaf in sorted(weak.tolist(), key=lambda row: (int((ways[row] >= wanted).sum()), row)):
        options: list[tuple[bool, float, int, int]] = []
        for spine in np.flatnonzero(ways[leaf] >= wanted).tolist():
            slack = through[:, spine].copy()
            slack[leaf] = 0.0
            slack[weak] = 0.0  # who relays must itself reach the root
            via = taken.get(spine, int(slack.argmax()))
            if via != leaf and slack[via] >= wanted:
                room = float(min(widths[leaf, spine], slack[via]))
                options.append((spine in taken, room, -spine, via))
        if not options:
            return None
        _, _, spine, via = max(options)
        taken[-spine] = via
        relays[leaf] = Relay(-spine, via)
    return relays
