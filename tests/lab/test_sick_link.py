"""A link that damages frames, in a fabric under traffic: derated at both ends, and well again."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.extensions.lab.waiting import await_paths
from tests.lab.error_counters import Interface
from tests.lab.stream import Stream
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.timeout(240)]
CLOS3 = Path(__file__).parents[2] / "containerlab" / "clos3.clab.yml"
TO_L1, TO_L2 = "10.0.1.0/24", "10.0.2.0/24"
HOLD_DOWN = 5.0
DERATED_WITHIN, WELL_WITHIN = 10.0, 20.0
"""Seconds: of the window, and after the hold-down; on a busy machine."""


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    """The three-stage fabric of the demo, routing."""
    with Fabric.from_file(CLOS3, directory=tmp_path_factory.mktemp("clos3")) as running:
        assert await_paths(running, 60.0) is not None
        yield running


def show(node: RunningNode, what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(node.cli("--json", "show", what))
    return found


def shares(fabric: Fabric, name: str, prefix: str) -> dict[str, Fraction]:
    """The kernel's shares of a node toward a prefix, by neighbor."""
    peers = {port.name: port.peer for port in fabric.node(name).plan.ports}
    hops = fabric.view(name).hops(prefix)
    total = sum(hop.weight for hop in hops)
    return {peers[hop.interface]: Fraction(hop.weight, total) for hop in hops}


def within(condition: Callable[[], bool], seconds: float, what: str) -> float:
    begun = time.monotonic()
    wait_for(condition, seconds, what)
    return time.monotonic() - begun


def test_a_sick_link_carries_less_within_seconds_and_all_of_it_when_it_is_well(
    fabric: Fabric, tmp_path: Path
):
    """S1 receives damaged frames from L1: L1 sends less to S1, and others less over S1 to L1."""
    spine = fabric.node("S1")
    port = next(port for port in spine.plan.ports if port.peer == "L1")
    healthy = {n: shares(fabric, n, p) for n, p in (("L1", TO_L2), ("L2", TO_L1))}
    costs = {e["interface"]: e["cost"] for e in show(spine, "interfaces")["interfaces"]}
    file = tmp_path / "dev"
    config = yaml.safe_load((spine.directory / "fared.yaml").read_text())
    options = {"mode": "act", "window": "2s", "hold-down": f"{HOLD_DOWN:g}s"}
    options["steps"] = [{"ratio": "0.1%", "share": "25%"}]
    config["link-health"] = {"counters": str(file), "interfaces": {port.name: options}}
    other = tmp_path / "fared.yaml"
    other.write_text(yaml.safe_dump(config))
    traffic = Stream.between(fabric, "h1", "h2", flows=64)
    with Interface(file, port.name) as counters, traffic as stream:
        spine.cli("config", "apply", str(other), "--comment", "watch L1")
        counters.sick = True

        def derated(name: str, prefix: str) -> bool:
            found = shares(fabric, name, prefix)
            return found == {"S1": Fraction(1, 13)} | {
                peer: Fraction(4, 13) for peer in ("S2", "S3", "S4")
            }

        took = within(
            lambda: derated("L1", TO_L2) and derated("L2", TO_L1), DERATED_WITHIN, "derated"
        )
        (row,) = (e for e in show(spine, "interfaces")["interfaces"] if e["interface"] == port.name)
        assert row["derated"][0]["by"] == "link-health"
        assert "errors" in row["derated"][0]["reason"]
        assert {e["interface"]: e["cost"] for e in show(spine, "interfaces")["interfaces"]} == costs
        counters.sick = False
        well = within(
            lambda: (
                shares(fabric, "L1", TO_L2) == healthy["L1"]
                and shares(fabric, "L2", TO_L1) == healthy["L2"]
            ),
            HOLD_DOWN + WELL_WITHIN,
            "well again",
        )
        assert well > HOLD_DOWN - 1.0
    sys.stdout.write(f"derated {took:.2f} s, well {well:.2f} s, {stream.lost} of {stream.sent}\n")
    assert stream.lost == 0
    assert stream.sent > 1000
