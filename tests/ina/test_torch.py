"""The hook of DistributedDataParallel, where PyTorch is installed."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ina.live import LiveFabric, job, live_fabric
from tests.waiting import wait_for

pytest.importorskip("torch")
pytestmark = [pytest.mark.netns, pytest.mark.slow]

PROGRAM = Path(__file__).parent / "torch_program.py"


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveFabric]:
    yield from live_fabric(tmp_path_factory.mktemp("torch"), f"tor{os.getpid()}")


def start(fabric: LiveFabric, name: str) -> None:
    for rank in range(4):
        task = json.dumps({"job": name, "rank": rank, "size": 4, "timeout": 60.0})
        log = fabric.directory / f"{name}-{rank}.log"
        command = [sys.executable, str(PROGRAM), task]
        fabric.workers.append(fabric.hosts[rank + 1].start(command, log))


def test_gradients_are_the_mean_over_all_ranks_with_the_same_bits(fabric: LiveFabric):
    fabric.install(job("gradients", 1))
    start(fabric, "gradients")
    results = fabric.results("gradients", 120)
    assert not [result for result in results if "error" in result]
    assert max(result["worst"] for result in results) < 1e-5
    assert all(result["bits"] == results[0]["bits"] for result in results)
    assert results[0]["calls"] >= 6  # three steps, two buckets each
    fabric.end_workers()


def test_backward_raises_what_the_all_reduce_did(fabric: LiveFabric):
    fabric.install(job("lost", 2))
    start(fabric, "lost")
    wait_for(lambda: all(fabric.lines("lost", rank) for rank in range(4)), 120, "all joined")
    fabric.workers[-1].send_signal(signal.SIGKILL)
    for result in fabric.results("lost", 60, ranks=(0, 1, 2)):
        assert "lost: rank 3" in result.get("text", ""), result
    fabric.end_workers()
