"""Trees and rates for one job or several, under all limits: stars first, then relays.

Every tree takes of each resource (links, summing, memory) what is left. Stars share no link in
three stages, so the result is exact there; with relays, and with several jobs, it is a good plan
that takes milliseconds. The offline planner has the optimum (``fared.extensions.offline.ina``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from fared.extensions.ina.plan.given import given_tree
from fared.extensions.ina.plan.model import (
    AggregationTree,
    Capacities,
    Direction,
    RatedTree,
    Resource,
    SummingJob,
    TreePlan,
    Vertex,
)
from fared.extensions.ina.plan.relays import Relay, widest_tree
from fared.extensions.ina.plan.stars import widths_of
from fared.extensions.ina.plan.trees import is_relayed, relay_trees, shortest_trees, tree_along

_NOTHING = 1e-6
"""The part of a resource or a rate that is not worth a tree."""
_PARTS = 64
"""Steps in which several jobs rise together: their rates are fair within such a part."""
_MOST_TREES = 256


class _Needs(NamedTuple):
    """What a tree uses at a rate of one byte/s: rows of resources, and the part of each."""

    rows: NDArray[np.intp]
    parts: NDArray[np.float64]


class _Remainder:
    """What is left of each resource that a tree uses; resources have rows in arrays."""

    def __init__(self, network: Capacities) -> None:
        self._network = network
        self._rows: dict[Resource, int] = {}
        self._limits = self._left = np.zeros(0)

    def needs(self, usage: Mapping[Resource, float]) -> _Needs:
        """Return what a tree uses, by row."""
        fresh = [resource for resource in usage if resource not in self._rows]
        self._rows.update(zip(fresh, itertools.count(len(self._rows)), strict=False))
        limits = np.array([self._network.limit(resource) for resource in fresh], np.float64)
        self._limits = np.concatenate((self._limits, limits))
        self._left = np.concatenate((self._left, limits))
        rows = np.array([self._rows[resource] for resource in usage], np.intp)
        return _Needs(rows, np.array(list(usage.values()), np.float64))

    def rate(self, needs: _Needs) -> float:
        """Return the rate that a tree can have."""
        return float((self._left[needs.rows] / needs.parts).min())

    def take(self, needs: _Needs, rate: float) -> None:
        """Use up what a tree needs at a rate."""
        limits = self._limits[needs.rows]
        left = self._left[needs.rows] - needs.parts * rate
        only_rounding = (left <= _NOTHING * limits) & np.isfinite(limits)
        self._left[needs.rows] = np.where(only_rounding, 0.0, left)

    def links(self) -> dict[Direction, float]:
        """Return what is left of all links."""
        links = dict(self._network.links)
        for resource, left in zip(self._rows, self._left.tolist(), strict=True):
            if resource.kind == "link":
                links[resource.tail, resource.head] = left
        return links


class _Growing:
    """The trees of one job while it is planned."""

    def __init__(self, network: Capacities, job: SummingJob, remainder: _Remainder) -> None:
        self.job = job
        able = network.adders if job.adders is None else network.adders & job.adders
        self.network = replace(network, adders=able)
        trees = (
            shortest_trees(self.network, job)
            if job.given is None
            else [given_tree(network, job, job.given)]
        )
        self.candidates = [(tree, remainder.needs(tree.usage(network))) for tree in trees]
        self.rates: dict[int, float] = {}
        self.relayed: list[RatedTree] = []
        self.at: int | None = None

    @property
    def is_deep(self) -> bool:
        """Whether the roots of its stars are not next to its leaves, as in five stages."""
        leaves = {*self.job.leaves}
        beside = {head for tail, head in self.network.links if tail in leaves}
        roots = {tree.root for tree, _ in self.candidates}
        return self.job.wide or not roots <= beside | leaves

    @property
    def progress(self) -> float:
        """The job's rate for its weight."""
        total = sum(self.rates.values()) + sum(rated.rate for rated in self.relayed)
        return total / self.job.weight

    def plan(self) -> TreePlan:
        """Return the trees in the order of their roots, relays last."""
        stars = [
            RatedTree(self.candidates[at][0], rate, kind_of(self.job, self.candidates[at][0]))
            for at, rate in sorted(self.rates.items())
        ]
        return TreePlan(self.job, (*stars, *self.relayed))


def plan_job(network: Capacities, job: SummingJob, *, relays: bool = True) -> TreePlan:
    """Return the trees of one job that has the network for itself. Raises TreeError."""
    return plan_jobs(network, [job], relays=relays)[0]


def plan_jobs(
    network: Capacities, jobs: Sequence[SummingJob], *, relays: bool = True
) -> list[TreePlan]:
    """Return the trees of several jobs: rates rise together, by weight, up to what is left.

    Raises TreeError for a given tree that cannot be.

    A job stays on a root as long as that has capacity, and prefers one that no other job uses: two
    jobs that sum at different routers need half the slots.
    """
    whole = network
    for job in jobs:
        whole = job.attached(whole)
    remainder = _Remainder(whole)
    growing = [_Growing(whole, job, remainder) for job in jobs]
    _grow(growing, remainder)
    if relays:
        planned = (one for one in growing if one.job.given is None)
        for one in sorted(planned, key=lambda one: one.progress):
            _add_relays(one, remainder)
            if one.is_deep:
                _add_deep_relays(one, remainder)
    return [one.plan() for one in growing]


def _grow(growing: list[_Growing], remainder: _Remainder) -> None:
    alone = len(growing) == 1
    steps = {
        id(one): math.inf
        if alone
        else sum(remainder.rate(needs) for _, needs in one.candidates) / _PARTS
        for one in growing
    }
    active = list(growing)
    while active:
        one = min(active, key=lambda one: one.progress)
        others = {
            other.candidates[at][0].root
            for other in growing
            if other is not one
            for at in other.rates
        }
        at = _next_tree(one, others, remainder)
        if at is None:
            active.remove(one)
            continue
        needs = one.candidates[at][1]
        rate = min(remainder.rate(needs), steps[id(one)] * one.job.weight)
        remainder.take(needs, rate)
        one.rates[at] = one.rates.get(at, 0.0) + rate
        one.at = at


def _next_tree(one: _Growing, others: set[Vertex], remainder: _Remainder) -> int | None:
    if one.at is not None and remainder.rate(one.candidates[one.at][1]) > 0:
        return one.at
    rates = [remainder.rate(needs) for _, needs in one.candidates]
    able = [at for at, rate in enumerate(rates) if 0 < rate < math.inf]
    return max(
        able,
        key=lambda at: (one.candidates[at][0].root not in others, rates[at], -at),
        default=None,
    )


def _add_relays(one: _Growing, remainder: _Remainder) -> None:
    """Add the relay tree of the largest bottleneck, again and again.

    Trees whose results take the way of the streams come first: others need more links.
    """
    network = one.network
    while len(one.relayed) < _MOST_TREES:
        stars = widths_of(Capacities(remainder.links(), network.adders), one.job)
        able = np.isin(stars.leaves, list(network.adders))
        found = widest_tree(stars.widths, stars.widths, able)
        if found is None:
            found = widest_tree(stars.up, stars.down, able)
        if found is None:
            return
        leaves, roots = stars.leaves.tolist(), stars.roots.tolist()
        tree = tree_along(
            network,
            one.job,
            roots[found.root],
            _next_hops(found.root, found.relays, leaves, roots),
            _next_hops(found.root, found.results, leaves, roots),
        )
        needs = remainder.needs(tree.usage(network))
        rate = remainder.rate(needs)
        if not 0 < rate < math.inf:
            return
        remainder.take(needs, rate)
        one.relayed.append(RatedTree(tree, rate, kind_of(one.job, tree)))


def _add_deep_relays(one: _Growing, remainder: _Remainder) -> None:
    """Add the widest relay tree of what is left, in more than three stages, again and again.

    What stars have used up is no link any more, so a leaf's shortest way to a root may lead over
    another leaf of the job. All routers on the way sum or pass on: routes would avoid it.
    """
    leaves = {*one.job.leaves}
    able = leaves | one.network.adders
    while len(one.relayed) < _MOST_TREES:
        left = {link: rate for link, rate in remainder.links().items() if able.issuperset(link)}
        trees = relay_trees(Capacities(left, one.network.adders), one.job)
        needs = [(tree, remainder.needs(tree.usage(one.network))) for tree in trees]
        rates = [remainder.rate(found) for _, found in needs]
        rate = max(rates, default=0.0)
        if not 0 < rate < math.inf:
            return
        tree, found = needs[rates.index(rate)]
        remainder.take(found, rate)
        one.relayed.append(RatedTree(tree, rate, kind_of(one.job, tree)))


def _next_hops(
    root: int, relays: Mapping[int, Relay], leaves: Sequence[Vertex], roots: Sequence[Vertex]
) -> dict[Vertex, Vertex]:
    hops = dict.fromkeys(leaves, roots[root])
    for row, relay in relays.items():
        hops[leaves[row]] = roots[relay.spine]
        hops[roots[relay.spine]] = leaves[relay.leaf]
    return hops


def kind_of(job: SummingJob, tree: AggregationTree) -> str:
    """Tell stars from trees in which a leaf sums for another router, and from given ones."""
    if job.given is not None:
        return "given"
    if is_relayed(job, tree.root, tree.routes):
        return "relay"
    return "wide" if job.replicates else "star"
