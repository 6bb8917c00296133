"""FARE's sentence about rails, measured: weights at their leaves suffice for links of rails."""

from __future__ import annotations

import pytest

from bench.lab import rails

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.alone, pytest.mark.soak]


def test_weights_at_leaves_repair_a_slow_link_of_a_rail_but_not_of_a_plane():
    """Weights everywhere add nothing in the first case, and halve the time in the second."""
    found = {(one["damage"], one["workload"]): one for one in rails.measured()}
    for workload in (rails.RINGS, rails.ALL):
        one = found[rails.RAIL, workload]
        assert one[rails.NOWHERE] > 1.4 * one[rails.LEAVES]
        assert one[rails.LEAVES] == pytest.approx(one[rails.EVERYWHERE], rel=0.35)
    one = found[rails.PLANE, rails.ALL]
    assert one[rails.LEAVES] > 1.4 * one[rails.EVERYWHERE]
