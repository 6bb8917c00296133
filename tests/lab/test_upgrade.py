"""An upgrade under traffic, over both protocols: other code is in place, then the daemon restarts.

It is what the Debian package does (``deb/fared.postinst``), without dpkg: ``tests/deb`` has that.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fared
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from fared.management.api.client import DaemonRefusedError, DaemonUnreachableError
from tests.lab.restarts import Restart
from tests.lab.stream import Stream
from tests.lab.two_leaves import WAYS, help_restarts, patient, topology
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.timeout(240)]

OLD, NEW = fared.__version__, "9.9.9~test"
SOURCE = Path(fared.__file__).parent


class Code:
    """The code of fared in a directory of its own, which an upgrade replaces."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.put(OLD)

    def put(self, version: str) -> None:
        """Put the code with a version into place, at no time without code: a daemon that runs
        loads modules when it first needs them."""
        code, link = self.directory / f"fared-{version}", self.directory / "fresh"
        shutil.copytree(SOURCE, code)
        text = (code / "__init__.py").read_text()
        (code / "__init__.py").write_text(text.replace(OLD, version))
        link.symlink_to(code)
        link.replace(self.directory / "fared")


@pytest.fixture(scope="module", params=[pytest.param("ospf", marks=pytest.mark.soak), "isis"])
def running(tmp_path_factory: pytest.TempPathFactory, request: Any) -> Iterator[Fabric]:
    """A small fabric in which all routers help those that restart gracefully."""
    directory = tmp_path_factory.mktemp("upgrade")
    path = directory / "upgrade.clab.yml"
    path.write_text(patient(topology("upgrade", protocol=request.param)))
    with Fabric.from_file(path, directory=directory / "state") as made:
        assert await_paths(made, 60.0) is not None
        help_restarts(made, request.param)
        yield made


def show(fabric: Fabric, name: str, what: str) -> dict[str, Any] | None:
    """A document; None while no daemon answers."""
    try:
        found: dict[str, Any] = json.loads(fabric.node(name).cli("--json", "show", what))
    except (LabError, DaemonUnreachableError, DaemonRefusedError):
        return None
    return found


def runs(fabric: Fabric, name: str, version: str) -> bool:
    """Whether a router is ready with this version."""
    status = show(fabric, name, "status")
    return status is not None and status["ready"] and status["version"] == version


@pytest.mark.parametrize(
    ("name", "words"),
    [("L1", ["restart", "--graceful"]), ("S1", ["restart"])],
    ids=["leaf-graceful", "spine-without-helpers"],
)
def test_an_upgrade_loses_no_packet(
    running: Fabric, tmp_path: Path, monkeypatch: Any, name: str, words: list[str]
):
    """Of a leaf, which only a graceful restart can do; of a spine, also while others go around."""
    code = Code(tmp_path)
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        running.stop_node(name)
        running.start_node(name)
    assert await_paths(running, 60.0) is not None
    wait_for(lambda: runs(running, name, OLD), 20, "the old version runs")
    process = show(running, name, "status")
    streams = [Stream.between(running, *way, flows=64, rate=2000) for way in WAYS]
    try:
        wait_for(lambda: all(one.flowing() for one in streams), 10, "traffic")
        code.put(NEW)
        began, restart = time.monotonic(), Restart(running.node(name))
        running.node(name).cli(*words)
        wait_for(lambda: runs(running, name, NEW), 30, "the new version runs")
        took = time.monotonic() - began
        if "--graceful" in words:
            restart.wait(30)
            assert restart.result == "completed"
        assert await_paths(running, 60.0) is not None
        wait_for(lambda: all(one.flowing() for one in streams), 10, "traffic afterwards")
    finally:
        for one in streams:
            one.finish()
    lost, sent = [one.lost for one in streams], sum(one.sent for one in streams)
    sys.stdout.write(f"{name}: {sum(lost)} of {sent} packets lost, {took:.2f} s\n")
    assert lost == [0, 0]
    status = show(running, name, "status")
    assert process is not None
    assert status is not None
    assert status["pid"] == process["pid"]
    log = (running.node(name).directory / "fared.log").read_text()
    assert [line for line in log.splitlines() if "internal-error" in line] == []
