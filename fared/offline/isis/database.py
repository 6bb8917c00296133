"""The LSPs of a saved or captured database that are used, and their TED blocks.

The ``TedBuilder`` of the engine builds the blocks. A router ignores the prefixes that it leaks
itself, and may follow attached bits, so the blocks depend on the root: a ``Viewpoint`` moves from
router to router and rebuilds only the blocks that differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from fared.core.ids import FAMILY_IPV6, NodeId, Prefix, SystemId, isis_node
from fared.core.links import InterfaceAddress
from fared.core.rng import NoJitter
from fared.core.wire import DecodeError
from fared.isis.ids import Level, LevelSet, LspId, format_lsp_id, lsp_id
from fared.isis.instance import Instance
from fared.isis.lsdb import StoredLsp
from fared.isis.pdu.codec import decode_raw, read_pdu
from fared.isis.pdu.model import Lsp
from fared.isis.pdu.tlvs import (
    FLAG_READVERTISED,
    MT_IPV6,
    AreaAddresses,
    IpReach,
    IpReachability,
    MultiTopology,
    Tlv,
    of_type,
)
from fared.isis.settings import IsisSettings
from fared.isis.ted.builder import TedBuilder
from fared.isis.ted.nexthops import gateway_of
from fared.offline.changes import Direction
from fared.offline.ignored import Ignored
from fared.ted.events import PrefixesUpdated, TedUpdated
from fared.ted.links import Blocks
from fared.ted.model import LocalLink, NodeBlock, PathType, PrefixReachability

NO_SYSTEM = SystemId(0)
Contents = Mapping[Level, Mapping[LspId, Lsp]]
"""The LSPs that are used, by level and LSP id: one valid, unexpired instance each."""


class SavedAdjacency(NamedTuple):
    """An adjacency that is Up in a level. The addresses are those of the neighbor's hellos."""

    system_id: int
    level: Level
    ipv4: tuple[int, ...]
    ipv6: tuple[int, ...]


class SavedCircuit(msgspec.Struct, frozen=True):
    """A circuit of the router on which the database was saved.

    ``ifindex`` 0 means unknown; ``addresses`` are IPv4 addresses; ``bandwidth`` is in bytes/s.
    """

    name: str
    ifindex: int
    broadcast: bool
    addresses: tuple[InterfaceAddress, ...]
    bandwidth: float | None
    adjacencies: tuple[SavedAdjacency, ...]


def system_of_node(node: int) -> SystemId:
    """The system id of a TED vertex."""
    return SystemId(node >> 8 & 0xFFFF_FFFF_FFFF)


# The LSPs that are used


def read_lsp(raw: bytes, level: int) -> Lsp:
    """Verify the checksum of an LSP of a level and decode it. Raises DecodeError."""
    whole = read_pdu(raw)
    pdu = decode_raw(whole)
    if not isinstance(pdu, Lsp) or pdu.level != level:
        raise DecodeError("type", 4, f"not an LSP of level {level}")
    if len(whole.data) != len(raw):
        raise DecodeError("length", 8, "bytes behind the LSP")
    return pdu


def newest(lsps: Iterable[Lsp]) -> dict[tuple[Level, LspId], Lsp]:
    """The newest instance of each LSP; of two with one number, the purge (ISO 10589 §7.3.16)."""
    kept: dict[tuple[Level, LspId], Lsp] = {}
    for lsp in lsps:
        key = Level(lsp.level), lsp.lsp_id
        present = kept.get(key)
        if present is None or _age(lsp) > _age(present):
            kept[key] = lsp
    return dict(sorted(kept.items()))


def _age(lsp: Lsp) -> tuple[int, bool]:
    return lsp.sequence_number, not lsp.remaining_lifetime


def screen(lsps: Iterable[Lsp]) -> tuple[Contents, list[tuple[Level, Ignored]]]:
    """The LSPs that a router computes with, and the others with the reason."""
    ignored: list[tuple[Level, Ignored]] = []
    contents: dict[Level, dict[LspId, Lsp]] = {}
    for (level, identifier), lsp in newest(lsps).items():
        if not lsp.remaining_lifetime:  # ISO 10589 §7.3.16.4: a purge
            ignored.append((level, Ignored(format_lsp_id(identifier), "maxage")))
        elif lsp.sequence_number:  # §7.3.15.2 b) 5): number 0 is not an LSP
            contents.setdefault(level, {})[identifier] = lsp
    for level, known in contents.items():
        for identifier in known:
            if LspId(identifier & ~0xFF) not in known:  # ISO 10589 §7.2.5
                shown = format_lsp_id(identifier)
                ignored.append((level, Ignored(shown, "no-first-fragment")))
    return contents, ignored


def own_lsps(contents: Contents, level: Level, node: NodeId) -> list[Lsp]:
    """The fragments of a router or pseudonode, ascending."""
    known = contents.get(level, {})
    first = lsp_id(system_of_node(node), node & 0xFF)
    return [known[key] for key in (LspId(first | n) for n in range(256)) if key in known]


def own_tlvs(contents: Contents, level: Level, node: NodeId) -> tuple[Tlv, ...]:
    """The TLVs of all fragments of a router or pseudonode."""
    return tuple(tlv for lsp in own_lsps(contents, level, node) for tlv in lsp.tlvs)


def leaks_marked(contents: Contents, node: NodeId) -> bool:
    """Whether a router sets the re-advertisement flag (RFC 7794 §2.1), as fared does."""
    reaches = (r for tlv in own_tlvs(contents, Level.TWO, node) for r in _reaches(tlv))
    return any((reach.flags or 0) & FLAG_READVERTISED for reach in reaches)


def _reaches(tlv: Tlv) -> tuple[IpReach, ...]:
    return tlv.prefixes if isinstance(tlv, IpReachability) else ()


def leaked_unmarked(
    contents: Contents, blocks: Mapping[Level, Blocks], node: NodeId
) -> set[Prefix]:
    """The prefixes that a router leaked from level 1 into level 2 without the flag of RFC 7794.

    Another router advertises them in level 1, this one in level 2. If this one advertises a prefix
    in level 1, too, and another one in level 2, it is the subnet of a link of both levels and not
    leaked. A router that sets the flag is assumed to set it on every leaked prefix.
    """
    one, two = blocks.get(Level.ONE, {}), blocks.get(Level.TWO, {})
    if node not in one or node not in two or leaks_marked(contents, node):
        return set()
    inside = {p for far, block in one.items() if far != node for p in _of_level_1(block)}
    outside = {item.prefix for far, block in two.items() if far != node for item in block.prefixes}
    own = {item.prefix for item in two[node].prefixes}
    return own & inside - (_of_level_1(one[node]) & outside)


def _of_level_1(block: NodeBlock) -> set[Prefix]:
    return {item.prefix for item in block.prefixes if item.path_type is PathType.LEVEL_1}


# Their TED blocks


class Viewpoint:
    """The blocks of one address family, as seen from one router at a time."""

    def __init__(self, contents: Contents, family: int, *, multi_topology: bool) -> None:
        self._contents = contents
        self._settings = IsisSettings(
            NO_SYSTEM, (), LevelSet.BOTH, families=(family,), multi_topology=multi_topology
        )
        self._instance = Instance(self._settings, NoJitter())
        self._builder = TedBuilder(self._instance)
        self._blocks: dict[Level, Blocks] = {level: {} for level in contents}
        self._reached: dict[tuple[Level, NodeId], dict[Hashable, PrefixReachability]] = {}
        for level, known in contents.items():
            for lsp in known.values():
                self._builder.lsp_changed(level, _stored(lsp))
        self._flush()

    def seen_from(self, root: NodeId) -> dict[Level, Blocks]:
        """The blocks by level, as ``root`` uses them."""
        self._move(root)
        found = {level: dict(sorted(blocks.items())) for level, blocks in self._blocks.items()}
        leaked = leaked_unmarked(self._contents, found, root)
        if leaked:
            block = found[Level.TWO][root]
            kept = (item for item in block.prefixes if item.prefix not in leaked)
            found[Level.TWO][root] = replace(block, prefixes=tuple(kept))
        return found

    def _move(self, root: NodeId) -> None:
        system_id, before = system_of_node(root), self._instance.system_id
        areas = frozenset(
            area
            for level in self._contents
            for tlv in of_type(own_tlvs(self._contents, level, root), AreaAddresses)
            for area in tlv.addresses
        )
        self._instance.settings = replace(
            self._settings, system_id=system_id, areas=tuple(sorted(areas))
        )
        for system in {before, system_id} - {NO_SYSTEM}:
            self._renew(isis_node(system))
        self._builder.follow_attached(follow=not self._leads_out(root))
        self._flush()

    def unmarked(self, root: NodeId) -> set[Prefix]:
        """The prefixes that a router leaks into level 2 without the flag of RFC 7794."""
        self._move(root)
        return leaked_unmarked(self._contents, self._blocks, root)

    def leads_out(self, root: NodeId) -> bool:
        """Whether a level-1-2 router reaches another area in level 2 (ISO 10589 §7.2.9.2)."""
        self._move(root)
        return self._leads_out(root)

    def _leads_out(self, root: NodeId) -> bool:
        first = own_lsps(self._contents, Level.ONE, root)[:1]
        if own_lsps(self._contents, Level.TWO, root):
            return bool(first) and self._builder.reaches_other_area()
        # Level 2 is not in the file: the attached bit tells whether it reaches another area.
        return any(lsp.attached for lsp in first)

    def _renew(self, node: NodeId) -> None:
        for level in self._contents:
            for lsp in own_lsps(self._contents, level, node):
                self._builder.lsp_changed(level, _stored(lsp))

    def _flush(self) -> None:
        self._builder.flush()
        for output in self._instance.process.take_outputs():
            if not isinstance(output, TedUpdated | PrefixesUpdated):
                continue
            at = Level(output.area), output.node
            reached = self._reached.setdefault(at, {})
            for source, item in output.changes.items():
                if item is None:
                    reached.pop(source, None)
                else:
                    reached[source] = item
            blocks = self._blocks[at[0]]
            block = blocks.get(at[1]) if isinstance(output, PrefixesUpdated) else output.block
            if block is None:
                blocks.pop(at[1], None)
            else:
                blocks[at[1]] = replace(block, prefixes=tuple(reached.values()))


def _stored(lsp: Lsp) -> StoredLsp:
    return StoredLsp(
        lsp_id=lsp.lsp_id,
        sequence_number=lsp.sequence_number,
        checksum=lsp.checksum,
        expires=float(lsp.remaining_lifetime),
        raw=b"",
        lsp=lsp,
    )


class Viewpoints:
    """A Viewpoint for routers that route a family in topology 0, one for its own topology."""

    def __init__(self, contents: Contents, family: int) -> None:
        self.contents = contents
        self.family = family
        self._known: dict[bool, Viewpoint] = {}

    def of(self, root: NodeId) -> Viewpoint:
        """The Viewpoint for a router, by its multi-topology TLV (RFC 5120 §7.1)."""
        apart = self.family == FAMILY_IPV6 and self._tells_of_topology(root)
        if apart not in self._known:
            viewpoint = Viewpoint(self.contents, self.family, multi_topology=apart)
            self._known[apart] = viewpoint
        return self._known[apart]

    def _tells_of_topology(self, root: NodeId) -> bool:
        return any(
            entry.topology == MT_IPV6
            for level in self.contents
            for tlv in of_type(own_tlvs(self.contents, level, root), MultiTopology)
            for entry in tlv.topologies
        )


# Local links


def links_of_circuits(
    block: NodeBlock,
    blocks: Blocks,
    circuits: Iterable[SavedCircuit],
    *,
    level: Level,
    family: int,
    assumed: Mapping[Direction, float],
) -> tuple[LocalLink, ...]:
    """The local links of the router on which the database was saved.

    A link is included while the router advertises it, so a link that is assumed to fail is not.
    ``assumed`` are bandwidths that replace those of the file.
    """
    claimed: set[int] = set()
    links: list[LocalLink] = []
    for number, circuit in enumerate(circuits, start=1):
        for adjacency in circuit.adjacencies:
            hop = gateway_of(circuit.addresses, adjacency.ipv4, adjacency.ipv6, family)
            rows = _rows(block, blocks, circuit, adjacency)
            row = next((at for at in rows if at not in claimed), None)
            if hop is None or row is None or adjacency.level is not level:
                continue
            if not circuit.broadcast and int(block.local_ids[row]):
                claimed.add(row)
            gateway, gateway_family, onlink = hop
            way = block.node, int(block.neighbors[row])
            links.append(
                LocalLink(
                    ifindex=circuit.ifindex or number,
                    interface=circuit.name,
                    neighbor=isis_node(adjacency.system_id),
                    gateway=gateway,
                    local_id=int(block.local_ids[row]),
                    metric=int(block.metrics[row]),
                    bandwidth=assumed.get(way, circuit.bandwidth),
                    family=gateway_family,
                    onlink=onlink,
                )
            )
    return tuple(sorted(links, key=lambda link: link.ifindex))


def _rows(
    block: NodeBlock, blocks: Blocks, circuit: SavedCircuit, adjacency: SavedAdjacency
) -> Iterator[int]:
    """The rows of the block that can be this adjacency: equal link ids first, then rows without."""
    node = isis_node(adjacency.system_id)
    ids = {*(address.address for address in circuit.addresses), circuit.ifindex}
    leading = [
        row
        for row, far in enumerate(block.neighbors.tolist())
        if (_joins(blocks.get(NodeId(far)), node) if circuit.broadcast else far == node)
    ]
    local_ids = block.local_ids[leading].tolist()
    yield from (row for row, mine in zip(leading, local_ids, strict=True) if mine in ids - {0})
    yield from (row for row, mine in zip(leading, local_ids, strict=True) if not mine)
    if not circuit.ifindex:
        yield from leading


def _joins(network: NodeBlock | None, node: NodeId) -> bool:
    """Whether a pseudonode lists a router."""
    return network is not None and network.network and node in network.neighbors
