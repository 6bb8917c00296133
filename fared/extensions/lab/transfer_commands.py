"""``fared-lab traffic send`` and ``checkpoint``: messages between hosts of a lab that is up."""

from __future__ import annotations

from typing import Any

import click

from fared.extensions.lab.graph_play import play_graph, ranks_option
from fared.extensions.lab.workload_options import (
    hosts_option,
    repeated,
    run_options,
    size_option,
    take_repeated,
)
from fared.extensions.lab.workloads import patterns
from fared.extensions.lab.workloads.graph import TaskGraph
from fared.extensions.lab.workloads.jobs import Job


@click.command("send", short_help="Each even rank sends a message to the next rank.")
@size_option
@hosts_option
@repeated
@run_options
@click.pass_obj
def send(
    name: str | None,
    /,
    *,
    size: int,
    hosts: str | None,
    **given: Any,  # noqa: ANN401 - of ``repeated`` and ``run_options``
) -> None:
    """Point to point: --hosts h1,h2 sends from h1 to h2, four hosts are two pairs at once."""
    job = Job("send", (), size, **take_repeated(given))
    play_graph(name, job, hosts, lambda ranks, _: patterns.send(ranks, size), given)


@click.command("checkpoint", short_help="Hosts write a checkpoint to storage hosts, all at once.")
@size_option
@hosts_option
@ranks_option("--storage", "Hosts that store.")
@repeated
@run_options
@click.pass_obj
def checkpoint(
    name: str | None,
    /,
    *,
    size: int,
    hosts: str | None,
    storage: str,
    **given: Any,  # noqa: ANN401 - of ``repeated`` and ``run_options``
) -> None:
    """An incast: each host writes SIZE bytes, divided equally between the storage hosts."""

    def graph(ranks: int, last: int) -> TaskGraph:
        return patterns.checkpoint(ranks, last, size)

    job = Job("checkpoint", (), size, **take_repeated(given))
    play_graph(name, job, hosts, graph, given, last=storage)
