"""Reading ``fared-lsdb/1``, or what FRR prints as JSON: from text to a database.

An error in the document is reported with its place, another file with what it is. A malformed LSA
or LSP is not an error: it is ignored, as in a router, and listed.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from fared.extensions.foreign.frr.database import (
    COMMAND,
    DatabaseError,
    FrrDatabase,
    documents_of,
    is_frr,
    read_frr,
)
from fared.extensions.foreign.frr.lsps import read_lsps, whole, without_hostnames
from fared.extensions.offline.ignored import Ignored
from fared.extensions.offline.isis.file import IsisDatabase, IsisFile, read_isis
from fared.extensions.offline.ospf.file import OspfDatabase, OspfFile, read_ospf
from fared.extensions.offline.world import FileError, SavedDatabase
from fared.protocols.isis.ids import Level
from fared.router.protocols import ISIS, OSPF

_MAX_ERRORS = 5
_FORMS: Mapping[str, tuple[type[BaseModel], Callable[[Any], SavedDatabase]]] = MappingProxyType(
    {OSPF: (OspfFile, read_ospf), ISIS: (IsisFile, read_isis)}
)
"""By protocol: the model of its file, and the function that reads it."""


_CAPTURES: Final = (
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\xc3\xd4",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x0a\x0d\x0d\x0a",
)
"""The first bytes of pcap, in both orders and resolutions, and of pcapng."""
_TEXTS: Final = (
    (
        r"OSPF Router with ID|(Router|Net|Summary) Link States \(|LS Type: \S+-LSA",
        f"the text that FRR prints of OSPF: fared reads its JSON; {COMMAND}",
    ),
    (
        r"IS-IS Level-\d link-state database",
        "the text that FRR prints of IS-IS: 'fared-cli lsdb from-pcap' reads a capture",
    ),
)
"""What texts look like, and what they are."""
_ISIS_JSON: Final = (
    "FRR's JSON of IS-IS, which in this version has one link of each LSP only, or one LSP of each"
    " level: 'fared-cli lsdb from-pcap' makes a database of a capture"
)
_OSPFV3: Final = "a database of OSPFv3: fared computes OSPFv2 and IS-IS"
_OSPFV3_KEYS: Final = frozenset(
    ("areaScopedLinkStateDb", "asScopedLinkStateDb", "interfaceScopedLinkStateDb")
)


def read_database(text: str | bytes) -> SavedDatabase:
    """Read a document, or those that FRR prints, one behind the other. Raises FileError only."""
    if isinstance(text, bytes) and text.startswith(_CAPTURES):
        raise FileError("a capture: 'fared-cli lsdb from-pcap FILE' makes a database of it")
    try:
        given, hostnames = without_hostnames(text.decode() if isinstance(text, bytes) else text)
        documents = documents_of(given)
    except (ValueError, RecursionError) as error:
        raise FileError(_named(text) or f"not JSON: {error}") from error
    first = documents[0] if documents else None
    if not isinstance(first, dict):
        raise FileError("not a fared-lsdb/1 document: expected a JSON object")
    if is_frr(documents):
        return _of_frr(documents, read_frr)
    if any(map(whole, documents)):
        return _of_frr(documents, lambda some: read_lsps(some, hostnames))
    if {"areas", "levels"} <= {*first, *_keys_inside(first.get("areas"))}:
        raise FileError(_ISIS_JSON)
    if _OSPFV3_KEYS & first.keys():
        raise FileError(_OSPFV3)
    if len(documents) > 1:
        raise FileError("several documents, and not those of FRR: expected one fared-lsdb/1")
    return _read(first)


def _read(document: dict[str, Any]) -> SavedDatabase:
    try:
        model, read = _FORMS.get(str(document.get("proto")), _FORMS[OSPF])
        return read(model.model_validate(document))
    except ValidationError as error:
        raise FileError("\n".join(_explain(error))) from error


def _of_frr(documents: list[Any], read: Callable[[list[Any]], FrrDatabase]) -> SavedDatabase:
    try:
        found = read(documents)
    except DatabaseError as error:
        raise FileError(f"a database of FRR, but {error}") from error
    database = _read(found.document)
    if isinstance(database, IsisDatabase):
        lsps = [(Level(int(each[0])), Ignored(each[2:], "truncated")) for each in found.cut]
        return dataclasses.replace(database, ignored=(*database.ignored, *lsps))
    assert isinstance(database, OspfDatabase)
    cut = [(None, Ignored(name, "truncated")) for name in found.cut]
    return dataclasses.replace(database, ignored=(*database.ignored, *cut))


def _keys_inside(areas: object) -> set[str]:
    """The keys of the areas of a list, as FRR prints them of IS-IS."""
    listed = areas if isinstance(areas, list) else []
    return {key for area in listed if isinstance(area, dict) for key in area}


def _named(text: str | bytes) -> str:
    """What a text is that is no JSON; empty: not known."""
    shown = text.decode(errors="replace") if isinstance(text, bytes) else text
    return next((what for like, what in _TEXTS if re.search(like, shown[:4096])), "")


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
