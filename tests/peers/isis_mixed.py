"""IS-IS fabrics of two implementations under link failures, compared with the oracle."""

from __future__ import annotations

import random
import shutil
import time

import pytest

from fared.extensions.lab.fabric import Fabric
from tests.peers import isis_oracle
from tests.peers.conftest import Peers
from tests.peers.isis_peers import await_equal_databases
from tests.peers.isis_recordings import FRR_LOST_LINK, judge, refused
from tests.peers.oracle import Link
from tests.peers.peers import tell
from tests.peers.recordings import complaints
from tests.peers.routes import await_kernels

_SOAK = (pytest.mark.soak, pytest.mark.timeout(900))
SOAKS = tuple(pytest.param(seed, 20, marks=_SOAK) for seed in (3, 4))
"""Seeds, and how many failures: these only when asked for."""
HELLOS = {"p2p-hello"}
LEVEL_1, LEVEL_2 = ({f"l{n}-lsp", f"l{n}-csnp", f"l{n}-psnp"} for n in (1, 2))
"""The PDUs of each level."""
_STEP_DEADLINE = 40.0


def await_as_it_should_be(fabric: Fabric, seconds: float) -> float:
    """Wait for the right routes everywhere, the right metrics, and equal databases.

    Returns the time at which all kernels were right.
    """
    done = await_routes(fabric, seconds=seconds)
    await_equal_databases(fabric, seconds)
    return done


def await_routes(fabric: Fabric, *down: Link, seconds: float = _STEP_DEADLINE) -> float:
    """Wait until all have the oracle's routes of both families; return when the kernels did."""
    wanted = isis_oracle.routes(fabric.plan, isis_oracle.link_locals(fabric), down)
    done = await_kernels(fabric, wanted, seconds)
    isis_oracle.await_metrics(fabric, wanted, seconds)
    return done


def fail_and_heal(fabric: Fabric, seed: int, failures: int) -> None:
    """Set links down at one end, and up again, and wait each time for all routes.

    Links and ends are chosen at random.
    """
    ports = [port for router in fabric.plan.routers for port in router.fabric_ports]
    links = isis_oracle.link_locals(fabric)
    for port in random.Random(seed).choices(ports, k=failures):
        failed, healed = (
            isis_oracle.routes(fabric.plan, links, down)
            for down in ([frozenset((port.node, port.peer))], [])
        )
        begun = time.monotonic()
        fabric.fail(port.node, port.peer)
        lost = await_kernels(fabric, failed, _STEP_DEADLINE) - begun
        begun = time.monotonic()
        fabric.heal(port.node, port.peer)
        back = await_kernels(fabric, healed, _STEP_DEADLINE) - begun
        tell(f"{port.node}-{port.peer}: kernels right {lost:.2f} s, healed {back:.2f} s")


def judge_every_link(peers: Peers, kinds: set[str]) -> None:
    """Check all packets of fared on every link, since the start, against FRR and Wireshark.

    FRR logged no error, and fared rejected no packet of FRR.
    """
    assert complaints(peers.fabric, FRR_LOST_LINK) == {}
    assert refused(peers.fabric) == {}
    peers.recordings.stop()
    if None in map(shutil.which, ("tcpdump", "tshark")):
        return
    ours = [router for router in peers.fabric.plan.routers if router.node.kind == "fared"]
    assert peers.recordings.names() == sorted(router.name for router in ours)
    verdict = judge(peers.recordings.merged(*peers.recordings.names()))
    assert verdict.flawed == []
    assert verdict.bad_lsps == []
    assert set(verdict.links) == {port.index for router in ours for port in router.fabric_ports}
    assert set(verdict.kinds) == kinds
    tell(
        f"{sum(verdict.links.values())} PDUs on {len(verdict.links)} ports, {verdict.lsps} LSPs"
        f" {dict(verdict.kinds)}"
    )
