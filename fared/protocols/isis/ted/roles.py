"""What LSPs say of routers for views: which are in both levels, and what they redistribute.

It is read from the fragments when a view asks, since nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fared.core.ids import ISIS_NODE, NodeId, Prefix
from fared.protocols.isis.ids import Level, LevelSet, LspId
from fared.protocols.isis.lsdb import Lsdb
from fared.protocols.isis.pdu.tlvs import FLAG_READVERTISED
from fared.protocols.isis.ted.fragment_prefixes import says_external
from fared.protocols.isis.ted.node_fragments import NodeFragments

Nodes = Mapping[tuple[Level, NodeId], NodeFragments]
"""The fragments of all nodes, by level."""


def borders(nodes: Nodes, databases: Mapping[Level, Lsdb]) -> Iterator[tuple[Level, NodeId]]:
    """The routers of each level that are in the other one, too, as far as they say so.

    In level 1 the IS type says it (ISO 10589 §9.8). In level 2 all have the same, so only prefixes
    do that were readvertised from level 1 (RFC 7794 §2.1).
    """
    for (level, node_id), node in nodes.items():
        if node_id & 0xFF:
            continue
        if level is Level.ONE:
            entry = databases[level].get(LspId((node_id & ~ISIS_NODE) << 8))
            border = entry is not None and bool(entry.lsp.is_type & LevelSet.TWO)
        else:
            border = _readvertises(node)
        if border:
            yield level, node_id


def _readvertises(node: NodeFragments) -> bool:
    return any(
        (reach.flags or 0) & FLAG_READVERTISED
        for part in node.parts.values()
        for reach in part.prefixes.attributes.values()
    )


def externals(nodes: Nodes) -> Iterator[tuple[NodeId, Prefix]]:
    """The prefixes that routers redistribute (RFC 5308 §2, RFC 7794 §2.1)."""
    for (_, node_id), node in nodes.items():
        for part in node.parts.values():
            for prefix, reach in part.prefixes.attributes.items():
                if says_external(reach):
                    yield node_id, prefix
