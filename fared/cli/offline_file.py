"""Reading ``fared-lsdb/1``: from text to the databases that the engine's parts work on.

What is wrong with the document as a whole is an error with its place; what is wrong with one
LSA only makes that LSA one of those ignored, as it would in a router.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from fared.core.ids import AreaId, dotted, parse_area, parse_dotted
from fared.core.wire import DecodeError, Reader
from fared.ospf.offline import AreaContents, SavedInterface, SavedNeighbor, screen
from fared.ospf.packet.lsa import MAX_AGE, Lsa, decode_lsa, with_age
from fared.ted.saved import Ignored

_MAX_ERRORS = 5


class FileError(ValueError):
    """The document is no database; the text says where and why."""


class NotBuiltError(ValueError):
    """The document is of a protocol that this tool does not compute yet."""


@dataclass(frozen=True, slots=True)
class Database:
    """A whole file. ``interfaces`` is empty where the file has none."""

    router_id: int
    areas: tuple[AreaContents, ...]
    interfaces: tuple[SavedInterface, ...]
    ignored: tuple[tuple[AreaId | None, Ignored], ...]
    """With the area each is from, None for AS scope."""
    as_scope: AreaContents
    """The LSAs of AS scope; its area means nothing."""


def _address(value: object) -> int:
    if not isinstance(value, str):
        raise ValueError("expected a dotted address")  # noqa: TRY004 - pydantic wants ValueError
    return parse_dotted(value)


def _area(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("expected an area id")  # noqa: TRY004 - pydantic wants ValueError
    return parse_area(value)


def _interface_address(value: object) -> int:
    return _address(value.partition("/")[0] if isinstance(value, str) else value)


_Dotted = Annotated[int, BeforeValidator(_address)]
_Area = Annotated[int, BeforeValidator(_area)]
_Natural = Annotated[int, Field(ge=0, le=0xFFFFFFFF, strict=True)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class _Neighbor(_Model):
    router_id: _Dotted
    address: _Dotted


class _Interface(_Model):
    name: str
    area: _Area
    type: str = "point-to-point"
    ifindex: _Natural
    addresses: list[Annotated[int, BeforeValidator(_interface_address)]] = []
    cost: Annotated[int, Field(ge=0, le=0xFFFF, strict=True)] = 0
    bandwidth: Annotated[float, Field(ge=0)] | None = None
    neighbors: list[_Neighbor] = []


class _Lsa(_Model):
    hex: str
    age: _Natural | None = None


class _AreaDocument(_Model):
    area: _Area
    stub: bool = False
    lsas: list[_Lsa]


class _File(_Model):
    format: Literal["fared-lsdb/1"]
    proto: Literal["ospf"]
    router_id: _Dotted
    interfaces: list[_Interface] = []
    areas: list[_AreaDocument]
    as_scope: Annotated[list[_Lsa], Field(alias="as")] = []


def read_database(text: str | bytes) -> Database:
    """Read a whole document. Raises FileError and NotBuiltError, nothing else."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise FileError("not a fared-lsdb/1 document: expected a JSON object")
    if document.get("format") == "fared-lsdb/1" and document.get("proto") == "isis":
        raise NotBuiltError("computing IS-IS databases is not built in yet; OSPF is")
    try:
        file = _File.model_validate(document)
    except ValidationError as error:
        raise FileError("\n".join(_explain(error))) from error
    return _database(file)


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


def _database(file: _File) -> Database:
    ignored: list[tuple[AreaId | None, Ignored]] = []
    gathered: dict[AreaId, tuple[bool, list[Lsa]]] = {}
    for entry in file.areas:
        area = AreaId(entry.area)
        stub, lsas = gathered.get(area, (False, []))
        sound, bad = _read_lsas(entry.lsas, f"area {dotted(area)}")
        gathered[area] = (stub or entry.stub, lsas + sound)
        ignored += [(area, item) for item in bad]
    areas: list[AreaContents] = []
    for area, (stub, lsas) in sorted(gathered.items()):
        contents, left_out = screen(area, lsas, stub=stub)
        areas.append(contents)
        ignored += [(area, item) for item in left_out]
    lsas, bad = _read_lsas(file.as_scope, "as")
    as_scope, left_out = screen(AreaId(0), lsas, stub=False)
    ignored += [(None, item) for item in (*bad, *left_out)]
    return Database(
        router_id=file.router_id,
        areas=tuple(areas),
        interfaces=tuple(_interface(entry) for entry in file.interfaces),
        ignored=tuple(ignored),
        as_scope=as_scope,
    )


def _read_lsas(entries: list[_Lsa], where: str) -> tuple[list[Lsa], list[Ignored]]:
    """Decode the envelopes; the age beside the hex, where there is one, is that of now."""
    lsas: list[Lsa] = []
    bad: list[Ignored] = []
    for number, entry in enumerate(entries):
        try:
            data = bytes.fromhex(entry.hex)
            reader = Reader(data)
            lsa = decode_lsa(reader)
        except (ValueError, DecodeError):
            bad.append(Ignored(f"{where} lsa {number}", "malformed"))
            continue
        if reader.remaining:
            bad.append(Ignored(f"{where} lsa {number}", "malformed"))
            continue
        age = lsa.header.ls_age if entry.age is None else entry.age
        lsas.append(with_age(lsa, min(age, MAX_AGE)))
    return lsas, bad


def _interface(entry: _Interface) -> SavedInterface:
    return SavedInterface(
        name=entry.name,
        area=AreaId(entry.area),
        ifindex=entry.ifindex,
        addresses=tuple(entry.addresses),
        cost=entry.cost,
        bandwidth=entry.bandwidth or None,
        neighbors=tuple(SavedNeighbor(n.router_id, n.address) for n in entry.neighbors),
        broadcast=entry.type == "broadcast",
    )
