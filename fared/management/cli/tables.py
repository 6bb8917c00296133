"""Prints any document as people read it."""

from __future__ import annotations

import contextlib
import json

import msgspec
from rich.console import Console

from fared.management.documents.paper import Json, Paper
from fared.management.documents.registry import row_of


def write(document: Json, out: Console, now: float) -> None:
    """Print any document, as JSON if its format is unknown or it lacks fields.

    ``now`` is Unix time. Fields are lacking while the daemon that has been upgraded still runs.
    """
    row = row_of(document.get("format", ""))
    answer = None
    with contextlib.suppress(msgspec.ValidationError):
        answer = None if row is None else row.read(document)
    if answer is None:
        out.print(json.dumps(document, indent=2), soft_wrap=True)
    else:
        answer.show(Paper(out, now))
