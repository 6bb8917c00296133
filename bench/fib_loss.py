"""A lost next hop of a few routes: moving the routes, compared with replacing their group.

The kernel replaces a group within an RCU grace period, with its RTNL lock held (``fib.plan``):
measured with idle CPUs, and with twice as many busy processes as CPUs, as just after a failure.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bench.rows import compared
from fared.core.ids import Prefix
from fared.fib.model import DeleteGroup, FibOperation, Member, PutGroup, PutNextHop, PutRoute
from fared.fib.settings import FibSettings

if TYPE_CHECKING:
    from bench.fib import Box

BASE, GROUP = FibSettings().id_base, FibSettings().group_base
WAYS = 4
FEW = [Prefix(4, 0x0C00_0000 + (n << 8), 24) for n in range(3)]
TIMES = 40
PAUSE = 0.01
LEAST = 2.0
"""The ratio to reach with busy CPUs."""


def rows(box: Box) -> list[dict[str, Any]]:
    """The rows, with idle and with busy CPUs; the namespace must have no next hops of ours."""
    box.apply([PutNextHop(BASE + way, box.hop(way)) for way in range(WAYS)])
    found = [_row(box, "idle CPUs", None)]
    with _busy():
        found.append(_row(box, "busy CPUs", LEAST))
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
def _busy() -> Iterator[None]:
    """Keep all CPUs busy, with two processes each."""
    context = multiprocessing.get_context("fork")
    count = 2 * len(os.sched_getaffinity(0))
    processes = [context.Process(target=_spin, daemon=True) for _ in range(count)]
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
