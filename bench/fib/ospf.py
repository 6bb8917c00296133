"""10,000 routes through the whole router, compared with FRR: from the LSA to the last kernel route.

Four namespaces: the router under test, two spines, and behind them a router that advertises 10,000
external routes. The spines and that router run fared in both runs; the router under test runs
fared, then FRR (zebra and ospfd). Measured are learning all routes, and draining and undraining a
spine: one router LSA that moves every route off a path, or back onto it. The time of the last
change is that of the kernel's notification.
"""

from __future__ import annotations

import errno
import shutil
import socket
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import yaml

from bench import ROOT
from bench.lab.sandboxed import required, skipped
from fared.extensions.lab import topology as files
from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.namespaces import Netns
from fared.extensions.lab.waiting import wait_until
from fared.management.api.client import ControlClient

ROUTES = 10_000
PREFIXES = [f"11.{n >> 8}.{n & 255}.0/24" for n in range(ROUTES)]
EVENTS = 2
QUIET = 1.0
PATIENCE = 60.0
DUT, SPINE, SOURCE = "A", "S1", "B"
ZEBRA = "/usr/lib/frr/zebra"
_ROUTE_GROUPS = (7, 32)
_SOL_NETLINK, _ADD_MEMBERSHIP = 270, 1
_BUFFER = 1 << 24
Row = dict[str, Any]


class Watch:
    """Records the time of a kernel's last notification of a route or next-hop change."""

    def __init__(self, netns: Netns) -> None:
        with netns.entered():
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            self._socket.bind((0, 0))
            for group in _ROUTE_GROUPS:
                self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)
        self._socket.settimeout(0.1)
        self.first = self.last = 0.0
        self._open = True
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while self._open:
            try:
                self._socket.recv(1 << 16)
            except TimeoutError:
                continue
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # an overflow is a change as well
                    raise
            self.last = time.monotonic()
            self.first = self.first or self.last

    def seconds(
        self, action: Callable[[], object], problem: Callable[[], str | None]
    ) -> tuple[float, float]:
        """Do ``action`` and wait for the routes; return seconds to the first and last change.

        The routes are only examined after a pause in the changes. Raises RuntimeError.
        """
        self.first, self.last = 0.0, 0.0
        began = time.monotonic()
        action()
        while True:
            while time.monotonic() - max(began, self.last) < QUIET:
                time.sleep(0.02)
            found = self.first - began, self.last - began
            wrong = problem()
            if wrong is None:
                return found
            if time.monotonic() - began > PATIENCE:
                raise RuntimeError(wrong)

    def close(self) -> None:
        """Stop the thread."""
        self._open = False
        self._thread.join()
        self._socket.close()


def topology(kind: str) -> dict[str, Any]:
    """A square: the router under test, two spines, the router that advertises the routes."""

    def node(group: str, daemon: str) -> dict[str, Any]:
        # Slow hellos: no adjacency times out while the machine is busy with the routes.
        labels = {"fared-lab.kind": daemon, "fared-lab.hello-interval": "3"}
        return {"kind": "linux", "group": group, "labels": labels}

    nodes = {
        "S1": node("spine", "fared"),
        "S2": node("spine", "fared"),
        DUT: node("leaf", kind),
        SOURCE: node("leaf", "fared"),
    }
    links = [
        {"endpoints": [f"{leaf}:{spine}", f"{spine}:{leaf}"]}
        for leaf in (DUT, SOURCE)
        for spine in ("S1", "S2")
    ]
    groups = {"spine": {"kind": "linux"}, "leaf": {"kind": "linux"}}
    return {
        "name": "fib-ospf",
        "topology": {"groups": groups, "nodes": nodes, "links": links},
    }


def measure(kind: str) -> dict[str, float]:
    """Run the square with a kind of router under test; return the times in seconds."""
    source = files.from_document(topology(kind), ROOT / "fib-ospf.clab.yml", None)
    with Fabric.from_topology(source) as fabric:
        loopback = f"{fabric.plan.node(SOURCE).loopback}/32"
        views = {DUT: fabric.view(DUT)}
        both = {"S1", "S2"}

        def over(prefix: str, ports: set[str]) -> None:
            def accepts(_: str, view: KernelView) -> bool:
                return {hop.interface for hop in view.hops(prefix)} == ports

            if wait_until(views, accepts, PATIENCE) is None:
                raise RuntimeError(f"{kind}: {prefix} does not go over {sorted(ports)}")

        over(loopback, both)
        announcer = fabric.node(SOURCE)
        lines = [f"route add blackhole {prefix} proto static" for prefix in PREFIXES]
        announcer.netns.batch("ip", lines)
        watch = Watch(fabric.node(DUT).netns)
        spine = ControlClient(str(fabric.node(SPINE).directory / "fared.sock"))
        try:

            def timed(action: Callable[[], object], ports: set[str]) -> tuple[float, float]:
                return watch.seconds(action, lambda: problem(fabric, ports))

            first, last = timed(lambda: redistribute(announcer), both)
            drained, restored = [], []
            for _ in range(EVENTS):
                drained.append(timed(lambda: spine.request("drain"), both - {SPINE})[1])
                restored.append(timed(lambda: spine.request("undrain"), both)[1])
        finally:
            watch.close()
    return {
        "learn": last,
        "write": last - first,
        "drain": statistics.median(drained),
        "undrain": statistics.median(restored),
    }


def redistribute(node: RunningNode) -> None:
    """Make a node redistribute its static routes."""
    file = node.directory / "fared.yaml"
    document = yaml.safe_load(file.read_text())
    document["ospf"]["redistribute"] = {"static": {}}
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    node.cli("config", "reload")


def problem(fabric: Fabric, ports: set[str]) -> str | None:
    """Describe the routes that are not in the kernel over these ports; None if all are."""
    held = fabric.view(DUT).routes()
    wrong = [p for p in PREFIXES if {hop.interface for hop in held.get(p, ())} != ports]
    return f"{len(wrong)} routes not over {sorted(ports)}: {wrong[0]}" if wrong else None


def measure_all() -> dict[str, dict[str, float]]:
    """Measure fared, and FRR if installed."""
    kinds = ["fared", *(["frr"] if shutil.which(ZEBRA) else [])]
    return {kind: measure(kind) for kind in kinds}


def rows() -> list[Row]:
    """Four figures, compared with FRR's."""
    if (reason := skipped()) is not None:
        return [reason]
    found: dict[str, dict[str, float]] = required("fib_ospf", measure_all)
    ours, other = found["fared"], found.get("frr", {})
    names = {
        "learn": f"{ROUTES} externals announced: command at the announcer to the last route",
        "drain": f"a spine is drained: command to {ROUTES} routes off it",
        "undrain": f"a spine is undrained: command to {ROUTES} routes over it again",
    }
    note = (
        f"first to last of the {ROUTES} routes in the kernel: fared {ours['write'] * 1e3:,.0f} ms"
        + (f", FRR {other['write'] * 1e3:,.0f} ms" if other else "")
    )
    table = []
    for key, name in names.items():
        row: Row = {"name": f"{name} / FRR", "ours": ours[key] * 1e3, "unit": "ms"}
        if other:
            ratio = other[key] / ours[key]
            row |= {"other": other[key] * 1e3, "ratio": ratio, "goal": ">= 1x", "met": ratio >= 1}
        table.append(row)
    table[0]["note"] = note
    if other:
        rates = [ROUTES / side["drain"] for side in (ours, other)]
        table.append(
            {
                "name": "routes moved by that drain / FRR",
                "ours": rates[0],
                "other": rates[1],
                "unit": "routes/s",
                "ratio": rates[0] / rates[1],
            }
        )
    return table
