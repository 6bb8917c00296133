"""Behaviour of BIRD 2.0.12 without fared, for which other tests have to wait."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import wait_until
from tests.peers.peers import await_whole, database, full_neighbors
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.soak]

TOPOLOGY = """
name: beside
topology:
  nodes:
    S: {kind: bird}
    L1: {kind: frr}
    L2: {kind: frr}
    h1: {}
    h2: {}
  links:
    - endpoints: ["S:L1", "L1:S"]
    - endpoints: ["S:L2", "L2:S"]
    - endpoints: ["L1:h1", "h1:L1"]
    - endpoints: ["L2:h2", "h2:L2"]
"""
PREFIX = "10.0.1.0/24"
MIN_LS_INTERVAL = 5.0


def test_bird_loses_routes_over_a_link_that_flaps_within_min_ls_interval(
    tmp_path: Path,
):
    """S loses L1 and has it back before it may originate again (MinLSInterval, RFC 2328 §12.4).

    When it may, its router LSA is what it was: it originates nothing and computes no routes, though
    those it had computed in between were without L1 ("Cannot find next hop for LSA"). Nothing of L1
    is wrong: both ends are Full, L1's own LSA names S, databases are equal. Computing again, for
    any reason, brings the routes back.
    """
    version = subprocess.run(["bird", "--version"], capture_output=True, text=True, check=True)
    if "2.0.12" not in version.stderr + version.stdout:
        pytest.skip("seen in BIRD 2.0.12; this is another version")
    file = tmp_path / "beside.clab.yml"
    file.write_text(TOPOLOGY)
    with Fabric.from_file(file, directory=tmp_path / "state") as fabric:
        await_whole(fabric, 60.0)
        quiet = own_router_lsa(fabric)
        fabric.fail("L2", "S")
        wait_for(lambda: own_router_lsa(fabric) > quiet, 7.0, "S tells that L2 is gone")
        spoken = own_router_lsa(fabric)

        fabric.fail("L1", "S")
        wait_for(lambda: "L1" not in full_neighbors(fabric.node("S")), 2.0, "S loses L1")
        fabric.heal("L1", "S")
        wait_for(lambda: "L1" in full_neighbors(fabric.node("S")), 4.0, "S has L1 back")
        wait_for(lambda: "Cannot find next hop for LSA" in log_of(fabric), 5.0, "S computes routes")
        wait_for(lambda: not fabric.view("S").hops(PREFIX), 1.0, "without L1")
        assert has_route(fabric, 2 * MIN_LS_INTERVAL) is None
        assert own_router_lsa(fabric) == spoken
        assert full_neighbors(fabric.node("S")) == {"L1": "10.255.0.2"}
        assert full_neighbors(fabric.node("L1")) == {"S": "10.255.0.1"}
        assert database(fabric.node("S")) == database(fabric.node("L1"))

        fabric.node("S").cli("reload", "fabric")
        assert has_route(fabric, 2.0) is not None


def own_router_lsa(fabric: Fabric) -> int:
    """The sequence number of S's router LSA, by its own account."""
    held = database(fabric.node("S"))
    own = str(fabric.plan.node("S").router_id)
    (lsa,) = (lsa for lsa in held if (lsa.ls_type, lsa.advertising_router) == (1, own))
    return lsa.sequence_number


def has_route(fabric: Fabric, seconds: float) -> float | None:
    """Wait for S's route to L1's hosts; None when there is none by then."""
    return wait_until({"S": fabric.view("S")}, lambda _, view: bool(view.hops(PREFIX)), seconds)


def log_of(fabric: Fabric) -> str:
    """What S has logged."""
    return (fabric.node("S").directory / "bird.log").read_text("utf-8", "replace")
