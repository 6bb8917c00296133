"""What each external takes, counted object by object."""

import sys

from bench.router.changes import external, learnt
from bench.router.held import bytes_of_each, objects_of, rows


def test_an_external_takes_at_most_700_bytes_of_objects_where_dictionaries_are_well_filled():
    """At a hundred thousand, six dictionaries take 22 bytes more each."""
    leaf, _, _ = learnt(20_000)
    assert sum(bytes_of_each(leaf.router, 20_000).values()) <= 700


def test_objects_are_counted_once_and_structs_that_the_collector_skips_with_what_they_hold():
    lsa = external(1, 0, 20, 7)
    found = objects_of([lsa, lsa])
    assert found["Lsa"] == sys.getsizeof(lsa)
    assert found["bytes"] == sys.getsizeof(lsa.raw)


def test_the_row_has_the_goal():
    (row,) = rows(200)
    assert (row["unit"], row["goal"], row["met"]) == ("bytes", "<= 800 bytes", row["ours"] <= 800)
