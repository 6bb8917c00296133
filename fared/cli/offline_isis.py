"""Saved databases of IS-IS: the file's LSPs, the levels they make, and these under assumptions.

What is wrong with one LSP only makes that LSP one of those ignored, as it would in a router.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from fared.cli.offline_world import Database, Document, Natural, World
from fared.core.ids import FAMILY_IPV4, NodeId, Prefix, SystemId, isis_node, parse_system_id
from fared.core.links import InterfaceAddress
from fared.core.wire import DecodeError
from fared.isis.ids import Level, LevelSet, LspId, format_lsp_id
from fared.isis.offline import (
    NOBODY,
    Contents,
    SavedAdjacency,
    SavedCircuit,
    Viewpoint,
    Viewpoints,
    links_of_circuits,
    read_lsp,
    screen,
    system_of_node,
)
from fared.isis.pdu.codec import peek_lsp
from fared.isis.pdu.model import Lsp
from fared.isis.releak import Leaking, border_routers, detach, read_leaking, releak
from fared.isis.settings import IsisSettings
from fared.isis.whatif import apply
from fared.rib.settings import SolverSettings
from fared.rib.solver import RouteSolver
from fared.router.settings import RouterSettings
from fared.router.speaker import ISIS
from fared.ted.events import RouteFacts
from fared.ted.model import LocalLink
from fared.ted.saved import Blocks, Ignored, links_of_block, one_way, overloaded
from fared.ted.whatif import Changes

_ROUNDS = 8
"""How often border routers may react to what the others leak until the answer is taken as it is."""

# The file


def _system(value: object) -> int:
    if not isinstance(value, str):
        raise ValueError("expected a system id")  # noqa: TRY004 - pydantic wants ValueError
    return parse_system_id(value)


def _several(version: int) -> Callable[[object], list[int]]:
    """Read one address of a family, or several, or null."""

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
        raise ValueError("expected an address")  # noqa: TRY004 - pydantic wants ValueError
    found = ipaddress.ip_interface(value)
    return InterfaceAddress(found.version, int(found.ip), found.network.prefixlen)


_System = Annotated[int, BeforeValidator(_system)]
_Level = Annotated[int, Field(ge=1, le=2, strict=True)]
_Address = Annotated[InterfaceAddress, BeforeValidator(_interface_address)]


class _Adjacency(Document):
    neighbor: _System
    level: _Level
    ipv4: Annotated[list[int], BeforeValidator(_several(4))] = Field(default_factory=list)
    ipv6: Annotated[list[int], BeforeValidator(_several(6))] = Field(default_factory=list)


class _Interface(Document):
    name: str
    type: str = "point-to-point"
    ifindex: Natural = 0
    addresses: list[_Address] = Field(default_factory=list)
    bandwidth: Annotated[float, Field(ge=0)] | None = None
    adjacencies: list[_Adjacency] = Field(default_factory=list)


class _Lsp(Document):
    level: _Level
    hex: str


class IsisFile(Document):
    """``fared-lsdb/1`` with ``"proto": "isis"``."""

    format: Literal["fared-lsdb/1"]
    proto: Literal["isis"]
    system_id: _System
    interfaces: list[_Interface] = Field(default_factory=list)
    lsps: list[_Lsp]


def read_isis(file: IsisFile) -> IsisDatabase:
    """Sort and screen the LSPs of a file."""
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


def _circuit(entry: _Interface) -> SavedCircuit:
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


# What it makes


@dataclass(frozen=True, slots=True)
class IsisDatabase(Database):
    """A whole file. ``circuits`` is empty where the file has none."""

    system_id: SystemId
    contents: Contents
    circuits: tuple[SavedCircuit, ...]
    ignored: tuple[tuple[Level, Ignored], ...]

    proto = ISIS
    families = (4, 6)

    @property
    def own(self) -> NodeId:
        """The router that the database was saved on."""
        return isis_node(self.system_id)

    @property
    def areas_known(self) -> list[int]:
        """The levels of the file."""
        return sorted(self.contents)

    def world(self, area: int | None, family: int, changes: Changes) -> IsisWorld:
        """One level or both under some assumptions."""
        levels = {level for level in self.contents if area in (None, level)}
        return IsisWorld(self, levels, family, changes)


class IsisWorld(World):
    """The levels under some assumptions: routers of both see their own leaked prefixes apart."""

    max_metric = 0xFFFFFE

    def __init__(
        self, database: IsisDatabase, levels: set[Level], family: int, changes: Changes
    ) -> None:
        self.family = family
        self._database = database
        self._changes = changes
        contents: Contents = {level: database.contents[level] for level in sorted(levels)}
        if changes != Changes():
            contents = _assume(contents, family, changes)
        self._viewpoints = Viewpoints(contents, family)
        everybody = self._viewpoints.of(database.own)
        self.blocks = {
            int(at): blocks for at, blocks in everybody.seen_from(isis_node(NOBODY)).items()
        }
        ignored = [item for at, item in database.ignored if at in levels or not levels]
        for found in self.blocks.values():
            ignored += one_way(found)
            ignored += overloaded(found)
        self.ignored = tuple(ignored)

    def seen_from(self, root: NodeId) -> dict[int, Blocks]:
        """The levels that a root is in; of others it hears nothing."""
        seen = self._viewpoints.of(root).seen_from(root)
        return {int(level): blocks for level, blocks in seen.items() if root in blocks}

    def local_links(self, area: int, root: NodeId, blocks: Blocks) -> tuple[LocalLink, ...]:
        """Those of the file for the router it was saved on, else guessed from what is flooded."""
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

    def router_settings(self, root: NodeId, solver: SolverSettings) -> RouterSettings:
        """A router of this system id that routes the family alone."""
        settings = IsisSettings(system_of_node(root), (), LevelSet.BOTH, families=(self.family,))
        return RouterSettings(isis=settings, solver=solver)


# Routers of both levels react


def _assume(before: Contents, family: int, changes: Changes) -> dict[Level, dict[LspId, Lsp]]:
    """The database after the changes, and after what routers of both levels leak thereupon."""
    contents = {level: apply(lsps, changes) for level, lsps in before.items()}
    borders = [node for node in border_routers(before) if node not in changes.failed_nodes]
    if not borders:
        return contents
    views = Viewpoints(before, family)
    leakings = [leaking for node in borders for leaking in _leaking(views, node)]
    leads_out = {node for node in borders if views.of(node).leads_out(node)}
    for _ in range(_ROUNDS):
        views = Viewpoints(contents, family)
        after = dict(contents)
        for node in sorted(leads_out):
            if not views.of(node).leads_out(node):
                after[Level.ONE] = detach(after, node)
        routes = {node: _routes(views.of(node), node, family) for node in borders}
        for leaking in leakings:
            after[leaking.level] = releak(after, leaking, routes[leaking.node])
        if after == contents:
            break
        contents = after
    return contents


def _leaking(views: Viewpoints, node: NodeId) -> list[Leaking]:
    viewpoint = views.of(node)
    unmarked: set[Prefix] = viewpoint.unmarked(node)
    before = _routes(viewpoint, node, views.family)
    return list(read_leaking(views.contents, node, views.family, unmarked, before))


def _routes(viewpoint: Viewpoint, node: NodeId, family: int) -> dict[Prefix, RouteFacts]:
    """The routes that a router would have, as it would tell them to the other level."""
    solver = RouteSolver(node, SolverSettings())
    for level, blocks in viewpoint.seen_from(node).items():
        for far, block in blocks.items():
            solver.put_block(level, far, block)
        if node in blocks:
            solver.set_local_links(level, links_of_block(blocks[node], blocks, family))
    solver.solve()
    return {
        prefix: RouteFacts(reached.metric, reached.path_type, reached.areas, reached.capacity)
        for prefix, reached in solver.reached_now()[0].items()
        if reached is not None
    }
