"""Waits for the contents of kernels, to a deadline, and reads them after every change."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable, Mapping

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import Hop, KernelView

Accepts = Callable[[str, KernelView], bool]
"""Returns whether the kernel of the named node is as expected."""

Progress = Callable[[int, int], None]
"""Called with the number of accepted kernels and of all."""

_RECHECK = 0.05
_SETTLED = 0.5


def wait_until(
    views: Mapping[str, KernelView],
    accepts: Accepts,
    timeout: float,
    progress: Progress | None = None,
    *,
    quiet: float = 0.0,
) -> float | None:
    """Wait until every kernel is accepted; return when the last one was, or None at the deadline.

    Times are of ``time.monotonic()``. A kernel is read when it notifies a change, and every 50 ms
    while it is not accepted, since the kernel removes next hops of failed links without
    notification. With ``quiet`` all must stay accepted for that many seconds: daemons rewrite
    routes for a while after the first complete table. ``progress`` is called with each change.
    """
    deadline = time.monotonic() + timeout
    accepted: dict[str, bool] = {}
    stale = set(views)
    since: float | None = None
    while True:
        before = sum(accepted.values()) if accepted else -1
        for name in stale:
            views[name].read_events()
            accepted[name] = accepts(name, views[name])
        now = time.monotonic()
        done = sum(accepted.values())
        if progress is not None and done != before:
            progress(done, len(views))
        since = (since or now) if done == len(views) else None
        if since is not None and now - since >= quiet:
            return since
        if since is None and now >= deadline:
            return None
        ready, _, _ = select.select(list(views.values()), [], [], _RECHECK)
        stale = {name for name, view in views.items() if view in ready}
        stale |= {name for name, good in accepted.items() if not good and not ready}


def interfaces(hops: Iterable[Hop]) -> set[str]:
    """Return the interfaces of next hops."""
    return {hop.interface for hop in hops}


def has_all_paths(fabric: Fabric) -> Accepts:
    """Return the condition that a router holds every host's prefix over all equal-cost ports.

    In a fabric that has hosts behind fewer than two routers, it also holds all loopbacks. Cost is
    counted in hops: links with individual costs require a different condition.
    """
    plan = fabric.plan
    destinations = plan.destinations(loopbacks=len(plan.leaves) < 2)

    def accepts(name: str, view: KernelView) -> bool:
        routes = view.routes()
        if plan.nodes[name].node.ipv6:
            routes |= view.routes6()
        return all(
            interfaces(routes.get(prefix, ()))
            == {port.name for port in plan.equal_cost_ports(name, *owners)}
            for prefix, owners in destinations.items()
            if name not in owners
        )

    return accepts


def await_paths(fabric: Fabric, timeout: float) -> float | None:
    """Wait until every router has all paths and keeps them; return when, or None."""
    views = fabric.views(fabric.plan.routers)
    return wait_until(views, has_all_paths(fabric), timeout, quiet=_SETTLED)
