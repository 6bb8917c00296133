"""Two-tier Clos fabrics of engines of either protocol: spines 1.., leaves 101.., and copies that
cross their links."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.igp.protocols import Protocol


class Clos:
    """Spines 1.., leaves 101.., each link with its own delay; ``options`` are a router's settings.

    It is at rest: all is learned, and ``pause`` seconds have passed.
    """

    def __init__(
        self,
        protocol: Protocol,
        spines: int,
        leaves: int,
        seed: int = 1,
        *,
        options: Callable[[int], dict[str, Any]] = lambda _: {},
        loss: float = 0.0,
        pause: float = 3.0,
    ) -> None:
        self.protocol = protocol
        self.pause = pause
        net = self.net = protocol.network(seed)
        tops, bottoms = range(1, spines + 1), range(101, 101 + leaves)
        for number in (*tops, *bottoms):
            net.add(number, **options(number))
        for bottom in bottoms:
            for top in tops:
                net.join(bottom, top, delay=net.rng.uniform(0.0002, 0.002), loss=loss)
        self.rest()

    def ready(self) -> bool:
        """Whether all neighbors are there, and all databases are equal."""
        return self.protocol.ready(self.net)

    def rest(self) -> None:
        """Wait until all is learned, and for a while."""
        self.net.until(self.ready, every=0.05)
        self.net.run(self.pause)

    def cables_of(self, *ends: int) -> list:
        """The cable between two routers, or all of one."""
        return [c for c in self.net.cables if set(ends) <= {number for number, _ in c.ends}]

    def live_ends(self) -> list[tuple[int, int]]:
        """The routers with a live cable, and its interface index."""
        return sorted(end for cable in self.net.cables if not cable.cut for end in cable.ends)

    def connected(self) -> list[int]:
        """The routers with a live cable."""
        return sorted({number for number, _ in self.live_ends()})

    def change(self, number: int) -> None:
        """Another metric of the first live link of a router."""
        ifindex = min(ifindex for node, ifindex in self.live_ends() if node == number)
        self.protocol.change(self.net, number, ifindex)

    def senders(self, since: int) -> list[int]:
        """The routers that flooded, once for each packet, since a position of the trace."""
        return self.protocol.senders(self.net, since)

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
                for instance in self.protocol.instances(output.payload):
                    found[(to, *instance)] += 1
        return found

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
