"""Which chunk goes through which tree: the same at every worker, from weights alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from fared.paths.weights.quantise import quantise_rows

_MAX_WEIGHT = 64
"""A round of all trees stays short, so that every prefix of the array is divided well."""


def stripe_weights(rates: Sequence[float]) -> tuple[int, ...]:
    """Return small integers in proportion to the rates of trees (bytes/s).

    As for next hops, rounding is down: a tree that gets too much would delay every call.
    """
    rows = np.array([rates], np.float64).reshape(1, -1)
    return tuple(int(weight) for weight in quantise_rows(rows, _MAX_WEIGHT)[0])


def rounds(weights: Sequence[int]) -> Iterator[int]:
    """Yield the tree of chunk 0, 1, ... without end: smooth weighted round robin.

    Yields nothing if no weight is positive.
    """
    total = sum(weights)
    if total <= 0:
        return
    credit = [0] * len(weights)
    while True:
        credit = [had + weight for had, weight in zip(credit, weights, strict=True)]
        tree = max(range(len(weights)), key=credit.__getitem__)
        credit[tree] -= total
        yield tree


def one_round(weights: Sequence[int]) -> tuple[int, ...]:
    """Return the trees of one round, after which they repeat."""
    return tuple(islice(rounds(weights), max(0, sum(weights))))
