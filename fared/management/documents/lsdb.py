"""``show lsdb``: the database of a protocol as a file, which ``fared-cli spf --lsdb`` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import msgspec

from fared.management.documents.declare import Answer, Document
from fared.management.documents.facts import BytesPerSecond, Facts

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


class LsdbNeighbor(Facts):
    """A full neighbor, as the next hop needs it."""

    router_id: str
    address: str


class LsdbInterface(Facts):
    """An interface as the offline SPF needs it."""

    name: str
    area: str
    type: str
    ifindex: int
    addresses: list[str]
    unnumbered: bool
    cost: int
    bandwidth: BytesPerSecond
    neighbors: list[LsdbNeighbor]


class LsdbLsa(Facts):
    """A whole LSA as on the wire, with its age when the document was made."""

    hex: str
    age: int


class LsdbArea(Facts):
    """The LSAs of one area."""

    area: str
    stub: bool
    lsas: Sequence[LsdbLsa]


class IsisLsdbAdjacency(Facts):
    """A neighbor that is up in a level, and the addresses that next hops have there."""

    neighbor: str
    level: int
    ipv4: str | None
    ipv6: str | None


class IsisLsdbInterface(Facts):
    """A circuit as the offline SPF needs it."""

    name: str
    type: str
    ifindex: int
    addresses: list[str]
    metric: int
    bandwidth: BytesPerSecond
    adjacencies: list[IsisLsdbAdjacency]


class IsisLsdbLsp(Facts):
    """A whole LSP as on the wire, with its remaining lifetime at the time of the document."""

    level: int
    hex: str


class LsdbFile(Answer, tag="fared-lsdb/1"):
    """``show lsdb``. ``proto``: ``ospf`` or ``isis``; if both run and it is not given, OSPF."""

    proto: str

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read it as the file of its protocol."""
        rows = {"ospf": OspfLsdb, "isis": IsisLsdb}
        row: Any = rows.get(str(document.get("proto")), OspfLsdb)
        found: Self = msgspec.convert(document, row)
        return found

    def show(self, paper: Paper) -> None:
        """Print how large each part is."""
        what, option = (">LSPs", " --proto isis") if self.proto == "isis" else (">LSAs", "")
        sizes = {
            name: (len(entries), sum(len(entry.hex) // 2 for entry in entries))
            for name, entries in self.parts.items()
        }
        rows = ((name, str(number), str(size)) for name, (number, size) in sizes.items())
        paper.grid(("Area", what, ">Bytes"), rows)
        paper.line(f"\nThe database itself: fared-cli show lsdb{option} --json")

    @property
    def parts(self) -> Mapping[str, Sequence[LsdbLsa | IsisLsdbLsp]]:
        """LSAs or LSPs by area or level."""
        raise NotImplementedError


class OspfLsdb(LsdbFile, tag="fared-lsdb/1"):
    """The file of OSPF; ``as_scope`` is the key ``as``."""

    router_id: str
    interfaces: list[LsdbInterface]
    areas: list[LsdbArea]
    as_scope: Sequence[LsdbLsa] = msgspec.field(name="as")

    @property
    def parts(self) -> Mapping[str, Sequence[LsdbLsa]]:
        """LSAs by area."""
        external = {"AS": self.as_scope} if self.as_scope else {}
        return {area.area: area.lsas for area in self.areas} | external


class IsisLsdb(LsdbFile, tag="fared-lsdb/1"):
    """The file of IS-IS."""

    system_id: str
    levels: list[int]
    interfaces: list[IsisLsdbInterface]
    lsps: Sequence[IsisLsdbLsp]

    @property
    def parts(self) -> Mapping[str, Sequence[IsisLsdbLsp]]:
        """LSPs by level."""
        return {
            f"level-{level}": [lsp for lsp in self.lsps if lsp.level == level]
            for level in self.levels
        }


DOCUMENT = Document(
    LsdbFile,
    "protocol:lsdb",
    "The raw database. With --json, the file that 'spf --lsdb' reads.\n\n"
    "If both protocols run, the file has that of OSPF unless --proto is given.",
    narrowed=True,
)
