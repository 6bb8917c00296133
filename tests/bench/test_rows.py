"""Rows of comparisons: a ratio above 1 is better; a row without measurement misses its goal."""

from __future__ import annotations

from bench.beside.report import missing_row
from bench.rows import compared


def test_a_ratio_above_one_means_ahead_whatever_is_better():
    """Half the time, and twice the rate, are both 2x."""
    assert compared("time", 2.0, 4.0, "ms", 2)["ratio"] == 2.0
    assert compared("rate", 4.0, 2.0, "/s", more_is_better=True)["ratio"] == 2.0
    assert compared("time", 2.0, 4.0, "ms", 3) | {"ratio": 0} == {
        "name": "time",
        "ours": 2.0,
        "other": 4.0,
        "unit": "ms",
        "ratio": 0,
        "goal": ">= 3x",
        "met": False,
    }


def test_what_was_not_measured_has_missed_its_goal():
    """No ratio; without a goal it is neither met nor missed."""
    assert compared("time", None, 4.0, "ms", 2)["met"] is False
    assert compared("time", None, 4.0, "ms")["met"] is None
    assert missing_row()["met"] is False
