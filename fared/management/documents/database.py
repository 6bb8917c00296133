"""``show database``: the LSAs and LSPs, and the contents of those that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from fared.management.documents import human
from fared.management.documents.cells import Columns, count
from fared.management.documents.contents import nested
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.facts import Facts

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

Body = dict[str, Any] | UnsetType
Words = list[str] | UnsetType
_LSP_BITS = {"attached": "ATT", "partition_repair": "P", "overload": "OL"}


class DatabaseLsa(Facts):
    """One LSA, with the field names of ``fared-decode/1``.

    ``type`` is the decoder's name (``router``, ``te-link``...), ``hostname`` that of the
    advertising router; ``about``: what it is about, in a few words (``S1 > L1, 100M``). ``body``
    only where LSAs were requested by ``id`` or router; ``words``: the same, line by line.
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
    about: str
    body: Body = UNSET
    words: Words = UNSET


class DatabaseArea(Facts):
    """The LSAs of one area; ``checksum`` as in ``AreaStatus``."""

    area: str
    type: str
    checksum: str
    lsas: Sequence[DatabaseLsa]


class DatabaseLsp(Facts):
    """One LSP, with the field names of ``fared-decode/1``.

    ``type`` is lsp or pseudonode; ``lifetime`` the remaining lifetime, seconds; ``length`` in
    bytes. ``purged``: only its header is kept. ``body`` (the whole PDU as decoded) and ``words``
    (the same, line by line) only if LSPs were requested by ``id`` or router.
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
    words: Words = UNSET


class DatabaseLevel(Facts):
    """The LSPs of one level (``level-1``); ``checksum``: sum of the checksums of live LSPs."""

    level: str
    checksum: str
    lsps: Sequence[DatabaseLsp]


class DatabaseDocument(Answer, tag="fared-database/1"):
    """``show database``; arguments ``type`` (a word or the beginning of one) and ``id``, optional.

    ``as_scope``: LSAs that belong to no area (AS-external, AS-scoped opaque). ``levels``: the
    LSPs of IS-IS; types are lsp, pseudonode, level-1 and level-2. An id is that of an LSA or LSP,
    or the id or hostname of a router, or ``self``; it may stand in the place of the type, where
    ``self`` only lists. Contents (``body``, ``words``) are those of entries asked for by id.
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
                    by = human.router(lsa.adv_router, lsa.hostname)
                    paper.heading(f"{lsa.type} {lsa.id} by {by}")
                    paper.indented(lsa.words or nested(lsa.body))
        if self.levels and scopes:
            paper.line()
        for index, level in enumerate(self.levels):
            title = f"{human.area_title(level.level)}, {count(len(level.lsps), 'LSP')}"
            paper.heading(title, first=index == 0)
            paper.table(level.lsps, _LSPS, bold=lambda lsp: lsp.self_originated)
            for lsp in level.lsps:
                if isinstance(lsp.body, dict):
                    paper.heading(f"{lsp.lsp_id} of {lsp.hostname}" if lsp.hostname else lsp.lsp_id)
                    paper.indented(lsp.words or nested(lsp.body["tlvs"]))


def _bits(lsp: DatabaseLsp) -> str:
    return " ".join(word for name, word in _LSP_BITS.items() if getattr(lsp, name))


_LSAS: Columns = {
    "Type": "type",
    "Link state id": "id",
    "Advertised by": lambda lsa: human.router(lsa.adv_router, lsa.hostname),
    ">Age": "age",
    ">Seq": lambda lsa: f"{lsa.seq:08x}",
    "~About": "about",
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
    "TYPE is one of the list (router, te-link), in IS-IS lsp, pseudonode, level-1 or level-2, and"
    " optional; ID is that of an LSA or LSP, the id or hostname of a router, or self: own ones.",
    (
        Argument("type", word="TYPE", parameter="kind"),
        Argument("id", word="ID", parameter="entry_id"),
    ),
    narrowed=True,
)
