"""Tables of the link-state database: LSAs, LSPs, their contents, and the file."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from fared.management.documents import human
from fared.management.documents.paper import (
    Json,
    Renderer,
    area_title,
    count,
    emit,
    heading,
    plain,
    table,
)

_LSP_BITS = {"attached": "ATT", "partition_repair": "P", "overload": "OL"}


def _database(document: Json, out: Console, _now: float) -> None:
    _lsas(document, out)
    levels = document.get("levels", [])
    if levels and (document["areas"] or document["as_scope"]):
        out.print()
    for index, level in enumerate(levels):
        _lsps(level, out, first=index == 0)


def _lsps(level: Json, out: Console, *, first: bool) -> None:
    """Self-originated LSPs are bold; a purged LSP has no lifetime left."""
    title = f"{area_title(level['level'])}, {count(len(level['lsps']), 'LSP')}"
    heading(out, title, first=first)
    grid = table("LSP id", "Of", ">Lifetime", ">Seq", ">Cksum", ">Len", "Bits")
    for lsp in level["lsps"]:
        bits = [word for name, word in _LSP_BITS.items() if lsp[name]]
        grid.add_row(
            lsp["lsp_id"],
            lsp["hostname"] or human.DASH,
            "purged" if lsp["purged"] else str(lsp["lifetime"]),
            f"{lsp['seq']:08x}",
            f"{lsp['checksum']:04x}",
            str(lsp["length"]),
            " ".join(bits),
            style="bold" if lsp["self_originated"] else None,
        )
    emit(out, grid)
    for lsp in level["lsps"]:
        if lsp.get("body") is not None:
            heading(out, f"{lsp['lsp_id']}{_of(lsp)}")
            tlvs = nested(lsp["body"]["tlvs"])
            out.print(Padding(Text("\n".join(tlvs)), (0, 0, 0, 2)))


def _of(lsp: Json) -> str:
    return f" of {lsp['hostname']}" if lsp["hostname"] else ""


def _lsas(document: Json, out: Console) -> None:
    scopes = [(f"Area {a['area']} ({a['type']})", a["lsas"]) for a in document["areas"]]
    if document["as_scope"]:
        scopes.append(("AS scope", document["as_scope"]))
    for index, (title, lsas) in enumerate(scopes):
        heading(out, f"{title}, {count(len(lsas), 'LSA')}", first=index == 0)
        grid = table("Type", "Link state id", "Advertised by", ">Age", ">Seq", ">Cksum", ">Len")
        for lsa in lsas:
            grid.add_row(
                lsa["type"],
                lsa["id"],
                human.router(lsa["adv_router"], lsa["hostname"]),
                str(lsa["age"]),
                f"{lsa['seq']:08x}",
                f"{lsa['checksum']:04x}",
                str(lsa["length"]),
                style="bold" if lsa["self_originated"] else None,
            )
        emit(out, grid)
        for lsa in lsas:
            if lsa.get("body") is not None:
                heading(out, f"{lsa['type']} {lsa['id']} by {lsa['adv_router']}")
                out.print(Padding(Text("\n".join(nested(lsa["body"]))), (0, 0, 0, 2)))


def nested(value: Json, indent: str = "") -> Iterable[str]:
    """Format a nested document as indented lines, one record of a list per line.

    Nested values of a record follow below it.
    """
    for name, item in value.items():
        if item is None or item == []:
            continue
        if isinstance(item, dict):
            yield f"{indent}{name}:"
            yield from nested(item, indent + "  ")
        elif isinstance(item, list) and isinstance(item[0], dict):
            yield f"{indent}{name}:"
            for entry in item:
                flat = {k: v for k, v in entry.items() if v is not None and type(v) is not dict}
                yield indent + "  " + "  ".join(f"{k} {_value(k, v)}" for k, v in flat.items())
                for inner in (v for v in entry.values() if isinstance(v, dict)):
                    yield from nested(inner, indent + "    ")
        else:
            yield f"{indent}{name}: {_value(name, item)}"


def _value(name: str, value: object) -> str:
    """Format a value: bandwidths with units, eight equal ones (one for each priority) as one."""
    if not name.endswith(("bandwidth", "capacity")):
        return plain(value)
    if isinstance(value, list):
        return ", ".join(dict.fromkeys(_value(name, item) for item in value))
    return human.bandwidth(value) if isinstance(value, (int, float)) else plain(value)


def _lsdb(document: Json, out: Console, _now: float) -> None:
    what, option, parts_of = _PARTS.get(document["proto"], _PARTS["ospf"])
    parts = parts_of(document)
    grid = table("Area", what, ">Bytes")
    for name, entries in parts.items():
        size = sum(len(entry["hex"]) // 2 for entry in entries)
        grid.add_row(name, str(len(entries)), str(size))
    emit(out, grid)
    out.print(f"\nThe database itself: fared-cli show lsdb{option} --json")


def _areas(document: Json) -> dict[str, list[Json]]:
    parts = {area["area"]: area["lsas"] for area in document["areas"]}
    return parts | ({"AS": document["as"]} if document["as"] else {})


def _levels(document: Json) -> dict[str, list[Json]]:
    return {
        f"level-{level}": [lsp for lsp in document["lsps"] if lsp["level"] == level]
        for level in document["levels"]
    }


_PARTS = {"ospf": (">LSAs", "", _areas), "isis": (">LSPs", " --proto isis", _levels)}
"""By protocol: column of entries, option of ``show lsdb``, and the parts of the database."""


RENDERERS: dict[str, Renderer] = {
    "fared-database/1": _database,
    "fared-lsdb/1": _lsdb,
}
