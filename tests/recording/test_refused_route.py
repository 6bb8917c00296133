"""A recorded fault: the kernel of leaf L1 has no memory for a route to L2, again and again.

``record_fault.py`` recorded it from the start of the router on: it begins with settings, not with a
state, so later versions read it. They may do more or less on the way, but come to these routes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fared.core.ids import ipv4_prefix
from fared.management.recording.player import play
from fared.management.recording.written_test import route_lines

RECORDING = Path(__file__).with_suffix(".recording")
REFUSED = ipv4_prefix(0x0A000200, 24)
ROUTES = [
    "10.0.1.0/24 10: connected",
    "10.0.2.0/24 30: S2 1",
    "10.128.0.2/31 10: connected",
    "10.128.0.4/31 30: S2 1",
    "10.128.0.6/31 20: S2 1",
    "10.255.0.1/32 30: S2 1",
    "10.255.0.2/32 10: S2 1",
    "10.255.0.3/32 0: connected",
    "10.255.0.4/32 20: S2 1",
]


@pytest.mark.parametrize("version", ["0.1.0", "99.0.0"])
def test_a_route_that_the_kernel_refused_is_there_once_there_is_memory(version, monkeypatch):
    monkeypatch.setattr("fared.management.recording.player.__version__", version)
    refused = play(RECORDING, until="fib-operation-refused:3")
    assert refused.reached
    assert refused.router.table.routes[REFUSED].metric == 30
    assert REFUSED not in refused.router.planner.installed.routes

    played = play(RECORDING)
    assert played.new_router
    assert played.raised == []
    assert REFUSED in played.router.planner.installed.routes
    assert route_lines(played.router) == ROUTES
