"""The kinds of change that the blocks of an engine cause."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from msgspec.structs import replace

from fared.core.ids import NodeId
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.events import PrefixesUpdated, TedUpdated
from fared.paths.ted.model import NodeBlock, PrefixReachability

_ROOT = NodeId(0xFFFF)
Described = TedUpdated | PrefixesUpdated
"""What an engine says of one router."""


def kinds(updates: Iterable[Described]) -> list[ChangeKind]:
    """The kind of change of each update relative to those before it, per family."""
    solvers = {family: RouteSolver(_ROOT, SolverSettings()) for family in (4, 6)}
    return [
        solvers[u.family].put_prefixes(u.area, u.node, u.changes)
        if isinstance(u, PrefixesUpdated)
        else solvers[u.family].put_block(u.area, u.node, u.block, u.changes)
        for u in updates
    ]


def moves_no_path(updates: Iterable[Described], new: int = 1) -> bool:
    """Whether the last ``new`` updates of these change no link, metric or prefix."""
    return all(kind <= ChangeKind.CAPACITY for kind in kinds(updates)[-new:])


def described(updates: Iterable[Described]) -> dict[tuple[int, NodeId, int], NodeBlock]:
    """The newest block by area, node and family, with all prefixes that the node advertises."""
    blocks: dict[tuple[int, NodeId, int], NodeBlock | None] = {}
    reached: dict[tuple[int, NodeId, int], dict[Hashable, PrefixReachability]] = {}
    for update in updates:
        at = update.area, update.node, update.family
        if isinstance(update, TedUpdated):
            blocks[at] = update.block
        mine = reached.setdefault(at, {})
        mine.update((source, item) for source, item in update.changes.items() if item is not None)
        for source, item in update.changes.items():
            if item is None:
                mine.pop(source, None)
    return {
        at: replace(block, prefixes=(*block.prefixes, *reached[at].values()))
        for at, block in blocks.items()
        if block is not None
    }
