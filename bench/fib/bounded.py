"""Weights within the bounds of a switch chip: what they lose, and how long they take.

512 vectors of 64 next hops of random capacities, 1 to 800 Gb/s: many more ratios than link speeds
have. The loss is of the throughput while the slowest next hop sets the pace, with what a next hop
without traffic could carry. ``python -m bench bounded``
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from fared.paths.weights.merge import assign, lost, shares_of
from fared.paths.weights.quantise import quantise_rows

VECTORS, MEMBERS, ROUNDS = 512, 64, 5
CASES = ((256, None), (255, None), (255, 512), (255, 128))
GROUPS, FABRICS, MOST = 128, 16, 255
GOAL = 20.0
"""Milliseconds for which the loop may be held."""


def rows() -> list[dict[str, Any]]:
    capacities = np.random.default_rng(1).uniform(1, 800, (VECTORS, MEMBERS)) * 1e9 / 8
    rng = np.random.default_rng(2)
    speeds = rng.choice([100, 200, 400, 800], (FABRICS, MEMBERS))
    alike = speeds[rng.integers(0, FABRICS, VECTORS)] * rng.uniform(0.9, 1, (VECTORS, MEMBERS))
    return [
        *[_row(capacities, most, whole) for most, whole in CASES],
        *_merged("random", capacities),
        *_merged(f"{FABRICS} fabrics, links 90 to 100 %", alike * 1e9 / 8),
    ]


def _merged(name: str, capacities: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
    """The vectors in few groups: all at once, and after a change of one."""
    weights = quantise_rows(capacities, MOST)
    counts = np.ones(VECTORS, np.int64)
    fit = partial(_fitted, most=MOST)
    spent, again = [], []
    for _ in range(ROUNDS):
        begun = time.process_time()
        found = assign(weights, counts, GROUPS, fit)
        spent.append(time.process_time() - begun)
    changed = weights.copy()
    changed[0] = np.maximum(changed[0] - 1, 1)
    group = found.group.copy()
    group[0] = -1
    for _ in range(ROUNDS):
        begun = time.process_time()
        after = assign(changed, counts, GROUPS, fit, found._replace(group=group))
        again.append(time.process_time() - begun)
    moved = int((after.given[after.group] != found.given[found.group]).any(axis=1)[1:].sum())
    loss = lost(shares_of(weights), found.given[found.group])
    what = f"{VECTORS} vectors of {MEMBERS} in {GROUPS} groups, {name}"
    harm = f"{loss.mean():.2%} lost in the mean, {loss.max():.2%} at worst."
    others = f"One vector changes: {moved} others move."
    return [
        _timed(what, min(spent), f"{name}: {harm}"),
        _timed(f"{what}: one changes", min(again), f"{name}: {others}"),
    ]


def _fitted(shares: np.ndarray[Any, Any], most: int) -> np.ndarray[Any, Any]:
    return quantise_rows(shares * 1e11, most, 0.0, 0)


def _timed(name: str, seconds: float, note: str) -> dict[str, Any]:
    milliseconds = seconds * 1e3
    return {
        "name": name,
        "ours": milliseconds,
        "unit": "ms",
        "goal": f"< {GOAL:g} ms",
        "met": milliseconds < GOAL,
        "note": note,
    }


def _row(capacities: np.ndarray[Any, Any], most: int, whole: int | None) -> dict[str, Any]:
    spent = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        weights = quantise_rows(capacities, most, max_sum=whole)
        spent.append(time.process_time() - begun)
    pace = (weights / capacities).max(axis=1)
    loss = 1 - weights.sum(axis=1) / pace / capacities.sum(axis=1)
    unused = (weights == 0).sum(axis=1).mean()
    name = f"max-weight {most}, " + ("any sum" if whole is None else f"a sum of {whole}")
    return _timed(
        f"{VECTORS} vectors of {MEMBERS}, {name}",
        min(spent),
        f"{name}: {loss.mean():.2%} lost in the mean, {loss.max():.2%} at worst; "
        f"{unused:.1f} next hops without traffic.",
    )
