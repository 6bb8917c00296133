"""Databases without a daemon: which LSPs count, and the TED blocks they make.

A saved or captured database goes through the very ``TedBuilder`` that the engine runs. What a
router sees depends on which one it is (its own leaked prefixes, whether it follows attached
bits), so a ``Viewpoint`` moves from router to router and builds again only what that changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from fared.core.ids import FAMILY_IPV6, NodeId, Prefix, SystemId, isis_node
from fared.core.links import InterfaceAddress
from fared.core.wire import DecodeError
from fared.isis.contents import FLAG_READVERTISED
from fared.isis.events import TedUpdated
from fared.isis.ids import Level, LevelSet, LspId, format_lsp_id, lsp_id
from fared.isis.instance import Instance
from fared.isis.lsdb import StoredLsp
from fared.isis.nexthops import gateway_of
from fared.isis.pdu.codec import decode_pdu, exact
from fared.isis.pdu.model import (
    MT_IPV6,
    AreaAddresses,
    IpReach,
    IpReachability,
    Lsp,
    MultiTopology,
    Tlv,
    of_type,
)
from fared.isis.settings import IsisSettings
from fared.isis.ted import TedBuilder
from fared.ted.model import LocalLink, NodeBlock, PathType
from fared.ted.saved import Blocks, Ignored
from fared.ted.whatif import Direction

NOBODY = SystemId(0)
Contents = Mapping[Level, Mapping[LspId, Lsp]]
"""The LSPs that count, by level and LSP id: one instance each, whole and alive."""


class _NoJitter:
    def random(self) -> float:
        return 0.0


class SavedAdjacency(NamedTuple):
    """A neighbor that is up in a level; addresses of its hellos, link-local ones of IPv6."""

    system_id: int
    level: Level
    ipv4: tuple[int, ...]
    ipv6: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SavedCircuit:
    """A circuit of the router whose database this is. ``bandwidth`` in bytes/s.

    ``ifindex`` 0: not told. ``addresses`` are the IPv4 ones.
    """

    name: str
    ifindex: int
    broadcast: bool
    addresses: tuple[InterfaceAddress, ...]
    bandwidth: float | None
    adjacencies: tuple[SavedAdjacency, ...]


def system_of_node(node: int) -> SystemId:
    """The system id in a TED vertex."""
    return SystemId(node >> 8 & 0xFFFF_FFFF_FFFF)


# What counts


def read_lsp(raw: bytes, level: int) -> Lsp:
    """Decode an LSP of a level, with a look at its checksum. Raises DecodeError."""
    pdu = decode_pdu(exact(raw))
    if not isinstance(pdu, Lsp) or pdu.level != level:
        raise DecodeError("type", 4, f"not an LSP of level {level}")
    if len(exact(raw)) != len(raw):
        raise DecodeError("length", 8, "bytes behind the LSP")
    return pdu


def newest(lsps: Iterable[Lsp]) -> dict[tuple[Level, LspId], Lsp]:
    """Keep one instance of each LSP, the newest, purges first (ISO 10589 §7.3.16)."""
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
    """Take what a router would calculate with; say what it would not, and why."""
    ignored: list[tuple[Level, Ignored]] = []
    contents: dict[Level, dict[LspId, Lsp]] = {}
    for (level, identifier), lsp in newest(lsps).items():
        if not lsp.remaining_lifetime:
            ignored.append((level, Ignored(format_lsp_id(identifier), "maxage")))
        elif lsp.sequence_number:
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
    """What all fragments of a router or pseudonode say."""
    return tuple(tlv for lsp in own_lsps(contents, level, node) for tlv in lsp.tlvs)


def leaks_marked(contents: Contents, node: NodeId) -> bool:
    """Whether a router marks what it announces again (RFC 7794 §2.1), as fared does."""
    reaches = (r for tlv in own_tlvs(contents, Level.TWO, node) for r in _reaches(tlv))
    return any((reach.flags or 0) & FLAG_READVERTISED for reach in reaches)


def _reaches(tlv: Tlv) -> tuple[IpReach, ...]:
    return tlv.prefixes if isinstance(tlv, IpReachability) else ()


def leaked_unmarked(
    contents: Contents, blocks: Mapping[Level, Blocks], node: NodeId
) -> set[Prefix]:
    """The prefixes of a router's level 2 that it leaked there without saying so.

    Those that others announce as their own in its level 1, and either it does not or it is the
    only one to do so in level 2: of a link in both levels both ends are heard in both. A router
    that marks what it leaks is taken at its word.
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


# What it makes


class Viewpoint:
    """The blocks of one family as one router after the other sees them."""

    def __init__(self, contents: Contents, family: int, *, multi_topology: bool) -> None:
        self._contents = contents
        self._settings = IsisSettings(
            NOBODY, (), LevelSet.BOTH, families=(family,), multi_topology=multi_topology
        )
        self._instance = Instance(self._settings, _NoJitter())
        self._builder = TedBuilder(self._instance)
        self._blocks: dict[Level, Blocks] = {level: {} for level in contents}
        for level, known in contents.items():
            for lsp in known.values():
                self._builder.lsp_changed(level, _stored(lsp))
        self._flush()

    def seen_from(self, root: NodeId) -> dict[Level, Blocks]:
        """What each router says of itself, by level, as ``root`` takes it."""
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
        for system in {before, system_id} - {NOBODY}:
            self._renew(isis_node(system))
        self._builder.follow_attached(follow=not self._leads_out(root))
        self._flush()

    def unmarked(self, root: NodeId) -> set[Prefix]:
        """What a router leaks into level 2 without saying so."""
        self._move(root)
        return leaked_unmarked(self._contents, self._blocks, root)

    def leads_out(self, root: NodeId) -> bool:
        """Whether a router of both levels reaches another area in level 2 (§7.2.9.2)."""
        self._move(root)
        return self._leads_out(root)

    def _leads_out(self, root: NodeId) -> bool:
        first = own_lsps(self._contents, Level.ONE, root)[:1]
        if own_lsps(self._contents, Level.TWO, root):
            return bool(first) and self._builder.reaches_other_area()
        # Its level 2 is not in the file: it has said itself that it leads elsewhere.
        return any(lsp.attached for lsp in first)

    def _renew(self, node: NodeId) -> None:
        for level in self._contents:
            for lsp in own_lsps(self._contents, level, node):
                self._builder.lsp_changed(level, _stored(lsp))

    def _flush(self) -> None:
        self._builder.flush()
        for output in self._instance.take_outputs():
            if not isinstance(output, TedUpdated):
                continue
            blocks = self._blocks[Level(output.area)]
            if output.block is None:
                blocks.pop(output.node, None)
            else:
                blocks[output.node] = output.block


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
    """Viewpoints for routers that route a family in the common topology or in one of its own."""

    def __init__(self, contents: Contents, family: int) -> None:
        self.contents = contents
        self.family = family
        self._known: dict[bool, Viewpoint] = {}

    def of(self, root: NodeId) -> Viewpoint:
        """The viewpoint of a router (RFC 5120 §7.1), ready to be moved there."""
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
    """The local links of the router whose circuits are known, as its daemon has them.

    A link counts while the router's own description has it: so what is assumed to fail is gone
    here as well. ``assumed`` are bandwidths other than those of the file.
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
    """The rows of the block that may be this adjacency, the likeliest first."""
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
