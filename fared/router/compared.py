"""The changes before one computation: the blocks of its routers compared, pair by pair.

A link is there while both ends list it. Where its ends are on a network of two routers, it is one
between these. A router with no link left has left, which says more than each of its links.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from fared.core.ids import NodeId, is_group, is_shared
from fared.paths.ted.differences import differences, links_between
from fared.paths.ted.model import MAX_LINK_METRIC
from fared.router.lost import LostLink, LostLinks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.paths.ted.model import NodeBlock

MOST_CHANGES: Final = 32
_PAIR: Final = 2


class DatabaseChange(msgspec.Struct, frozen=True, array_like=True):
    """One thing that changed; ``end``: of a link, 0 for a router; both values where they count.

    ``what``: ``capacity`` or ``available`` (bytes/s), ``metric``: of the links from ``node``;
    ``lost``, ``new`` or ``back``: links of the pair; ``joined``, ``returned``, ``left``: a router;
    ``drained``, ``undrained``; ``prefixes``: how many it advertises, or (``before`` 0) how many
    of them changed. An unknown value is negative. ``family``: of a group of prefixes of BGP, which
    each family numbers for itself, and of links that changed in this family alone; else 0.
    """

    what: str
    node: int
    end: int = 0
    before: float = 0.0
    after: float = 0.0
    family: int = 0


class Happened(msgspec.Struct, frozen=True, array_like=True):
    """What changed before the computation at ``at`` (router's clock), and how many more things."""

    at: float
    changes: tuple[DatabaseChange, ...]
    more: int


class Between(enum.Enum):
    """What is between two routers: nothing, a network of these two, or one of several."""

    NONE = enum.auto()
    PAIR = enum.auto()
    LAN = enum.auto()


class Where(msgspec.Struct, frozen=True):
    """A router in a database, as routes of a family see it."""

    protocol: str
    area: int
    node: NodeId
    family: int

    def change(
        self, what: str, node: int, end: int = 0, before: float = 0.0, after: float = 0.0
    ) -> DatabaseChange:
        """Return a change in this database: that of a router is the same in all families."""
        family = self.family if is_group(node) or is_group(end) else 0
        return DatabaseChange(what, node, end, before, after, family)


Blocks = dict[Where, "tuple[NodeBlock | None, NodeBlock | None]"]
"""Of each changed router the blocks before and after; None: it is not in the database."""
AsOf = Callable[[Where], "NodeBlock | None"]
"""Looks up the block of a router that a run did not change."""


class ComparedRun:
    """The routers that changed before one computation; ``prefixes`` counts their changed ones.

    ``first``: by protocol, the family that tells of links and routers that others have too.
    """

    def __init__(
        self, at: float, blocks: Blocks, prefixes: dict[Where, int], first: Mapping[str, int]
    ) -> None:
        self.at = at
        self.blocks = blocks
        self._first = first
        self._prefixes = prefixes
        self._left = iter(blocks)
        self._compared = 0
        self._links: dict[DatabaseChange, Where] = {}
        """Links of pairs, and a router of each."""
        self._others: dict[DatabaseChange, None] = {}
        self._listed: dict[Where, DatabaseChange] = {}
        """Prefixes beside the links of a router: told if nothing else is."""

    @property
    def done(self) -> bool:
        """Whether all are compared."""
        return self._compared == len(self.blocks)

    def compare(self, most: int, as_of: AsOf, lost: LostLinks) -> int:
        """Compare up to ``most`` routers; return how many it were."""
        count = 0
        for where in self._left:
            self._compare(where, as_of, lost)
            count += 1
            if count == most:
                break
        self._compared += count
        return count

    def happened(self, as_of: AsOf) -> Happened | None:
        """What changed, once all are compared; None: nothing that people are told."""
        moved = self._moved(as_of)
        found = list(dict.fromkeys(where.change(what, where.node) for where, what in moved.items()))
        gone = {end for change in found for end in _ends(change)}
        found += [c for c in self._links if gone.isdisjoint(_ends(c))]
        pairs = {_ends(change) for change in self._links}
        found += [change for change in self._others if _ends(change) not in pairs]
        shown = {end for change in found for end in _ends(change)}
        listed = (c for w, c in self._listed.items() if self._counterpart(w) not in self._listed)
        found += [change for change in listed if shown.isdisjoint(_ends(change))]
        counted = [w.change("prefixes", w.node, after=n) for w, n in self._prefixes.items()]
        found += [change for change in counted if shown.isdisjoint(_ends(change))]
        more = max(len(found) - MOST_CHANGES, 0)
        return Happened(self.at, tuple(found[:MOST_CHANGES]), more) if found else None

    def _compare(self, where: Where, as_of: AsOf, lost: LostLinks) -> None:
        before, after = self.blocks[where]
        if before is not None and after is not None:
            for end in self._differ(where, before, after):
                self._pair(where, end, as_of, lost)
            return
        either = before or after
        for node in [] if either is None else dict.fromkeys(either.neighbors.tolist()):
            self._pair(where, NodeId(node), as_of, lost)

    def _differ(self, where: Where, before: NodeBlock, after: NodeBlock) -> list[NodeId]:
        """Note the values that differ; return the neighbors to which there are other links."""
        moved = _crossed(before) != _crossed(after)
        if moved:
            self._note(where.change("undrained" if _crossed(after) else "drained", where.node))
        ends = []
        for each in differences(before, after):
            if each.what == "links":
                ends.append(each.end)
            elif not (moved and each.what == "metric"):  # those of a drained router all differ
                values = _number(each.before), _number(each.after)
                self._note(where.change(each.what, where.node, each.end, *values))
        old_prefixes, new_prefixes = set(before.prefixes), set(after.prefixes)
        if old_prefixes != new_prefixes:
            counts = len(old_prefixes), len(new_prefixes)
            self._listed[where] = where.change("prefixes", where.node, 0, *counts)
        return ends

    def _note(self, change: DatabaseChange) -> None:
        self._others[change] = None

    def _both(self, where: Where, as_of: AsOf) -> tuple[NodeBlock | None, NodeBlock | None]:
        """The blocks of any router before and after."""
        known = self.blocks.get(where)
        if known is not None:
            return known
        same = as_of(where)
        return same, same

    def _pair(self, where: Where, end: NodeId, as_of: AsOf, lost: LostLinks) -> None:
        """Note if a pair has fewer links, or more, than before."""
        a, b, was, now, network = self._joined(where, end, as_of)
        if was == now:
            return
        ends = min(a, b), max(a, b)
        change = where.change("lost" if now < was else "new", *ends, was, now)
        told = self._told(where, end, as_of)
        if told is not None:
            if not told:
                self._note(replace(change, family=where.family))
            return
        if change in self._links or replace(change, what="back") in self._links:
            return
        # groups of prefixes are no routers whose links are missed
        missed = not any(map(is_group, ends))
        if missed and was < now and lost.find(where.protocol, where.area, *ends, now - was):
            change = replace(change, what="back")
        self._links[change] = where
        if missed and now < was and network is not Between.LAN:
            found = self._lost(where, change, {where.node, end}, as_of)
            lost.lose(found, network=network is Between.PAIR)

    def _counterpart(self, where: Where) -> Where | None:
        """Return the same router in the first family; None: this is it, or one of a group."""
        first = self._first[where.protocol]
        alone = where.family == first or is_group(where.node) or is_shared(where.node)
        return None if alone else replace(where, family=first)

    def _told(self, where: Where, end: NodeId, as_of: AsOf) -> bool | None:
        """Whether the first family tells that the links of a pair changed.

        None: it is the first, or does not have them. False: there the links are as before.
        """
        other = self._counterpart(where)
        if other is None or self._counterpart(replace(where, node=end)) is None:
            return None
        _, _, was, now, _ = self._joined(other, end, as_of)
        return was != now if was or now else None

    def _joined(
        self, where: Where, end: NodeId, as_of: AsOf
    ) -> tuple[NodeId, NodeId, int, int, Between]:
        """Return the routers that a row joins, their links before and after, what is between."""
        near, far = self._both(where, as_of), self._both(replace(where, node=end), as_of)
        was, now = links_between(near[0], far[0]), links_between(near[1], far[1])
        between = next((both for both in (near, far) if any(n and n.network for n in both)), None)
        if between is None:
            return where.node, end, was, now, Between.NONE
        members = [[] if n is None else n.neighbors.tolist() for n in between]
        most = max(members, key=len)
        if len(most) != _PAIR:
            return where.node, end, was, now, Between.LAN
        ends = [self._both(replace(where, node=member), as_of) for member in most]
        was, now = (
            int(all(links_between(network, end[when]) for end in ends))
            for when, network in enumerate(between)
        )
        return NodeId(most[0]), NodeId(most[1]), was, now, Between.PAIR

    def _lost(
        self, where: Where, change: DatabaseChange, row: set[NodeId], as_of: AsOf
    ) -> LostLink:
        """Describe a lost link; ``row``: its ends, or one of them and the network between."""
        ends = NodeId(change.node), NodeId(change.end)
        through = np.array([*row, *ends])
        blocks = [self._both(replace(where, node=node), as_of) for node in ends]
        names = [next((b.hostname for b in both if b is not None), None) for both in blocks]
        return LostLink(
            protocol=where.protocol,
            area=where.area,
            a=ends[0],
            b=ends[1],
            links=int(change.before - change.after),
            since=self.at,
            names=(names[0], names[1]),
            metrics=(_metric(blocks[0][0], through), _metric(blocks[1][0], through)),
        )

    def _moved(self, as_of: AsOf) -> dict[Where, str]:
        """Return the routers that have no link any more, or had none before, and which of both."""
        found: dict[Where, str] = {}
        linked: dict[tuple[Where, bool], bool] = {}
        for change, where in self._links.items():
            after = change.what == "lost"
            alone = []
            for node in (change.node, change.end):
                at = replace(where, node=NodeId(node))
                if (at, after) not in linked:
                    linked[at, after] = self._linked(at, after=after, as_of=as_of)
                if not linked[at, after]:
                    alone.append(at)
            if len(alone) == 1:  # if it was the last of both, the link says it
                what = {"lost": "left", "back": "returned", "new": "joined"}[change.what]
                found[alone[0]] = what
        return found

    def _linked(self, where: Where, *, after: bool, as_of: AsOf) -> bool:
        """Whether a router had a link before, or has one after."""
        block = self._both(where, as_of)[after]
        return block is not None and any(
            links_between(block, self._both(replace(where, node=NodeId(end)), as_of)[after])
            for end in dict.fromkeys(block.neighbors.tolist())
        )


def _ends(change: DatabaseChange) -> frozenset[tuple[int, int]]:
    """Return what a change is about: a router, or the ends of a link."""
    ends = (node for node in (change.node, change.end) if node)
    return frozenset([(node, change.family if is_group(node) else 0) for node in ends])


def _crossed(block: NodeBlock) -> bool:
    """Whether paths cross a router, other than as a last resort."""
    return block.transit and not block.last_resort


def _metric(block: NodeBlock | None, through: NDArray[np.int64]) -> int:
    """Return the least metric of the rows to any of ``through``."""
    if block is None:
        return 0
    metrics = block.metrics[np.isin(block.neighbors, through)]
    return int(metrics.min(initial=MAX_LINK_METRIC))


def _number(value: float) -> float:
    return -1.0 if math.isnan(value) else value
