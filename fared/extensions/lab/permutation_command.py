"""``fared-lab generate permutation``."""

from __future__ import annotations

import click

from fared.core.units import parse_bandwidth
from fared.extensions.lab.permutation import Permutation


@click.command()
@click.option("--nodes", type=click.IntRange(3, 1000), default=Permutation.nodes, show_default=True)
@click.option(
    "--degree",
    type=click.IntRange(1, 16),
    default=Permutation.degree,
    show_default=True,
    help="Number of rings; a node has two links in each.",
)
@click.option("--rate", default=Permutation.rate, show_default=True, help="Rate of every link.")
@click.option("--name", default=Permutation.name, show_default=True, help="Name of lab and file.")
def permutation(*, nodes: int, degree: int, rate: str, name: str) -> None:
    """Write a direct-connect topology: rings of coprime steps with the least diameter (TopoOpt)."""
    try:
        parse_bandwidth(rate)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--rate") from error
    click.echo(Permutation(nodes, degree, rate, name).text(), nl=False)
