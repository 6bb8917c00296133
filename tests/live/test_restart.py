"""kill -9 of a leaf's daemon: the kernel continues to forward, and the new process adopts its
routes."""

from __future__ import annotations

import json
import struct
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import Hop, KernelView
from fared.extensions.lab.waiting import await_paths
from fared.management.api.client import ControlClient, DaemonUnreachableError
from tests.lab.stream import RATE, Stream
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]

TOPOLOGY = """
name: restart
topology:
  groups: {router: {labels: {fared-lab.kind: fared}}}
  nodes:
    S1: {group: router}
    S2: {group: router}
    L1: {group: router}
    L2: {group: router}
    L3: {group: router}
    h1: {}
    h2: {}
    h3: {}
  links:
    - endpoints: ["S1:L1", "L1:S1"]
    - endpoints: ["S1:L2", "L2:S1"]
    - endpoints: ["S1:L3", "L3:S1"]
    - endpoints: ["S2:L1", "L1:S2"]
    - endpoints: ["S2:L2", "L2:S2"]
    - endpoints: ["S2:L3", "L3:S2"]
    - endpoints: ["L1:h1", "h1:L1"]
    - endpoints: ["L2:h2", "h2:L2"]
    - endpoints: ["L3:h3", "h3:L3"]
"""
TO_H2, TO_H3, FORGOTTEN = "10.0.2.0/24", "10.0.3.0/24", "203.0.113.0/24"
DEAD_INTERVAL = 4.0
_STOP = struct.Struct("!Id")


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    path = tmp_path / "restart.clab.yml"
    path.write_text(TOPOLOGY)
    with Fabric.from_file(path, directory=tmp_path / "state") as running:
        assert await_paths(running, 30) is not None, story(running)
        yield running


def show(fabric: Fabric, node: str, what: str) -> dict[str, Any]:
    client = ControlClient(str(fabric.node(node).directory / "fared.sock"), 5)
    return client.request("show", what)


def story(fabric: Fabric) -> str:
    """What all daemons logged and what their kernels hold, for a fabric that does not converge."""
    parts = []
    for plan in fabric.plan.routers:
        node = fabric.node(plan.name)
        parts += [plan.name, node.netns.ip("route"), node.netns.ip("link")]
        parts += [node.cli("show", "neighbors"), node.cli("show", "interfaces")]
        parts.append((node.directory / "fared.log").read_text())
    return "\n".join(parts)


def ready(fabric: Fabric, node: str) -> bool:
    try:
        return bool(show(fabric, node, "status")["ready"])
    except DaemonUnreachableError:
        return False


def logged(fabric: Fabric, node: str, event: str, **fields: str) -> list[float]:
    """Unix times of the log records of an event since the daemon's last start."""
    found: list[float] = []
    for line in (fabric.node(node).directory / "fared.log").read_text().splitlines():
        record = json.loads(line)
        if record["event"] == "starting":
            found.clear()
        if record["event"] == event and all(record[k] == v for k, v in fields.items()):
            found.append(datetime.fromisoformat(record["timestamp"]).timestamp())
    return found


class Watch:
    """Looks at a kernel again and again, and remembers when prefixes went and what was there."""

    def __init__(self, view: KernelView, prefixes: tuple[str, ...], kept: dict[str, Any]) -> None:
        self._view, self._prefixes, self._kept = view, prefixes, kept
        self.gone: dict[str, float] = {}
        self.disturbed: list[dict[str, tuple[Hop, ...]]] = []

    def look(self) -> bool:
        """Look once; whether all prefixes are gone."""
        routes = self._view.routes()
        for prefix in self._prefixes:
            if prefix not in routes:
                self.gone.setdefault(prefix, time.time())
        if any(routes.get(prefix) != hops for prefix, hops in self._kept.items()):
            self.disturbed.append(routes)
        return len(self.gone) == len(self._prefixes)


_LOGGED = 0.1
"""Seconds: what a stage begins may be done before the stage is logged."""


def test_a_killed_leaf_keeps_forwarding_and_after_its_restart_rewrites_no_correct_route(
    fabric: Fabric,
):
    """Routes stay while nobody is there, are adopted as they are, and only the stale ones go.

    A route is stale if nobody wants it: one of our protocol left behind by an accident, and one
    of which the prefix vanished meanwhile. Neither goes before the database is whole again.
    """
    view = fabric.view("L1")
    fabric.node("L1").netns.ip(
        *f"route add {FORGOTTEN} via 10.128.0.0 dev S1 proto 201 metric 20".split()
    )
    wait_for(lambda: FORGOTTEN not in view.routes(), 40, "the foreign route of our number is swept")
    ways = (("h1", "h2"), ("h2", "h1"))
    streams = [Stream.between(fabric, *way) for way in ways]
    wait_for(lambda: all(s.flowing() for s in streams), 20, "traffic")
    before = view.routes()
    assert TO_H3 in before
    nexthops = fabric.node("L1").netns.ip("nexthop")

    fabric.stop_node("L1", kill=True)
    killed = time.monotonic()
    assert view.routes() == before
    assert fabric.node("L1").netns.ip("nexthop") == nexthops
    fabric.node("L1").netns.ip(
        *f"route add {FORGOTTEN} via 10.128.0.0 dev S1 proto 201 metric 20".split()
    )
    fabric.node("L3").netns.ip("link", "set", "dev", "h3", "down")
    spine = fabric.view("S1")
    wait_for(lambda: TO_H3 not in spine.routes(), 3, "the others hear that the prefix is gone")

    kept = {p: hops for p, hops in before.items() if p != TO_H3}
    watch = Watch(view, (FORGOTTEN, TO_H3), kept)
    view.read_events()
    view.writes.reset()
    fabric.start_node("L1")
    wait_for(watch.look, 30, "the stale routes are swept", pause=0.002)
    wait_for(lambda: ready(fabric, "L1"), 30, "ready")
    restored = time.monotonic()
    wait_for(lambda: all(s.flowing() for s in streams), DEAD_INTERVAL + 4, "traffic flows again")
    flowing = time.monotonic()
    for one in streams:
        one.finish()

    assert watch.disturbed == []
    full = logged(fabric, "L1", "neighbor-changed", state="Full")
    synced = logged(fabric, "L1", "stage-reached", stage="lsdb-in-sync")
    assert len(full) >= 2
    assert min(watch.gone.values()) > max(full[:2])
    assert min(watch.gone.values()) > synced[0] - _LOGGED
    view.read_events()
    assert view.writes.routes == 2, "the two stale routes were deleted, nothing else was written"
    assert view.writes.next_hops == 0
    assert view.routes() == kept

    for (source, destination), one in zip(ways, streams, strict=True):
        print(  # noqa: T201 - the figures of the run
            f"\n{source} to {destination}: {one.lost} of {one.sent} packets lost,"
            f" longest gap {one.gap * 1e3:.0f} ms;"
            f" killed, restarted and ready after {restored - killed:.2f} s,"
            f" traffic sound {flowing - killed:.2f} s after the kill",
            file=sys.stderr,
        )
        assert one.lost < (DEAD_INTERVAL + 4) * RATE


def test_a_restart_by_command_keeps_the_process_id_and_every_route_of_this_router(fabric: Fabric):
    """Without graceful restart; ``on-exit: withdraw``, the default, is for the daemon's end."""
    view = fabric.view("L1")
    before, pid = view.routes(), show(fabric, "L1", "status")["pid"]
    started = show(fabric, "L1", "status")["started_at"]
    view.read_events()
    view.writes.reset()

    fabric.node("L1").cli("restart")

    def again() -> bool:
        try:
            status = show(fabric, "L1", "status")
        except DaemonUnreachableError:
            return False
        return bool(status["ready"]) and status["started_at"] > started

    wait_for(again, 40, "the next process is ready")
    assert show(fabric, "L1", "status")["pid"] == pid
    assert logged(fabric, "L1", "neighbor-changed", state="Full")
    view.read_events()
    assert (view.writes.routes, view.writes.next_hops) == (0, 0)
    assert view.routes() == before
