"""Fewer weight vectors than routes want: those that are alike share one, at the least harm.

The harm is the throughput that routes lose: what each loses, summed over routes. Vectors of one
group can all have the part that their shares have in common, the minimum for each next hop: it
overloads none of them, and the rest is lost. (Where most routes have one of the vectors, that may
cost less.) It is largest for vectors that are alike, and no next
hop is taken from vectors over the same ones. ``merge_vectors`` joins two groups at a time, those
whose common vector costs least; ``assign`` leaves what is assigned while that costs little more.

Vectors are rows of integers (K, H), a column for each next hop, zero where a vector has it not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Fit = Callable[[NDArray[np.float64]], NDArray[np.int64]]
    """Makes integer weights within the bounds of shares (K, H)."""

MORE_HARM = 0.25
"""By so much more, as a share, may present groups cost than others would, before they change."""
SLACK = 0.001
"""The loss of all routes that is no cause to change groups."""
AT_ONCE = 512
"""Vectors that are compared each with each."""
_ROUNDING = 1e-12
_MOST_16 = 0xFFFF
_PORTION = 3
"""Of the joins that are needed, one of so many is made before costs are compared again."""


class Assigned(NamedTuple):
    """The group of each vector (K,), and the weights of each group (P, H)."""

    group: NDArray[np.int64]
    given: NDArray[np.int64]
    harm: float
    """The throughput lost, in routes."""
    reference: float = 0.0
    """The harm that was found to be the least, the last time that others were looked for."""


def shares_of(weights: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of each next hop."""
    shares: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return shares


def lost(shares: NDArray[np.float64], given: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what each row loses with other weights: the slowest next hop sets the pace.

    All, where it would use a next hop that it has not.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        load = np.where(given > 0, given / shares, 0.0).max(axis=-1)
        part: NDArray[np.float64] = 1.0 - given.sum(axis=-1) / load
    return np.where(part > _ROUNDING, part, 0.0)


def assign(
    weights: NDArray[np.int64],
    counts: NDArray[np.int64],
    most: int,
    fit: Fit,
    before: Assigned | None = None,
) -> Assigned:
    """Assign vectors to at most ``most`` groups; those of a single next hop count as none.

    ``counts`` are the routes of each vector, and weigh its loss. ``before``: the present groups,
    with -1 for vectors that are new. A vector stays in its group unless others cost less by
    ``MORE_HARM``; one that is alone in a group has its own weights.
    """
    shares = shares_of(weights)
    kept = None if before is None else _kept(weights, shares, counts, most, before)
    if before is not None and kept is not None:
        limit = before.reference * (1 + MORE_HARM) + SLACK * float(counts.sum())
        if kept.harm <= limit:
            return kept._replace(reference=min(before.reference, kept.harm))
    fresh = merge_vectors(weights, counts, most, fit)
    if kept is not None and fresh.harm * (1 + MORE_HARM) >= kept.harm:
        return kept._replace(reference=kept.harm)
    return fresh._replace(reference=fresh.harm)


def _kept(
    weights: NDArray[np.int64],
    shares: NDArray[np.float64],
    counts: NDArray[np.int64],
    most: int,
    before: Assigned,
) -> Assigned | None:
    """Assign new vectors to present groups, and use free ones; None: it needs others."""
    new = np.flatnonzero(before.group < 0)
    if 2 * len(new) > max(most, AT_ONCE // 8):
        return None
    groups = _Groups(weights, shares, before)
    waiting = []
    for at in sorted(new.tolist(), key=lambda at: (-int(counts[at]), weights[at].tobytes())):
        if groups.join_equal(at):
            continue
        if groups.free(most):
            groups.open(at)
        else:
            waiting.append(at)
    if not all(groups.join_nearest(at) for at in waiting):
        return None
    losses = groups.exact_alone()
    while groups.free(most) and (counts * losses).any():
        groups.open(int((counts * losses).argmax()))
        losses = groups.exact_alone()
    if groups.free(most) < 0:
        return None
    return Assigned(groups.group, np.array(groups.given), float(counts @ losses))


class _Groups:
    """Present groups, while vectors join and leave."""

    def __init__(
        self, weights: NDArray[np.int64], shares: NDArray[np.float64], before: Assigned
    ) -> None:
        used, number = np.unique(before.group[before.group >= 0], return_inverse=True)
        self.group = before.group.copy()
        self.group[self.group >= 0] = number
        self.given: list[NDArray[np.int64]] = list(before.given[used])
        self._weights, self._shares = weights, shares

    def free(self, most: int) -> int:
        """Return how many more groups of several next hops there may be."""
        return most - sum([int((given > 0).sum()) > 1 for given in self.given])

    def join_equal(self, at: int) -> bool:
        """Let a vector join the group that has its weights, if there is one."""
        wanted = self._weights[at]
        for number, given in enumerate(self.given):
            if (given == wanted).all():
                self.group[at] = number
                return True
        return False

    def join_nearest(self, at: int) -> bool:
        """Let a vector join the group over the same next hops with which it loses least."""
        given = np.array(self.given)
        same = ((given > 0) == (self._weights[at] > 0)).all(axis=1).nonzero()[0]
        if not len(same):
            return False
        self.group[at] = same[lost(self._shares[at], given[same]).argmin()]
        return True

    def open(self, at: int) -> None:
        """Give a vector a group of its own."""
        if not self.join_equal(at):
            self.group[at] = len(self.given)
            self.given.append(self._weights[at])

    def exact_alone(self) -> NDArray[np.float64]:
        """Give groups of one vector its own weights, drop empty ones; return each vector's loss."""
        size = np.bincount(self.group, minlength=len(self.given))
        if not size.all():
            kept = size.nonzero()[0]
            self.given = [self.given[number] for number in kept.tolist()]
            self.group = np.searchsorted(kept, self.group)
            size = size[kept]
        for at in np.flatnonzero(size[self.group] == 1).tolist():
            self.given[self.group[at]] = self._weights[at]
        return lost(self._shares, np.array(self.given)[self.group])


def merge_vectors(
    weights: NDArray[np.int64], counts: NDArray[np.int64], most: int, fit: Fit
) -> Assigned:
    """Merge vectors into at most ``most`` groups at the least harm, whatever there was before.

    Vectors over the same next hops first. Only if there are more sets of next hops than groups do
    some lose next hops: to those that two sets share, or to a single one, which needs no group.
    """
    # The order of the vectors decides nothing.
    order = np.array(sorted(range(len(weights)), key=[w.tobytes() for w in weights].__getitem__))
    weights, counts = weights[order], counts[order]
    shares = shares_of(weights)
    clusters = _Clusters(shares, counts)
    clusters.reduce(most)
    number, common = clusters.group, clusters.common
    given = _represented(weights, counts, number, common, fit(common))
    harm = float(counts @ lost(shares, given[number]))
    group = np.empty(len(order), np.int64)
    group[order] = number
    return Assigned(group, given, harm)


def _represented(
    weights: NDArray[np.int64],
    counts: NDArray[np.int64],
    number: NDArray[np.int64],
    common: NDArray[np.float64],
    fitted: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the weights of each group: the common part, or those of the vector with most routes.

    The latter where all of them lose less, or where the former, rounded down, lacks a next hop.
    """
    most = np.empty(len(common), np.int64)
    ascending = counts.argsort(kind="stable")
    most[number[ascending]] = ascending  # the last one stays
    own = np.where(common > 0, weights[most], 0)
    less = (own != weights[most]).any(axis=1)
    own[less] //= np.gcd.reduce(own[less], axis=1)[:, None]
    shares = shares_of(weights)
    harm_own = np.bincount(number, counts * lost(shares, own[number]))
    harm_fitted = np.bincount(number, counts * lost(shares, fitted[number]))
    lacking = ((fitted > 0) != (common > 0)).any(axis=1)
    return np.where(((harm_own <= harm_fitted) | lacking)[:, None], own, fitted)


class _Clusters:
    """Clusters of vectors with what their shares have in common, joined two at a time.

    Joining a and b costs what their routes have less in common than before:
    ``count_a * sum_a + count_b * sum_b - (count_a + count_b) * sum_ab``.
    """

    def __init__(self, shares: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        self.common = shares.copy()
        self.group = np.arange(len(shares))
        self._count = counts.astype(np.float64)

    def reduce(self, most: int) -> None:
        """Leave at most ``most`` clusters of several next hops."""
        while self._several() > max(most, AT_ONCE):
            size = len(self.common)
            goal = max(most, size // 2)
            order = self._by_support()
            for first in range(0, size, AT_ONCE):
                part = order[first : first + AT_ONCE]
                self._join_alike(part, max(1, len(part) * goal // size))
            self._compact()
            if len(self.common) == size:
                break
        over = self._several() - max(most, AT_ONCE)
        if over > 0:  # so many sets of next hops: not each is compared with each
            cost = self._single_cost()
            for at in cost.argsort(kind="stable")[:over].tolist():
                self._to_single(at)
        if self._several() > most:
            self._join_alike(np.flatnonzero((self.common > 0).sum(axis=1) > 1), most)
            self._compact()
        if self._several() > most:
            self._join_others(most)
            self._compact()

    def _several(self) -> int:
        return int(((self.common > 0).sum(axis=1) > 1).sum())

    def _by_support(self) -> NDArray[np.int64]:
        """Return the clusters of several next hops, those over the same ones together."""
        keys = [row.tobytes() for row in self.common > 0]
        several = np.flatnonzero((self.common > 0).sum(axis=1) > 1).tolist()
        return np.array(sorted(several, key=keys.__getitem__), np.int64)

    def _join(self, into: NDArray[np.int64], joined: NDArray[np.int64]) -> None:
        """Join clusters in pairs; those joined stay, empty, until ``_compact``."""
        self.common[into] = np.minimum(self.common[into], self.common[joined])
        self._count[into] += self._count[joined]
        self._count[joined] = 0
        place = np.arange(len(self.common))
        place[joined] = into
        self.group = place[self.group]

    def _compact(self) -> None:
        used = np.flatnonzero(self._count > 0)
        self.common, self._count = self.common[used], self._count[used]
        self.group = np.searchsorted(used, self.group)

    def _costs(
        self, rows: NDArray[np.int64], part: NDArray[np.int64], *, below: bool = False
    ) -> NDArray[np.float32]:
        """Return the cost of joining ``rows`` with each of ``part``; infinite: nothing in common.

        ``below``: of ``part`` itself only with those before, the rest is infinite.
        """
        # 16 bits: a third faster, and sums of shares still fit.
        scale = _MOST_16 - self.common.shape[1]
        small = np.maximum((self.common * scale).astype(np.uint16), self.common > 0)
        columns, values = np.ascontiguousarray(small[part].T), small[rows]
        shared = np.zeros((len(rows), len(part)), np.uint16)
        both = np.empty_like(columns)
        for at in range(len(rows)):
            end = at if below else len(part)
            lower = np.minimum(columns[:, :end], values[at][:, None], out=both[:, :end])
            np.add.reduce(lower, axis=0, dtype=np.uint16, out=shared[at, :end])
        count, own = self._count[part].astype(np.float32), self._count[rows].astype(np.float32)
        found: NDArray[np.float32] = own[:, None] + count
        found *= -shared.astype(np.float32)
        found += columns.sum(axis=0) * count
        found += (own * values.sum(axis=1))[:, None]
        found /= scale
        found[shared <= 0] = np.inf
        found[rows[:, None] == part] = np.inf
        return found

    def _join_alike(self, part: NDArray[np.int64], most: int) -> None:
        """Join those of ``part`` over the same next hops until there are ``most``, or none such.

        Of pairs that are each other's nearest many are joined at a time, the cheapest.
        """
        known: dict[bytes, int] = {}
        keys = [row.tobytes() for row in self.common[part] > 0]
        support = np.array([known.setdefault(key, len(known)) for key in keys])
        cost = self._costs(part, part, below=True)
        np.minimum(cost, cost.T, out=cost)
        cost[support[:, None] != support] = np.inf
        nearest = cost.argmin(axis=1)
        there = np.ones(len(part), bool)
        while (need := int(there.sum()) - max(most, len(known))) > 0:
            pairs = _nearest_pairs(cost, nearest, need)
            gone = nearest[pairs]
            self._join(part[pairs], part[gone])
            there[gone] = False
            cost[gone] = cost[:, gone] = np.inf
            stale = np.zeros(len(part), bool)
            stale[pairs] = stale[gone] = True
            stale = stale[nearest] & there
            if 4 * there.sum() < 3 * len(part):
                place = there.cumsum() - 1
                pairs, stale, nearest = place[pairs], stale[there], place[nearest[there]]
                part, support, cost = part[there], support[there], cost[there][:, there]
                there = np.ones(len(part), bool)
            again = self._costs(part[pairs], part)
            again[(support[pairs][:, None] != support) | ~there] = np.inf
            cost[pairs], cost[:, pairs] = again, again.T
            nearer = again.min(axis=0) < cost[np.arange(len(part)), nearest]
            nearest[nearer] = pairs[again[:, nearer].argmin(axis=0)]
            nearest[stale] = cost[stale].argmin(axis=1)

    def _single_cost(self) -> NDArray[np.float64]:
        """Return what it costs to leave each cluster its greatest next hop only; infinite: done."""
        several = (self.common > 0).sum(axis=1) > 1
        lost_then = self._count * (self.common.sum(axis=1) - self.common.max(axis=1))
        return np.where(several & (self._count > 0), lost_then, np.inf)

    def _to_single(self, at: int) -> None:
        greatest = int(self.common[at].argmax())
        self.common[at, :greatest] = self.common[at, greatest + 1 :] = 0.0

    def _join_others(self, most: int) -> None:
        """Join clusters over different next hops: those that both have are left."""
        part = np.flatnonzero((self.common > 0).sum(axis=1) > 1)
        cost = self._costs(part, part)
        while len(part) > most:
            single = self._single_cost()[part]
            pair = np.unravel_index(int(cost.argmin()), cost.shape)
            stays = np.ones(len(part), bool)
            if single.min() <= cost[pair]:
                at = int(single.argmin())
                self._to_single(int(part[at]))
                stays[at] = False
            else:
                at, gone = sorted(map(int, pair))
                self._join(part[[at]], part[[gone]])
                stays[gone] = False
                if (self.common[part[at]] > 0).sum() == 1:
                    stays[at] = False
            whole, part, cost = part, part[stays], cost[stays][:, stays]
            if stays[at]:
                row = np.flatnonzero(part == whole[at])
                cost[row] = again = self._costs(part[row], part)
                cost[:, row] = again.T


def _nearest_pairs(
    cost: NDArray[np.float32], nearest: NDArray[np.int64], need: int
) -> NDArray[np.int64]:
    """Return one of each of the cheapest pairs that are each other's nearest, of ``need`` a part.

    No pair costs more than as many as are needed cost at the least.
    """
    number = np.arange(len(nearest))
    least = cost[number, nearest]
    limit = np.partition(least, need)[need]
    mutual = (nearest[nearest] == number) & (nearest > number) & (least <= limit)
    pairs: NDArray[np.int64] = np.flatnonzero(mutual & np.isfinite(least))
    if not len(pairs):  # equal costs in a circle
        return np.array([least.argmin()])
    return pairs[least[pairs].argsort(kind="stable")][: max(1, need // _PORTION)]
