"""Weights within the bounds of a switch chip: what they lose, and how long they take.

512 vectors of 64 next hops of random capacities, 1 to 800 Gb/s: many more ratios than link speeds
have. The loss is of the throughput while the slowest next hop sets the pace, with what a next hop
without traffic could carry. ``python -m bench bounded``
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from fared.paths.weights.quantise import quantise_rows

VECTORS, MEMBERS, ROUNDS = 512, 64, 5
CASES = ((256, None), (255, None), (255, 512), (255, 128))
GOAL = 20.0
"""Milliseconds for which the loop may be held."""


def rows() -> list[dict[str, Any]]:
    capacities = np.random.default_rng(1).uniform(1, 800, (VECTORS, MEMBERS)) * 1e9 / 8
    return [_row(capacities, most, whole) for most, whole in CASES]


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
    return {
        "name": f"{VECTORS} vectors of {MEMBERS}, {name}",
        "ours": min(spent) * 1e3,
        "unit": "ms",
        "goal": f"< {GOAL:g} ms",
        "met": min(spent) * 1e3 < GOAL,
        "note": f"{name}: {loss.mean():.2%} lost in the mean, {loss.max():.2%} at worst; "
        f"{unused:.1f} next hops without traffic.",
    }
