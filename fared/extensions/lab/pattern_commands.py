"""``fared-lab traffic step`` and others: training steps and inference on a lab that is up."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fared.extensions.lab import named, shipped
from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ranks import read_ranks
from fared.extensions.lab.workload_options import (
    bytes_option,
    hosts_option,
    repeated,
    run_options,
    size_option,
    take_repeated,
)
from fared.extensions.lab.workload_play import play
from fared.extensions.lab.workloads import federation, patterns
from fared.extensions.lab.workloads.graph import TaskGraph
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.step import PASSES


def pattern_commands() -> Iterator[click.Command]:
    """Yield the commands, in the order in which help lists them."""
    yield from (_step, _pipeline, _experts, _send, _checkpoint, _kv_cache, _requests, _federated)


def _played(
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


def _ranks(name: str, told: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        name, required=True, metavar="RANK,...", help=told, shell_complete=named.rank_lists
    )


def _axis(name: str, field: str, told: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(name, field, type=click.IntRange(1), metavar="N", help=told)


@click.command("step", short_help="A training step: data, tensor, pipeline, expert parallelism.")
@shipped.model_option()
@_axis("--dp", "data", "Replicas: data parallelism, instead of the model's.")
@_axis("--tp", "tensor", "Ranks that divide a layer: tensor parallelism.")
@_axis("--pp", "pipeline", "Stages: pipeline parallelism.")
@click.option("--experts", type=click.IntRange(0), metavar="N", help="Experts of a layer; 0: none.")
@click.option("--skew", type=click.FloatRange(1.0), help="Part of the busiest expert, by the mean.")
@_axis("--micro-batches", "micro_batches", "Parts of a batch that a pipeline overlaps.")
@click.option("--schedule", type=click.Choice(tuple(PASSES)), help="Order of passes of a stage.")
@click.option("--scale", type=float, metavar="FACTOR", help="Of all sizes of the model.")
@hosts_option
@repeated
@run_options
@click.pass_obj
def _step(
    name: str | None,
    /,
    *,
    model: Path,
    data: int | None,
    tensor: int | None,
    pipeline: int | None,
    hosts: str | None,
    **given: Any,  # noqa: ANN401 - of the model, of ``repeated`` and ``run_options``
) -> None:
    """Runs training steps of a model over TCP, and shows the completion times.

    A model is a file with its parallelisms, and the bytes that each sends in a step; or the name of
    one that comes with fared. Options replace its values.
    """
    from fared.extensions.lab.workloads import model as model_  # noqa: PLC0415 - as in ``play``

    fields = ("experts", "skew", "micro_batches", "schedule", "scale")
    changed = {field: given.pop(field) for field in fields}
    axes = {"data": data, "tensor": tensor, "pipeline": pipeline}
    step = model_.changed(model_.load(model), axes, changed).step()
    graph = step.graph()
    size = sum(task.moved for task in graph.tasks)
    if not size:
        raise LabError(f"{model}: a step of one rank sends nothing")
    job = Job("step", (), size, **take_repeated(given))
    _played(name, job, hosts, lambda *_: graph, given)


@click.command("pipeline", short_help="Micro-batches go down a chain of stages, and back.")
@size_option
@hosts_option
@click.option("--micro-batches", default=4, show_default=True, help="Number.")
@click.option(
    "--schedule",
    type=click.Choice(tuple(PASSES)),
    default="1f1b",
    show_default=True,
    help="Order of the passes of a stage.",
)
@click.option(
    "--pass",
    "passing",
    default=0.0,
    metavar="SECONDS",
    help="Time of a forward pass of a stage; backward takes twice as long.",
)
@repeated
@run_options
@click.pass_obj
def _pipeline(
    name: str | None,
    /,
    *,
    size: int,
    hosts: str | None,
    micro_batches: int,
    schedule: str,
    passing: float,
    **given: Any,  # noqa: ANN401 - of ``repeated`` and ``run_options``
) -> None:
    """Each host is a stage; SIZE are the activations of a micro-batch."""

    def graph(ranks: int, _: int) -> TaskGraph:
        return patterns.pipeline(ranks, size, micro_batches, schedule, passing)

    _played(name, Job("pipeline", (), size, **take_repeated(given)), hosts, graph, given)


@click.command("experts", short_help="Tokens go to experts and come back, unevenly.")
@size_option
@hosts_option
@click.option(
    "--skew",
    type=click.FloatRange(1.0),
    default=1.5,
    show_default=True,
    help="Part of the busiest expert, by the mean.",
)
@click.option(
    "--pass", "passing", default=0.0, metavar="SECONDS", help="Time that experts compute."
)
@repeated
@run_options
@click.pass_obj
def _experts(
    name: str | None,
    /,
    *,
    size: int,
    hosts: str | None,
    skew: float,
    passing: float,
    **given: Any,  # noqa: ANN401 - of ``repeated`` and ``run_options``
) -> None:
    """Each host has an expert, and tokens of SIZE bytes for all of them."""

    def graph(ranks: int, _: int) -> TaskGraph:
        return patterns.experts(ranks, size, skew, passing)

    _played(name, Job("experts", (), size, **take_repeated(given)), hosts, graph, given)


@click.command("send", short_help="Each even rank sends a message to the next rank.")
@size_option
@hosts_option
@repeated
@run_options
@click.pass_obj
def _send(
    name: str | None,
    /,
    *,
    size: int,
    hosts: str | None,
    **given: Any,  # noqa: ANN401 - of ``repeated`` and ``run_options``
) -> None:
    """Point to point: --hosts h1,h2 sends from h1 to h2, four hosts are two pairs at once."""
    job = Job("send", (), size, **take_repeated(given))
    _played(name, job, hosts, lambda ranks, _: patterns.send(ranks, size), given)


@click.command("checkpoint", short_help="Hosts write a checkpoint to storage hosts, all at once.")
@size_option
@hosts_option
@click.option(
    "--storage",
    required=True,
    metavar="RANK,...",
    shell_complete=named.rank_lists,
    help="Hosts that store.",
)
@repeated
@run_options
@click.pass_obj
def _checkpoint(
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
    _played(name, job, hosts, graph, given, last=storage)


@click.command("kv-cache", short_help="Hosts that read prompts send caches to those that answer.")
@size_option
@hosts_option
@click.option(
    "--decode",
    required=True,
    metavar="RANK,...",
    shell_complete=named.rank_lists,
    help="Hosts that decode.",
)
@click.option("--layers", type=click.IntRange(1), default=8, show_default=True, help="Of a cache.")
@repeated
@run_options
@click.pass_obj
def _kv_cache(
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
    _played(name, job, hosts, graph, given, last=decode)


@click.command("requests", short_help="Requests and answers at random times, and their latency.")
@hosts_option
@click.option(
    "--servers",
    required=True,
    metavar="RANK,...",
    shell_complete=named.rank_lists,
    help="Hosts that answer.",
)
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
def _requests(
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
    _played(name, job, hosts, graph, given, last=servers)


@click.command("federated", short_help="A round of federated learning between sites.")
@size_option
@click.option(
    "--mode",
    type=click.Choice(tuple(federation.MODES)),
    default=federation.SEMI,
    show_default=True,
    help="A server sums; leaders of sites do; or nobody leads, and models go to all or round a "
    "ring.",
)
@click.option(
    "--site",
    "sites",
    multiple=True,
    metavar="RANK,...",
    shell_complete=named.rank_lists,
    help="Hosts of a site, its leader first ('s1-*'); repeatable.  [default: as names begin]",
)
@repeated
@run_options
@click.pass_obj
def _federated(
    name: str | None,
    /,
    *,
    size: int,
    mode: str,
    sites: tuple[str, ...],
    **given: Any,  # noqa: ANN401 - of ``repeated`` and ``run_options``
) -> None:
    """Each host has a model of SIZE bytes, and gets the sum of all: across sites, in a round."""
    job = Job(f"federated-{mode}", (), size, **take_repeated(given))

    def wanted(fabric: Fabric) -> list[Job]:
        members = _sites(fabric.plan, sites)
        try:
            tasks = federation.federated(mode, [len(site) for site in members], size)
        except ValueError as error:
            raise LabError(f"federated: {error}; name each with --site") from error
        return [replace(job, hosts=tuple(itertools.chain(*members)), tasks=tasks)]

    play(name, wanted, **given)


def _sites(plan: AddressPlan, named: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the hosts of each site, or of all that begin alike, as ``s1-h1`` and ``s1-h2``."""
    if named:
        return [read_ranks(plan, text) for text in named]
    found: dict[str, list[str]] = {}
    for rank in read_ranks(plan, None):
        site, dash, _ = rank.partition("-")
        found.setdefault(site if dash else "", []).append(rank)
    return [tuple(members) for members in found.values()]
