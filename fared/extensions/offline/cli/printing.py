"""How offline commands print a document."""

from __future__ import annotations

import json
import sys

import click
import msgspec

from fared.management.documents.declare import Answer
from fared.management.documents.paper import Paper, console


def print_answer(document: Answer, *, as_json: bool, width: int) -> None:
    """Print JSON, or tables as wide as the terminal; ``width`` and no colours elsewhere."""
    if as_json:
        plain = msgspec.to_builtins(document)
        click.echo(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False))
        return
    target = console(None if sys.stdout.isatty() else width)
    with target.capture() as captured:
        document.show(Paper(target, 0.0))
    click.echo("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()), nl=False)
