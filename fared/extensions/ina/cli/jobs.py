"""``fared-cli ina``: jobs of in-network aggregation; ``plan`` works offline."""

from __future__ import annotations

import click

from fared.extensions.ina.service.requests import InaCreateRequest, InaDeleteRequest
from fared.management.cli.request import request_command
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
    session.show_answer("show ina", {"what": "jobs"})


ina.add_command(
    request_command(
        InaCreateRequest, "Create the job NAME at this router, which has its first worker.", "name"
    ),
    "create",
)
ina.add_command(
    request_command(InaDeleteRequest, "End the job NAME: its workers get an error.", "name"),
    "delete",
)
ina.add_lazy(
    "plan",
    Lazy(
        imported("fared.extensions.offline.cli.ina:plan"),
        "Compute trees, rates and bound offline (fared-tools).",
    ),
)
