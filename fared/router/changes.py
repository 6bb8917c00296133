"""What each computation was about, by router and link: the changes that people are told in words.

An engine names the LSA or LSP that it read. What it changed is found here, by comparing the blocks
of the routers before and after (``compared``): not at once, since routes come first, but in
portions when there are many, and when somebody asks. ``lost`` remembers the links that went.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from fared.router.compared import Blocks, ComparedRun, Happened, Where
from fared.router.convergence import MOST_RECORDS, PackedRing
from fared.router.lost import LostLinks

if TYPE_CHECKING:
    from fared.paths.ted.events import PrefixesUpdated, TedUpdated
    from fared.paths.ted.model import NodeBlock

PORTION: Final = 64
"""Routers that are compared in one turn."""
_MOST_RUNS: Final = 64


class DatabaseChanges:
    """Collects changed routers, and finds what changed."""

    def __init__(self) -> None:
        self._known: dict[Where, NodeBlock] = {}
        """The present block of each router."""
        self._collected: Blocks = {}
        self._prefixes: dict[Where, int] = {}
        self._first: dict[str, int] = {}
        """The family of each protocol that tells of links, if it has them."""
        self._runs: deque[ComparedRun] = deque()
        self.happened = PackedRing(Happened, MOST_RECORDS)
        self.lost = LostLinks()

    def collect(self, protocol: str, update: TedUpdated, first: int, *, matters: bool) -> None:
        """A router's description has changed; ``matters``: so that something is computed.

        ``first``: the first family of the protocol, where links are told that others have too.
        """
        self._first[protocol] = first
        where, block = Where(protocol, update.area, update.node, update.family), update.block
        before = self._known.get(where)
        if block is not None:
            self._known[where] = block
        elif before is not None:
            del self._known[where]
        known = self._collected.get(where)
        if known is not None:
            self._collected[where] = known[0], block
        elif matters:
            self._collected[where] = before, block

    def collect_prefixes(self, protocol: str, update: PrefixesUpdated) -> None:
        """A router advertises other prefixes than before."""
        where = Where(protocol, update.area, update.node, update.family)
        self._prefixes[where] = self._prefixes.get(where, 0) + len(update.changes)

    def computed(self, at: float) -> None:
        """What was collected is what the computation at ``at`` is about."""
        if self._collected or self._prefixes:
            self._runs.append(ComparedRun(at, self._collected, self._prefixes, self._first))
            self._collected, self._prefixes = {}, {}
        while len(self._runs) > _MOST_RUNS:
            self.settle()

    def settle(self, most: int = PORTION) -> None:
        """Compare up to so many routers."""
        while self._runs and most > 0:
            run = self._runs[0]
            most -= run.compare(most, self._as_of, self.lost)
            if run.done:
                happened = run.happened(self._as_of)
                self._runs.popleft()
                if happened is not None:
                    self.happened.append(happened)

    def settled(self) -> Iterator[None]:
        """Compare all routers; yield between portions."""
        while self._runs:
            self.settle()
            yield

    def _as_of(self, where: Where) -> NodeBlock | None:
        """The block of a router after the first of the runs."""
        for blocks in (*(run.blocks for run in [*self._runs][1:]), self._collected):
            if where in blocks:
                return blocks[where][0]
        return self._known.get(where)
