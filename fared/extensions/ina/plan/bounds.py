"""How fast all-reduces can be: the cut that none can beat, and what algorithms of hosts reach.

Sizes are bytes of each worker's array, rates bytes/s, latencies seconds one way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from fared.extensions.ina.plan.flow import max_flow, shortest_paths_only
from fared.extensions.ina.plan.model import Capacities, Direction, SummingJob


def least_cut(network: Capacities, job: SummingJob) -> float:
    """Return the rate that no all-reduce exceeds: the least cut that separates workers.

    Across it one partial sum goes each way. It is the least maximum flow between any two leaves in
    either direction; those from and to one of them suffice.
    """
    leaves = job.leaves
    if len(leaves) < 2:
        return job.nic
    links = {link: capacity for link, capacity in network.links.items() if min(link) >= 0}
    least = min(job.nic, *(_degree(links, leaf) for leaf in leaves))
    for leaf in leaves[1:]:
        for pair in ((leaves[0], leaf), (leaf, leaves[0])):
            least = min(least, max_flow(links, *pair, enough=least))
    return least


def least_cut_to(network: Capacities, job: SummingJob, receiver: int) -> float:
    """Return the rate that no reduce exceeds: the least cut between a worker and the receiver.

    Across it one partial sum goes that way. ``receiver`` is a BFR-id.
    """
    target = job.workers[receiver]
    links = {link: capacity for link, capacity in network.links.items() if min(link) >= 0}
    least = min(job.nic, sum(capacity for (_, head), capacity in links.items() if head == target))
    others = [leaf for leaf in job.leaves if leaf != target]
    for leaf in others:
        least = min(least, max_flow(links, leaf, target, enough=least))
    return least if others else job.nic


def _degree(links: Mapping[Direction, float], leaf: int) -> float:
    leaving = sum(capacity for (tail, _), capacity in links.items() if tail == leaf)
    entering = sum(capacity for (_, head), capacity in links.items() if head == leaf)
    return min(leaving, entering)


def ring_rate(network: Capacities, job: SummingJob) -> float:
    """Return the rate of each step of a ring of the workers, in the order of their BFR-ids.

    A pair of leaves has what its shortest paths carry, as flows weighted by path capacity use it.
    """
    order = [job.workers[bfr_id] for bfr_id in sorted(job.workers)]
    rate = job.nic
    for near, far in zip(order, [*order[1:], *order[:1]], strict=True):
        if near != far:
            links = shortest_paths_only(network.links, near, far)
            rate = min(rate, max_flow(links, near, far, enough=rate))
    return rate


def ring_bytes(workers: int, size: float) -> float:
    """Return what each worker sends in a ring: the least of any algorithm of hosts."""
    return 2 * (workers - 1) / workers * size


def ring_seconds(workers: int, size: float, rate: float, latency: float = 0.0) -> float:
    """Return the time of a ring."""
    return _over(ring_bytes(workers, size), rate) + 2 * (workers - 1) * latency


def aggregation_seconds(size: float, rate: float, latency: float = 0.0) -> float:
    """Return the time of in-network aggregation: one way up and one down."""
    return _over(size, rate) + 2 * latency


def server_bytes(workers: int, size: float) -> float:
    """Return what the parameter server receives, if it is one of the workers."""
    return (workers - 1) * size


def sharded_seconds(workers: int, servers: int, size: float, rate: float) -> float:
    """Return the time with that many servers besides the workers (BytePS, OSDI 2020, §4).

    The workers are servers too, with the part that makes all links equally busy.
    """
    n, k = workers, servers
    return _over(2 * n * (n - 1) / (n * n + k * n - 2 * k) * size, rate)


def _over(size: float, rate: float) -> float:
    return size / rate if rate > 0 else math.inf
