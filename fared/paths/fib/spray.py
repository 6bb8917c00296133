"""Packets that leave the path of their flow: the kernel's objects, and how to change them.

A group of next hops hashes flows. With ``granularity: packet`` a sprayed packet gets the mark of
one next hop instead, in smooth round robin by the weights of the group; a rule leads packets with
that mark through that next hop, which is the only route of a table of its own. Number, mark and
table are the id of the next hop. So there is

- a mark (``PutMark``) for each next hop of a sprayed group;
- a round (``PutRound``) for each sprayed group: ids of next hops in the order of packets;
- a block of destinations (``PutBlock``) for each sprayed prefix, without the more specific ones.

All rounds and blocks follow from the installed groups and routes, so they are shared as those are:
a changed weight rewrites one round. A mark without rule or route does no harm, since the lookup
continues in the main table, where the group hashes the packet; this happens when the kernel removes
a next hop with its link.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, NamedTuple

import msgspec

from fared.core.ids import FAMILY_IPV4, Prefix, format_address
from fared.paths.fib.settings import SprayMatch

_BITS = {FAMILY_IPV4: 32}


class Block(NamedTuple):
    """Addresses of a family from ``first`` to ``last``."""

    family: int
    first: int
    last: int

    def __str__(self) -> str:
        return f"{format_address(self.family, self.first)}-{format_address(self.family, self.last)}"


class SprayRound(NamedTuple):
    """Ids of next hops in the order of packets; ``gap``: ms that end a flowlet, 0: each packet.

    Packets of less than ``small`` bytes go round by themselves; 0: all packets go round together.
    """

    order: tuple[int, ...]
    gap: int = 0
    small: int = 0


class PutMatch(msgspec.Struct, frozen=True):
    """Begin anew, for packets with ``match``: whatever the kernel holds goes at the same time."""

    kind: ClassVar[str] = "put-match"
    match: SprayMatch


class DeleteMatch(msgspec.Struct, frozen=True):
    """Remove everything in nftables."""

    kind: ClassVar[str] = "delete-match"


class PutMark(msgspec.Struct, frozen=True):
    """Lead packets with mark ``nexthop_id`` through that next hop, which has a ``family``."""

    kind: ClassVar[str] = "put-mark"
    nexthop_id: int
    family: int


class DeleteMark(msgspec.Struct, frozen=True):
    """Remove the mark of a next hop that no round has."""

    kind: ClassVar[str] = "delete-mark"
    nexthop_id: int


class PutRound(msgspec.Struct, frozen=True):
    """Create or replace the round of a group, which had ``former``."""

    kind: ClassVar[str] = "put-round"
    group_id: int
    round: SprayRound
    former: SprayRound | None = None


class DeleteRound(msgspec.Struct, frozen=True):
    """Remove the round of a group that no block leads to."""

    kind: ClassVar[str] = "delete-round"
    group_id: int
    former: SprayRound


class PutBlock(msgspec.Struct, frozen=True):
    """Spray packets to these addresses by the round of a group."""

    kind: ClassVar[str] = "put-block"
    block: Block
    group_id: int


class DeleteBlock(msgspec.Struct, frozen=True):
    """Stop spraying packets to these addresses."""

    kind: ClassVar[str] = "delete-block"
    block: Block


SprayOperation = (
    PutMatch | DeleteMatch | PutMark | DeleteMark | PutRound | DeleteRound | PutBlock | DeleteBlock
)


class SprayState(msgspec.Struct):
    """``match`` None: nothing in nftables. ``marks``: family of the next hop, by its id.

    The family is 0 if a part of the mark is missing. ``rounds`` are by group id, and ``blocks`` has
    group ids. ``damaged``: nftables holds something else besides, or instead.
    """

    match: SprayMatch | None = None
    marks: dict[int, int] = msgspec.field(default_factory=dict)
    rounds: dict[int, SprayRound] = msgspec.field(default_factory=dict)
    blocks: dict[Block, int] = msgspec.field(default_factory=dict)
    damaged: bool = False

    @property
    def empty(self) -> bool:
        """Whether the kernel holds nothing."""
        return self == SprayState()


def block_of(prefix: Prefix) -> Block:
    """Return the addresses of a prefix."""
    width = _BITS.get(prefix.family, 128) - prefix.length
    return Block(prefix.family, prefix.network, prefix.network | (1 << width) - 1)


def operations_between(before: SprayState, after: SprayState) -> list[SprayOperation]:
    """Return the fewest operations from one state to another, in an order that is valid."""
    if before == after:
        return []
    if after.match is None:
        return [DeleteMatch(), *(DeleteMark(nexthop_id) for nexthop_id in before.marks)]
    return list(_differences(before, after, after.match))


def _differences(
    before: SprayState, after: SprayState, match: SprayMatch
) -> Iterator[SprayOperation]:
    """Create before what refers to it, remove after."""
    if before.match != match or before.damaged:
        yield PutMatch(match)
        before = SprayState(match, dict.fromkeys(before.marks, 0))
    for nexthop_id, family in after.marks.items():
        if before.marks.get(nexthop_id) != family:
            yield PutMark(nexthop_id, family)
    for group_id, wanted in after.rounds.items():
        if before.rounds.get(group_id) != wanted:
            yield PutRound(group_id, wanted, before.rounds.get(group_id))
    yield from _block_differences(before.blocks, after.blocks)
    for group_id, old in before.rounds.items():
        if group_id not in after.rounds:
            yield DeleteRound(group_id, old)
    for nexthop_id in before.marks:
        if nexthop_id not in after.marks:
            yield DeleteMark(nexthop_id)


def _block_differences(
    before: Mapping[Block, int], after: Mapping[Block, int]
) -> Iterator[SprayOperation]:
    """Delete first: in nftables no two blocks of a map overlap."""
    for block, group_id in before.items():
        if after.get(block) != group_id:
            yield DeleteBlock(block)
    for block, group_id in after.items():
        if before.get(block) != group_id:
            yield PutBlock(block, group_id)


def blocks_of(
    holders: Mapping[Prefix, int | None], inside: Iterable[Prefix] = ()
) -> dict[Block, int]:
    """Return disjoint blocks with the group that each address has by longest match.

    ``holders``: the sprayed group of each prefix, None for what is not sprayed. ``inside``: only
    addresses in one of these; empty for all.
    """
    found: dict[Block, int] = {}
    wanted = _merged(inside)
    for block, group_id in _by_longest_match(holders):
        for part in _clipped(block, wanted) if wanted else (block,):
            found[part] = group_id
    return found


def _by_longest_match(holders: Mapping[Prefix, int | None]) -> Iterator[tuple[Block, int]]:
    """Yield what remains of each prefix between the more specific ones, in order."""
    open_: list[tuple[Block, int | None]] = []
    at = 0

    def until(end: int) -> Iterator[tuple[Block, int]]:
        nonlocal at
        block, group_id = open_[-1]
        if at <= end and group_id is not None:
            yield Block(block.family, at, end), group_id
        at = max(at, end + 1)

    for prefix in sorted(holders):
        block = block_of(prefix)
        while open_ and (open_[-1][0].family, open_[-1][0].last) < (block.family, block.first):
            yield from until(open_[-1][0].last)
            open_.pop()
        if open_:
            yield from until(block.first - 1)
        open_.append((block, holders[prefix]))
        at = block.first
    while open_:
        yield from until(open_[-1][0].last)
        open_.pop()


def _merged(prefixes: Iterable[Prefix]) -> list[Block]:
    """Return the addresses of any of the prefixes, as disjoint blocks."""
    return [block for block, _ in _by_longest_match(dict.fromkeys(_outermost(prefixes), 0))]


def _outermost(prefixes: Iterable[Prefix]) -> Iterator[Prefix]:
    last: Prefix | None = None
    for prefix in sorted(prefixes):
        if last is None or not last.covers(prefix):
            last = prefix
            yield prefix


def _clipped(block: Block, wanted: Iterable[Block]) -> Iterator[Block]:
    for part in wanted:
        first, last = max(block.first, part.first), min(block.last, part.last)
        if part.family == block.family and first <= last:
            yield Block(block.family, first, last)
