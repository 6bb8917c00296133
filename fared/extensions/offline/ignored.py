"""The parts of a saved database that are not used, and why, for either protocol."""

from __future__ import annotations

from typing import NamedTuple

from fared.core.ids import format_node
from fared.paths.ted.links import Blocks


class Ignored(NamedTuple):
    """An LSA, LSP, link or node that is not used.

    ``reason``: maxage, checksum, malformed, unsupported, no-first-fragment, one-way, overload
    or unreachable; truncated: FRR has printed its beginning only, which is used.
    """

    key: str
    reason: str


def one_way(blocks: Blocks) -> list[Ignored]:
    """Links without a link back from the far end (RFC 2328 §16.1 (2)(b), ISO 10589 §7.2.8.2)."""
    toward = {node: set(block.neighbors.tolist()) for node, block in blocks.items()}
    return [
        Ignored(f"{format_node(node)} > {format_node(far)}", "one-way")
        for node, neighbors in toward.items()
        for far in sorted(neighbors)
        if node not in toward.get(far, ())
    ]


def overloaded(blocks: Blocks) -> list[Ignored]:
    """Routers that carry no transit traffic (ISO 10589 §7.2.8.1)."""
    return [
        Ignored(format_node(node), "overload")
        for node, block in blocks.items()
        if not block.transit
    ]
