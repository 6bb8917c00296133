"""Tables that were large give their room back."""

import sys

import pytest

from fared.core.tables import shrink


@pytest.mark.parametrize("left", [0, 5, 1000])
@pytest.mark.parametrize("kind", [dict.fromkeys, set])
def test_a_sparse_table_has_the_room_of_a_new_one_and_the_same_entries(kind, left: int):
    table = kind(range(100_000))
    for number in range(100_000 - left):
        table.pop(number) if isinstance(table, dict) else table.discard(number)
    shrink(table)
    entries = kind(range(100_000 - left, 100_000))
    assert table == entries
    assert list(table) == list(entries)
    assert sys.getsizeof(table) < 100_000


def test_a_table_that_grows_is_never_sparse():
    numbers: set[int] = set()
    names: dict[int, None] = {}
    for number in range(1 << 17):
        numbers.add(number)
        names[number] = None
        for table in (numbers, names):
            size = sys.getsizeof(table)
            shrink(table)
            assert sys.getsizeof(table) == size
