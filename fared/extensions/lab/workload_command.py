"""``fared-lab traffic COLLECTIVE``: collectives of AI training on a lab that is up."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
from rich.console import Console

from fared.extensions.lab import holder, named
from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ranks import read_ranks
from fared.extensions.lab.tables import segment_order_table
from fared.extensions.lab.workload_options import (
    DEFAULT_ITERATIONS,
    congestion_option,
    hosts_option,
    interval_option,
    json_option,
    plain_options,
    size_option,
    timeout_option,
)
from fared.extensions.lab.workloads.collectives import COLLECTIVES
from fared.extensions.lab.workloads.jobs import (
    ALL_GATHER_BIER,
    BROADCAST_BIER,
    INA,
    Job,
)

if TYPE_CHECKING:
    from fared.extensions.lab.workloads.report import WorkloadReport

_TOLD = {
    "all-reduce-ring": "All ranks get the sum of all, block by block in a ring.",
    "all-reduce-tree": "All ranks get the sum of all: up a tree, and down again.",
    "all-reduce-ps": "Rank 0, a parameter server, gets all and sends all the sum.",
    "all-gather": "All ranks get the block of each, in a ring.",
    "reduce-scatter": "Each rank gets the sum of one block, in a ring.",
    "broadcast": "Rank 0 sends its data to all, down a tree.",
    "reduce": "Rank 0 gets the sum of all, up a tree.",
    "scatter": "Rank 0 sends each rank a block.",
    "all-to-all": "Each rank sends each other rank a block.",
}
_COPIED = {
    BROADCAST_BIER: "Rank 0 sends its data to all: routers copy on the way.",
    ALL_GATHER_BIER: "All ranks get the block of each: routers copy on the way.",
}


def _show(report: WorkloadReport, *, as_json: bool) -> None:
    """Print the report as a document, or as tables."""
    # networkx and matplotlib: 100 ms, which the other commands, each node in a container
    # among them, need not pay.
    from fared.extensions.lab.workloads import tables as workload_tables  # noqa: PLC0415

    if as_json:
        click.echo(report.as_json())
        return
    console = Console(highlight=False)
    console.print(workload_tables.completion_table(report))
    orders = {
        f"{number} {job.job.collective}": job.order for number, job in enumerate(report.jobs, 1)
    }
    if any(order.segments for order in orders.values()):
        console.print(segment_order_table(orders))
    console.print(workload_tables.uses_table(report))


def collective_commands() -> Iterator[click.Command]:
    """Yield a command for each collective; all have the same options."""
    for name in COLLECTIVES:
        yield click.Command(
            name,
            params=_workload.params,
            callback=partial(cast("Callable[..., None]", _workload.callback), collective=name),
            help=f"{_TOLD[name]}\n\n{cleandoc(_workload.help or '')}",
            short_help=_TOLD[name],
        )
    yield _aggregated
    for name, told in _COPIED.items():
        yield click.Command(
            name,
            params=_copied.params,
            callback=partial(cast("Callable[..., None]", _copied.callback), collective=name),
            help=f"{told}\n\n{cleandoc(_copied.help or '')}",
            short_help=told,
        )


@click.command()
@size_option
@hosts_option
@click.option("--elephants", default=1, show_default=True, help="TCP flows per pair of hosts.")
@click.option(
    "--iterations", type=int, help="Number of iterations.  [default: 10, or as --seconds allow]"
)
@click.option("--seconds", type=float, help="Start no iteration after this time.")
@click.option("--period", type=float, metavar="SECONDS", help="Alternate between on and off.")
@click.option("--duty", default=0.5, show_default=True, help="Part of a period that is on.")
@click.option(
    "--compute",
    default=0.0,
    metavar="SECONDS",
    help="Send nothing for so long after each iteration, as training does.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Distribute the hosts to so many equal jobs.",
)
@click.option(
    "--job",
    "more",
    multiple=True,
    metavar="[COLLECTIVE:]RANK,...[@SHIFT]",
    help="Another parallel job over these ranks, shared or not, which begins SHIFT seconds "
    "later; repeatable.",
    shell_complete=named.rank_lists,
)
@click.option("--seed", default=0, show_default=True, help="Seed of the flows' source ports.")
@interval_option
@click.option("--ipv6", is_flag=True, help="Use IPv6, where IS-IS runs.")
@congestion_option
@timeout_option
@click.option(
    "--draw",
    "pictures",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw link utilisation and completion times: a .png or .svg; repeatable.",
)
@json_option
@click.pass_obj
def _workload(
    name: str | None,
    *,
    collective: str,
    size: int,
    hosts: str | None,
    elephants: int,
    iterations: int | None,
    seconds: float | None,
    period: float | None,
    duty: float,
    compute: float,
    jobs: int,
    more: tuple[str, ...],
    seed: int,
    interval: float,
    ipv6: bool,
    congestion: str,
    timeout: float,
    pictures: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Runs over TCP between the hosts of a lab, repeatedly, and shows the completion times.

    Each completion time is compared with the least one that the fabric permits: a maximum-flow
    bound, of the job alone.
    """
    if iterations is None and seconds is None:
        iterations = DEFAULT_ITERATIONS
    job = Job(collective, (), size, elephants, iterations, seconds, period, duty, compute)

    def play(fabric: Fabric) -> int:
        wanted = [
            *_dealt(job, read_ranks(fabric.plan, hosts), jobs),
            *(_another(job, text, fabric.plan) for text in more),
        ]
        report = _measured(
            fabric,
            wanted,
            pictures,
            seed=seed,
            timeout=timeout,
            interval=interval,
            ipv6=ipv6,
            congestion=congestion,
        )
        _show(report, as_json=as_json)
        _draw(report, pictures)
        return 0

    sys.exit(holder.choose(name).run(play))


def _measured(
    fabric: Fabric,
    wanted: Sequence[Job],
    pictures: Sequence[Path],
    **given: Any,  # noqa: ANN401 - of ``run``
) -> WorkloadReport:
    """Run jobs, if their pictures can be drawn."""
    # networkx and matplotlib, as above
    from fared.extensions.lab.workloads import plots  # noqa: PLC0415
    from fared.extensions.lab.workloads.run import run  # noqa: PLC0415

    for picture in pictures:
        plots.check(picture)
    return run(fabric, wanted, **given)


def _draw(report: WorkloadReport, pictures: Sequence[Path]) -> None:
    from fared.extensions.lab.workloads import plots  # noqa: PLC0415 - as above

    for picture in pictures:
        plots.draw(report, picture)


def _dealt(job: Job, hosts: Sequence[str], jobs: int) -> Iterator[Job]:
    """Yield the job over all hosts, or ``jobs`` jobs, each over every n-th host."""
    for number in range(jobs):
        yield replace(job, hosts=tuple(hosts[number::jobs]))


def _another(job: Job, text: str, plan: AddressPlan) -> Job:
    """Parse ``[COLLECTIVE:]HOST,...[@SHIFT]``; the rest is as in the first job."""
    collective, colon, rest = text.rpartition(":")
    hosts, at, shift = rest.partition("@")
    try:
        begin = float(shift) if at else 0.0
    except ValueError:
        raise click.BadParameter(f"{shift!r} is no number of seconds", param_hint="--job") from None
    return replace(
        job,
        collective=collective if colon else job.collective,
        hosts=read_ranks(plan, hosts),
        shift=begin,
    )


@click.command(INA, short_help="All ranks get the sum of all: routers sum on the way.")
@plain_options
@click.option(
    "--bier/--unicast",
    default=None,
    help="Results by BIER, or a copy for each worker.  [default: by BIER, where all have it]",
)
@click.option(
    "--tree",
    metavar="ROUTER[:NEXT],...,ROOT",
    help="Sum at these routers instead of planned ones, each at the first on its way.",
)
@click.pass_obj
def _aggregated(
    name: str | None,
    *,
    size: int,
    hosts: str | None,
    iterations: int,
    interval: float,
    timeout: float,
    as_json: bool,
    bier: bool | None,
    tree: str | None,
) -> None:
    """All ranks get the sum of all: routers sum on the way.

    In-network aggregation (draft-song-ina-00) over the routers with the label fared-lab.ina: on.
    Every sum is verified. The bound is the least cut between two workers: no all-reduce beats it.
    """

    def play(fabric: Fabric) -> int:
        from fared.extensions.lab.ina_workload import run_ina  # noqa: PLC0415 - networkx, as above

        chosen = read_ranks(fabric.plan, hosts)
        report = run_ina(
            fabric,
            chosen,
            size,
            iterations,
            timeout=timeout,
            interval=interval,
            bier=bier,
            tree=tree,
        )
        _show(report, as_json=as_json)
        return 0

    sys.exit(holder.choose(name).run(play))


@click.command()
@plain_options
@click.pass_obj
def _copied(
    name: str | None,
    *,
    collective: str,
    size: int,
    hosts: str | None,
    iterations: int,
    interval: float,
    timeout: float,
    as_json: bool,
) -> None:
    """Runs over BIER through the routers with the label fared-lab.bier: on.

    A link carries each byte once, however many hosts are behind it. The bound is the least time
    that the links permit.
    """

    def play(fabric: Fabric) -> int:
        from fared.extensions.lab.multicast import run_bier  # noqa: PLC0415 - networkx, as above

        chosen = read_ranks(fabric.plan, hosts)
        report = run_bier(
            fabric, collective, chosen, size, iterations, timeout=timeout, interval=interval
        )
        _show(report, as_json=as_json)
        return 0

    sys.exit(holder.choose(name).run(play))
