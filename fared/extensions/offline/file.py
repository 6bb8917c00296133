"""Reading ``fared-lsdb/1``: from text to a database.

An error in the document is reported with its place. A malformed LSA or LSP is not an error: it is
ignored, as in a router, and listed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError

from fared.extensions.offline.isis.file import IsisFile, read_isis
from fared.extensions.offline.ospf.file import OspfFile, read_ospf
from fared.extensions.offline.world import FileError, SavedDatabase
from fared.router.protocols import ISIS, OSPF

_MAX_ERRORS = 5
_FORMS: Mapping[str, tuple[type[BaseModel], Callable[[Any], SavedDatabase]]] = MappingProxyType(
    {OSPF: (OspfFile, read_ospf), ISIS: (IsisFile, read_isis)}
)
"""By protocol: the model of its file, and the function that reads it."""


def read_database(text: str | bytes) -> SavedDatabase:
    """Read a document. Raises FileError only."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise FileError("not a fared-lsdb/1 document: expected a JSON object")
    try:
        model, read = _FORMS.get(str(document.get("proto")), _FORMS[OSPF])
        return read(model.model_validate(document))
    except ValidationError as error:
        raise FileError("\n".join(_explain(error))) from error


def _explain(error: ValidationError) -> Iterator[str]:
    """One line for each of the first errors: the place, the expected value, the value found."""
    yield "not a fared-lsdb/1 document:"
    found = error.errors(include_url=False, include_context=False)
    for entry in found[:_MAX_ERRORS]:
        place = ".".join(map(str, entry["loc"]))
        came = "" if entry["type"] == "missing" else f", not {_short(entry['input'])}"
        yield f"  {place}: {entry['msg'].removeprefix('Value error, ')}{came}"
    if len(found) > _MAX_ERRORS:
        yield f"  and {len(found) - _MAX_ERRORS} more"


def _short(value: Any) -> str:  # noqa: ANN401 - any JSON value
    text = ascii(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
