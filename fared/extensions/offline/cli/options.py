"""Options that several offline commands have.

The module imports nothing that computes: ``fared-cli path`` has them, and mostly asks a daemon.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from fared.paths.weights.defaults import MAX_WEIGHT

F = TypeVar("F", bound=Callable[..., Any] | click.Command)
LSDB = "Output of 'show lsdb --json', or JSON of FRR."
FAIL_LINK = click.option(
    "--fail-link", "fail_links", metavar="A-B", multiple=True, help="Fail the link."
)
FAIL_NODE = click.option(
    "--fail-node", "fail_nodes", metavar="N", multiple=True, help="Fail the router."
)
SET_BANDWIDTH = click.option(
    "--set-bandwidth",
    "bandwidths",
    metavar="A-B=25G",
    multiple=True,
    help="Set the bandwidth, bit/s; of one direction: 'A > B=25G'.",
)
_CHANGES: Final = (
    FAIL_LINK,
    FAIL_NODE,
    click.option("--set-cost", "costs", metavar="A-B=N", multiple=True, help="Set the metric."),
    SET_BANDWIDTH,
    click.option(
        "--overload",
        "overloads",
        metavar="N",
        multiple=True,
        help="Drain N: overload bit, stub router.",
    ),
)
_SOLVER: Final = (
    click.option(
        "--max-paths",
        type=click.IntRange(1, 1024),
        default=64,
        show_default=True,
        help="Maximum number of next hops.",
    ),
    click.option(
        "--weights",
        type=click.Choice(["none", "capacity", "available"]),
        default="capacity",
        show_default=True,
        help="Basis of the weights; none is plain ECMP.",
    ),
    click.option(
        "--flows",
        type=click.IntRange(1, 1_000_000),
        help="Compute weights for N large flows (default: in proportion to capacity).",
    ),
    click.option(
        "--max-weight",
        type=click.IntRange(1, 65535),
        default=MAX_WEIGHT,
        show_default=True,
        help="As fib: max-weight.",
    ),
    click.option(
        "--max-group-size",
        type=click.IntRange(1, 65535),
        help="As fib: max-group-size, the greatest sum of weights (default: any).",
    ),
    click.option("--delay-margin", metavar="TIME", help="As adaptive: delay-margin, such as 5ms."),
    click.option("--delay-bound", metavar="TIME", help="As adaptive: delay-bound, such as 50ms."),
    click.option("--unknown-delay", metavar="TIME", help="As adaptive: unknown-delay."),
)


def change_options(function: F) -> F:
    """Add what may be assumed of a database."""
    return _with(function, _CHANGES)


def solver_options(function: F) -> F:
    """Add the settings of routers that no database has."""
    return _with(function, _SOLVER)


def _with(function: F, options: tuple[Callable[[F], F], ...]) -> F:
    """Add options to a function, or to a command that exists: they are listed in this order."""
    listed = options if isinstance(function, click.Command) else reversed(options)
    for option in listed:
        function = option(function)
    return function
