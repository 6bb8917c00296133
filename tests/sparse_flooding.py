"""What the tests of dynamic flooding (RFC 9667) of both protocols share: a Clos fabric whose links
fail and heal, and the copies that each router is sent."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from fared.protocols.igp.dynamic_flooding import CALM, SENT_AFTER
from fared.protocols.igp.reduction import Reduction, ReductionSettings
from tests.engines import EngineNetwork

DYNAMIC = ReductionSettings(Reduction.DYNAMIC)


class SparseFlooding:
    """What differs by protocol: ``ready``, ``change`` and ``instances`` are given by subclasses."""

    convergence = 0.02
    """The time in seconds in which a change reaches all routers."""

    floods: tuple[int, ...] = ()
    """The types of packets that flood."""

    def __init__(self, net: EngineNetwork) -> None:
        self.net: Any = net

    def ready(self) -> bool:
        """Whether all neighbors are there, and all databases are equal."""
        raise NotImplementedError

    def change(self, number: int) -> None:
        """Another metric of one live link of a router."""
        raise NotImplementedError

    def instances(self, payload: bytes) -> Iterator[tuple]:
        """What a packet floods: ids with sequence numbers."""
        raise NotImplementedError

    def build(self, spines: int, leaves: int, without=()) -> None:
        """Spines 1.., leaves 101.., each link with its own delay; ``without`` do not take part."""
        net = self.net
        tops, bottoms = range(1, spines + 1), range(101, 101 + leaves)
        for number in (*tops, *bottoms):
            net.add(number, **({} if number in without else {"reduction": DYNAMIC}))
        for bottom in bottoms:
            for top in tops:
                net.join(bottom, top, delay=net.rng.uniform(0.0002, 0.002))
        self.rest()

    def rest(self) -> None:
        """Wait until all is learned and the topology for flooding is computed."""
        self.net.until(self.ready, every=0.05)
        self.net.run(CALM + 2)

    def cables_of(self, *ends: int) -> list:
        """The cable between two routers, or all of one."""
        return [c for c in self.net.cables if set(ends) <= {number for number, _ in c.ends}]

    def live_ends(self) -> list[tuple[int, int]]:
        """The routers with a live cable, and its interface index."""
        return sorted(end for cable in self.net.cables if not cable.cut for end in cable.ends)

    def connected(self) -> list[int]:
        """The routers with a live cable."""
        return sorted({number for number, _ in self.live_ends()})

    def first_interface(self, number: int) -> int:
        """The interface index of the first live link of a router."""
        return min(ifindex for node, ifindex in self.live_ends() if node == number)

    def any_connected(self) -> int:
        """One router with a live cable, at random."""
        return self.net.rng.choice(self.connected())

    def synced(self) -> bool:
        """Whether all routers with a live cable have the same database."""
        first, *others = self.connected()
        return all(self.net.database(n) == self.net.database(first) for n in others)

    def copies(self, since: int) -> Counter:
        """How often each router was sent each instance, by (router, id, sequence number)."""
        far = {}
        for cable in self.net.cables:
            if not cable.cut:
                a, b = cable.ends
                far[a], far[b] = b[0], a[0]
        found = Counter()
        for _, node, output in self.net.trace[since:]:
            to = far.get((node, output.ifindex))
            if to is not None:
                for instance in self.instances(output.payload):
                    found[(to, *instance)] += 1
        return found

    def flooded(self, number: int) -> Counter:
        """The copies of a change of one router, which all others have within ``convergence``."""
        before, at = len(self.net.trace), self.net.now
        self.change(number)
        self.net.run(0.001)
        return self._settled(before, at, self.convergence, every=0.002)

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
            sent = net.trace[-1][2].payload[net.kind_at] & net.kind_mask
            if end[0] not in liars or sent not in self.floods:
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

    def storm(self, rng: random.Random, patience: float) -> None:
        """Links lose packets, fail and heal at random while metrics change; then all is healed."""
        net = self.net
        for cable in net.cables:
            cable.loss = rng.choice((0.0, 0.0, 0.2))
        down: list = []
        for _ in range(20):
            if rng.random() < 0.4 and len(down) < 4:
                down.append(rng.choice([cable for cable in net.cables if not cable.cut]))
                net.set_up(down[-1], False)
            elif down and rng.random() < 0.5:
                net.set_up(down.pop(rng.randrange(len(down))), True)
            elif connected := self.connected():
                self.change(rng.choice(connected))
            net.run(rng.choice((0.0, 0.01, 0.1, 0.5, 2.0)))
        for cable in down:
            net.set_up(cable, True)
        for cable in net.cables:
            cable.loss = 0.0
        net.until(self.ready, patience, every=0.25)
        net.run(10)


def most(found: Counter) -> int:
    """The most copies of one instance that one router was sent."""
    return max(found.values(), default=0)
