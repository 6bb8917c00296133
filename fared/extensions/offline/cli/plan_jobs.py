"""``fared-cli plan jobs``: which training jobs may share links, and when each should start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from fared.core.units import parse_bandwidth, parse_duration
from fared.extensions.offline.changes import Changes
from fared.extensions.offline.cli.arguments import Names, WhatIf, read_changes
from fared.extensions.offline.cli.options import FAIL_LINK, FAIL_NODE, LSDB, SET_BANDWIDTH
from fared.extensions.offline.cli.printing import print_answer
from fared.extensions.offline.cli.source import load_database
from fared.extensions.offline.plan.fabric import PlanError, PlanFabric, read_fabric
from fared.extensions.offline.plan.jobs.circle import CircleError, JobPattern, LinkShare
from fared.extensions.offline.plan.jobs.document import jobs_document
from fared.extensions.offline.plan.jobs.file import JobFile, JobFileError, read_jobs
from fared.extensions.offline.plan.jobs.measured import MeasuredJob, measured_job
from fared.extensions.offline.plan.jobs.picture import draw_jobs
from fared.extensions.offline.plan.jobs.placement import BetterPlacement, Placement
from fared.extensions.offline.plan.jobs.shifts import ShiftSchedule, schedule
from fared.extensions.pictures import figures
from fared.management.cli.session import Failure

_WIDTH = 80
_FORM = "'fared-cli plan jobs --help' shows the form of FILE"
_LOADS = "'fared-cli show load --json > FILE' on a router writes its loads"
EXAMPLE = """\
links: {up: 100G}
jobs:
  - {name: a, period: 40ms, busy: 10ms, links: {up: 100G}}
  - {name: b, period: 60ms, busy: 10ms, links: {up: 100G}}
"""
"""Two jobs as in the talk on networks for machine learning jobs: their circle is of 120 ms."""
_EPILOG = """
FILE is YAML:

\b
  jobs:
    - {name: a, period: 200ms, busy: 80ms, bandwidth: 100G, hosts: [L1, L2]}
    - {name: b, period: 200ms, duty: 50%, bandwidth: 100G, hosts: [L1, L3]}

Exit codes: 0 ok, 1 bad file, 2 usage.
"""


class _ShiftedJobs(NamedTuple):
    """What the document is made from; ``tick`` in seconds."""

    patterns: Sequence[JobPattern]
    found: ShiftSchedule
    tick: float
    better: BetterPlacement | None = None


@click.command(epilog=_EPILOG)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--example", is_flag=True, help="Plan two jobs of 40 and 60 ms instead of a FILE.")
@click.option("--lsdb", "source", metavar="FILE|-", help=LSDB)
@click.option(
    "--from-load",
    "loads",
    metavar="JOB=INTERFACE@FILE",
    multiple=True,
    help="Find the period of a job in the output of 'show load --json'.",
)
@click.option("--tick", default="1ms", show_default=True, help="Grain of shifts and periods.")
@click.option("--bandwidth", metavar="400G", help="Bandwidth of links that advertise none.")
@FAIL_LINK
@FAIL_NODE
@SET_BANDWIDTH
@click.option(
    "--draw",
    "picture",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Draw the jobs of the worst link around their circle: a .png or .svg.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the JSON document.")
def jobs(
    *,
    file: Path | None,
    example: bool,
    source: str | None,
    loads: tuple[str, ...],
    tick: str,
    bandwidth: str | None,
    fail_links: tuple[str, ...],
    fail_nodes: tuple[str, ...],
    bandwidths: tuple[str, ...],
    picture: Path | None,
    as_json: bool,
) -> None:
    """Find time shifts of jobs so that they communicate in turn on the links they share.

    With a database, the links are those that routers use by their weights.
    """
    if (file is None) != example:
        raise click.UsageError("give a FILE, or --example")
    given = WhatIf(fail_links, fail_nodes, (), bandwidths, ())
    try:
        if picture is not None:
            figures.check(picture)
        grain = parse_duration(tick)
        text = EXAMPLE if file is None else file.read_text()
        found = read_jobs(text, dict(map(_measured, loads)))
        fabric = None if source is None else _fabric(source, given, bandwidth)
        planned = _planned(found, grain, fabric)
        if picture is not None:
            draw_jobs(planned.patterns, planned.found, grain, picture)
    except OSError as error:
        raise Failure(f"{file}: {error.strerror or error}", _FORM) from error
    except (JobFileError, UnicodeDecodeError) as error:
        raise Failure(f"{file}: {error}", _FORM) from error
    except (CircleError, PlanError, figures.PictureError) as error:
        raise Failure(str(error)) from error
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--tick") from error
    if example and not as_json:
        click.echo(EXAMPLE)
    print_answer(jobs_document(*planned), as_json=as_json, width=_WIDTH)


def _measured(text: str) -> tuple[str, MeasuredJob]:
    """Parse ``JOB=INTERFACE@FILE``, and read that file."""
    job, equals, rest = text.partition("=")
    interface, at, file = rest.partition("@")
    if not (equals and at and job and interface and file):
        raise click.BadParameter(f"{text!r} is not JOB=INTERFACE@FILE", param_hint="--from-load")
    try:
        return job, measured_job(Path(file).read_text(), interface)
    except OSError as error:
        raise Failure(f"{file}: {error.strerror or error}", _LOADS) from error
    except ValueError as error:
        raise Failure(f"{file}: {error}", _LOADS) from error


def _fabric(source: str, given: WhatIf, bandwidth: str | None) -> PlanFabric:
    database = load_database(source)
    family = database.families[0]
    changes = read_changes(Names(database.world(None, family, Changes())), given)
    rate = None if bandwidth is None else parse_bandwidth(bandwidth)
    return read_fabric(database.world(None, family, changes), bandwidth=rate)


def _planned(found: JobFile, tick: float, fabric: PlanFabric | None) -> _ShiftedJobs:
    if tick <= 0.0:
        raise JobFileError("a tick is longer than 0")
    patterns = [job.pattern(tick) for job in found.jobs]
    if fabric is None:
        return _ShiftedJobs(patterns, schedule(_given_links(found), patterns), tick)
    for job in found.jobs:
        if job.links:
            raise JobFileError(f"{job.name}: with --lsdb, jobs have hosts")
    placement = Placement(fabric)
    now = schedule(placement.links(found.jobs), patterns)
    better = placement.better(found.jobs, patterns, now) if now.score < 1.0 else None
    return _ShiftedJobs(patterns, now, tick, better)


def _given_links(found: JobFile) -> Sequence[LinkShare]:
    for job in found.jobs:
        if not job.links:
            raise JobFileError(f"{job.name}: jobs with hosts need --lsdb")
    return [
        LinkShare(name, capacity, {j.name: j.links[name] for j in found.jobs if name in j.links})
        for name, capacity in found.links.items()
    ]
