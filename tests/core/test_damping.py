"""Damping of flaps: the penalty of RFC 2439."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.damping import PENALTY, Damping, DampingSettings

pytestmark = pytest.mark.rfc("RFC 2439")


def test_the_penalty_halves_in_its_half_life():
    damping = Damping(DampingSettings(half_life=15.0))
    damping.flapped(100.0)
    assert damping.penalty(100.0) == PENALTY
    assert damping.penalty(115.0) == pytest.approx(PENALTY / 2)
    damping.flapped(115.0)
    assert damping.penalty(115.0) == pytest.approx(1.5 * PENALTY)


def test_two_flaps_change_nothing_and_the_third_in_a_row_suppresses():
    damping = Damping(DampingSettings())
    for second, suppressed in enumerate([False, False, True]):
        damping.flapped(second / 10)
        assert damping.suppressed is suppressed


def test_a_suppressed_link_is_used_again_when_the_penalty_has_decayed():
    damping = Damping(DampingSettings(half_life=10.0, suppress=2000.0, reuse=500.0))
    for _ in range(4):
        damping.flapped(0.0)
    assert damping.reuse_in(0.0) == pytest.approx(30.0)  # 4000, 2000, 1000, 500
    assert not damping.released(29.9)
    assert damping.released(30.0)
    assert not damping.suppressed
    assert not damping.released(31.0)


@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=200))
def test_no_flaps_suppress_a_link_for_longer_than_the_maximum(gaps):
    settings = DampingSettings(half_life=15.0, suppress=2000.0, reuse=750.0, maximum=60.0)
    damping, now = Damping(settings), 0.0
    for gap in gaps:
        now += gap
        damping.flapped(now)
        assert 0.0 <= damping.reuse_in(now) <= settings.maximum + 1e-6
    assert damping.released(now + settings.maximum) or not damping.suppressed
