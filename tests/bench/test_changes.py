"""The benchmark of one change: the router has what it is said to hold."""

from bench.router.changes import external_rows, fabric_rows


def test_both_kinds_of_changes_are_measured_beside_the_least_that_is_held():
    names = [row["name"] for row in (*external_rows((50, 300)), *fabric_rows(((4, 8), (5, 9))))]
    assert names == [
        "OSPF: one of 300 externals changes, beside one of 50",
        "OSPF: learning 300 externals, each, beside 50",
        "OSPF: withdrawing 300 externals, each, beside 50",
        "OSPF: a changed bandwidth in 5x9, beside 4x8",
        "OSPF: a lost link in 5x9, beside 4x8",
    ]
