"""``fared-cli plan``: what failures leave of a network, from a saved database.

No daemon, root or network is needed.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, NamedTuple

import click
import msgspec

from fared.core.units import parse_bandwidth
from fared.extensions.offline.changes import Changes
from fared.extensions.offline.cli.arguments import Names, WhatIf, read_changes
from fared.extensions.offline.cli.options import LSDB
from fared.extensions.offline.cli.plan_arguments import (
    Doubles,
    PlanProgress,
    how_many_pairs,
    name_list,
    read_doubles,
    read_group,
    read_groups,
    read_percent,
    which_doubles,
)
from fared.extensions.offline.cli.plan_report import (
    WRITABLE,
    print_and_end,
    read_report,
    write_page,
)
from fared.extensions.offline.cli.plan_traffic import AskedTraffic
from fared.extensions.offline.cli.source import load_database
from fared.extensions.offline.plan.cluster import ClusterError, compute_on_cluster
from fared.extensions.offline.plan.document import Planned, Shown, plan_document
from fared.extensions.offline.plan.fabric import PlanError
from fared.extensions.offline.plan.failures import (
    Compute,
    FailureSets,
    PlanNetwork,
    Progress,
    computed,
    here,
    plan_failures,
    planned_task,
    read_network,
)
from fared.extensions.offline.plan.kept import Kept, KeptError
from fared.extensions.offline.plan.oversubscription import oversubscription
from fared.extensions.offline.plan.page import plan_page
from fared.extensions.offline.plan.require import OVERSUBSCRIPTION, Bound, read_bound
from fared.extensions.offline.plan.run import PlanTask, WorkersDiedError
from fared.extensions.offline.plan.sets import DEGRADE, GROUPS, LINKS, NODES
from fared.extensions.offline.plan.traffic import COLLECTIVES
from fared.extensions.offline.world import SavedDatabase
from fared.management.cli.options import opt, options_of, parsed_by
from fared.management.cli.session import Failure
from fared.management.cli.words import Lazy, Words, imported

_EPILOG = """
Without --links, --nodes, --group, --doubles or --degrade, each link and each router fails once.

\b
Which link hurts most, which routers are single points of failure:
  fared-cli plan failures --lsdb db.json
A pipeline that fails if one link can take more than a quarter of a pair's capacity:
  fared-cli plan failures --lsdb db.json --links --require 'n-1 >= 75%'
Spine S1 is out for maintenance, and one more router fails:
  fared-cli plan failures --lsdb db.json --drained S1 --nodes
Two chassis, and all cables of leaf L1:
  fared-cli plan failures --lsdb db.json --group 'left=S1;S2' --group 'tray=L1,*'

Exit codes: 0 ok, 1 bad file or a broken bound, 2 usage.
"""


@click.group(cls=Words)
def plan() -> None:
    """Plan failures and jobs (offline)."""


plan.add_lazy(
    "jobs",
    Lazy(imported(f"{__package__}.plan_jobs:jobs"), "Which jobs may share links."),
)


class FailuresAsked(NamedTuple):
    """What ``plan failures`` was asked."""

    source: Annotated[str, opt("--lsdb", metavar="FILE|-", required=True, help=LSDB)]
    links: Annotated[bool, opt(is_flag=True, help="Each link fails.")]
    nodes: Annotated[bool, opt(is_flag=True, help="Each router fails.")]
    group_file: Annotated[
        Path | None,
        opt(
            "--groups",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="YAML: patterns of routers, and of links 'A,B', by name of the group.",
        ),
    ]
    some_groups: Annotated[
        tuple[tuple[str, list[str]], ...],
        opt(
            "--group",
            metavar="NAME=P;P",
            multiple=True,
            callback=parsed_by(read_group),
            help="Routers S1 or p1-S*, links L1,S1 or L1,* that fail together.",
        ),
    ]
    doubles: Annotated[
        Doubles | None,
        opt(
            metavar="N|all|classes",
            callback=parsed_by(read_doubles),
            help="Two links fail: N pairs, drawn, all, or one of each class of equal ones.",
        ),
    ]
    seed: Annotated[int, opt(default=1, show_default=True, help="Of drawn pairs.")]
    degrade: Annotated[
        float | None,
        opt(metavar="25%", callback=parsed_by(read_percent), help="Each link loses this part."),
    ]
    drained: Annotated[str | None, opt(metavar="A-B", help="These routers are drained meanwhile.")]
    between: Annotated[
        str | None,
        opt(metavar="P,P", help="Routers whose capacity counts: patterns, or their prefixes."),
    ]
    bandwidth: Annotated[
        float | None,
        opt(
            metavar="400G",
            callback=parsed_by(parse_bandwidth),
            help="Bandwidth of links that advertise none (default: the median).",
        ),
    ]
    demand_file: Annotated[
        Path | None,
        opt(
            "--demand",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Traffic, YAML: demands: [{from: L1, to: L2, rate: 100G}].",
        ),
    ]
    collective: Annotated[
        str | None, opt(type=click.Choice(COLLECTIVES), help="Traffic of a collective of --hosts.")
    ]
    hosts: Annotated[
        str | None, opt(metavar="A-B", help="Routers of its hosts (default: all ends).")
    ]
    rate: Annotated[
        float | None,
        opt(
            metavar="100G",
            callback=parsed_by(parse_bandwidth),
            help="What each host sends (default: 100G).",
        ),
    ]
    fail_links: Annotated[
        tuple[str, ...], opt("--fail-link", metavar="A-B", multiple=True, help="Fail it for good.")
    ]
    fail_nodes: Annotated[
        tuple[str, ...], opt("--fail-node", metavar="N", multiple=True, help="Fail it for good.")
    ]
    bandwidths: Annotated[
        tuple[str, ...],
        opt("--set-bandwidth", metavar="A-B=25G", multiple=True, help="Change it for good."),
    ]
    costs: Annotated[
        tuple[str, ...],
        opt("--set-cost", metavar="A-B=N", multiple=True, help="Change it for good."),
    ]
    bounds: Annotated[
        tuple[Bound, ...],
        opt(
            "--require",
            metavar="'n-1 >= 75%'",
            multiple=True,
            callback=parsed_by(read_bound),
            help="Exit with 1 unless all pairs keep so much."
            " Sets: n-1, n-2, nodes, groups, degrade. 'oversubscription <= 1': of --rate.",
        ),
    ]
    old: Annotated[
        str | None, opt("--compare", metavar="OLD", help="Compare with a report saved by --json.")
    ]
    top: Annotated[
        int, opt(default=10, show_default=True, type=click.IntRange(1), help="Worst failures.")
    ]
    pairs: Annotated[
        str, opt(default="20", show_default=True, metavar="N|all", help="Worst pairs.")
    ]
    workers: Annotated[
        int | None,
        opt(type=click.IntRange(1, 1024), help="Processes (default: one for each core)."),
    ]
    scheduler: Annotated[
        str | None,
        opt(
            metavar="tcp://HOST:PORT",
            help="Compute on the workers of this scheduler of Dask (extra 'plan').",
        ),
    ]
    resume: Annotated[
        Path | None,
        opt(
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Keep finished parts in FILE, and compute only the missing ones.",
        ),
    ]
    html: Annotated[
        Path | None, opt(metavar="FILE", type=click.Path(path_type=Path), help="Write a page, too.")
    ]
    as_json: Annotated[bool, opt("--json", is_flag=True, help="Print the JSON document.")]


@plan.command(epilog=_EPILOG)
@options_of(FailuresAsked)
def failures(asked: FailuresAsked) -> None:
    """Compute what failures leave of the path capacity between leaves, worst first."""
    given = WhatIf(asked.fail_links, asked.fail_nodes, asked.costs, asked.bandwidths, ())
    groups = {**read_groups(asked.group_file), **dict(asked.some_groups)}
    bounded = {bound.of for bound in asked.bounds}
    wanted = _sets(asked, groups, bounded)
    compute = _compute(asked.workers, asked.scheduler)
    hosts = name_list(asked.hosts)
    traffic = AskedTraffic(asked.demand_file, asked.collective, hosts, asked.rate)
    if OVERSUBSCRIPTION in bounded and asked.rate is None:
        raise click.UsageError(
            f"a bound of {OVERSUBSCRIPTION} requires --rate, of all hosts of a leaf"
        )
    shown = Shown(ranked=asked.top, pairs=how_many_pairs(asked.pairs))
    before = None if asked.old is None else read_report(asked.old)
    names, ends = name_list(asked.drained), name_list(asked.between)
    with PlanProgress() as bar:
        try:
            network = _network(load_database(asked.source), given, names, asked.bandwidth, ends)
            sent = oversubscription(network.healthy, hosts, asked.rate)
            asks = traffic.asks(beside=OVERSUBSCRIPTION in bounded)
            task = planned_task(network, wanted, traffic.read(network.healthy) if asks else None)
            planned = _computed(network, task, compute, asked.resume, bar.show)
        except (PlanError, KeptError, WorkersDiedError, ClusterError) as error:
            raise Failure(str(error)) from error
    document = plan_document(planned, given.described(), names, shown)
    document[OVERSUBSCRIPTION] = sent
    document["required"] = [bound.check(document) for bound in asked.bounds]
    if asked.html is not None:
        write_page(asked.html, plan_page(document, planned, time.time()))
    print_and_end(document, before, as_json=asked.as_json)


def _sets(asked: FailuresAsked, groups: dict[str, list[str]], bounded: set[str]) -> FailureSets:
    """Return what is to fail: what was chosen, and the sets that are ``bounded``."""
    for kind, missing in ((DEGRADE, not asked.degrade), (GROUPS, not groups)):
        if kind in bounded and missing:
            raise click.UsageError(f"a bound of {kind} requires --{kind.removesuffix('s')}")
    some = bool(asked.links or asked.nodes or groups or asked.doubles or asked.degrade)
    pairs_of_links = which_doubles(asked.doubles, bounded)
    return FailureSets(
        links=asked.links or not some or LINKS in bounded,
        nodes=asked.nodes or not some or NODES in bounded,
        doubles=pairs_of_links.most,
        classes=pairs_of_links.classes,
        degraded=asked.degrade or 0.0,
        groups=groups,
        seed=asked.seed,
    )


def _compute(workers: int | None, scheduler: str | None) -> Compute:
    """Return where parts are computed. Raises click.UsageError."""
    if scheduler is None:
        return here(workers or _cores())
    if workers is not None:
        raise click.UsageError("--workers are processes of this machine: not with --scheduler")
    return lambda task, parts: compute_on_cluster(task, parts, scheduler)


def _computed(
    network: PlanNetwork,
    task: PlanTask,
    compute: Compute,
    resume: Path | None,
    progress: Progress,
) -> Planned:
    """Compute what is missing; Ctrl-C keeps what is done, if it is kept at all."""
    kept = None
    try:
        kept = None if resume is None else Kept(resume, task)
        return plan_failures(network, task, computed(task, compute, kept), progress)
    except KeyboardInterrupt as error:
        rest = "" if resume is None else f"; the same command with --resume {resume} continues"
        raise Failure(f"interrupted{rest}") from error
    except OSError as error:
        raise Failure(f"{resume}: {error.strerror or error}", WRITABLE) from error
    finally:
        if kept is not None:
            kept.close()


def _network(
    database: SavedDatabase,
    given: WhatIf,
    drained: tuple[str, ...],
    bandwidth: float | None,
    ends: tuple[str, ...],
) -> PlanNetwork:
    family = database.families[0]
    names = Names(database.world(None, family, Changes()))
    changes = read_changes(names, given)
    healthy = database.world(None, family, changes)
    rest = None
    if drained:
        overloaded = frozenset(names.node(name, "--drained") for name in drained)
        rest = database.world(None, family, msgspec.structs.replace(changes, overloaded=overloaded))
    return read_network(healthy, rest, bandwidth=bandwidth, ends=ends)


def _cores() -> int:
    return len(os.sched_getaffinity(0))
