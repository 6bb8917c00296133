"""Reading ``fared-lsdb/1``: from text to the databases that the engines' parts work on.

What is wrong with the document as a whole is an error with its place; what is wrong with one
LSA or LSP only makes that one of those ignored, as it would in a router.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from fared.cli.offline_isis import IsisFile, read_isis
from fared.cli.offline_ospf import OspfFile, read_ospf
from fared.cli.offline_world import Database, FileError
from fared.router.speaker import ISIS

_MAX_ERRORS = 5


def read_database(text: str | bytes) -> Database:
    """Read a whole document. Raises FileError, nothing else."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise FileError("not a fared-lsdb/1 document: expected a JSON object")
    try:
        if document.get("proto") == ISIS:
            return read_isis(IsisFile.model_validate(document))
        return read_ospf(OspfFile.model_validate(document))
    except ValidationError as error:
        raise FileError("\n".join(_explain(error))) from error


def _explain(error: ValidationError) -> Iterator[str]:
    """One line for each of the first errors: where, what was expected, what came."""
    yield "not a fared-lsdb/1 document:"
    found = error.errors(include_url=False, include_context=False)
    for entry in found[:_MAX_ERRORS]:
        place = ".".join(map(str, entry["loc"]))
        came = "" if entry["type"] == "missing" else f", not {_short(entry['input'])}"
        yield f"  {place}: {entry['msg'].removeprefix('Value error, ')}{came}"
    if len(found) > _MAX_ERRORS:
        yield f"  and {len(found) - _MAX_ERRORS} more"


def _short(value: Any) -> str:  # noqa: ANN401 - whatever JSON holds
    text = ascii(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
