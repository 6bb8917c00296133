"""The shifts of jobs as tables of 80 columns."""

from __future__ import annotations

import math
import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from fared.management.documents import human
from fared.management.documents.paper import (
    console,
    count,
    emit,
    heading,
    plural_list,
    styled,
    table,
)

Json = dict[str, Any]
_WIDTH = 80
_SHOWN = 12


def render_jobs(document: Json) -> str:
    """Format ``fared-plan-jobs/1``, with colours only on a terminal."""
    target = console(None if sys.stdout.isatty() else _WIDTH)
    with target.capture() as captured:
        _jobs(document, target)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _jobs(document: Json, out: Console) -> None:
    links = document["links"]
    shared = f"{count(len(links), 'shared link')}, score {document['score']:.3f}"
    heading(out, f"{count(len(document['jobs']), 'job')}, {shared}", first=True)
    grid = table("Job", ">Period", ">Communicates", ">Starts at", ">Margin")
    for job in document["jobs"]:
        times = ("period", "busy", "shift", "margin")
        grid.add_row(job["name"], *(human.duration(job[n]) if job[n] else "0" for n in times))
    emit(out, grid)
    heading(out, "Shared links, worst first")
    _links(links, out)
    heading(out, "Jobs that should not share a link")
    if not document["apart"]:
        out.print(Text("none", style="dim"))
    for one in document["apart"]:
        names = " and ".join(one["jobs"])
        out.print(Text(f"{names}: {one['score']:.3f} at best on {one['link']}"))
    if document["better"]:
        better = document["better"]
        hosts = " and ".join(
            f"{host} of {job}" for host, job in zip(better["exchange"], better["jobs"], strict=True)
        )
        out.print()
        out.print(Text(f"Exchanging {hosts} gives a score of {better['score']:.3f}"))


def _links(links: list[Json], out: Console) -> None:
    """One line for all links with the same jobs, rates and scores."""
    groups: dict[tuple[Any, ...], list[Json]] = {}
    for link in links:
        rates = tuple((job["name"], job["rate"]) for job in link["jobs"])
        key = (link["score"], link["alone"], link["unshifted"], link["capacity"], rates)
        groups.setdefault(key, []).append(link)
    grid = table("~Link", "~Jobs", ">Score", ">Alone", ">Unshifted", "~Angles alone")
    for found in list(groups.values())[:_SHOWN]:
        link = found[0]
        jobs = [f"{job['name']} {human.bandwidth(job['rate'])}" for job in link["jobs"]]
        angles = [f"{math.degrees(job['angle']):.0f}°" for job in link["jobs"]]
        grid.add_row(
            plural_list([one["link"] for one in found], 2),
            ", ".join(jobs),
            styled(f"{link['score']:.3f}", good=link["score"] > 0.999, bad="yellow"),
            f"{link['alone']:.3f}",
            f"{link['unshifted']:.3f}",
            " ".join(angles),
        )
    emit(out, grid)
    if len(groups) > _SHOWN:
        out.print(Text(f"and {len(groups) - _SHOWN} more", style="dim"))
