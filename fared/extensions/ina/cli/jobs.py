"""``fared-cli ina``: jobs of in-network aggregation; ``plan`` works offline."""

from __future__ import annotations

from typing import Any

import click

from fared.management.cli.session import Session, output_options
from fared.management.cli.words import Lazy, Words, imported


@click.group(cls=Words)
def ina() -> None:
    """Jobs of in-network aggregation (draft-song-ina-00), and their trees offline (plan)."""


@ina.command()
@output_options
@click.pass_obj
def jobs(session: Session) -> None:
    """Show jobs, their rates, and for whom they wait: show ina jobs."""
    session.show_answer("show", "ina", args={"what": "jobs"})


@ina.command()
@click.argument("name")
@click.option("--workers", required=True, metavar="ADDRESS,...", help="Hosts, in order of rank.")
@click.option("--mtu", type=int, help="Of the path (default: the least of this router's links).")
@click.option("--bier", is_flag=True, help="Results by BIER; each worker needs a BFR-id.")
@click.option("--elastic", is_flag=True, help="Go on without workers that are lost.")
@click.option("--share", type=float, default=1.0, help="Part of links that several jobs use (1).")
@output_options
@click.pass_obj
def create(session: Session, /, *, workers: str, **given: Any) -> None:  # noqa: ANN401 - of click
    """Create the job NAME at this router, which has its first worker."""
    listed = [word.strip() for word in workers.split(",")]
    session.show_answer("ina-create", args={"workers": listed, **given})


@ina.command()
@click.argument("name")
@output_options
@click.pass_obj
def delete(session: Session, *, name: str) -> None:
    """End the job NAME: its workers get an error."""
    session.show_answer("ina-delete", args={"name": name})


ina.add_lazy(
    "plan",
    Lazy(
        imported("fared.extensions.offline.cli.ina:plan"),
        "Compute trees, rates and bound offline (fared-tools).",
    ),
)
