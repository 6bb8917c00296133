"""Recordings of a fabric with random failures replay, in another process, to the same databases,
routes and outputs: from the begin of each router on, and from a state in the middle."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from fared.extensions.sim.fabric import Fabric, FabricBuilder, clos3
from fared.extensions.sim.levels import clos3_isis
from fared.extensions.sim.protocols import BgpBuilder
from fared.management.recording import files
from tests.bgp.fabrics import NEIGHBOR
from tests.recording.taped_network import TapedNetwork, random_failures

pytestmark = pytest.mark.slow


def clos3_bgp(spines: int, leaves: int, *, network: TapedNetwork) -> Fabric:
    builder = FabricBuilder(network, protocols=[BgpBuilder(NEIGHBOR, BgpBuilder().common)])
    return clos3(spines, leaves, builder=builder)


MAKE = {"ospf": clos3, "isis": clos3_isis, "bgp": clos3_bgp}
SEEDS = [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 20))]
ROOT = Path(__file__).parents[2]


def replay_elsewhere(directories: list[Path], seed: int) -> dict[str, dict]:
    """Replay in a process whose hashes are others."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.recording.replay_elsewhere", *map(str, directories)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(1000 + seed)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def drop_the_begin(directory: Path) -> bool:
    """Leave what comes after the first segment with a state; False: there is none."""
    known = files.segments(directory)
    states = [segment for segment in known if segment.state is not None]
    if not states:
        return False
    for segment in known:
        if segment.number < states[0].number:
            segment.file.unlink()
    return True


@pytest.mark.parametrize("proto", MAKE)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_failures_replay_to_the_same_databases_and_routes(proto, seed, tmp_path):
    network = TapedNetwork(tmp_path, seed)
    fabric = MAKE[proto](4, 8, network=network)
    network.start_all()
    network.run_until_quiet(60)
    random_failures(fabric, random.Random(seed), 15)
    network.next_segment("L1")
    network.set_link("L1", "S1", up=False)
    network.run_for(1)
    network.end()
    texts = network.texts()
    assert all(len(routes) > 1000 for _, routes in texts.values())
    directories = sorted(tmp_path.iterdir())
    assert len(directories) == 12

    played = replay_elsewhere(directories, seed)
    assert {name: one["difference"] for name, one in played.items()} == dict.fromkeys(texts)
    assert {name: one["texts"] for name, one in played.items()} == texts
    assert all(one["confirmed"] and one["new_router"] for one in played.values())

    later = [directory for directory in directories if drop_the_begin(directory)]
    assert later
    resumed = replay_elsewhere(later, seed)
    assert {one["difference"] for one in resumed.values()} == {None}
    for name, one in resumed.items():
        assert one["texts"] == texts[name]
        assert one["confirmed"]
        assert one["calls"] < played[name]["calls"]
    assert not all(one["new_router"] for one in resumed.values())
