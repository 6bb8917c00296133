"""From the link state databases to the TED: one ``NodeBlock`` a node and family, and prefixes.

A node is a router or a pseudonode, described by all its fragments; while fragment 0 is missing, the
others are ignored (ISO 10589 §7.2.5). Each fragment is read once, when it arrives. If only prefixes
changed, only these are passed on; otherwise ``flush`` joins the fragments of the node to a new
block. Where only bandwidths changed, their rows are patched into a copy of the block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fared.core.ids import NodeId, Prefix, isis_node
from fared.paths.ted.compare import same_block
from fared.paths.ted.events import LocalLinksChanged, PrefixesUpdated, TedUpdated
from fared.paths.ted.model import LocalLink
from fared.protocols.igp.prefix_limit import PrefixLimit
from fared.protocols.isis.ids import Level, LspId, format_lsp_id, fragment_of
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.neighbors import topology_of
from fared.protocols.isis.paths import systems_on_paths
from fared.protocols.isis.ted.areas import is_only_way_out, reaches_other_area, same_ways
from fared.protocols.isis.ted.attributes import PrefixAttributes
from fared.protocols.isis.ted.blocks import build, default_route, links_topology, patch
from fared.protocols.isis.ted.fragment_facts import (
    Former,
    FragmentFacts,
    Rows,
    changed_rows,
    read_fragment,
)
from fared.protocols.isis.ted.fragment_patch import patched
from fared.protocols.isis.ted.nexthops import local_links
from fared.protocols.isis.ted.node_fragments import (
    NO_BEGINS,
    NO_BLOCKS,
    NO_DEFAULTS,
    NO_REACHES,
    NodeFragments,
    new_node,
    reaches_of,
)
from fared.protocols.isis.ted.roles import borders, externals
from fared.protocols.isis.ted.router_prefixes import Changes

if TYPE_CHECKING:
    from fared.protocols.isis.ted.bier import BierTable
    from fared.protocols.isis.ted.information import InformationTable

_NOTHING = FragmentFacts()
_ATTACHED = "attached"
"""The key of an attached router's default route among its prefixes."""
NodeKey = tuple[Level, NodeId]


class _Unlinked(msgspec.Struct):
    """Circuits whose adjacencies may have changed, the first cause and when that was."""

    cause: str
    since: float
    circuits: dict[int, None] = msgspec.field(default_factory=dict)


class TedBuilder:
    """Watches the databases and emits TedUpdated and LocalLinksChanged at ``flush``."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._process = instance.process
        self.prefix_limit: PrefixLimit[tuple[Level, LspId]] = PrefixLimit(
            instance.process,
            settings=lambda: instance.settings.prefix_limit,
            on_path=partial(systems_on_paths, instance.databases.values(), instance.system_id),
            read=self._read_again,
        )
        self._nodes: dict[NodeKey, NodeFragments] = {}
        self._dirty: dict[NodeKey, NodeFragments] = {}
        self._links_dirty: dict[Level, _Unlinked] = {}
        self._links: dict[tuple[Level, int], tuple[LocalLink, ...]] = {}
        self._hops: dict[tuple[Level, int], dict[int, tuple[LocalLink, ...]]] = {}
        """By level and family: the links out of each circuit."""
        self._follows_attached = True
        self._bier: BierTable | None = None
        if instance.settings.bier is not None:
            from fared.protocols.isis.ted.bier import BierTable  # noqa: PLC0415 - where BIER runs

            self._bier = BierTable()
        self._information: InformationTable | None = None
        application = instance.settings.information_application
        if application is not None:
            from fared.protocols.isis.ted.information import InformationTable  # noqa: PLC0415 - likewise

            self._information = InformationTable(application)
        self.attributes = PrefixAttributes()
        self.ways_stale = dict.fromkeys(Level, True)
        """By level, whether the areas that level 2 reaches, or the ways out of the own one, may
        have changed."""

    # What changed

    def lsp_changed(
        self, level: Level, entry: StoredLsp, previous: StoredLsp | None = None
    ) -> None:
        """Process an LSP that is new, changed or purged; ``previous`` is the one before.

        Without it, a known LSP is read again, as settings may have changed.
        """
        former = self._previous_facts(level, previous)
        if former is not None and entry.renewed is not None:
            found = patched(*former, entry.lsp, entry.renewed)
            if found is not None:
                self._patched(level, entry, *found)
                return
        # §7.3.16.4: of a purged LSP only the header remains
        lsp = None if entry.purged else entry.lsp
        facts = None
        if lsp is not None and entry.sequence_number:
            own = entry.lsp_id >> 16 == self._instance.system_id
            code = self._instance.settings.path_capacity_code
            facts = read_fragment(lsp, own=own, capacity_code=code, former=former)
        facts = self._limited(level, entry, facts)
        self._put(level, entry, facts, again=previous is None)
        if self._information is not None and entry.lsp_id >> 16 != self._instance.system_id:
            at = _node_of(level, entry), fragment_of(entry.lsp_id)
            self._information.put(*at, None if facts is None else lsp)

    def _patched(self, level: Level, entry: StoredLsp, facts: FragmentFacts, rows: Rows) -> None:
        """Store the facts of an LSP in which only bandwidths of links changed."""
        key, number = _node_of(level, entry), fragment_of(entry.lsp_id)
        node = self._nodes[key]
        node.parts[number] = facts
        node.note_rows(number, rows)
        self._mark(key, node, entry)

    def _previous_facts(self, level: Level, previous: StoredLsp | None) -> Former | None:
        """The replaced LSP, and its facts."""
        if previous is None:
            return None
        node = self._nodes.get(_node_of(level, previous))
        old = None if node is None else node.parts.get(fragment_of(previous.lsp_id))
        return None if old is None or old.prefixes.trimmed else (previous.lsp, old)

    def _limited(
        self, level: Level, entry: StoredLsp, facts: FragmentFacts | None
    ) -> FragmentFacts | None:
        """Return the facts of a fragment (None: gone) with no more prefixes than may be used."""
        system, listed = entry.lsp_id >> 16, 0 if facts is None else facts.prefixes.count
        own = system == self._instance.system_id
        most = self.prefix_limit.take((level, entry.lsp_id), system, listed, own=own)
        if facts is None or most == listed:
            return facts
        node = self._nodes.get(_node_of(level, entry))
        known = node and node.parts.get(fragment_of(entry.lsp_id))
        kept = facts.prefixes.trim((known or _NOTHING).prefixes, most)
        return replace(facts, prefixes=kept)

    def _read_again(self, ignored: Iterable[tuple[Level, LspId]] | None) -> None:
        """Read LSPs again some of whose prefixes were ignored; None: all LSPs."""
        databases = self._instance.databases
        if ignored is None:
            ignored = [(level, key) for level, lsdb in databases.items() for key in lsdb.entries]
        for level, lsp_id in ignored:
            entry = databases[level].get(lsp_id)
            if entry is not None:
                self.lsp_changed(level, entry)

    def lsp_removed(self, level: Level, entry: StoredLsp) -> None:
        """An LSP left the database."""
        if self._information is not None:
            self._information.put(_node_of(level, entry), fragment_of(entry.lsp_id), None)
        self._put(level, entry, self._limited(level, entry, None))

    def _put(
        self, level: Level, entry: StoredLsp, facts: FragmentFacts | None, *, again: bool = False
    ) -> None:
        """Store the facts of a fragment; None: it is gone."""
        key, number = _node_of(level, entry), fragment_of(entry.lsp_id)
        node = self._nodes.get(key) or new_node()
        known = node.parts.get(number)
        if known is None and facts is None:
            return
        self._nodes[key] = node
        old, new = known or _NOTHING, facts or _NOTHING
        node.prefixes.replace(number, None if facts is None else facts.prefixes)
        if facts is None:
            node.parts.pop(number, None)
        else:
            node.parts[number] = facts
        if known is None or facts is None:
            node.stale |= not number
        else:
            node.stale |= again
        if (rows := changed_rows(old, new)) is None:
            node.stale = True
        node.note_rows(number, rows or {})
        if self._bier is not None:
            self._bier.put(key, number, new.prefixes.attributes, _name_of(entry), self._process.now)
        self.attributes.replace(
            level, entry.lsp_id, old.prefixes.attributes, new.prefixes.attributes
        )
        if not self.ways_stale[level] and not same_ways(old, new):
            self.ways_stale[level] = True
        self._mark(key, node, entry)

    def _mark(self, key: NodeKey, node: NodeFragments, cause: str | StoredLsp) -> None:
        """Consider a node at the next ``flush``; the first cause of several is reported."""
        if node.parts and not (node.stale or node.patched or node.prefixes.changed):
            return
        if node.cause is None:
            node.cause = cause if isinstance(cause, str) else _name_of(cause)
            node.since = self._process.now
        self._dirty[key] = node

    def links_changed(
        self, cause: str, level: Level | None = None, ifindex: int | None = None
    ) -> None:
        """The adjacencies of a level on a circuit may have changed; None: of all."""
        ifindexes = self._instance.circuits if ifindex is None else (ifindex,)
        for known in self._instance.databases if level is None else (level,):
            dirty = self._links_dirty.get(known)
            if dirty is None:
                dirty = self._links_dirty[known] = _Unlinked(cause, self._process.now)
            dirty.circuits.update(dict.fromkeys(ifindexes))

    def everything_changed(self, cause: str) -> None:
        """Settings changed: reconsider all nodes."""
        for level, lsdb in self._instance.databases.items():
            for entry in lsdb.ordered():
                self.lsp_changed(level, entry)
        self.ways_stale = dict.fromkeys(Level, True)
        self.links_changed(cause)

    def follow_attached(self, *, follow: bool) -> None:
        """Set whether attached bits of others give a default route (ISO 10589 §7.2.9.1)."""
        if follow == self._follows_attached:
            return
        self._follows_attached = follow
        for key, node in self._nodes.items():
            first = node.parts.get(0)
            if key[0] is Level.ONE and first is not None:
                node.stale = True
                self._mark(key, node, "attached bit")

    # Areas

    def reaches_other_area(self) -> bool:
        """Whether level 2 reaches a router that shares no area with this one (§7.2.9.2)."""
        self.ways_stale[Level.TWO] = False
        settings = self._instance.settings
        own, areas = isis_node(settings.system_id), frozenset(settings.areas)
        return reaches_other_area(own, areas, partial(self._fragments_of, Level.TWO))

    def is_only_way_out(self) -> bool:
        """Whether routers of level 1 have no other way out of the area, or overloaded ones."""
        self.ways_stale[Level.ONE] = False
        own = isis_node(self._instance.system_id)
        return is_only_way_out(own, partial(self._fragments_of, Level.ONE))

    def _fragments_of(self, level: Level, node_id: NodeId) -> dict[int, FragmentFacts]:
        """The fragments of a node in a level."""
        node = self._nodes.get((level, node_id))
        return {} if node is None else node.parts

    # Other routers

    def borders(self) -> Iterator[tuple[Level, NodeId]]:
        """The routers of each level that are in the other one, too."""
        return borders(self._nodes, self._instance.databases)

    def externals(self) -> Iterator[tuple[NodeId, Prefix]]:
        """The prefixes that routers redistribute."""
        return externals(self._nodes)

    # Outputs

    def flush(self) -> None:
        """Emit what changed since the last call."""
        dirty, self._dirty = self._dirty, {}
        for key, node in dirty.items():
            self._emit(key, node)
        for update in () if self._bier is None else self._bier.take():
            self._process.emit(update)
        for offered in () if self._information is None else self._information.take():
            self._process.emit(offered)
        pending, self._links_dirty = self._links_dirty, {}
        for level, unlinked in pending.items():
            for family in (4, 6):
                self._emit_links(level, family, unlinked)

    def _emit_links(self, level: Level, family: int, dirty: _Unlinked) -> None:
        """Report the links of this router in a level and family, if they changed."""
        instance, key = self._instance, (level, family)
        hops = self._hops.setdefault(key, {})
        for ifindex in dirty.circuits:
            circuit = instance.circuits.get(ifindex)
            found: tuple[LocalLink, ...] = ()
            if circuit is not None and family in instance.settings.families:
                found = tuple(local_links(instance, circuit, level, family))
            if found:
                hops[ifindex] = found
            else:
                hops.pop(ifindex, None)
        links = tuple([link for ifindex in sorted(hops) for link in hops[ifindex]])
        if links != self._links.get(key, ()):
            self._links[key] = links
            change = LocalLinksChanged(int(level), links, dirty.cause, dirty.since, family)
            instance.process.emit(change)

    def _emit(self, key: NodeKey, node: NodeFragments) -> None:
        level, node_id = key
        cause, since = node.cause or "", node.since
        node.cause = None
        blocks = node.blocks
        if node.stale:
            changed = self._describe(level, node_id, node)
        else:
            if node.patched:
                reached = {family: self._topology(node_id, family) for family in blocks}
                node.blocks = patch(blocks, node.parts, node.patched, reached, node.begins)
            changed = node.prefixes.take(node.reaches, node.reaches)
        node.patched = None
        for family in (4, 6):
            block, changes = node.blocks.get(family), changed.get(family, {})
            if not same_block(blocks.get(family), block):
                self._process.emit(
                    TedUpdated(int(level), node_id, block, cause, since, family, changes)
                )
            elif changes:
                self._process.emit(
                    PrefixesUpdated(int(level), node_id, changes, cause, since, family)
                )
        if not node.parts:
            self._nodes.pop(key, None)

    def _topology(self, node_id: NodeId, family: int) -> int | None:
        """The topology of the links of a node for a family."""
        return links_topology(node_id, topology_of(self._instance, family))

    def _describe(self, level: Level, node_id: NodeId, node: NodeFragments) -> dict[int, Changes]:
        """Make the blocks of a node; return the changes of its prefixes, by family."""
        topologies = {f: topology_of(self._instance, f) for f in self._instance.settings.families}
        node.stale, node.blocks, node.first_rows = False, NO_BLOCKS, NO_BEGINS
        # ISO 10589 §7.2.5: without fragment 0 the others are ignored
        if 0 in node.parts:
            parts = [node.parts[number] for number in sorted(node.parts)]
            node.blocks = build(node_id, parts, topologies) or NO_BLOCKS
        was, node.reaches = node.reaches, NO_REACHES
        if not node_id & 0xFF:  # a pseudonode advertises no prefixes
            node.reaches = reaches_of(tuple(node.blocks), tuple(topologies.items()))
        changed = node.prefixes.take(was, node.reaches)
        before, node.defaults = node.defaults, NO_DEFAULTS
        own = node_id == isis_node(self._instance.system_id)
        # §7.2.9.1: a default route toward attached routers of our area, in level 1 only
        if level is Level.ONE and self._follows_attached and not own:
            node.defaults = {
                family: route
                for family, (topology, _) in node.reaches.items()
                if (route := default_route(node.parts[0], family, topology)) is not None
            }
        for family in before.keys() | node.defaults.keys():
            if before.get(family) == node.defaults.get(family):
                continue
            changed.setdefault(family, {})[_ATTACHED] = node.defaults.get(family)
        return changed


def _node_of(level: Level, entry: StoredLsp) -> NodeKey:
    return level, isis_node(entry.lsp_id >> 16, entry.lsp_id >> 8 & 0xFF)


def _name_of(entry: StoredLsp) -> str:
    """An LSP as the cause of a change: ``lsp 0102.5500.0001.00-00 seq 0x80000005``."""
    return f"lsp {format_lsp_id(entry.lsp_id)} seq {entry.sequence_number:#010x}"
