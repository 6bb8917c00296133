"""``fared-lab traffic federated``: rounds of federated learning on a lab that is up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from fared.extensions.lab import named
from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ranks import read_ranks
from fared.extensions.lab.workload_options import (
    repeated,
    run_options,
    size_option,
    take_repeated,
)
from fared.extensions.lab.workload_play import play
from fared.extensions.lab.workloads import federation
from fared.extensions.lab.workloads.jobs import Job


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
def federated(
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
