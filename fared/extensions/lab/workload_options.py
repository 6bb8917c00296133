"""Options that the commands of ``fared-lab traffic`` share."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

from fared.extensions.lab import named
from fared.extensions.lab.workloads.flows import CONGESTION_CONTROL
from fared.extensions.lab.workloads.jobs import DEFAULT_INTERVAL, DEFAULT_TIMEOUT

DEFAULT_ITERATIONS = 10
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)([KMG]?)(i?)B?$", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3}


def _size(context: click.Context, parameter: click.Parameter, text: str) -> int:
    """Parse bytes: a number with K, M or G, powers of 1000, or Ki, Mi, Gi, of 1024."""
    del context, parameter
    match = _SIZE.match(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a size such as 16M or 64KiB")
    base = 1024.0 if match[3] else 1000.0
    power = _POWERS[match[2].upper()]
    return round(float(match[1]) * base**power)


congestion_option = click.option(
    "--congestion-control",
    "congestion",
    default=CONGESTION_CONTROL,
    show_default=True,
    metavar="NAME",
    help="Congestion control of TCP, of those that the kernel has.",
)


size_option = click.option(
    "--size", callback=_size, default="16M", show_default=True, help="Size of the message, bytes."
)
hosts_option = click.option(
    "--hosts",
    metavar="RANK,...",
    help="Hosts, or GPUs, in order of rank: h1, g1.3, g1 for all of a server, 'g*.3' "
    "(default: all).",
    shell_complete=named.rank_lists,
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
