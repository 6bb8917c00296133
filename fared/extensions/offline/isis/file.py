"""Saved databases of IS-IS: the LSPs of a file, and its levels after some changes.

A malformed LSP is ignored, as in a router, and listed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec.structs import replace
from pydantic import BeforeValidator, Field, PlainValidator

from fared.core.ids import FAMILY_IPV4, NodeId, Prefix, SystemId, isis_node, parse_system_id
from fared.core.links import InterfaceAddress
from fared.core.wire import DecodeError
from fared.extensions.offline.changes import Changes
from fared.extensions.offline.ignored import Ignored, one_way, overloaded
from fared.extensions.offline.isis.circuits import SavedAdjacency, SavedCircuit, links_of_circuits
from fared.extensions.offline.isis.database import (
    NO_SYSTEM,
    Contents,
    read_lsp,
    screen,
    system_of_node,
)
from fared.extensions.offline.isis.leaking import (
    ObservedLeaking,
    border_routers,
    detach,
    read_leaking,
    with_leaking,
)
from fared.extensions.offline.isis.viewpoint import Viewpoint, Viewpoints
from fared.extensions.offline.isis.whatif import apply
from fared.extensions.offline.world import Natural, SavedDatabase, SavedPart, World
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.events import AdvertisedRoute, BierUpdated
from fared.paths.ted.links import Blocks, links_of_block
from fared.paths.ted.model import HIGHEST_ISIS_METRIC, LocalLink
from fared.protocols.isis.ids import Level, LevelSet, LspId, format_lsp_id, fragment_of, node_of
from fared.protocols.isis.pdu.codec import peek_lsp
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.settings import IsisSettings
from fared.protocols.isis.ted.bier import BierTable
from fared.protocols.isis.ted.fragment_prefixes import read_prefixes
from fared.router.protocols import ISIS
from fared.router.settings import RouterSettings


def bier_prefixes(contents: Contents) -> Iterator[BierUpdated]:
    """Yield what each router advertises in each level."""
    table = BierTable()
    for level, lsps in contents.items():
        for identifier, lsp in lsps.items():
            found = read_prefixes(lsp, own=False, capacity_code=None).attributes
            table.put((level, node_of(identifier)), fragment_of(identifier), found, "", 0.0)
    yield from table.take()


_ROUNDS = 8
"""The most rounds in which level-1-2 routers adapt to the leaking of each other."""

# The file


def _system(value: object) -> int:
    if not isinstance(value, str):
        raise ValueError("expected a system id")  # noqa: TRY004 - pydantic catches ValueError only
    return parse_system_id(value)


def _several(version: int) -> Callable[[object], list[int]]:
    """A reader of one address of an IP version, a list of addresses, or null."""

    def read(value: object) -> list[int]:
        listed = value if isinstance(value, list) else [] if value is None else [value]
        texts = [address for address in listed if isinstance(address, str)]
        if len(texts) < len(listed):
            raise ValueError("expected an address")
        found = [ipaddress.ip_address(text.partition("/")[0]) for text in texts]
        if any(address.version != version for address in found):
            raise ValueError(f"expected an IPv{version} address")
        return [int(address) for address in found]

    return read


def _interface_address(value: object) -> InterfaceAddress:
    if not isinstance(value, str):
        raise ValueError("expected an address")  # noqa: TRY004 - pydantic catches ValueError only
    found = ipaddress.ip_interface(value)
    return InterfaceAddress(found.version, int(found.ip), found.network.prefixlen)


_System = Annotated[int, BeforeValidator(_system)]
_Level = Annotated[int, Field(ge=1, le=2, strict=True)]
_Address = Annotated[InterfaceAddress, PlainValidator(_interface_address)]


class _FileAdjacency(SavedPart):
    neighbor: _System
    level: _Level
    ipv4: Annotated[list[int], BeforeValidator(_several(4))] = Field(default_factory=list)
    ipv6: Annotated[list[int], BeforeValidator(_several(6))] = Field(default_factory=list)


class _FileInterface(SavedPart):
    name: str
    type: str = "point-to-point"
    ifindex: Natural = 0
    addresses: list[_Address] = Field(default_factory=list)
    bandwidth: Annotated[float, Field(ge=0)] | None = None
    adjacencies: list[_FileAdjacency] = Field(default_factory=list)


class _FileLsp(SavedPart):
    level: _Level
    hex: str


class IsisFile(SavedPart):
    """``fared-lsdb/1`` with ``"proto": "isis"``."""

    format: Literal["fared-lsdb/1"]
    proto: Literal["isis"]
    system_id: _System
    interfaces: list[_FileInterface] = Field(default_factory=list)
    lsps: list[_FileLsp]


def read_isis(file: IsisFile) -> IsisDatabase:
    """Decode the LSPs of a file and select those that are used."""
    lsps: list[Lsp] = []
    ignored: list[tuple[Level, Ignored]] = []
    for number, entry in enumerate(file.lsps):
        level = Level(entry.level)
        try:
            raw = bytes.fromhex(entry.hex)
        except ValueError:
            ignored.append((level, Ignored(f"{level.label} lsp {number}", "malformed")))
            continue
        try:
            lsps.append(read_lsp(raw, level))
        except DecodeError as error:
            reason = "checksum" if error.code == "checksum" else "malformed"
            ignored.append((level, Ignored(_name(raw, level, number), reason)))
    contents, left_out = screen(lsps)
    return IsisDatabase(
        system_id=SystemId(file.system_id),
        contents=contents,
        circuits=tuple(_circuit(entry) for entry in file.interfaces),
        ignored=(*ignored, *left_out),
    )


def _name(raw: bytes, level: Level, number: int) -> str:
    try:
        return format_lsp_id(peek_lsp(raw).lsp_id)
    except DecodeError:
        return f"{level.label} lsp {number}"


def _circuit(entry: _FileInterface) -> SavedCircuit:
    return SavedCircuit(
        name=entry.name,
        ifindex=entry.ifindex,
        broadcast=entry.type == "broadcast",
        addresses=tuple(a for a in entry.addresses if a.family == FAMILY_IPV4),
        bandwidth=entry.bandwidth or None,
        adjacencies=tuple(
            SavedAdjacency(a.neighbor, Level(a.level), tuple(a.ipv4), tuple(a.ipv6))
            for a in entry.adjacencies
        ),
    )


# The database


@dataclass(frozen=True, slots=True)
class IsisDatabase(SavedDatabase):
    """The contents of a file. ``circuits`` is empty if the file has none."""

    system_id: SystemId
    contents: Contents
    circuits: tuple[SavedCircuit, ...]
    ignored: tuple[tuple[Level, Ignored], ...]

    proto = ISIS
    families = (4, 6)

    @property
    def own(self) -> NodeId:
        """The router on which the database was saved."""
        return isis_node(self.system_id)

    @property
    def areas_known(self) -> list[int]:
        """The levels of the file."""
        return sorted(self.contents)

    def world(self, area: int | None, family: int, changes: Changes) -> IsisWorld:
        """One level, or both, after some changes."""
        levels = {level for level in self.contents if area in (None, level)}
        return IsisWorld(self, levels, family, changes)


class IsisWorld(World):
    """The levels after some changes.

    All levels of the file are read, even if one is selected: the prefixes that a level-1-2 router
    leaks are recognized by the other level.
    """

    max_metric = HIGHEST_ISIS_METRIC

    def __init__(
        self, database: IsisDatabase, levels: set[Level], family: int, changes: Changes
    ) -> None:
        self.family = family
        self._database = database
        self._changes = changes
        self._levels = levels
        contents: Contents = dict(sorted(database.contents.items()))
        if changes != Changes():
            contents = _assume(contents, family, changes)
        self._contents = contents
        self._viewpoints = Viewpoints(contents, family)
        everybody = self._viewpoints.of(database.own)
        self.blocks = {
            int(at): blocks
            for at, blocks in everybody.seen_from(isis_node(NO_SYSTEM)).items()
            if at in levels
        }
        ignored = [item for at, item in database.ignored if at in levels or not levels]
        for found in self.blocks.values():
            ignored += one_way(found)
            ignored += overloaded(found)
        self.ignored = tuple(ignored)

    def seen_from(self, root: NodeId) -> dict[int, Blocks]:
        """The levels in which the root has LSPs."""
        seen = self._viewpoints.of(root).seen_from(root)
        return {
            int(level): blocks
            for level, blocks in seen.items()
            if level in self._levels and root in blocks
        }

    def local_links(self, area: int, root: NodeId, blocks: Blocks) -> tuple[LocalLink, ...]:
        """Those of the file for the router on which it was saved, else derived from LSPs."""
        database = self._database
        if root == database.own and database.circuits:
            return links_of_circuits(
                blocks[root],
                blocks,
                database.circuits,
                level=Level(area),
                family=self.family,
                assumed=self._changes.bandwidths,
            )
        return links_of_block(blocks[root], blocks, self.family)

    def bier(self) -> Iterator[BierUpdated]:
        """What routers advertise with their prefixes (RFC 8401)."""
        used = {at: lsps for at, lsps in self._contents.items() if at in self._levels}
        return bier_prefixes(used)

    def router_settings(self, root: NodeId, solver: SolverSettings) -> RouterSettings:
        """The settings of a router with this system id that routes only this family."""
        settings = IsisSettings(system_of_node(root), (), LevelSet.BOTH, families=(self.family,))
        return RouterSettings({ISIS: settings}, solver=solver)


# Level-1-2 routers react


def _assume(before: Contents, family: int, changes: Changes) -> dict[Level, dict[LspId, Lsp]]:
    """The database after the changes and the resulting leaking of level-1-2 routers."""
    already = {node_of(at) for lsps in before.values() for at, lsp in lsps.items() if lsp.overload}
    changes = replace(changes, overloaded=changes.overloaded - already)
    contents = {level: apply(lsps, changes) for level, lsps in before.items()}
    borders = [node for node in border_routers(before) if node not in changes.failed_nodes]
    if not borders:
        return contents
    views = Viewpoints(before, family)
    leakings = [
        replace(leaking, overloaded=node in changes.overloaded)
        for node in borders
        for leaking in _leaking(views, node)
    ]
    leads_out = {node for node in borders if views.of(node).leads_out(node)}
    for _ in range(_ROUNDS):
        views = Viewpoints(contents, family)
        after = dict(contents)
        for node in sorted(leads_out):
            if not views.of(node).leads_out(node):
                after[Level.ONE] = detach(after, node)
        routes = {node: _routes(views.of(node), node, family) for node in borders}
        for leaking in leakings:
            after[leaking.level] = with_leaking(after, leaking, routes[leaking.node])
        if after == contents:
            break
        contents = after
    return contents


def _leaking(views: Viewpoints, node: NodeId) -> list[ObservedLeaking]:
    viewpoint = views.of(node)
    unmarked: set[Prefix] = viewpoint.unmarked(node)
    before = _routes(viewpoint, node, views.family)
    return list(read_leaking(views.contents, node, views.family, unmarked, before))


def _routes(viewpoint: Viewpoint, node: NodeId, family: int) -> dict[Prefix, AdvertisedRoute]:
    """The routes of a router, in the form in which it leaks them into the other level."""
    solver = RouteSolver(node, SolverSettings())
    for level, blocks in viewpoint.seen_from(node).items():
        for far, block in blocks.items():
            solver.put_block(level, far, block)
        if node in blocks:
            solver.set_local_links(level, links_of_block(blocks[node], blocks, family))
    solver.solve()
    return {
        prefix: route
        for prefix, route in solver.take_advertisements()[0].items()
        if route is not None
    }
