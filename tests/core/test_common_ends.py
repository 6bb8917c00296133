"""Common ends of two sequences: as many items as an item by item comparison finds."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from fared.protocols.ospf.common_ends import common_ends

FEW = st.lists(st.integers(0, 2), max_size=12)


def same_from(old: list[int], new: list[int]) -> int:
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


@given(FEW, FEW, st.integers(1, 3))
def test_items_are_common_up_to_the_first_difference_from_either_end(old, new, size):
    begin, end = common_ends(old, new)
    assert begin == same_from(old, new)
    assert end == min(same_from(old[::-1], new[::-1]), min(len(old), len(new)) - begin)
    wide = [bytes(at for at in what for _ in range(size)) for what in (old, new)]
    assert common_ends(*wide, size) == (begin, end)


@given(FEW, st.integers(0, 11), st.integers(0, 2))
def test_of_a_sequence_that_lost_a_part_everything_else_is_common(old, low, lost):
    new = old[:low] + old[low + lost :]
    begin, end = common_ends(old, new)
    assert begin + end == len(new)
    assert old[:begin] + old[len(old) - end :] == new
