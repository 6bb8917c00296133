"""``fared-lab traffic kv-cache`` and ``requests``: inference on a lab that is up."""

from __future__ import annotations

from typing import Any

import click

from fared.extensions.lab.graph_play import play_graph, ranks_option
from fared.extensions.lab.workload_options import (
    bytes_option,
    hosts_option,
    repeated,
    run_options,
    size_option,
    take_repeated,
)
from fared.extensions.lab.workloads import patterns
from fared.extensions.lab.workloads.graph import TaskGraph
from fared.extensions.lab.workloads.jobs import Job


@click.command("kv-cache", short_help="Hosts that read prompts send caches to those that answer.")
@size_option
@hosts_option
@ranks_option("--decode", "Hosts that decode.")
@click.option("--layers", type=click.IntRange(1), default=8, show_default=True, help="Of a cache.")
@repeated
@run_options
@click.pass_obj
def kv_cache(
    name: str | None,
    /,
    *,
    size: int,
    hosts: str | None,
    decode: str,
    layers: int,
    **given: Any,  # noqa: ANN401 - of ``repeated`` and ``run_options``
) -> None:
    """Inference apart: each other host sends a cache of SIZE bytes, layer by layer.

    The decoding hosts are dealt to the others in turn.
    """

    def graph(ranks: int, last: int) -> TaskGraph:
        return patterns.kv_cache(ranks, last, size, layers)

    job = Job("kv-cache", (), size, **take_repeated(given))
    play_graph(name, job, hosts, graph, given, last=decode)


@click.command("requests", short_help="Requests and answers at random times, and their latency.")
@hosts_option
@ranks_option("--servers", "Hosts that answer.")
@click.option("--rate", default=20.0, show_default=True, help="Requests a second, of all clients.")
@click.option("--count", type=click.IntRange(1), default=200, show_default=True, help="Requests.")
@bytes_option("--request", "8K", "Size of a request.")
@bytes_option("--answer", "256K", "Size of an answer.")
@click.option(
    "--pass", "passing", default=0.0, metavar="SECONDS", help="Time until a server answers."
)
@click.option("--sticky", is_flag=True, help="A client always asks the same server.")
@click.option("--elephants", default=1, show_default=True, help="TCP flows per pair of hosts.")
@run_options
@click.pass_obj
def requests(
    name: str | None,
    /,
    *,
    hosts: str | None,
    servers: str,
    passing: float,
    elephants: int,
    **given: Any,  # noqa: ANN401 - of the requests, and of ``run_options``
) -> None:
    """An open loop: requests come at random (Poisson), whether or not others are answered.

    The latency of a request ends with the last byte of its answer.
    """
    of_load = {
        field: given.pop(field) for field in ("rate", "count", "request", "answer", "sticky")
    }
    if of_load["rate"] <= 0:
        raise click.BadParameter("a rate is above 0", param_hint="--rate")

    def graph(ranks: int, last: int) -> TaskGraph:
        return patterns.requests(ranks, last, compute=passing, seed=given["seed"], **of_load)

    job = Job("requests", (), of_load["answer"], elephants, iterations=1)
    play_graph(name, job, hosts, graph, given, last=servers)
