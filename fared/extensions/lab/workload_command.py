"""``fared-lab traffic COLLECTIVE``: collectives of AI training on a lab that is up."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, cast

import click

from fared.core.units import parse_duration
from fared.extensions.lab import holder, named
from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ranks import read_ranks
from fared.extensions.lab.workload_options import (
    hosts_option,
    jobs_option,
    plain_options,
    refuse_beside,
    repeated,
    run_options,
    size_option,
    take_repeated,
)
from fared.extensions.lab.workload_play import play, show
from fared.extensions.lab.workloads import patterns
from fared.extensions.lab.workloads.collectives import COLLECTIVES, ROOT
from fared.extensions.lab.workloads.jobs import (
    ALL_GATHER_BIER,
    BROADCAST_BIER,
    INA,
    REDUCE_INA,
    Job,
)
from fared.extensions.lab.workloads.sizes import parse_size

if TYPE_CHECKING:
    pass

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
ALL_TO_ALL = "all-to-all"
_SKEW = click.Option(
    ["--skew"],
    type=click.FloatRange(1.0),
    default=1.0,
    show_default=True,
    help="Rank 0 gets so many times the mean, and each next one less.",
)
_SUMMED = {
    INA: "All ranks get the sum of all: routers sum on the way.",
    REDUCE_INA: "Rank 0 gets the sum of all: routers sum on the way.",
}
_COPIED = {
    BROADCAST_BIER: "Rank 0 sends its data to all: routers copy on the way.",
    ALL_GATHER_BIER: "All ranks get the block of each: routers copy on the way.",
}


def _phases(
    context: click.Context, parameter: click.Parameter, texts: Sequence[str]
) -> list[tuple[int, float]]:
    """Parse ``SIZE:DURATION`` of each phase."""
    del context, parameter
    try:
        halves = [text.partition(":") for text in texts]
        return [(parse_size(size), parse_duration(rest or "0s")) for size, _, rest in halves]
    except ValueError as error:
        raise click.BadParameter(f"{error}; a phase is SIZE:DURATION such as 8M:200ms") from None


def collective_commands() -> Iterator[click.Command]:
    """Yield a command for each collective; all have the same options."""
    for name in COLLECTIVES:
        yield click.Command(
            name,
            params=[*_workload.params, *([_SKEW] if name == ALL_TO_ALL else [])],
            callback=partial(cast("Callable[..., None]", _workload.callback), collective=name),
            help=f"{_TOLD[name]}\n\n{cleandoc(_workload.help or '')}",
            short_help=_TOLD[name],
        )
    for helped, by_routers in ((_SUMMED, _aggregated), (_COPIED, _copied)):
        for name, told in helped.items():
            yield click.Command(
                name,
                params=by_routers.params,
                callback=partial(cast("Callable[..., None]", by_routers.callback), collective=name),
                help=f"{told}\n\n{cleandoc(by_routers.help or '')}",
                short_help=told,
            )


@click.command()
@size_option
@hosts_option
@repeated
@click.option(
    "--phase",
    "phases",
    multiple=True,
    callback=_phases,
    metavar="SIZE:DURATION",
    help="Communicate several times in an iteration: a message instead of --size, and the time "
    "to compute behind it instead of --compute (8M:200ms); repeatable.",
)
@jobs_option
@click.option(
    "--job",
    "more",
    multiple=True,
    metavar="[COLLECTIVE:]RANK,...[@SHIFT]",
    help="Another parallel job over these ranks, shared or not, which begins SHIFT seconds "
    "later; repeatable.",
    shell_complete=named.rank_lists,
)
@run_options
@click.pass_obj
def _workload(
    name: str | None,
    /,
    *,
    collective: str,
    size: int,
    hosts: str | None,
    phases: Sequence[tuple[int, float]],
    jobs: int,
    more: tuple[str, ...],
    skew: float = 1.0,
    **given: Any,  # noqa: ANN401 - of ``repeated`` and ``run_options``
) -> None:
    """Runs over TCP between the hosts of a lab, repeatedly, and shows the completion times.

    Each completion time is compared with the least one that the fabric permits: a maximum-flow
    bound, of the job alone.
    """
    if phases:
        refuse_beside("--phase", "size", "compute")
    job = Job(collective, (), size, **take_repeated(given))

    def wanted(fabric: Fabric) -> list[Job]:
        dealt = [
            *_dealt(job, read_ranks(fabric.plan, hosts), jobs),
            *(_another(job, one, fabric.plan) for one in more),
        ]
        return [_with_tasks(one, phases, skew) for one in dealt]

    play(name, wanted, **given)


def _with_tasks(job: Job, phases: Sequence[tuple[int, float]], skew: float) -> Job:
    """Return a job with its phases, or with its skew."""
    if job.collective in COLLECTIVES and phases:
        tasks, compute = patterns.busy_phases(job.collective, len(job.hosts), phases)
        return replace(job, tasks=tasks, compute=compute, size=sum(size for size, _ in phases))
    if job.collective == ALL_TO_ALL and skew > 1:
        try:
            tasks = patterns.uneven_all_to_all(len(job.hosts), job.size, skew)
        except ValueError as error:
            raise LabError(str(error)) from error
        return replace(job, tasks=tasks)
    return job


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


@click.command()
@plain_options
@click.option(
    "--bier/--unicast",
    default=None,
    help="Results by BIER, or a copy for each worker.  [default: by BIER, where all have it]",
)
@click.option(
    "--tree",
    metavar="ROUTER[:NEXT],...,ROOT",
    help="Sum at these routers instead of planned ones, each at the first on its way; the root may "
    "be a host.",
)
@jobs_option
@click.option(
    "--job",
    "more",
    multiple=True,
    metavar="RANK,...",
    help="Another parallel job over these ranks, shared or not; repeatable.",
    shell_complete=named.rank_lists,
)
@click.pass_obj
def _aggregated(
    name: str | None,
    *,
    collective: str,
    size: int,
    hosts: str | None,
    iterations: int,
    interval: float,
    timeout: float,
    as_json: bool,
    bier: bool | None,
    tree: str | None,
    jobs: int,
    more: tuple[str, ...],
) -> None:
    """In-network aggregation (draft-song-ina-00) over the routers with the label fared-lab.ina: on.

    Every sum is verified. The bound is the least cut between two workers, or from one to rank 0 if
    only that gets the sum: nothing beats it. Several jobs are planned together, and share links
    fairly; bounds are those of a job alone.
    """

    def play(fabric: Fabric) -> int:
        from fared.extensions.lab.ina_workload import run_jobs  # noqa: PLC0415 - networkx, as above

        chosen = read_ranks(fabric.plan, hosts)
        groups = [chosen[number::jobs] for number in range(jobs)]
        report = run_jobs(
            fabric,
            [*groups, *(read_ranks(fabric.plan, text) for text in more)],
            size,
            iterations,
            timeout=timeout,
            interval=interval,
            bier=bier,
            tree=tree,
            root=ROOT if collective == REDUCE_INA else None,
        )
        show(report, as_json=as_json)
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
        show(report, as_json=as_json)
        return 0

    sys.exit(holder.choose(name).run(play))
