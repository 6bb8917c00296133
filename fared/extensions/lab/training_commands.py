"""``fared-lab traffic step``, ``pipeline`` and ``experts``: training on a lab that is up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from fared.extensions.lab import shipped
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.graph_play import play_graph
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
from fared.extensions.lab.workloads.step import PASSES


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
def step(
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
    play_graph(name, job, hosts, lambda *_: graph, given)


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
def pipeline(
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

    play_graph(name, Job("pipeline", (), size, **take_repeated(given)), hosts, graph, given)


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
def experts(
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

    play_graph(name, Job("experts", (), size, **take_repeated(given)), hosts, graph, given)
