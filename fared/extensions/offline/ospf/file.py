"""Saved databases of OSPF: the LSAs of a file, and its areas after some changes.

A malformed LSA is ignored, as in a router, and listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from fared.core.ids import AreaId, NodeId, RouterId, dotted, parse_area, parse_dotted
from fared.core.wire import DecodeError, Reader
from fared.extensions.offline.changes import Changes
from fared.extensions.offline.ignored import Ignored, one_way
from fared.extensions.offline.ospf.database import (
    AreaContents,
    SavedInterface,
    SavedNeighbor,
    build_blocks,
    links_of_interfaces,
    screen,
)
from fared.extensions.offline.ospf.whatif import apply, apply_to_interfaces
from fared.extensions.offline.world import Natural, SavedDatabase, SavedPart, World
from fared.paths.rib.settings import SolverSettings
from fared.paths.ted.events import BierUpdated
from fared.paths.ted.links import Blocks, links_of_block
from fared.paths.ted.model import HIGHEST_OSPF_METRIC, LocalLink
from fared.protocols.ospf.lsdb import LsaEntry, Lsdb, Scope
from fared.protocols.ospf.packet.extended_prefix import ExtendedPrefixLsa
from fared.protocols.ospf.packet.lsa import MAX_AGE, Lsa, decode_lsa, with_age
from fared.protocols.ospf.settings import OspfSettings
from fared.protocols.ospf.ted.bier import BierTable
from fared.router.protocols import OSPF
from fared.router.settings import RouterSettings


def bier_prefixes(areas: Iterable[AreaContents]) -> Iterator[BierUpdated]:
    """Yield what each router advertises in each area."""
    table = BierTable()
    for contents in areas:
        lsdb = Lsdb(Scope.AREA, area=contents.area)
        for key, stored in contents.lsas.items():
            if isinstance(stored.body, ExtendedPrefixLsa):
                entry = LsaEntry(lsdb, key, stored.lsa.raw, 0.0)
                table.lsa_changed(entry, stored.body, "", 0.0)
    yield from table.take()


def _address(value: object) -> int:
    if not isinstance(value, str):
        raise ValueError("expected a dotted address")  # noqa: TRY004 - pydantic catches ValueError only
    return parse_dotted(value)


def _area(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("expected an area id")  # noqa: TRY004 - pydantic catches ValueError only
    return parse_area(value)


def _interface_address(value: object) -> int:
    return _address(value.partition("/")[0] if isinstance(value, str) else value)


_Dotted = Annotated[int, BeforeValidator(_address)]
_AnAddress = Annotated[int, BeforeValidator(_interface_address)]
_Area = Annotated[int, BeforeValidator(_area)]


class _FileNeighbor(SavedPart):
    router_id: _Dotted
    address: _Dotted


class _FileInterface(SavedPart):
    name: str
    area: _Area
    type: str = "point-to-point"
    ifindex: Natural
    addresses: list[_AnAddress] = Field(default_factory=list)
    cost: Annotated[int, Field(ge=0, le=0xFFFF, strict=True)] = 0
    bandwidth: Annotated[float, Field(ge=0)] | None = None
    neighbors: list[_FileNeighbor] = Field(default_factory=list)


class _FileLsa(SavedPart):
    hex: str
    age: Natural | None = None


class _FileArea(SavedPart):
    area: _Area
    stub: bool = False
    lsas: list[_FileLsa]


class OspfFile(SavedPart):
    """``fared-lsdb/1`` with ``"proto": "ospf"``."""

    format: Literal["fared-lsdb/1"]
    proto: Literal["ospf"]
    router_id: _Dotted
    interfaces: list[_FileInterface] = Field(default_factory=list)
    areas: list[_FileArea]
    as_scope: list[_FileLsa] = Field(default_factory=list, alias="as")


@dataclass(frozen=True, slots=True)
class OspfDatabase(SavedDatabase):
    """The contents of a file. ``interfaces`` is empty if the file has none."""

    router_id: int
    areas: tuple[AreaContents, ...]
    interfaces: tuple[SavedInterface, ...]
    ignored: tuple[tuple[AreaId | None, Ignored], ...]
    """With the area of each, None for AS scope."""
    as_scope: AreaContents
    """The LSAs of AS scope; its area is not used."""

    proto = OSPF
    families = (4,)

    @property
    def own(self) -> NodeId:
        """The router on which the database was saved."""
        return NodeId(self.router_id)

    @property
    def areas_known(self) -> list[int]:
        """The areas of the file."""
        return [contents.area for contents in self.areas]

    def world(self, area: int | None, family: int, changes: Changes) -> OspfWorld:
        """One area, or all, after some changes."""
        del family
        return OspfWorld(self, area, changes)


class OspfWorld(World):
    """The areas after some changes; they are the same for every root."""

    family = 4
    max_metric = HIGHEST_OSPF_METRIC

    def __init__(self, database: OspfDatabase, area: int | None, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        areas = [contents for contents in database.areas if area in (None, contents.area)]
        self._areas = [apply(contents, changes) for contents in areas]
        found = build_blocks(self._areas, apply(database.as_scope, changes))
        self.blocks = {int(at): blocks for at, blocks in found.items()}
        ignored = [item for at, item in database.ignored if area in (None, at) or at is None]
        for blocks in self.blocks.values():
            ignored += one_way(blocks)
        self.ignored = tuple(ignored)

    def seen_from(self, root: NodeId) -> dict[int, Blocks]:
        """All areas."""
        del root
        return dict(self.blocks)

    def local_links(self, area: int, root: NodeId, blocks: Blocks) -> tuple[LocalLink, ...]:
        """Those of the file for the router on which it was saved, else derived from LSAs."""
        database = self._database
        if root == database.router_id and database.interfaces:
            own = [interface for interface in database.interfaces if interface.area == area]
            return links_of_interfaces(blocks[root], apply_to_interfaces(own, root, self._changes))
        return links_of_block(blocks[root], blocks)

    def bier(self) -> Iterator[BierUpdated]:
        """What routers advertise in extended prefix LSAs (RFC 8444)."""
        return bier_prefixes(self._areas)

    def router_settings(self, root: NodeId, solver: SolverSettings) -> RouterSettings:
        """The settings of a router with this router id."""
        return RouterSettings({OSPF: OspfSettings(RouterId(root))}, solver=solver)


def read_ospf(file: OspfFile) -> OspfDatabase:
    """Decode the LSAs of a file and select those that are used."""
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
    return OspfDatabase(
        router_id=file.router_id,
        areas=tuple(areas),
        interfaces=tuple(_interface(entry) for entry in file.interfaces),
        ignored=tuple(ignored),
        as_scope=as_scope,
    )


def _read_lsas(entries: list[_FileLsa], where: str) -> tuple[list[Lsa], list[Ignored]]:
    """Decode the LSAs; the ``age`` of an entry, if present, replaces that of the header."""
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


def _interface(entry: _FileInterface) -> SavedInterface:
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
