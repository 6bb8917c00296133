"""CPU time of steps that undo one another."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def in_turn(runs: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """The lowest CPU time in ms of each of several steps that undo one another."""
    times: dict[str, list[float]] = {what: [] for what in runs}
    gc.collect()
    gc.disable()
    try:
        for _ in range(repeat):
            for what, run in runs.items():
                start = time.process_time()
                run()
                times[what].append(time.process_time() - start)
    finally:
        gc.enable()
    return {what: min(spent) * 1e3 for what, spent in times.items()}
