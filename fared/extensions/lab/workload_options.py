"""Options that the commands of ``fared-lab traffic`` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.decorators import FC

from fared.extensions.lab import named
from fared.extensions.lab.workloads.flows import CONGESTION_CONTROL
from fared.extensions.lab.workloads.jobs import DEFAULT_INTERVAL, DEFAULT_TIMEOUT
from fared.extensions.lab.workloads.sizes import parse_size

DEFAULT_ITERATIONS = 10


def _size(context: click.Context, parameter: click.Parameter, text: str) -> int:
    """Parse bytes, as ``parse_size``."""
    del context, parameter
    try:
        return parse_size(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


congestion_option = click.option(
    "--congestion-control",
    "congestion",
    default=CONGESTION_CONTROL,
    show_default=True,
    metavar="NAME",
    help="Congestion control of TCP, of those that the kernel has.",
)


def bytes_option(name: str, default: str, told: str) -> Callable[[FC], FC]:
    """Return an option that is a number of bytes."""
    return click.option(
        name, callback=_size, default=default, show_default=True, metavar="SIZE", help=told
    )


size_option = bytes_option("--size", "16M", "Size of the message, bytes.")
hosts_option = click.option(
    "--hosts",
    metavar="RANK,...",
    help="Hosts, or GPUs, in order of rank: h1, g1.3, g1 for all of a server, 'g*.3' "
    "(default: all).",
    shell_complete=named.rank_lists,
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Distribute the hosts to so many equal jobs.",
)
interval_option = click.option(
    "--interval",
    type=click.FloatRange(0.05),
    default=DEFAULT_INTERVAL,
    show_default=True,
    help="Interval between samples of the links.",
)
timeout_option = click.option(
    "--timeout",
    default=DEFAULT_TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="Give up after this time.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


def plain_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of collectives that routers help with: one job, no TCP flows to choose."""
    number = click.option(
        "--iterations", default=DEFAULT_ITERATIONS, show_default=True, help="Number."
    )
    for option in (json_option, timeout_option, interval_option, number):
        command = option(command)
    return size_option(hosts_option(command))


_REPEATED = (
    click.option("--elephants", default=1, show_default=True, help="TCP flows per pair of hosts."),
    click.option(
        "--iterations", type=int, help="Number of iterations.  [default: 10, or as --seconds allow]"
    ),
    click.option("--seconds", type=float, help="Start no iteration after this time."),
    click.option("--period", type=float, metavar="SECONDS", help="Alternate between on and off."),
    click.option("--duty", default=0.5, show_default=True, help="Part of a period that is on."),
    click.option(
        "--compute",
        default=0.0,
        metavar="SECONDS",
        help="Send nothing for so long after each iteration, as training does.",
    ),
)
_RUN = (
    click.option("--seed", default=0, show_default=True, help="Seed of the flows' source ports."),
    interval_option,
    click.option("--ipv6", is_flag=True, help="Use IPv6, where IS-IS runs."),
    congestion_option,
    timeout_option,
    click.option(
        "--draw",
        "pictures",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Draw link utilisation and completion times: a .png or .svg; repeatable.",
    ),
    click.option(
        "--draw-heat",
        "heat",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Draw who sends how much to whom: a .png or .svg; repeatable.",
    ),
    json_option,
)


def repeated(command: FC) -> FC:
    """Options of how often a job runs; their values are for ``take_repeated``."""
    for option in reversed(_REPEATED):
        command = option(command)
    return command


def run_options(command: FC) -> FC:
    """Options of a run of jobs; their values are for ``workload_play.play``."""
    for option in reversed(_RUN):
        command = option(command)
    return command


def take_repeated(given: dict[str, Any]) -> dict[str, Any]:
    """Remove the values of ``repeated`` from those given; return them as fields of a job."""
    names = ("elephants", "iterations", "seconds", "period", "duty", "compute")
    taken = {name: given.pop(name) for name in names}
    if taken["iterations"] is None and taken["seconds"] is None:
        taken["iterations"] = DEFAULT_ITERATIONS
    return taken


def refuse_beside(option: str, *others: str) -> None:
    """Refuse options, by the names of their values, beside one that replaces them."""
    context = click.get_current_context()
    given = click.core.ParameterSource.COMMANDLINE
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in others and context.get_parameter_source(name) is given:
            raise click.UsageError(f"{parameter.opts[0]} has no effect beside {option}")
