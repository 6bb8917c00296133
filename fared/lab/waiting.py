"""Waiting for kernels to hold what they should: to a deadline, without sleeping through changes."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable, Mapping

from fared.lab.fabric import Fabric
from fared.lab.kernel_view import Hop, KernelView

Accepts = Callable[[str, KernelView], bool]
"""Whether the kernel of the node of that name holds what is waited for."""

Progress = Callable[[int, int], None]
"""Told how many of how many kernels are accepted."""

_RECHECK = 0.05


def wait_until(
    views: Mapping[str, KernelView],
    accepts: Accepts,
    timeout: float,
    progress: Progress | None = None,
) -> float | None:
    """Wait until every kernel is accepted; return when the last one was, or None at the deadline.

    The time is of ``time.monotonic()``. A kernel is looked at when it announces a change, and
    every 50 ms since it drops next hops of dead links without a word. ``progress`` is told how
    many of how many are accepted, on each change.
    """
    deadline = time.monotonic() + timeout
    told = -1
    accepted: dict[str, bool] = {}
    stale = set(views)
    while True:
        for name in stale:
            views[name].read_events()
            accepted[name] = accepts(name, views[name])
        now = time.monotonic()
        done = sum(accepted.values())
        if progress is not None and done != told:
            told = done
            progress(done, len(views))
        if done == len(views):
            return now
        if now >= deadline:
            return None
        waiting = min(_RECHECK, deadline - now)
        ready, _, _ = select.select(list(views.values()), [], [], waiting)
        stale = {name for name, view in views.items() if view in ready}
        stale = stale or {name for name, good in accepted.items() if not good}


def interfaces(hops: Iterable[Hop]) -> set[str]:
    """Return the interfaces of next hops."""
    return {hop.interface for hop in hops}


def has_all_paths(fabric: Fabric) -> Accepts:
    """Return the condition that a router holds every leaf's prefix over all equal-cost ports.

    Equal cost is counted in hops: links with costs of their own need a condition of their own.
    """
    plan = fabric.plan

    def accepts(name: str, view: KernelView) -> bool:
        routes = view.routes()
        return all(
            interfaces(routes.get(str(prefix), ()))
            == {port.name for port in plan.equal_cost_ports(name, leaf.name)}
            for leaf in plan.leaves
            if leaf.name != name
            for prefix in leaf.host_prefixes
        )

    return accepts


def await_paths(fabric: Fabric, timeout: float) -> float | None:
    """Wait until every router has all paths; return when, or None at the deadline."""
    return wait_until(fabric.views(fabric.plan.routers), has_all_paths(fabric), timeout)
