"""Common prefix and suffix of two sequences: a list that is readvertised changes in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class CommonEnds(NamedTuple):
    """How many items two sequences have in common at their beginning, and at their end."""

    begin: int
    end: int


def common_ends(old: Sequence[Any], new: Sequence[Any], size: int = 1) -> CommonEnds:
    """Compare two sequences, such as bytes, whose items take ``size`` places each.

    Whole slices are compared, in a few steps; of equal items none counts at both ends.
    """
    most = min(len(old), len(new)) // size
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old[low * size : middle * size] == new[low * size : middle * size]:
            low = middle
        else:
            high = middle - 1
    begin, left, right = low, len(old), len(new)
    low, high = 0, most - begin
    while low < high:
        middle = (low + high + 1) // 2
        more, less = middle * size, low * size
        if old[left - more : left - less] == new[right - more : right - less]:
            low = middle
        else:
            high = middle - 1
    return CommonEnds(begin, low)
