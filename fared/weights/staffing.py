"""Weights for few large flows: small paths get less than their part, by the square-root rule.

Flows are placed by chance. A path that is to get n of them gets n give or take sqrt(n), which is
much for a small n: with capacities 5:5:5:1 and 128 flows the small path is to get 8, and is the last
to finish whenever it gets 10. So each path is filled to the same time T with what it gets when chance
is against it, ``n + z sqrt(n) = T c``, as a call centre is staffed (the square-root staffing rule,
which goes back to A. K. Erlang). Paths of equal capacity stay equal; with many flows the rule becomes
proportion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEVIATIONS = 2.0
"""z: against how many standard deviations paths are staffed.

Multinomial draws for 16 capacity vectors of 2 to 64 members with 32 to 1024 flows: the mean part of
the bound rises by 2.4, 3.8, 4.7, 5.1 and 5.5 % for z = 0.5, 1, 1.5, 2 and 3, the mean of the medians
by 1.1, 2.4, 2.6, 3.6 and 3.3 %. From 2 on nothing is gained, and more is lost where there are many
more flows than was said: at 5:5:5:1, told 128, with 2048 flows 0.3 % at z = 2 and 0.9 % at 3.
"""
_MOST_STEPS = 64
_STEADY = 1.0 - 1e-12


def lean(rows: NDArray[np.float64], flows: int) -> NDArray[np.float64]:
    """What capacities (K, n) should count for when ``flows`` flows are spread over each row.

    In the unit of the capacities, each row with the sum that it had; zero where there is no member.
    The order within a row stays, equal ones stay equal, and the smaller one is the more it loses
    relative to its capacity. Rows of equal members, and those that are not finite, stay as they
    are. The result of a row does not depend on the other rows.
    """
    total = rows.sum(axis=1)
    least = np.where(rows > 0, rows, np.inf).min(axis=1, initial=np.inf)
    uneven = np.flatnonzero(np.isfinite(total) & (rows.max(axis=1, initial=0.0) > least))
    if not len(uneven):
        return rows
    whole = total[uneven, None]
    staffed = _staffed(rows[uneven] / whole, flows)
    leaned = rows.copy()
    leaned[uneven] = staffed * (whole / staffed.sum(axis=1, keepdims=True))
    return leaned


def _staffed(parts: NDArray[np.float64], flows: int) -> NDArray[np.float64]:
    """Flows (K, n), times 4 / z^2, for members of rows whose sum is 1.

    With ``y = 4 T part / z^2`` the rule is ``sqrt(n) = (z / 2) (sqrt(1 + y) - 1)``. Newton's method
    for T: the sum of all n is convex in T and the first T is not below the solution (by Cauchy's
    inequality), so T only falls; each row stops by itself where it hardly does.
    """
    scale = 4.0 / DEVIATIONS**2
    members = np.count_nonzero(parts, axis=1)[:, None]
    time = (flows + DEVIATIONS * np.sqrt(members * float(flows))) * scale
    for _ in range(_MOST_STEPS):
        wide = time * parts
        root = np.sqrt(wide + 1.0)
        deviations = wide / (root + 1.0)
        excess = np.einsum("kn,kn->k", deviations, deviations)[:, None] - flows * scale
        slope = np.einsum("kn,kn->k", parts, deviations / root)[:, None]
        sooner = time - excess / slope
        falls = sooner < time * _STEADY
        if not falls.any():
            break
        time = np.where(falls, sooner, time)
    else:
        wide = time * parts
        deviations = wide / (np.sqrt(wide + 1.0) + 1.0)
    staffed: NDArray[np.float64] = deviations * deviations
    return staffed
