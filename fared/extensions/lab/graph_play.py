"""Runs a graph of tasks on a lab, over the hosts that a command names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from fared.extensions.lab import named
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ranks import read_ranks
from fared.extensions.lab.workload_play import play
from fared.extensions.lab.workloads.graph import TaskGraph
from fared.extensions.lab.workloads.jobs import Job


def play_graph(
    name: str | None,
    job: Job,
    hosts: str | None,
    graph: Callable[[int, int], TaskGraph],
    given: dict[str, Any],
    *,
    last: str | None = None,
) -> None:
    """Run the graph that a function makes for a number of ranks, and of ``last`` ones."""

    def wanted(fabric: Fabric) -> list[Job]:
        chosen = read_ranks(fabric.plan, hosts)
        behind = read_ranks(fabric.plan, last) if last else ()
        chosen = _with_last(chosen, behind)
        try:
            tasks = graph(len(chosen), len(behind))
        except ValueError as error:
            raise LabError(f"{job.collective}: {error}") from error
        return [replace(job, hosts=chosen[: max(2, tasks.ranks)], tasks=tasks)]

    play(name, wanted, **given)


def _with_last(chosen: tuple[str, ...], last: tuple[str, ...]) -> tuple[str, ...]:
    rest = tuple(host for host in chosen if host not in last)
    if not rest:
        raise LabError(f"no host is left beside {', '.join(last)}")
    return rest + last


def ranks_option(name: str, told: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare an option for some ranks, which is required."""
    return click.option(
        name, required=True, metavar="RANK,...", help=told, shell_complete=named.rank_lists
    )
