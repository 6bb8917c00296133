"""From the link state databases to the TED: one ``NodeBlock`` a node and family, cheaply kept.

A node is a router or a pseudonode; all its fragments together describe it, and none of them if
fragment 0 is missing (ISO 10589 §7.2.5). What each fragment says was made arrays when it came;
``flush`` lays these end to end for nodes of which a fragment changed, and for no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fared.core.ids import NodeId, Prefix, isis_node
from fared.isis.contents import NLPIDS, topology_of
from fared.isis.described import Described, Links, describe, joined, narrow_links
from fared.isis.events import LocalLinksChanged, TedUpdated
from fared.isis.ids import Level, LspId, format_lsp_id, fragment_of
from fared.isis.instance import Instance
from fared.isis.lsdb import StoredLsp
from fared.isis.nexthops import local_links
from fared.isis.pdu.model import MT_IPV4, IpReach, Lsp
from fared.ted.compare import Difference, difference
from fared.ted.model import LocalLink, NodeBlock, PathType, PrefixAttachment

_NOWHERE = Described()
NodeKey = tuple[Level, NodeId]


@dataclass(slots=True)
class _Node:
    """What the fragments of one node say, by their numbers, and what was made of it last."""

    parts: dict[int, Described] = field(default_factory=dict)
    blocks: dict[int, NodeBlock] = field(default_factory=dict)
    cause: str | None = None
    since: float = 0.0


@dataclass(slots=True)
class _Unlinked:
    """Circuits whose adjacencies may have changed, the first cause and when that was."""

    cause: str
    since: float
    circuits: dict[int, None] = field(default_factory=dict)


class TedBuilder:
    """Watches the databases and emits TedUpdated and LocalLinksChanged at ``flush``."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._nodes: dict[NodeKey, _Node] = {}
        self._dirty: dict[NodeKey, _Node] = {}
        self._links_dirty: dict[Level, _Unlinked] = {}
        self._links: dict[tuple[Level, int], tuple[LocalLink, ...]] = {}
        self._hops: dict[tuple[Level, int], dict[int, tuple[LocalLink, ...]]] = {}
        """By level and family: the links out of each circuit."""
        self._follows_attached = True
        self._noted: dict[Level, dict[Prefix, dict[LspId, IpReach]]] = {}
        self._noted_changed: dict[tuple[Level, Prefix], None] = {}
        self.areas_stale = True
        """Whether it may be another question now which areas are reached through level 2."""

    # What changed

    def lsp_changed(
        self, level: Level, entry: StoredLsp, previous: StoredLsp | None = None
    ) -> None:
        """Take note of an LSP that is new, different or purged; ``previous`` is the one before."""
        lsp = None if entry.purged else entry.lsp
        described = None
        if lsp is not None and entry.sequence_number:
            own = entry.lsp_id >> 16 == self._instance.system_id
            code = self._instance.settings.path_capacity_code
            former = self._former(level, previous)
            described = describe(lsp, own=own, capacity_code=code, former=former)
        self._put(level, entry, described)

    def _former(self, level: Level, previous: StoredLsp | None) -> tuple[Lsp, Described] | None:
        """An LSP that was replaced, and what was read in it."""
        if previous is None:
            return None
        node = self._nodes.get(_node_of(level, previous))
        old = None if node is None else node.parts.get(fragment_of(previous.lsp_id))
        return None if old is None else (previous.lsp, old)

    def lsp_removed(self, level: Level, entry: StoredLsp) -> None:
        """An LSP left the database."""
        self._put(level, entry, None)

    def _put(self, level: Level, entry: StoredLsp, described: Described | None) -> None:
        key = _node_of(level, entry)
        node = self._nodes.get(key)
        number = fragment_of(entry.lsp_id)
        old = None if node is None else node.parts.get(number)
        if described is None and old is None:
            return
        if node is None:
            node = self._nodes[key] = _Node()
        if described is None:
            del node.parts[number]
        else:
            node.parts[number] = described
        self._note(level, entry.lsp_id, old or _NOWHERE, described or _NOWHERE)
        if level is Level.TWO and not _same_ways(old or _NOWHERE, described or _NOWHERE):
            self.areas_stale = True
        self._mark(key, node, _describe(entry))

    def _mark(self, key: NodeKey, node: _Node, cause: str) -> None:
        if node.cause is None:
            node.cause, node.since = cause, self._instance.now
        self._dirty[key] = node

    def links_changed(
        self, cause: str, level: Level | None = None, ifindex: int | None = None
    ) -> None:
        """The adjacencies of a level on a circuit may have changed; None: of all."""
        ifindexes = self._instance.circuits if ifindex is None else (ifindex,)
        for known in self._instance.databases if level is None else (level,):
            dirty = self._links_dirty.get(known)
            if dirty is None:
                dirty = self._links_dirty[known] = _Unlinked(cause, self._instance.now)
            dirty.circuits.update(dict.fromkeys(ifindexes))

    def everything_changed(self, cause: str) -> None:
        """Settings changed: look at all nodes again."""
        for level, lsdb in self._instance.databases.items():
            for entry in lsdb.ordered():
                self.lsp_changed(level, entry)
        self.areas_stale = True
        self.links_changed(cause)

    def follow_attached(self, *, follow: bool) -> None:
        """Whether the attached bits of others give a default route (ISO 10589 §7.2.9.1)."""
        if follow == self._follows_attached:
            return
        self._follows_attached = follow
        for key, node in self._nodes.items():
            first = node.parts.get(0)
            if key[0] is Level.ONE and first is not None:
                self._mark(key, node, "attached bit")

    def withdraw_all(self, cause: str) -> list[TedUpdated | LocalLinksChanged]:
        """Say that nothing is known any more, for a router that starts anew."""
        now = self._instance.now
        gone: list[TedUpdated | LocalLinksChanged] = [
            TedUpdated(int(level), node_id, None, True, cause, now, family)
            for (level, node_id), node in self._nodes.items()
            for family in node.blocks
        ]
        gone += [
            LocalLinksChanged(int(level), (), cause, now, family) for level, family in self._links
        ]
        return gone

    # What leaking asks

    def noted(self, level: Level, prefix: Prefix) -> IpReach | None:
        """What a router of a level says of a prefix beyond its metric; the first by LSP id."""
        known = self._noted.get(level, {}).get(prefix)
        return known[min(known)] if known else None

    def take_noted(self) -> list[tuple[Level, Prefix]]:
        """The prefixes whose attributes changed since the last call."""
        changed, self._noted_changed = self._noted_changed, {}
        return list(changed)

    def _note(self, level: Level, identifier: LspId, old: Described, new: Described) -> None:
        table = self._noted.setdefault(level, {})
        for prefix in old.noted.keys() - new.noted.keys():
            del table[prefix][identifier]
            if not table[prefix]:
                del table[prefix]
            self._noted_changed[level, prefix] = None
        for prefix, reach in new.noted.items():
            if old.noted.get(prefix) != reach:
                table.setdefault(prefix, {})[identifier] = reach
                self._noted_changed[level, prefix] = None

    # Names and areas

    def hostnames(self, level: Level) -> dict[int, str]:
        """The names that routers of a level tell (RFC 5301), by system id."""
        return {
            node_id >> 8 & 0xFFFF_FFFF_FFFF: part.hostname
            for (known, node_id), node in self._nodes.items()
            for _, part in sorted(node.parts.items(), reverse=True)
            if known is level and part.hostname and not node_id & 0xFF
        }

    def reaches_other_area(self) -> bool:
        """Whether level 2 leads to a router that shares no area with this one (§7.2.9.2)."""
        self.areas_stale = False
        ours = frozenset(self._instance.settings.areas)
        own = isis_node(self._instance.system_id)
        seen, todo = {own}, [own]
        while todo:
            node_id = todo.pop()
            here = self._nodes.get((Level.TWO, node_id))
            if here is None or 0 not in here.parts:
                continue
            areas = _areas(here)
            if areas and not areas & ours:
                return True
            if here.parts[0].overload and node_id != own:
                continue
            for far in sorted(_neighbors(here) - seen):
                there = self._nodes.get((Level.TWO, NodeId(far)))
                if there is not None and node_id in _neighbors(there):
                    seen.add(NodeId(far))
                    todo.append(NodeId(far))
        return False

    # What is told

    def flush(self) -> None:
        """Emit what changed since the last call."""
        dirty, self._dirty = self._dirty, {}
        for key, node in dirty.items():
            self._emit(key, node)
        pending, self._links_dirty = self._links_dirty, {}
        for level, unlinked in pending.items():
            for family in (4, 6):
                self._emit_links(level, family, unlinked)

    def _emit_links(self, level: Level, family: int, dirty: _Unlinked) -> None:
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
        links = tuple(link for ifindex in sorted(hops) for link in hops[ifindex])
        if links != self._links.get(key, ()):
            self._links[key] = links
            change = LocalLinksChanged(int(level), links, dirty.cause, dirty.since, family)
            instance.emit(change)

    def _emit(self, key: NodeKey, node: _Node) -> None:
        level, node_id = key
        cause, since = node.cause or "", node.since
        node.cause = None
        blocks = self._build(level, node_id, node)
        for family in (4, 6):
            after = blocks.get(family)
            found = difference(node.blocks.get(family), after)
            if found is Difference.NONE:
                continue
            topology = found is Difference.SHAPE
            update = TedUpdated(int(level), node_id, after, topology, cause, since, family)
            self._instance.emit(update)
        node.blocks = blocks
        if not node.parts:
            self._nodes.pop(key, None)

    # Blocks

    def _build(self, level: Level, node_id: NodeId, node: _Node) -> dict[int, NodeBlock]:
        """The block of each family that a node takes part in."""
        if 0 not in node.parts:
            return {}  # ISO 10589 §7.2.5
        parts = [node.parts[number] for number in sorted(node.parts)]
        network = bool(node_id & 0xFF)
        blocks: dict[int, NodeBlock] = {}
        shared: dict[int | None, Links] = {}
        for family in self._instance.settings.families:
            topology = topology_of(self._instance, family)
            if not network and not _takes_part(parts, family, topology):
                continue
            # RFC 5120 §5: a pseudonode tells of no topologies and serves all of them.
            at = None if network else topology
            if at not in shared:
                shared[at] = _all_links(parts, at)
            links = shared[at]
            prefixes: tuple[PrefixAttachment, ...] = ()
            if not network:
                prefixes = _prefixes(parts, family, topology)
                if level is Level.ONE:
                    prefixes += self._default(node_id, parts[0], family, topology)
            blocks[family] = NodeBlock(
                node=node_id,
                neighbors=links.neighbors,
                metrics=links.metrics,
                capacities=links.capacities,
                availables=links.availables,
                local_ids=links.local_ids,
                remote_ids=links.remote_ids,
                prefixes=prefixes,
                transit=not _overloaded(parts[0], topology),
                hostname=next((part.hostname for part in parts if part.hostname), None),
                network=network,
            )
        return blocks

    def _default(
        self, node_id: NodeId, first: Described, family: int, topology: int | None
    ) -> tuple[PrefixAttachment, ...]:
        """A default route to an attached router, unless it must not be passed through."""
        known = first.topologies.get(topology or MT_IPV4)
        attached = first.attached if topology is None else known is not None and known.attached
        own = node_id == isis_node(self._instance.system_id)
        if own or not attached or not self._follows_attached or _overloaded(first, topology):
            return ()
        return (PrefixAttachment(Prefix(family, 0, 0), 0, PathType.LEVEL_1_DOWN),)


def _node_of(level: Level, entry: StoredLsp) -> NodeKey:
    return level, isis_node(entry.lsp_id >> 16, entry.lsp_id >> 8 & 0xFF)


def _same_ways(a: Described, b: Described) -> bool:
    """Whether a fragment leads to the same nodes and areas as before."""
    return (
        (a.areas, a.overload, a.narrow) == (b.areas, b.overload, b.narrow)
        and a.links.keys() == b.links.keys()
        and all(np.array_equal(a.links[t].neighbors, b.links[t].neighbors) for t in a.links)
    )


def _areas(node: _Node) -> frozenset[bytes]:
    return frozenset(area for part in node.parts.values() for area in part.areas)


def _neighbors(node: _Node) -> set[int]:
    """The nodes that a node lists in any topology."""
    found = {
        far
        for part in node.parts.values()
        for links in part.links.values()
        for far in links.neighbors.tolist()
    }
    for part in node.parts.values():
        found.update(isis_node(n.neighbor >> 8, n.neighbor & 0xFF) for n in part.narrow)
    return found


def _takes_part(parts: list[Described], family: int, topology: int | None) -> bool:
    """Whether a router forwards packets of a family.

    RFC 1195 §3.10: what it does not speak must not be sent through it. RFC 5120 §7.1: a router
    that tells of no topologies is in topology 0 alone.
    """
    if not any(NLPIDS[family] in part.nlpids for part in parts):
        return False
    if not any(part.multi_topology for part in parts):
        return topology is None
    return topology is None or any(topology in part.topologies for part in parts)


def _overloaded(first: Described, topology: int | None) -> bool:
    """RFC 5120 §7.2: topologies but 0 have an overload bit of their own."""
    if topology is None:
        return first.overload
    known = first.topologies.get(topology)
    return known is not None and known.overload


def _all_links(parts: list[Described], topology: int | None) -> Links:
    links = [part.links[topology] for part in parts if topology in part.links]
    narrow = [neighbor for part in parts for neighbor in part.narrow]
    if narrow and topology is None:
        known = {far for part in links for far in part.neighbors.tolist()}
        links.append(narrow_links(narrow, known))
    return joined(links)


def _prefixes(
    parts: list[Described], family: int, topology: int | None
) -> tuple[PrefixAttachment, ...]:
    """The prefixes of a router, each once: the best where it announces one several times.

    Those of narrow TLVs count where wide ones do not tell of them.
    """
    at = topology, family
    found = [item for part in parts for item in part.prefixes.get(at, ())]
    if family == 4:
        known = {item.prefix for item in found}
        for part in parts:
            found += (item for item in part.narrow_prefixes if item.prefix not in known)
    best: dict[Prefix, PrefixAttachment] = {}
    for item in found:
        other = best.get(item.prefix)
        if other is None or (item.path_type, item.metric) < (other.path_type, other.metric):
            best[item.prefix] = item
    return tuple(best.values())


def _describe(entry: StoredLsp) -> str:
    """Name an LSP in words: ``lsp 0102.5500.0001.00-00 seq 0x80000005``."""
    return f"lsp {format_lsp_id(entry.lsp_id)} seq {entry.sequence_number:#010x}"
