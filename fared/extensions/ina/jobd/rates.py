"""Rates of aggregation trees as seen here: bytes that workers or this router's slots finished.

``fared-ina`` tells sums of bytes once a second; the rate is that of the last seconds, pauses of the
job included.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from fared.extensions.ina.messages import InaState, JobState

_SPAN: Final = 10.0
"""Seconds over which a rate is a mean."""
_LEAST: Final = 0.5

_Sizes = dict[tuple[int, int], int]


class TreeRates:
    """The last states, by time."""

    def __init__(self) -> None:
        self._states: deque[tuple[float, _Sizes]] = deque()

    def observe(self, state: InaState, now: float) -> None:
        """Take what ``fared-ina`` told."""
        sizes: _Sizes = {}
        for job in state.jobs:
            for tree_id, size in sizes_of(job).items():
                sizes[job.job_id, tree_id] = size
        while self._states and now - self._states[0][0] > _SPAN:
            self._states.popleft()
        self._states.append((now, sizes))

    def rate(self, job_id: int, tree_id: int) -> float | None:
        """Return the bytes/s of a tree; None if nothing here tells them.

        A new epoch counts from zero, so states before it tell nothing.
        """
        key, points = (job_id, tree_id), list[tuple[float, int]]()
        for at, sizes in self._states:
            size = sizes.get(key)
            if size is None or (points and size < points[-1][1]):
                points.clear()
            if size is not None:
                points.append((at, size))
        if not points or points[-1][0] - points[0][0] < _LEAST:
            return None
        return (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])


def sizes_of(job: JobState) -> dict[int, int]:
    """Return the bytes by tree: of a worker here if one told them, else of this router's slots."""
    found = {tree.tree_id: tree.size for tree in job.per_tree}
    for worker in job.workers:
        told = worker.progress
        if told is not None and told.epoch == job.epoch:
            found.update(enumerate(told.sizes))
            break
    return found
