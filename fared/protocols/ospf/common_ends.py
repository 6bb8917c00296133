"""Common prefix and suffix of two sequences: a list that is readvertised changes in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class CommonEnds(NamedTuple):
    """How many items two sequences have in common at their beginning, and at their end."""

    begin: int
    end: int


def common_ends(old: Sequence[Any], new: Sequence[Any]) -> CommonEnds:
    """Compare two sequences.

    Whole slices are compared, in a few steps; of equal items none counts at both ends.
    """
    most = min(len(old), len(new))
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    begin, left, right = low, len(old), len(new)
    low, high = 0, most - begin
    while low < high:
        middle = (low + high + 1) // 2
        if old[left - middle : left - low] == new[right - middle : right - low]:
            low = middle
        else:
            high = middle - 1
    return CommonEnds(begin, low)
