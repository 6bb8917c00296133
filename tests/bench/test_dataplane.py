"""The report of the data plane benchmark."""

import pytest

from bench.traffic.dataplane_report import chance, page, rows_of
from bench.traffic.dataplane_runs import (
    CAPACITY,
    FEW,
    FRR,
    HAND,
    PAIR,
    SCENARIOS,
    SLOW,
    everything,
    short,
)
from fared.extensions.lab.expected import expected_shares

RATES = [20.0, 100.0, 100.0, 100.0]


def result(*seconds: float, busiest: float = 7.0) -> dict[str, object]:
    return {
        "bound": 6.4,
        "seconds": list(seconds),
        "busiest": [busiest] * len(seconds),
        "shares": [rate / 320 for rate in RATES],
        "capacities": RATES,
    }


FOUND = {
    (SLOW, FRR, PAIR): result(26.0),
    (SLOW, CAPACITY, PAIR): result(7.5, 8.0, 9.0),
    (SLOW, FEW, PAIR): result(7.2, 7.5, 8.0),
    (SLOW, HAND, PAIR): result(7.4, 8.1),
}


def test_the_goal_is_for_the_routing_that_knows_how_many_flows_there_are():
    judged = {row["name"].split(": ")[1]: row for row in rows_of(FOUND, 9000) if row["goal"]}
    sooner, part, draw, hand = judged.values()
    assert all(CAPACITY + "-128-flows" in name for name in list(judged)[:3])
    assert (sooner["ratio"], sooner["met"]) == (pytest.approx(26 / 7.5), True)
    assert (part["ours"], part["met"]) == (pytest.approx(6.4 / 7.5), True)
    assert (draw["ours"], draw["met"]) == (pytest.approx(7 / 7.5), False)
    assert hand["ratio"] == pytest.approx((7.4 + 8.1) / (7.5 + 8.0))


def test_chance_allows_85_percent_of_the_bound_and_leaning_87():
    """Less headers: 0.7 % of jumbo frames, 4.4 % of others."""
    even = expected_shares(dict(zip("abcd", RATES, strict=True)))
    lean = expected_shares(dict(zip("abcd", RATES, strict=True)), 128)
    assert chance(list(even.values()), RATES, 128, 9000) == pytest.approx(0.851 * 0.993, abs=1e-3)
    assert chance(list(lean.values()), RATES, 128, 9000) == pytest.approx(0.870 * 0.993, abs=1e-3)
    assert chance(list(even.values()), RATES, 128, 1500) == pytest.approx(0.851 * 0.956, abs=1e-3)


def test_the_page_has_a_cell_for_each_routing():
    (line,) = [text for text in page(FOUND, 9000) if text.startswith(f"| {SLOW}")]
    assert "8.00 s (80%, 88%, 3.2x)" in line
    assert "26.00 s (25%, 27%)" in line


def test_the_short_form_is_about_the_slow_downlink_and_the_long_one_about_all():
    assert {run.scenario for run in short()} == {SLOW}
    assert {run.scenario for run in everything()} == set(SCENARIOS)
