"""The fabrics as shipped raise no alert while they are healthy, in a real Prometheus.

The expressions are those of the rules, with ``for`` of a second. ``python -m monitoring.silence``
runs them for ten minutes as they are.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from monitoring.scraping import Prometheus
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.netns,
    pytest.mark.soak,
    pytest.mark.timeout(400),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is missing"),
]
SHIPPED = Path(__file__).parents[2] / "containerlab"
WATCHED = 20.0
"""Seconds: as many scrapes and evaluations."""
PARTS = {
    "clos3": {"0.0.0.0": 1},
    "clos5": {"0.0.0.0": 4, "0.0.0.1": 1, "0.0.0.2": 1},
    "clos5-isis": {"level-1": 2, "level-2": 4},
}
"""How many parts of an area or level have databases of their own: planes, and PoDs of IS-IS."""


def parts(prometheus: Prometheus) -> dict[str, int]:
    found = prometheus.query("count by (area) (fared:databases:count == 1)")
    return {one["metric"]["area"]: int(one["value"][1]) for one in found}


@pytest.mark.parametrize("name", PARTS)
def test_a_healthy_fabric_raises_no_alert(name: str, tmp_path: Path):
    with Fabric.from_file(SHIPPED / f"{name}.clab.yml", directory=tmp_path / "lab") as fabric:
        assert await_paths(fabric, 60) is not None
        with Prometheus(fabric, tmp_path) as prometheus:
            wait_for(lambda: parts(prometheus) == PARTS[name], 60, "all are scraped", pause=0.5)
            wait_for(lambda: not prometheus.alerts("firing"), 60, "nothing fires", pause=0.5)
            (begun,) = prometheus.value("vector(time())")
            wait_for(
                lambda: prometheus.value("vector(time())")[0] > begun + WATCHED,
                60,
                "a while",
                pause=1.0,
            )
            fired = prometheus.history('ALERTS{alertstate="firing"}', begun, begun + WATCHED)
            names = {one["metric"]["alertname"] for one in fired}
            assert names <= {"FaredLoopLag"}  # a busy machine
            assert parts(prometheus) == PARTS[name]
