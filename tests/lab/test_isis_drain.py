"""Out of service and back under traffic, over IS-IS: OpenConfig RT-2.14, and the overload bit.

RT-2.14 drains a link by a higher metric: traffic moves to the other path of equal cost before the
link goes, no packet is lost, and traffic returns with the metric.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from tests.lab.stream import Stream
from tests.lab.two_leaves import WAYS, topology
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.timeout(240)]

FAR = {"L1": "10.0.2.0/24", "L2": "10.0.1.0/24"}
"""The networks of the other leaf's hosts."""
BOTH, OTHER = {"S1", "S2"}, {"S2"}
DRAINED = 2
"""The metric of a drained link, in metrics of the others. Over the drained link a leaf then reaches
the other one at three of them, and uses the other spine at two; but the spine at the link still
reaches its leaf at two, and around at three. So it never sends traffic back, and no loop can form
while the routers change one after the other."""
SOON = 20.0
OBSERVED = 1000
"""Packets of each stream, at least, during which the drained link is observed."""
QUIET = 0.1
"""The part of all traffic that a drained link may carry meanwhile, of the protocol.

Half of what one leaf sends is a quarter.
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    directory = tmp_path_factory.mktemp("drain")
    path = directory / "drain.clab.yml"
    path.write_text(topology("isis-drain", protocol="isis"))
    with Fabric.from_file(path, directory=directory / "state") as made:
        assert await_paths(made, 60.0) is not None
        yield made


@pytest.fixture
def streams(running: Fabric) -> Iterator[list[Stream]]:
    """Traffic in both directions over both spines, of which no packet may be lost."""
    found = [Stream.between(running, *way, flows=64) for way in WAYS]
    try:
        wait_for(lambda: all(one.flowing() for one in found), 10, "traffic")
        yield found
        wait_for(lambda: all(one.flowing() for one in found), 10, "traffic afterwards")
    finally:
        for one in found:
            one.finish()
    lost, sent = [one.lost for one in found], sum(one.sent for one in found)
    sys.stdout.write(f"{sum(lost)} of {sent} packets lost\n")
    assert lost == [0, 0]


def used(fabric: Fabric, leaf: str) -> set[str]:
    """The spines over which a leaf's kernel reaches the other leaf's hosts."""
    return {hop.interface for hop in fabric.view(leaf).hops(FAR[leaf])}


def await_use(fabric: Fabric, spines: set[str], what: str) -> None:
    wait_for(lambda: [used(fabric, leaf) for leaf in FAR] == [spines] * 2, SOON, what)


def carried(fabric: Fabric, node: str, interface: str) -> int:
    """Packets that an interface has received and sent."""
    shown = fabric.node(node).netns.ip("-s", "-j", "link", "show", "dev", interface)
    counts: dict[str, Any] = json.loads(shown)[0]["stats64"]
    return int(counts["rx"]["packets"] + counts["tx"]["packets"])


def assert_quiet(fabric: Fabric, links: list[tuple[str, str]], streams: list[Stream]) -> None:
    """While traffic flows, these interfaces carry the protocol only."""
    sent = [one.sent for one in streams]
    before = [carried(fabric, *link) for link in links]

    def enough() -> bool:
        return all(o.sent - at > OBSERVED for o, at in zip(streams, sent, strict=True))

    wait_for(enough, SOON, "enough packets")
    after = [carried(fabric, *link) for link in links]
    traffic = sum(one.sent for one in streams) - sum(sent)
    most = QUIET * traffic
    assert all(b - a < most for a, b in zip(before, after, strict=True)), (before, after, traffic)


def drain(fabric: Fabric, ends: tuple[tuple[str, str], ...]) -> None:
    """Apply the metric of a drained link at both ends."""
    for node, interface in ends:
        router = fabric.node(node)
        config = yaml.safe_load((router.directory / "fared.yaml").read_text())
        config["isis"]["interfaces"][interface]["metric"] *= DRAINED
        file = router.directory / "drained.yaml"
        file.write_text(yaml.safe_dump(config))
        router.cli("config", "apply", str(file), "--comment", "drain")


def undrain(fabric: Fabric, ends: tuple[tuple[str, str], ...]) -> None:
    """Go back to the configuration before."""
    for node, _ in ends:
        fabric.node(node).cli("config", "rollback", "--comment", "undrain")


def adjacent(fabric: Fabric, node: str, interface: str) -> bool:
    rows = json.loads(fabric.node(node).cli("--json", "show", "neighbors"))["neighbors"]
    return any(row["interface"] == interface and row["state"] == "Up" for row in rows)


def test_rt_2_14_a_link_is_drained_by_its_metric_without_loss(
    running: Fabric, streams: list[Stream]
):
    ends = (("L1", "S1"), ("S1", "L1"))
    await_use(running, BOTH, "both paths at first")
    drain(running, ends)
    await_use(running, OTHER, "traffic leaves the link")
    assert adjacent(running, "L1", "S1")
    assert_quiet(running, list(ends), streams)
    running.fail("L1", "S1")
    wait_for(lambda: not adjacent(running, "L1", "S1"), SOON, "the link is gone")
    assert_quiet(running, [("L1", "S1")], streams)
    running.heal("L1", "S1")
    wait_for(lambda: adjacent(running, "L1", "S1"), SOON, "the link is back")
    assert_quiet(running, list(ends), streams)
    assert [used(running, leaf) for leaf in FAR] == [OTHER, OTHER]
    undrain(running, ends)
    await_use(running, BOTH, "traffic comes back")


def test_a_spine_is_drained_by_its_overload_bit_replaced_and_put_back_without_loss(
    running: Fabric, streams: list[Stream]
):
    """Also while its daemon ends, its links go, and it starts again, still drained."""
    links = [("L1", "S1"), ("L2", "S1")]
    await_use(running, BOTH, "both paths at first")
    running.node("S1").cli("drain", "--reason", "replace it")
    await_use(running, OTHER, "traffic leaves the spine")
    assert_quiet(running, links, streams)
    running.stop_node("S1")
    for leaf, spine in links:
        running.fail(leaf, spine)
    assert_quiet(running, links, streams)
    for leaf, spine in links:
        running.heal(leaf, spine)
    running.start_node("S1")
    for link in links:
        wait_for(lambda link=link: adjacent(running, *link), SOON, f"{link} is back")
    assert_quiet(running, links, streams)
    assert [used(running, leaf) for leaf in FAR] == [OTHER, OTHER]
    running.node("S1").cli("undrain")
    await_use(running, BOTH, "traffic comes back")
