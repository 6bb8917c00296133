"""``show database``: the LSAs and LSPs, and the contents of those that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from fared.management.documents import human
from fared.management.documents.cells import Columns, count, plain
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.facts import Facts

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

Body = dict[str, Any] | UnsetType
_LSP_BITS = {"attached": "ATT", "partition_repair": "P", "overload": "OL"}


class DatabaseLsa(Facts):
    """One LSA, with the field names of ``fared-decode/1``.

    ``type`` is the decoder's name (``router``, ``te-link``...), ``hostname`` that of the
    advertising router; ``body`` only where LSAs were requested by ``id``.
    """

    type: str
    id: str
    adv_router: str
    hostname: str | None
    seq: int
    age: int
    checksum: int
    length: int
    self_originated: bool
    body: Body = UNSET


class DatabaseArea(Facts):
    """The LSAs of one area; ``checksum`` as in ``AreaStatus``."""

    area: str
    type: str
    checksum: str
    lsas: Sequence[DatabaseLsa]


class DatabaseLsp(Facts):
    """One LSP, with the field names of ``fared-decode/1``.

    ``type`` is lsp or pseudonode; ``lifetime`` the remaining lifetime, seconds; ``length`` in
    bytes. ``purged``: only its header is kept. ``body`` (the whole PDU as decoded) only if LSPs
    were requested by ``id``.
    """

    type: str
    lsp_id: str
    hostname: str | None
    seq: int
    lifetime: int
    checksum: int
    length: int
    overload: bool
    attached: bool
    partition_repair: bool
    purged: bool
    self_originated: bool
    body: Body = UNSET


class DatabaseLevel(Facts):
    """The LSPs of one level (``level-1``); ``checksum``: sum of the checksums of live LSPs."""

    level: str
    checksum: str
    lsps: Sequence[DatabaseLsp]


class DatabaseDocument(Answer, tag="fared-database/1"):
    """``show database``; arguments ``type`` (a word or the beginning of one) and ``id``, optional.

    ``as_scope``: LSAs that belong to no area (AS-external, AS-scoped opaque). ``levels``: the
    LSPs of IS-IS; types are lsp, pseudonode, level-1 and level-2, an id is that of an LSP, or a
    system id or hostname for all LSPs of a router.
    """

    router_id: str
    areas: Sequence[DatabaseArea]
    as_scope: Sequence[DatabaseLsa]
    levels: Sequence[DatabaseLevel]

    def show(self, paper: Paper) -> None:
        """Print the entries of each area and level; those of this router are bold."""
        scopes = [(f"Area {area.area} ({area.type})", area.lsas) for area in self.areas]
        if self.as_scope:
            scopes.append(("AS scope", self.as_scope))
        for index, (title, lsas) in enumerate(scopes):
            paper.heading(f"{title}, {count(len(lsas), 'LSA')}", first=index == 0)
            paper.table(lsas, _LSAS, bold=lambda lsa: lsa.self_originated)
            for lsa in lsas:
                if isinstance(lsa.body, dict):
                    paper.heading(f"{lsa.type} {lsa.id} by {lsa.adv_router}")
                    paper.indented(nested(lsa.body))
        if self.levels and scopes:
            paper.line()
        for index, level in enumerate(self.levels):
            title = f"{human.area_title(level.level)}, {count(len(level.lsps), 'LSP')}"
            paper.heading(title, first=index == 0)
            paper.table(level.lsps, _LSPS, bold=lambda lsp: lsp.self_originated)
            for lsp in level.lsps:
                if isinstance(lsp.body, dict):
                    paper.heading(f"{lsp.lsp_id} of {lsp.hostname}" if lsp.hostname else lsp.lsp_id)
                    paper.indented(nested(lsp.body["tlvs"]))


def nested(value: dict[str, Any], indent: str = "") -> Iterable[str]:
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


def _bits(lsp: DatabaseLsp) -> str:
    return " ".join(word for name, word in _LSP_BITS.items() if getattr(lsp, name))


_LSAS: Columns = {
    "Type": "type",
    "Link state id": "id",
    "Advertised by": lambda lsa: human.router(lsa.adv_router, lsa.hostname),
    ">Age": "age",
    ">Seq": lambda lsa: f"{lsa.seq:08x}",
    ">Cksum": lambda lsa: f"{lsa.checksum:04x}",
    ">Len": "length",
}
_LSPS: Columns = {
    "LSP id": "lsp_id",
    "Of": "hostname",
    ">Lifetime": lambda lsp: "purged" if lsp.purged else str(lsp.lifetime),
    ">Seq": lambda lsp: f"{lsp.seq:08x}",
    ">Cksum": lambda lsp: f"{lsp.checksum:04x}",
    ">Len": "length",
    "Bits": _bits,
}

DOCUMENT = Document(
    DatabaseDocument,
    "protocol:database",
    "The link-state database. With ID, also the contents of these LSAs or LSPs.\n\n"
    "IS-IS: TYPE is lsp, pseudonode, level-1 or level-2 and optional; ID is that of an LSP, or"
    " a system id or hostname.",
    (
        Argument("type", word="TYPE", parameter="kind"),
        Argument("id", word="ID", parameter="entry_id"),
    ),
    narrowed=True,
)
