"""Graceful restarts in a three-stage fabric: no packet lost, and no route changed at a neighbor."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.waiting import await_paths
from fared.paths.fib.settings import FibSettings
from tests.lab.restarts import Restart, told
from tests.lab.stream import Stream
from tests.lab.two_leaves import WAYS, help_restarts, patient
from tests.waiting import await_rest, wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.timeout(240)]
DIRECTORY = Path(__file__).parents[2] / "containerlab"
FABRICS = {"ospf": "clos3.clab.yml", "isis": "clos3-isis.clab.yml"}
RATE, FLOWS = 5000, 64
"""Packets/s in each direction, so 10,000 in all, over all spines."""
OFTEN = {("ospf", "S1", True), ("isis", "L1", False)}
"""Each protocol, each place and each kind once; FARED_TEST_SOAK=1 runs every combination."""
QUIET = FibSettings().coalesce_delay + 1.0
"""Seconds: routers then merge groups, and remove those that nothing uses."""


@pytest.fixture(scope="module", params=FABRICS)
def protocol(request: Any) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory, protocol: str) -> Iterator[Fabric]:
    """The fabric of the demo, with graceful restart at every router."""
    directory = tmp_path_factory.mktemp("clos3")
    file = directory / FABRICS[protocol]
    file.write_text(patient((DIRECTORY / file.name).read_text()))
    with Fabric.from_file(file, directory=directory / "state") as running:
        assert await_paths(running, 60.0) is not None
        help_restarts(running, protocol)
        yield running


def settled(fabric: Fabric) -> None:
    """All routers are ready, and none restarts or helps."""

    def quiet() -> bool:
        found = [told(fabric.node(plan.name)) for plan in fabric.plan.routers]
        return not any(part["helping"] or part["restarting"] for part in found)

    wait_for(quiet, 20, "no restart in progress", pause=0.2)


def at_rest(views: Collection[KernelView]) -> None:
    """No router changes its kernel any more, and all have removed what they do not use."""

    def written() -> list[tuple[int, int]]:
        for view in views:
            view.read_events()
        return [(view.writes.routes, view.writes.next_hops) for view in views]

    await_rest(written, QUIET, 30, "no route changes any more", pause=0.1)
    for view in views:
        view.writes.reset()


def begin(fabric: Fabric, name: str, *, planned: bool) -> None:
    if planned:
        fabric.node(name).cli("restart", "--graceful")
    else:
        fabric.stop_node(name, kill=True)
        fabric.start_node(name)


@pytest.mark.parametrize(
    ("name", "planned"),
    [
        pytest.param("L1", True, id="L1-planned"),
        pytest.param("S1", True, id="S1-planned"),
        pytest.param("L1", False, id="L1-crash"),
        pytest.param("S1", False, id="S1-crash", marks=pytest.mark.soak),
    ],
)
def test_a_restart_loses_no_packet_and_changes_no_route_of_any_router(
    fabric: Fabric, protocol: str, name: str, planned: bool
):
    if (protocol, name, planned) not in OFTEN and not os.environ.get("FARED_TEST_SOAK"):
        pytest.skip("more of what a shorter test shows: set FARED_TEST_SOAK=1")
    settled(fabric)
    others = [plan.name for plan in fabric.plan.routers if plan.name != name]
    views = {other: fabric.view(other) for other in others}
    at_rest(views.values())
    streams = [Stream.between(fabric, *way, flows=FLOWS, rate=RATE) for way in WAYS]
    try:
        wait_for(lambda: all(s.flowing() for s in streams), 20, "traffic")
        restart = Restart(fabric.node(name))
        begin(fabric, name, planned=planned)
        took = restart.wait()
        settled(fabric)
    finally:
        for one in streams:
            one.finish()
    assert restart.result == "completed"
    for view in views.values():
        view.read_events()
    writes = {other: (v.writes.routes, v.writes.next_hops) for other, v in views.items()}
    lost = [one.lost for one in streams]
    sent = sum(one.sent for one in streams)
    kind = "planned" if planned else "crash"
    print(f"\n{name}, {kind}: {sum(lost)} of {sent} packets lost, {took:.2f} s")  # noqa: T201
    assert lost == [0, 0]
    assert set(writes.values()) == {(0, 0)}


def test_a_link_lost_during_the_restart_ends_it_and_routes_are_right_after(fabric: Fabric):
    settled(fabric)
    spine, other = "S1", "S2"
    leaf = fabric.view("L1")

    def to_l2() -> set[str]:
        return {hop.interface for hop in leaf.hops("10.0.2.0/24")}

    usual = to_l2()
    assert {spine, other} <= usual
    fabric.stop_node(spine, kill=True)
    assert to_l2() == usual
    fabric.fail(other, "L2")
    try:
        wait_for(lambda: to_l2() == usual - {spine, other}, 20, "L1 ends helping, both are left")
        restart = Restart(fabric.node(spine))
        fabric.start_node(spine)
        restart.wait()
        wait_for(lambda: to_l2() == usual - {other}, 30, "S1 forwards again")
    finally:
        fabric.heal(other, "L2")
    assert await_paths(fabric, 20.0) is not None
    settled(fabric)
