"""Planning of aggregation trees: stars of 64x512, and the greedy relays beside the LP's optimum.

CPU time, the best of several runs. ``python -m bench ina`` prints the rows.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.router.fabrics import fabric, leaf
from fared.extensions.ina.plan.bounds import least_cut
from fared.extensions.ina.plan.planner import plan_job
from fared.extensions.ina.plan.stars import widths_of_graph
from fared.extensions.ina.plan.stripes import stripe_weights
from fared.extensions.offline.ina.columns import best_stars_and_relays
from fared.paths.ted.database import Ted
from tests.ina.fabrics import damaged, workers

SPINES, LEAVES = 64, 512
STARS_GOAL_MS = 10.0
PART_GOAL = 0.9
REPEAT = 20
DRAWS = 30
DAMAGED = 7.1


def star_row() -> dict[str, Any]:
    """From the graph of the TED to rates and stripes of all stars of a job on all leaves."""
    ted = Ted()
    for block in fabric(SPINES, LEAVES, slow=0.1).values():
        ted.put(block)
    graph = ted.graph()
    leaves = np.array([leaf(number) for number in range(LEAVES)], np.int64)

    def plan() -> None:
        stripe_weights(widths_of_graph(graph, leaves).rates.tolist())

    spent = _least(plan)
    return {
        "name": f"stars of a job on {LEAVES} leaves, {SPINES} spines: rates and stripes, CPU",
        "ours": spent,
        "unit": "ms",
        "goal": f"< {STARS_GOAL_MS:g} ms",
        "met": spent < STARS_GOAL_MS,
    }


def relay_row() -> dict[str, Any]:
    """Rates of greedy plans as parts of the optimum, in random fabrics with much damage."""
    rng, job = random.Random(22), workers()
    networks = [damaged(rng, DAMAGED) for _ in range(DRAWS)]
    networks = [network for network in networks if least_cut(network, job) > 0]
    greedy = float(np.mean([plan_job(n, job).rate / least_cut(n, job) for n in networks]))
    best = float(
        np.mean([best_stars_and_relays(n, job).rate / least_cut(n, job) for n in networks])
    )
    spent = [_least(lambda n=network: plan_job(n, job), 3) for network in networks]
    return {
        "name": f"4x8, {DAMAGED:g} damaged links: relays without LP, part of the bound",
        "ours": greedy,
        "other": best,
        "unit": "",
        "ratio": greedy / best,
        "goal": f"> {PART_GOAL:g} of the LP's",
        "met": greedy / best > PART_GOAL,
        "note": f"The mean plan without LP took {np.mean(spent):.1f} ms of CPU.",
    }


def _least(run: Callable[[], object], repeat: int = REPEAT) -> float:
    """Return the least CPU time of several runs, ms."""
    found = []
    for _ in range(repeat):
        begun = time.process_time()
        run()
        found.append((time.process_time() - begun) * 1e3)
    return min(found)


def rows() -> list[dict[str, Any]]:
    """All measurements of planning."""
    return [star_row(), relay_row()]
