"""Speed of installing routes and weights in the kernel, compared with ``ip -batch`` in one run.

The last rows compare whole routers with FRR: see ``fib_groups`` and ``fib_ospf``.

Needs root or a user namespace. Creates its own namespaces and removes them. Our times include
planning objects, encoding, the kernel's work and reading its answers; those of ``ip`` include its
start. Run alone (``python -m bench fib``) or through the runner.
"""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench.fib import groups as fib_groups
from bench.fib import loss as fib_loss
from bench.fib import ospf as fib_ospf
from bench.fib.box import Box
from bench.rows import compared
from fared.core.ids import Prefix, format_address
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.namespaces import Netns
from fared.kernel.monitor import KernelMonitor
from fared.kernel.requests import RequestSocket
from fared.paths.fib.model import (
    DeleteRoute,
    FibOperation,
    Member,
    PutGroup,
    PutNextHop,
    PutRoute,
)
from fared.paths.fib.planner import FibPlanner
from fared.paths.fib.settings import FibSettings
from fared.paths.rib.model import Route
from fared.paths.ted.model import PathType
from tests.kernel.netns import Namespaces, inside

WAYS = 64
ROUTES = 10_000
GROUPS = 512
REPEAT = 3
EVENTS = 20
BASE = FibSettings().id_base
GROUP = FibSettings().group_base
PREFIXES = [Prefix(4, 0x0B00_0000 + (n << 8), 24) for n in range(ROUTES)]
PREFIXES6 = [Prefix(6, (0x2001_0DB8 << 96) + (n << 64), 64) for n in range(ROUTES)]
LINK_LOCAL = 0xFE80 << 112
Row = dict[str, Any]


def members(weight: int) -> tuple[Member, ...]:
    return tuple(Member(BASE + way, 1 + (weight + way) % 200) for way in range(WAYS))


def timed(work: Callable[[], None]) -> float:
    """Duration without the collector: its passes would fall into some rows only."""
    gc.collect()
    gc.disable()
    try:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started
    finally:
        gc.enable()


def route_rows(box: Box, prefixes: list[Prefix], kind: str) -> list[Row]:
    """Add, re-point and delete 10,000 routes behind a group."""
    names = [
        f"{format_address(p.family, p.network)}/{p.length} metric 20 proto 201" for p in prefixes
    ]
    ours: dict[str, list[float]] = {"add": [], "re-point": [], "delete": []}
    other: dict[str, list[float]] = {"add": [], "re-point": [], "delete": []}
    for _ in range(REPEAT):
        ours["add"].append(timed(lambda: box.apply([PutRoute(p, GROUP) for p in prefixes])))
        ours["re-point"].append(
            timed(lambda: box.apply([PutRoute(p, GROUP + 1) for p in prefixes]))
        )
        ours["delete"].append(timed(lambda: box.apply([DeleteRoute(p) for p in prefixes])))
        other["add"].append(box.ip([f"route add {name} nhid {GROUP}" for name in names]))
        other["re-point"].append(
            box.ip([f"route replace {name} nhid {GROUP + 1}" for name in names])
        )
        other["delete"].append(box.ip([f"route del {name}" for name in names]))
    found = []
    for what, times in ours.items():
        rate, reference = ROUTES / min(times), ROUTES / min(other[what])
        name = f"{what} {ROUTES} {kind} / ip -batch"
        found.append(compared(name, rate, reference, "routes/s", 1, more_is_better=True))
    return found


def ipv6_rows(box: Box) -> list[Row]:
    """The same with IPv6 routes and link-local gateways; ``ip`` infers the family."""
    hops = [PutNextHop(BASE + way, (box.ifindex, 6, LINK_LOCAL + 2 + way, False)) for way in (0, 1)]
    vector = (Member(BASE, 1), Member(BASE + 1, 1))
    groups = [PutGroup(GROUP + g, vector, replace=False) for g in (0, 1)]
    box.apply([*hops, *groups])
    return route_rows(box, PREFIXES6, "IPv6 routes")


def group_row(box: Box) -> Row:
    """Assign new weights to 512 groups of 64 members."""
    ours, other = [], []
    for turn in range(REPEAT):
        replaces: list[FibOperation] = [
            PutGroup(GROUP + g, members(g + 2 * turn + 1), replace=True) for g in range(GROUPS)
        ]
        ours.append(timed(lambda replaces=replaces: box.apply(replaces)))  # type: ignore[misc]
        lines = []
        for g in range(GROUPS):
            parts = "/".join(f"{m.nexthop_id},{m.weight}" for m in members(g + 2 * turn + 2))
            lines.append(f"nexthop replace id {GROUP + g} group {parts} proto 201")
        other.append(box.ip(lines))
    microseconds = [min(times) / GROUPS * 1e6 for times in (ours, other)]
    name = f"new weights for {GROUPS} groups of {WAYS} / ip -batch"
    # The kernel's own work is nine tenths of both times: no ratio much above 1 is possible.
    return compared(name, *microseconds, "us/group", 0.8)


def capacity_row(box: Box) -> Row:
    """A link of 10,000 routes changes capacity: one group update, against rewriting the routes."""
    routes: dict[Prefix, Route] = {}
    planner = FibPlanner(lambda: routes, FibSettings())
    planner.adopt(box.fib.dump())

    def update(weights: list[int]) -> None:
        hops = box.hops(weights)
        changed = {p: Route(1, PathType.INTRA_AREA, 0, hops, (1,)) for p in PREFIXES}
        routes.update(changed)
        times.append(timed(lambda: _carry_out(planner, box, changed)))

    times: list[float] = []
    for turn in range(REPEAT + 1):
        update([1000] * 7 + [100 + turn])
    lines = []
    for prefix in PREFIXES:
        ways = " ".join(
            f"nexthop via {format_address(4, box.gateway(way))} dev e0 weight {10 + way % 3}"
            for way in range(8)
        )
        name = f"{format_address(4, prefix.network)}/{prefix.length}"
        lines.append(f"route replace {name} metric 21 proto 202 {ways}")
    box.ip(lines)
    other = statistics.median(box.ip(lines) for _ in range(3))
    name = "capacity change behind 10000 routes, plan and write / ip -batch of 8-way routes"
    return compared(name, statistics.median(times[1:]) * 1e3, other * 1e3, "ms", 5)


def _carry_out(planner: FibPlanner, box: Box, changed: dict[Prefix, Route | None]) -> None:
    operations = planner.update(changed, 0.0)
    planner.results(box.fib.apply(operations), 0.0)


def dump_row(box: Box) -> Row:
    """Read back all routes: the cost of the periodic check."""
    times = [timed(lambda: (box.fib.dump(), None)[1]) for _ in range(REPEAT)]
    milliseconds = statistics.median(times) * 1e3
    return {"name": f"read back {ROUTES} routes", "ours": milliseconds, "unit": "ms"}


async def event_row(box: Box) -> Row:
    """From the peer's interface going down to our callback, with one iteration of the loop."""
    loop = asyncio.get_running_loop()
    with inside(box.name):
        arrivals: list[float] = []
        monitor = KernelMonitor(lambda _: arrivals.append(time.perf_counter()))
    with inside(box.far):
        request = RequestSocket()
    monitor.start(loop)
    times = []
    for _ in range(EVENTS):
        await _until(lambda: monitor.links[box.ifindex].up)
        await asyncio.sleep(0)
        arrivals.clear()
        started = time.perf_counter()
        request.request(16, 0, struct.pack("=BBHiII", 0, 0, 0, box.far_ifindex, 0, 1))
        await _until(lambda: not monitor.links[box.ifindex].up)
        times.append(arrivals[0] - started)
        request.request(16, 0, struct.pack("=BBHiII", 0, 0, 0, box.far_ifindex, 1, 1))
    monitor.close()
    request.close()
    milliseconds = statistics.median(times) * 1e3
    name = "peer goes down to our callback (median)"
    return {
        "name": name,
        "ours": milliseconds,
        "unit": "ms",
        "goal": "<= 1 ms",
        "met": milliseconds <= 1.0,
    }


async def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the link did not change")
        await asyncio.sleep(0)


@contextmanager
def _box() -> Iterator[Box]:
    namespaces = Namespaces()
    try:
        box = Box(namespaces)
        try:
            yield box
        finally:
            box.fib.close()
    finally:
        namespaces.close()


def _no_namespaces() -> str | None:
    """The reason why no namespace can be created here; None if one can."""
    try:
        Netns.create(f"fib{os.getpid()}probe").delete()
    except (LabError, OSError) as error:
        return f"needs root, or a user namespace (unshare -Urnm): {error}"
    return None


def rows() -> list[Row]:
    """All measurements of the FIB; one row with the reason if namespaces cannot be created."""
    reason = _no_namespaces()
    if reason is not None:
        return [{"name": f"skipped: {reason}"}]
    with _box() as box:
        box.apply([PutNextHop(BASE + way, box.hop(way)) for way in range(WAYS)])
        box.apply([PutGroup(GROUP + g, members(g), replace=False) for g in range(GROUPS)])
        found = [*route_rows(box, PREFIXES, "routes"), group_row(box)]
        box.fib.clear()
        found += ipv6_rows(box)
        box.fib.clear()
        found += [capacity_row(box), dump_row(box)]
        box.fib.clear()
        found.append(asyncio.run(event_row(box)))
        box.fib.clear()
        found += fib_loss.rows(box)
    return [*found, *fib_groups.rows(), *fib_ospf.rows()]
