"""The best rates of given trees: a linear program over links, summing and memory (SciPy)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from fared.extensions.ina.plan.model import (
    AggregationTree,
    Capacities,
    RatedTree,
    Resource,
    SummingJob,
    TreePlan,
)

_NOTHING = 1e-9


class Packing(msgspec.Struct, frozen=True, eq=False):
    """Rates of trees, job by job, and the price of each resource that is used up."""

    rates: tuple[NDArray[np.float64], ...]
    prices: Mapping[Resource, float]

    def price(self, resource: Resource) -> float:
        """Return the price of a resource; 0 while some of it is left."""
        return max(0.0, self.prices.get(resource, 0.0))


def pack(
    network: Capacities, jobs: Sequence[SummingJob], trees: Sequence[Sequence[AggregationTree]]
) -> Packing:
    """Return the rates of max-min fairness over the jobs, and then of the largest sum.

    ``network`` has the links of the workers. A job without a tree does not hold up the others.
    """
    resources, matrix, limits = _rows(network, trees)
    sizes = [len(of) for of in trees]
    ends = np.cumsum([0, *sizes])
    weights = np.array([job.weight if size else 0.0 for job, size in zip(jobs, sizes, strict=True)])
    fair = _fair(matrix, limits, ends, weights) if sum(weights > 0) > 1 else 0.0
    floors = weights * fair * (1 - _NOTHING)
    demand, wanted = _demands(ends, floors)
    result = linprog(
        -np.ones(int(ends[-1])),
        A_ub=_stack(matrix, demand),
        b_ub=np.concatenate((limits, -wanted)),
        method="highs",
    )
    if not result.success:
        raise ArithmeticError(f"the rates of the trees: {result.message}")
    prices = -np.asarray(result.ineqlin.marginals)[: len(limits)]
    rates = tuple(np.asarray(result.x[low:high]) for low, high in pairwise(ends.tolist()))
    return Packing(rates, dict(zip(resources, prices.tolist(), strict=True)))


def _rows(
    network: Capacities, trees: Sequence[Sequence[AggregationTree]]
) -> tuple[list[Resource], csr_matrix, NDArray[np.float64]]:
    """Return the resources that have a limit, a row for each, and the limits."""
    at: dict[Resource, int] = {}
    rows, columns, values = [], [], []
    every = [tree for of in trees for tree in of]
    for column, tree in enumerate(every):
        for resource, part in tree.usage(network).items():
            if math.isfinite(network.limit(resource)):
                rows.append(at.setdefault(resource, len(at)))
                columns.append(column)
                values.append(part)
    matrix = csr_matrix((values, (rows, columns)), shape=(len(at), len(every)))
    return list(at), matrix, np.array([network.limit(resource) for resource in at])


def _fair(
    matrix: csr_matrix,
    limits: NDArray[np.float64],
    ends: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> float:
    """Return the largest rate for a weight of one that all jobs can have at once."""
    trees = int(ends[-1])
    demand = np.zeros((len(weights), trees + 1))
    for job, (low, high) in enumerate(pairwise(ends.tolist())):
        demand[job, low:high] = -1.0
        demand[job, trees] = weights[job]
    wide = csr_matrix((matrix.data, matrix.indices, matrix.indptr), (matrix.shape[0], trees + 1))
    cost = np.zeros(trees + 1)
    cost[trees] = -1.0
    limit = np.concatenate((limits, np.zeros(len(weights))))
    result = linprog(cost, A_ub=_stack(wide, demand), b_ub=limit, method="highs")
    return float(result.x[trees]) if result.success else 0.0


def _demands(
    ends: NDArray[np.int64], floors: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rows = np.zeros((len(floors), int(ends[-1])))
    for job, (low, high) in enumerate(pairwise(ends.tolist())):
        rows[job, low:high] = -1.0
    return rows, floors


def _stack(matrix: csr_matrix, rows: NDArray[np.float64]) -> csr_matrix:
    more = csr_matrix(rows)
    return csr_matrix(
        (
            np.concatenate((matrix.data, more.data)),
            np.concatenate((matrix.indices, more.indices)),
            np.concatenate((matrix.indptr, matrix.indptr[-1] + more.indptr[1:])),
        ),
        (matrix.shape[0] + more.shape[0], more.shape[1]),
    )


def planned(
    job: SummingJob, trees: Sequence[AggregationTree], rates: NDArray[np.float64], kind: str
) -> TreePlan:
    """Return the trees that have a rate."""
    least = _NOTHING * float(rates.max(initial=0.0))
    return TreePlan(
        job,
        tuple(
            RatedTree(tree, rate, kind)
            for tree, rate in zip(trees, rates.tolist(), strict=True)
            if rate > least
        ),
    )
