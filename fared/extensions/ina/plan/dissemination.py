"""By which way results go: by BIER where all routers of a job's trees have it, else by unicast."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from fared.extensions.ina.plan.model import SummingJob, TreePlan, Vertex

Planner = Callable[[Sequence[SummingJob]], list[TreePlan]]
AS_ASKED = "as asked"


def plan_results(
    planner: Planner, jobs: Sequence[SummingJob], lacks: Callable[[TreePlan], str]
) -> list[TreePlan]:
    """Return the plans of jobs, whose ``unicast`` tells why results of some do not go by BIER.

    ``lacks`` tells what a plan lacks for BIER. Copies of results take room on links, so jobs are
    planned again with them.
    """
    jobs = list(jobs)
    while True:
        plans = planner(jobs)
        why = [plan.job.unicast or lacks(plan) for plan in plans]
        if all(plan.job.unicast == reason for plan, reason in zip(plans, why, strict=True)):
            return plans
        jobs = [replace(job, unicast=reason) for job, reason in zip(jobs, why, strict=True)]


def lacks_bier(
    plan: TreePlan,
    bfrs: AbstractSet[Vertex],
    senders: Container[Vertex],
    name: Callable[[Vertex], str],
) -> str:
    """Return why results of a plan cannot go by BIER; empty: they can.

    ``bfrs`` are the routers that run BIER; those of ``senders`` have a ``fared-ina`` that sends by
    it, which roots need.
    """
    for root in sorted(rated.tree.root for rated in plan.trees):
        if root not in senders:
            return f"{name(root)} does not send them by BIER (fared-ina --bier)"
    without = min(plan.routers - bfrs, default=None)
    return "" if without is None else f"{name(without)} does not run BIER"
