"""A lost next hop of a few routes: moving the routes, compared with replacing their group.

The kernel replaces a group within an RCU grace period, with its RTNL lock held (``fib.plan``). Its
length depends on what keeps the CPUs busy, so there are three rows: idle CPUs, CPUs on which two
endless loops each run, and CPUs on which six processes each compute for two milliseconds and wait
for two, as daemons do just after a failure. The threads of the kernel that end the grace period
preempt an endless loop at once, so on a machine that does nothing else the second row was 1.36x,
like the first; among processes that wake up all the time they wait their turn (load average 20:
0.23 ms, and 20 ms for the group). The goal is for the third, the state in which routes are moved.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench.fib.box import Box
from bench.rows import compared
from fared.core.ids import Prefix
from fared.paths.fib.model import DeleteGroup, FibOperation, Member, PutGroup, PutNextHop, PutRoute
from fared.paths.fib.settings import FibSettings

BASE, GROUP = FibSettings().id_base, FibSettings().group_base
WAYS = 4
FEW = [Prefix(4, 0x0C00_0000 + (n << 8), 24) for n in range(3)]
TIMES = 40
PAUSE = 0.01
LEAST = 2.0
"""The ratio to reach as after a failure."""
_REACTION, _PAUSE = 0.002, 0.002
"""Seconds of CPU of a daemon that reacts, and of its wait."""


def rows(box: Box) -> list[dict[str, Any]]:
    """The rows, with idle and with busy CPUs; the namespace must have no next hops of ours."""
    box.apply([PutNextHop(BASE + way, box.hop(way)) for way in range(WAYS)])
    found = [_row(box, "idle CPUs", None)]
    with _busy(2, _spin):
        found.append(_row(box, "CPUs in endless loops", None))
    with _busy(6, _react):
        found.append(_row(box, "CPUs of daemons that react", LEAST))
    box.fib.clear()
    return found


def _row(box: Box, where: str, least: float | None) -> dict[str, Any]:
    full = tuple(Member(BASE + way, 1) for way in range(WAYS))
    replaced, moved = [], []
    box.apply([PutGroup(GROUP, full, replace=False), *_routes(GROUP)])
    for number in range(TIMES):
        old, new = GROUP + number % 2, GROUP + (number + 1) % 2
        time.sleep(PAUSE)
        replaced.append(_timed(box.apply, [PutGroup(old, full[:-1], replace=True)]))
        time.sleep(PAUSE)
        moved.append(_timed(box.apply, [PutGroup(new, full[:-1], replace=False), *_routes(new)]))
        box.apply([DeleteGroup(old)])
    name = f"a next hop of {len(FEW)} routes lost, {where}: routes move / group replaced"
    ours, other = (statistics.median(times) * 1e3 for times in (moved, replaced))
    return compared(name, ours, other, "ms", least)


def _routes(group_id: int) -> list[FibOperation]:
    return [PutRoute(prefix, group_id) for prefix in FEW]


def _timed(apply: Callable[[list[FibOperation]], None], operations: list[FibOperation]) -> float:
    started = time.perf_counter()
    apply(operations)
    return time.perf_counter() - started


@contextmanager
def _busy(each: int, work: Callable[[], None]) -> Iterator[None]:
    """Keep all CPUs busy, with so many processes each."""
    context = multiprocessing.get_context("fork")
    count = each * len(os.sched_getaffinity(0))
    processes = [context.Process(target=work, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def _spin() -> None:
    while True:
        sum(range(1000))


def _react() -> None:
    while True:
        end = time.thread_time() + _REACTION
        while time.thread_time() < end:
            sum(range(100))
        time.sleep(_PAUSE)
