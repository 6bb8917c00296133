"""Bits/s for people, bytes/s inside, and what no link can have never becomes a weight."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.units import (
    MAX_CAPACITY,
    MIN_CAPACITY,
    format_bandwidth,
    parse_bandwidth,
    parse_duration,
    parse_percent,
    sane_capacity,
    sane_load,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("400G", 50e9),
        ("25M", 3.125e6),
        ("1.5g", 187.5e6),
        ("100Mbit/s", 12.5e6),
        (" 10 Gbps ", 1.25e9),
        (8000, 1000.0),
        ("8000", 1000.0),
        ("1T", 125e9),
    ],
)
def test_bandwidths_as_people_write_them(text, value):
    assert parse_bandwidth(text) == value


@pytest.mark.parametrize(
    ("text", "ratio"), [("25%", 0.25), (" 0.7 % ", 0.007), ("0%", 0.0), ("100%", 1.0)]
)
def test_percentages_as_people_write_them(text, ratio):
    assert parse_percent(text) == ratio


@pytest.mark.parametrize("text", ["25", "-1%", "1e1%", "%", "x%", "101%", ""])
def test_not_a_percentage(text):
    with pytest.raises(ValueError, match="is not a percentage such as 25%"):
        parse_percent(text)


@pytest.mark.parametrize("text", ["0%", "50.1%"])
def test_a_percentage_has_the_bounds_and_the_words_of_who_reads_it(text):
    with pytest.raises(ValueError, match="is not up to half"):
        parse_percent(text, lambda ratio: 0 < ratio <= 0.5, "up to half")


@pytest.mark.parametrize(
    "text", ["", "fast", "10X", "-1G", "1e9", "0", 0, "999", "11000T", math.nan, math.inf]
)
def test_not_a_bandwidth(text):
    with pytest.raises(ValueError):
        parse_bandwidth(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (50e9, "400G"),
        (3.125e6, "25M"),
        (12.5e6, "100M"),
        (125e9, "1000G"),
        (2e12, "16T"),
        (1000, "8K"),
        (100, "800"),
        (0, "0"),
        (None, "-"),
        (math.nan, "-"),
    ],
)
def test_bandwidths_are_shown_in_bits(value, text):
    assert format_bandwidth(value) == text


@given(st.floats(MIN_CAPACITY, MAX_CAPACITY))
def test_shown_bandwidth_reads_back_to_four_digits(value):
    assert parse_bandwidth(format_bandwidth(value)) == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("50ms", 0.05), ("20s", 20), ("5m", 300), ("1h", 3600), ("10us", 1e-5), ("3", 3), (0.5, 0.5)],
)
def test_durations(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "-1s", -1, math.nan, math.inf, "1d"])
def test_not_a_duration(text):
    with pytest.raises(ValueError):
        parse_duration(text)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, -1.0, 0.0, 1e300, 1.0])
def test_a_claim_that_no_link_can_have_is_unknown(value):
    assert sane_capacity(value) is None


def test_a_load_may_be_zero_but_not_nonsense():
    assert sane_load(0.0) == 0.0
    assert sane_load(1e6) == 1e6
    assert all(sane_load(v) is None for v in (None, math.nan, math.inf, -1.0))
