"""The fragments of one node and the blocks made of them, as ``builder`` keeps them.

A database has hundreds of nodes, and most of these are small: what is empty is shared.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from fared.paths.ted.model import NodeBlock, PrefixReachability
from fared.protocols.isis.ted.blocks import Changed, first_rows
from fared.protocols.isis.ted.fragment_facts import FragmentFacts, Rows
from fared.protocols.isis.ted.fragment_prefixes import At, place
from fared.protocols.isis.ted.router_prefixes import RouterPrefixes

NO_BLOCKS: Final[Mapping[int, NodeBlock]] = MappingProxyType({})
NO_DEFAULTS: Final[Mapping[int, PrefixReachability]] = MappingProxyType({})
NO_REACHES: Final[Mapping[int, At]] = MappingProxyType({})
NO_BEGINS: Final[Mapping[int | None, Mapping[int, int]]] = MappingProxyType({})


class NodeFragments(msgspec.Struct):
    """The fragments of one node, by number, and the blocks made of them.

    Most nodes lack some of these: what is empty is shared.
    """

    parts: dict[int, FragmentFacts]
    prefixes: RouterPrefixes
    stale: bool = False
    """Whether more than prefixes and bandwidths may have changed."""
    patched: Changed | None = None
    """The rows with other bandwidths, by fragment and topology."""
    blocks: Mapping[int, NodeBlock] = NO_BLOCKS
    defaults: Mapping[int, PrefixReachability] = NO_DEFAULTS
    reaches: Mapping[int, At] = NO_REACHES
    """Topology and family of the prefixes, by family that the node takes part in."""
    first_rows: Mapping[int | None, Mapping[int, int]] = NO_BEGINS
    """What ``begins`` has found since the last blocks were made, by topology."""
    cause: str | None = None
    since: float = 0.0

    def note_rows(self, number: int, rows: Rows) -> None:
        """Record the rows with other bandwidths of a fragment."""
        if self.patched is None:
            if not rows:
                return
            self.patched = {}
        for topology, found in rows.items():
            self.patched.setdefault((number, topology), {}).update(dict.fromkeys(found))

    def begins(self, topology: int | None) -> Mapping[int, int]:
        """The row of the block at which the links of each fragment begin.

        Until new blocks are made the fragments have as many links as before.
        """
        found = self.first_rows.get(topology)
        if found is None:
            found = first_rows(self.parts, topology)
            self.first_rows = {**self.first_rows, topology: found}
        return found


def new_node() -> NodeFragments:
    """A node without fragments."""
    parts: dict[int, FragmentFacts] = {}
    return NodeFragments(parts, RouterPrefixes(parts))


@functools.lru_cache(maxsize=16)
def reaches_of(
    families: tuple[int, ...], topologies: tuple[tuple[int, int | None], ...]
) -> Mapping[int, At]:
    """Topology and family of the prefixes of a router, by family: one object for all such."""
    of = dict(topologies)
    return MappingProxyType({family: place(of[family], family) for family in families})
