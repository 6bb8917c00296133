"""Clos fabrics that flood dynamically (RFC 9667): their links fail and heal, and the copies that
each router is sent are counted."""

import random
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from fared.protocols.igp.dynamic_flooding import CALM, SENT_AFTER
from fared.protocols.igp.reduction import Reduction, ReductionSettings
from tests.igp.clos import Clos
from tests.igp.protocols import Protocol

DYNAMIC = ReductionSettings(Reduction.DYNAMIC)
CONVERGENCE = 0.02
"""The time in seconds in which a change reaches all routers."""


class SparseFlooding(Clos):
    """Routers ``without`` do not take part; at rest the topology for flooding is computed."""

    def __init__(
        self,
        protocol: Protocol,
        spines: int,
        leaves: int,
        seed: int = 1,
        *,
        without: Collection[int] = (),
    ) -> None:
        super().__init__(
            protocol,
            spines,
            leaves,
            seed,
            options=lambda number: {} if number in without else {"reduction": DYNAMIC},
            pause=CALM + 2,
        )

    def any_connected(self) -> int:
        """One router with a live cable, at random."""
        return self.net.rng.choice(self.connected())

    def synced(self) -> bool:
        """Whether all routers with a live cable have the same database."""
        first, *others = self.connected()
        return all(self.net.database(n) == self.net.database(first) for n in others)

    def flooded(self, number: int) -> Counter:
        """The copies of a change of one router, which all others have within ``convergence``."""
        before, at = len(self.net.trace), self.net.now
        self.change(number)
        self.net.run(0.001)
        return self._settled(before, at, CONVERGENCE, every=0.002)

    def failed(self, cables: list, within: float) -> Counter:
        """The copies of what a failure causes; all databases are equal within a time."""
        before, at = len(self.net.trace), self.net.now
        for cable in cables:
            self.net.set_up(cable, False)
        return self._settled(before, at, within, every=0.005)

    def _settled(self, before: int, at: float, within: float, every: float) -> Counter:
        self.net.until(self.synced, every=every)
        assert self.net.now - at < within
        self.net.run(SENT_AFTER + 0.5)
        return self.copies(before)

    def healed(self, cables: list) -> None:
        """Heal cables, and wait for rest."""
        for cable in cables:
            self.net.set_up(cable, True)
        self.rest()

    def single_failures(self) -> list[list]:
        """Each link, and all links of each router."""
        return [[c] for c in self.net.cables] + [self.cables_of(n) for n in self.net.nodes]

    def double_failures(self, count: int, *leaves: int) -> list[list]:
        """Pairs of links: random ones, all of a leaf to two spines, two spines and two leaves."""
        rng = random.Random(7)
        pairs = [rng.sample(self.net.cables, 2) for _ in range(count)]
        pairs += [self.cables_of(leaf, 1) + self.cables_of(leaf, 2) for leaf in leaves]
        return [
            *pairs,
            self.cables_of(1) + self.cables_of(2),
            self.cables_of(101) + self.cables_of(102),
        ]

    def pass_nothing_on(self, *liars: int) -> Callable[[], None]:
        """Let routers acknowledge everything, and flood nothing; return what ends that."""
        net = self.net
        carry = net.carry

        def carry_without_lies(end: tuple[int, int], frame: Any) -> None:
            if end[0] not in liars or not self.protocol.floods(net.trace[-1][2].payload):
                carry(end, frame)

        net.carry = carry_without_lies
        return partial(setattr, net, "carry", carry)

    def lied_to(self, *liars: int) -> None:
        """Changes of a leaf and of a spine reach all routers all the same, within ten seconds.

        So does a lost link, whose LSA is flushed.
        """
        honest = self.pass_nothing_on(*liars)
        lost = self.cables_of(104, 3)
        try:
            for number in (104, 3):
                self.change(number)
                self.net.run(10.0)
                assert self.synced(), f"a change of {number}"
            self.net.set_up(*lost, False)
            self.net.run(10.0)
            assert self.synced(), "a lost link"
        finally:
            honest()
            self.healed(lost)


def most(found: Counter) -> int:
    """The most copies of one instance that one router was sent."""
    return max(found.values(), default=0)
