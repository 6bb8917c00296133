"""The exact optimum of collectives, with which the benchmark of topologies compares."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.lab.topologies import MBITS, SIZE, job, optima, optimum, planned
from fared.extensions.lab.generate.clustered import Clustered
from fared.extensions.lab.generate.full_mesh import FullMesh
from fared.extensions.lab.generate.model import Generator
from fared.extensions.lab.generate.star import Star
from fared.extensions.lab.generate.torus import Torus
from fared.extensions.lab.workloads.bounds import bound

UNIT = SIZE / (MBITS * 1e6 / 8)
"""Seconds of a message over one link."""
CLOSED = [
    (FullMesh(5), "all-to-all", 1 / 5),
    (FullMesh(5), "all-reduce-ring", 2 * 4 / 5),
    (Torus("5"), "all-reduce-ring", 2 * 4 / 5),
    (Star(5), "all-to-all", 4 / 5),
    (Star(5), "all-reduce-ps", 2),
    (Clustered(4, 2), "all-to-all", 1.0),
]
"""By hand, in messages over rate: two links join the halves of a ring of clusters, 4 x 4 / 8."""


@pytest.mark.parametrize(("topology", "collective", "units"), CLOSED, ids=str)
def test_the_optimum_is_what_the_busiest_link_carries(
    topology: Generator, collective: str, units: float
):
    plan = planned(type(topology)(**{**vars(topology), "rate": f"{MBITS}M"}))
    found = optimum(plan, job(plan, collective))
    assert found == pytest.approx(units * UNIT, rel=1e-4)


@pytest.mark.parametrize("collective", ["all-to-all", "all-reduce-tree", "all-reduce-ps"])
def test_the_bound_without_a_solver_never_exceeds_the_optimum(collective: str):
    plan = planned(Clustered(4, 3, rate=f"{MBITS}M"))
    one = job(plan, collective)
    assert bound(one, plan, lambda port: port.rate) <= optimum(plan, one) * (1 + 1e-3)


@pytest.mark.soak
def test_the_page_has_the_optima_that_are_computed():
    page = Path("docs/topologies.md").read_text("utf-8")
    assert "\n".join(optima()) in page
