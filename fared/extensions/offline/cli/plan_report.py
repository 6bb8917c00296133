"""Reports of ``fared-cli plan failures``: printed, compared with an older one, saved as a page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from fared.core.json_text import decode_json
from fared.extensions.offline.cli.plan_tables import render_plan
from fared.extensions.offline.plan.compare import compare
from fared.management.cli.session import NEGATIVE, Failure

Json = dict[str, Any]
_REPORTS = "'fared-cli plan failures ... --json > FILE' writes a report to compare with"
WRITABLE = "name another file, in a directory that you may write"


def write_page(file: Path, text: str) -> None:
    """Write a page. Raises Failure."""
    try:
        file.write_text(text)
    except OSError as error:
        raise Failure(f"{file}: {error.strerror or error}", WRITABLE) from error


def read_report(file: str) -> Json:
    """Read a report that ``--json`` saved. Raises Failure."""
    try:
        found: Json = decode_json(Path(file).read_bytes(), dict[str, Any])
    except OSError as error:
        raise Failure(f"{file}: {error.strerror or error}", _REPORTS) from error
    except ValueError as error:
        raise Failure(f"{file}: not JSON: {error}", _REPORTS) from error
    return found


def print_and_end(document: Json, before: Json | None, *, as_json: bool) -> None:
    """Print a report; the exit code tells whether all bounds are met."""
    _print(document, before, as_json=as_json)
    if not all(bound["met"] for bound in document["required"]):
        sys.exit(NEGATIVE)


def _print(document: Json, before: Json | None, *, as_json: bool) -> None:
    if before is not None:
        try:
            difference = compare(before, document)
        except ValueError as error:
            raise Failure(f"--compare: {error}", _REPORTS) from error
        document = {**difference, "required": document["required"]}
    if as_json:
        click.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        click.echo(render_plan(document), nl=False)
