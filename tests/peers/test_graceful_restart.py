"""Graceful restarts beside FRR and BIRD, in both roles: no packet lost, no route changed."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.processes import send_signal, start_in_turn
from tests.lab.restarts import Restart, told
from tests.lab.stream import Stream
from tests.lab.two_leaves import WAYS, patient, rewrite_config, topology
from tests.peers.conftest import Peers, Running
from tests.peers.peers import Database, database, fared, full_neighbors, vtysh, wanted_neighbors
from tests.waiting import await_rest, wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

FRR = ("router ospf", "graceful-restart grace-period 60", "graceful-restart helper enable")
BIRD = {
    "log stderr all;": "graceful restart wait 30; debug protocols { states, events };",
    "protocol kernel {": "  persist; graceful restart;",
    "protocol ospf v2 fabric {": "  graceful restart yes; graceful restart time 60;",
}
"""What BIRD's configuration needs, by the line before it."""


@pytest.fixture(scope="module")
def peers(running: Running) -> Iterator[Peers]:
    """Every router restarts gracefully and helps: BIRD helps unless it is told not to."""
    with running(patient(topology("restarts", S1="frr", S2="bird"))) as up:
        for name in ("L1", "L2"):
            node = up.fabric.node(name)
            restart = {"enabled": True, "helper": True}
            rewrite_config(node, lambda c, r=restart: c["ospf"].update({"graceful-restart": r}))
            assert fared(node).request("reload")["applied"]
        frr = up.fabric.node("S1")
        vtysh(frr, "configure terminal", *FRR)
        with (frr.directory / "ospfd.conf").open("a") as file:  # for its next process
            file.writelines(f"{line}\n" for line in FRR)
        bird = up.fabric.node("S2")
        text = (bird.directory / "bird.conf").read_text()
        for place, more in BIRD.items():
            assert place in text
            text = text.replace(place, f"{place}\n{more}", 1)
        (bird.directory / "bird.conf").write_text(text)
        bird.cli("configure")
        yield up


_REST = 6.5
"""Seconds without a change before a restart: else no neighbor helps (§3.1).

BIRD 2.0.12 builds its router LSA again at the first tick after MinLSInterval (5 s) if it was told
to meanwhile, as by ``configure``; a neighbor that restarts is missing there until it is Full."""


def at_rest(fabric: Fabric) -> None:
    """All databases are equal, and have not changed for a while."""

    def held() -> set[Database]:
        return {database(fabric.node(plan.name)) for plan in fabric.plan.routers}

    wait_for(lambda: len(held()) == 1, 40, "databases are equal")
    await_rest(held, _REST, 40, "databases do not change", pause=0.3)
    assert len(held()) == 1


@contextmanager
def unnoticed(fabric: Fabric, *names: str, tmp_path: Path) -> Iterator[None]:
    """Under traffic in both directions no packet is lost, and these nodes change no route."""
    at_rest(fabric)
    logs = {name: tmp_path / name for name in names}
    monitors = [fabric.node(n).netns.start(["ip", "monitor", "route"], logs[n]) for n in names]
    streams = [Stream.between(fabric, *way, flows=16) for way in WAYS]
    try:
        wait_for(lambda: all(s.flowing() for s in streams), 20, "traffic")
        yield
    finally:
        for one in streams:
            one.finish()
        for monitor in monitors:
            monitor.terminate()
            monitor.wait()
    changed = {name: log.read_text() for name, log in logs.items()}
    assert [one.lost for one in streams] == [0, 0], account(fabric, changed)
    assert changed == dict.fromkeys(names, ""), account(fabric, changed)


def account(fabric: Fabric, changed: dict[str, str]) -> str:
    """What happened, as the peers tell it."""
    bird = (fabric.node("S2").directory / "bird.log").read_text("utf-8", "replace")
    restarts = {name: told(fabric.node(name)) for name in ("L1", "L2")}
    parts = [f"{name} changed:\n{text}" for name, text in changed.items()]
    return "\n".join([*parts, json.dumps(restarts), *bird.splitlines()[-150:]])


def full(fabric: Fabric, name: str) -> bool:
    return full_neighbors(fabric.node(name)) == wanted_neighbors(fabric, name)


@pytest.mark.parametrize("planned", [True, False], ids=["planned", "crash"])
def test_fared_restarts_unnoticed_by_frr_and_bird(peers: Peers, tmp_path: Path, planned: bool):
    fabric = peers.fabric
    node = fabric.node("L1")
    with unnoticed(fabric, "S1", "S2", "L2", tmp_path=tmp_path):
        restart = Restart(node)
        if planned:
            node.cli("restart", "--graceful")
        else:
            fabric.stop_node("L1", kill=True)
            fabric.start_node("L1")
        restart.wait()
    assert restart.result == "completed"
    for name in ("S1", "S2", "L1"):
        wait_for(lambda n=name: full(fabric, n), 20, f"{name} is full")


def test_frr_restarts_unnoticed_by_fared(peers: Peers, tmp_path: Path):
    fabric = peers.fabric
    node, leaves = fabric.node("S1"), [fabric.node(name) for name in ("L1", "L2")]
    ospfd = next(process for process in node.processes if process.name == "ospfd")
    command = next(c for c in node.kind.commands(node.plan, node.directory) if c.name == "ospfd")
    ended = [len(told(leaf)["ended"]) for leaf in leaves]
    with unnoticed(fabric, "L1", "L2", tmp_path=tmp_path):
        vtysh(node, "graceful-restart prepare ip ospf")
        wait_for(lambda: all(told(leaf)["helping"] for leaf in leaves), 20, "both leaves help")
        send_signal(ospfd, signal.SIGKILL)
        node.processes.remove(ospfd)
        assert ospfd.handle is not None
        ospfd.handle.wait()
        start_in_turn([(node, command)], 20.0 + time.monotonic())
        wait_for(lambda: not any(told(leaf)["helping"] for leaf in leaves), 40, "S1 is back")
    results = [told(leaf)["ended"][at]["result"] for leaf, at in zip(leaves, ended, strict=True)]
    assert results == ["completed", "completed"], json.dumps([told(leaf) for leaf in leaves])
    assert full(fabric, "S1")


def test_fared_helps_bird_to_restart_without_a_lost_packet(peers: Peers, tmp_path: Path):
    """BIRD 2.0.12 flushes its router LSA at the end, for a tick: neighbors' routes do change."""
    fabric = peers.fabric
    node, leaves = fabric.node("S2"), [fabric.node(name) for name in ("L1", "L2")]
    (process,) = node.processes
    (command,) = node.kind.commands(node.plan, node.directory)
    ended = [len(told(leaf)["ended"]) for leaf in leaves]
    with unnoticed(fabric, tmp_path=tmp_path):
        node.cli("graceful restart")
        assert process.handle is not None
        process.handle.wait(10)
        node.processes.remove(process)
        assert all(told(leaf)["helping"] for leaf in leaves)
        recovering = replace(command, arguments=(*command.arguments, "-R"))
        start_in_turn([(node, recovering)], 20.0 + time.monotonic())
        wait_for(lambda: not any(told(leaf)["helping"] for leaf in leaves), 40, "S2 is back")
    results = [told(leaf)["ended"][at]["result"] for leaf, at in zip(leaves, ended, strict=True)]
    assert results == ["completed", "completed"], json.dumps([told(leaf) for leaf in leaves])
    wait_for(lambda: full(fabric, "S2"), 20, "S2 is full")
