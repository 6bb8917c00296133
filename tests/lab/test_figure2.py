"""Figure 2 of the draft as a fabric of 80 daemons, on the cores of one machine."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest

from fared.extensions.lab import topology
from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.extensions.lab.generate.clos5 import Clos5
from fared.extensions.lab.generate.writer import text
from fared.extensions.lab.waiting import has_all_paths, wait_until
from fared.management.api.client import ControlClient
from tests.lab.damages import FIGURE_2, SLOW_LINKS, Damages, weigh_damages

START = 180.0
WATCHED = 60.0
"""Seconds for the start, and seconds observed after it."""
ADJACENT = {"Full", "Up"}
"""The state of a neighbor in OSPF, and in IS-IS."""

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.alone, pytest.mark.soak]


def losses(node: RunningNode) -> Iterator[str]:
    """Log lines about neighbors that were full, and are not any more."""
    (process,) = node.processes
    for line in process.log.read_text("utf-8").splitlines():
        record = json.loads(line)
        if record["event"] == "neighbor-changed" and record["previous"] in ADJACENT:
            yield line


@pytest.fixture(scope="module", params=["ospf", "isis"])
def fabric(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fabric]:
    directory = tmp_path_factory.mktemp("figure2")
    file = directory / "figure2.clab.yml"
    file.write_text(text(Clos5(pods=8, supers=4, protocol=request.param, name="figure2")))
    with Fabric.from_topology(topology.load(file), directory=directory / "state") as running:
        yield running


def test_80_daemons_start_with_a_hello_a_second_and_lose_no_neighbor(fabric: Fabric):
    """On two cores; nor do they in the minute after, in which every kernel keeps every path."""
    routers = fabric.plan.routers
    assert len(routers) == 80
    views = fabric.views(routers)
    assert wait_until(views, has_all_paths(fabric), START, quiet=WATCHED) is not None
    nodes = [fabric.node(plan.name) for plan in routers]
    assert list(itertools.chain.from_iterable(map(losses, nodes))) == []
    for plan, node in zip(routers, nodes, strict=True):
        client = ControlClient(str(node.directory / "fared.sock"))
        neighbors = client.request("show neighbors")["neighbors"]
        assert {row["state"] for row in neighbors} <= ADJACENT, plan.name
        assert {row["flaps"] for row in neighbors} == {0}, plan.name
        assert len(neighbors) == len(plan.fabric_ports)


@pytest.mark.parametrize("damaged", [FIGURE_2, SLOW_LINKS], ids=["failed", "slow"])
def test_with_nine_damages_at_once_all_992_weight_vectors_are_min_of_up_and_down(
    fabric: Fabric, damaged: Damages
):
    """Of each address family."""
    assert wait_until(fabric.views(fabric.plan.routers), has_all_paths(fabric), START) is not None
    families = 2 if fabric.plan.routers[0].isis else 1
    assert weigh_damages(fabric, damaged, timeout=60.0) == 32 * 31 * families
