"""The TED blocks of a saved or captured database, as seen from one router.

The ``TedBuilder`` of the engine builds the blocks. A router ignores the prefixes that it leaks
itself, and may follow attached bits, so the blocks depend on the root: a ``Viewpoint`` moves from
router to router and rebuilds only the blocks that differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from msgspec.structs import replace

from fared.core.ids import FAMILY_IPV6, NodeId, Prefix, isis_node
from fared.core.rng import NoJitter
from fared.extensions.offline.isis.database import (
    NO_SYSTEM,
    Contents,
    own_lsps,
    own_tlvs,
    system_of_node,
)
from fared.paths.ted.events import PrefixesUpdated, TedUpdated
from fared.paths.ted.links import Blocks
from fared.paths.ted.model import NodeBlock, PathType, PrefixReachability
from fared.protocols.isis.ids import Level, LevelSet
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import (
    FLAG_READVERTISED,
    MT_IPV6,
    AreaAddresses,
    IpReachability,
    MultiTopology,
    of_type,
)
from fared.protocols.isis.settings import IsisSettings
from fared.protocols.isis.ted.builder import TedBuilder


def leaked_unmarked(
    contents: Contents, blocks: Mapping[Level, Blocks], node: NodeId
) -> set[Prefix]:
    """The prefixes that a router leaked from level 1 into level 2 without the flag of RFC 7794.

    Another router advertises them in level 1, this one in level 2. If this one advertises a prefix
    in level 1, too, and another one in level 2, it is the subnet of a link of both levels and not
    leaked.
    """
    one, two = blocks.get(Level.ONE, {}), blocks.get(Level.TWO, {})
    if node not in one or node not in two:
        return set()
    own = {item.prefix for item in two[node].prefixes} - _would_be_marked(contents, node)
    if not own:
        return set()
    inside = {p for far, block in one.items() if far != node for p in _of_level_1(block)}
    outside = {item.prefix for far, block in two.items() if far != node for item in block.prefixes}
    return own & inside - (_of_level_1(one[node]) & outside)


def _would_be_marked(contents: Contents, node: NodeId) -> set[Prefix]:
    """The prefixes in level 2 that a router would mark if it leaked them.

    One that marks a prefix of a family is assumed to mark all that it leaks in this family, as
    fared does, in TLVs with room for the flag: narrow ones have none.
    """
    tlvs = of_type(own_tlvs(contents, Level.TWO, node), IpReachability)
    wide = [reach for tlv in tlvs for reach in tlv.prefixes]
    marking = {r.prefix.family for r in wide if (r.flags or 0) & FLAG_READVERTISED}
    return {reach.prefix for reach in wide if reach.prefix.family in marking}


def _of_level_1(block: NodeBlock) -> set[Prefix]:
    return {item.prefix for item in block.prefixes if item.path_type is PathType.LEVEL_1}


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
        """Take the builder's outputs, and keep the block of each router with its prefixes."""
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
