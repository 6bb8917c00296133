"""A worker of ``fared-lab traffic all-reduce-ina`` or ``reduce-ina``: ``python -m MODULE JSON``.

It runs in a host's namespace and prints a JSON line for each call, whose result it verifies: the
arrays follow from rank and iteration alone. Workers wait for each other before each of them.
"""

from __future__ import annotations

import json
import sys
import time

import msgspec
import numpy as np
from numpy.typing import NDArray

from fared.extensions.ina import client


class Task(msgspec.Struct, frozen=True):
    """What one worker does: calls over ``size`` bytes; ``gateway``: its leaf.

    They are all-reduces, or with ``root`` reduces to that rank.
    """

    job: str
    rank: int
    ranks: int
    size: int
    iterations: int
    timeout: float
    gateway: str | None = None
    root: int | None = None


def values(task: Task, rank: int, iteration: int) -> NDArray[np.int32]:
    """Return the array of a rank."""
    return np.arange(task.size // 4, dtype=np.int32) * (rank + 1) + iteration


def total(task: Task, iteration: int) -> NDArray[np.int32]:
    """Return the sum of the arrays of all ranks."""
    weight = task.ranks * (task.ranks + 1) // 2
    return np.arange(task.size // 4, dtype=np.int32) * weight + task.ranks * iteration


def expected(task: Task, iteration: int) -> NDArray[np.int32]:
    """Return what this rank's array is after a call: the sum, unless that is for another rank."""
    if task.root in {None, task.rank}:
        return total(task, iteration)
    return values(task, task.rank, iteration)


def main() -> None:
    """Run the task that the argument describes; exit code 1: a wrong sum, or none."""
    task = msgspec.json.decode(sys.argv[1], type=Task)
    try:
        with client.join(
            task.job, task.rank, task.ranks, gateway=task.gateway, timeout=task.timeout
        ) as group:
            for iteration in range(task.iterations):
                array = values(task, task.rank, iteration)
                group.barrier()
                if task.root is None:
                    report = group.allreduce(array)
                else:
                    report = group.reduce(array, task.root)
                if not np.array_equal(array, expected(task, iteration)):
                    _tell({"error": f"iteration {iteration}: not the result"})
                    sys.exit(1)
                _tell({"seconds": report.seconds, "ended": time.monotonic()})
            stats = group.stats()
    except client.InaError as error:
        _tell({"error": f"{type(error).__name__}: {error}"})
        sys.exit(1)
    _tell({"epoch": stats.epoch, "counters": stats.counters})


def _tell(line: dict[str, object]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
