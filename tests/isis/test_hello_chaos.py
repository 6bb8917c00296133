"""Links, settings and restarts at random: in the end the expected adjacencies are up."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from fared.protocols.isis.ids import Level, LevelSet
from tests.isis.hellonet import AREA, LAN, OTHER_AREA, P2P, Net, Router, mac

AREAS = ((AREA,), (OTHER_AREA,), (AREA, OTHER_AREA))
STEPS = 25


class Fate:
    """Changes routers, and computes the expected adjacencies."""

    def __init__(self, seed: int, numbers: tuple[int, ...], *, broadcast: bool) -> None:
        self.rng = random.Random(seed)
        self.net = Net(seed)
        self.circuit = LAN if broadcast else P2P
        self.cable = self.net.cable(*((number, 1) for number in numbers))
        # on a LAN a router of both areas would be adjacent to routers that are not adjacent
        self.choices = AREAS[:2] if broadcast else AREAS
        self.settings = dict.fromkeys(numbers, self.circuit)
        self.areas = dict.fromkeys(numbers, (AREA,))
        self.routers: dict[int, Router] = {}
        for number in numbers:
            self.restart(number)

    def restart(self, number: int) -> None:
        """Restart the process within the holding time of its neighbors."""
        self.routers[number] = self.net.add(number, areas=self.areas[number])
        self.net.link(number, self.settings[number])

    def step(self) -> None:
        number = self.rng.choice(list(self.settings))
        match self.rng.randrange(7):
            case 0:
                self.restart(number)
            case 1:
                self.net.link(number, self.settings[number], up=False)
                self.net.run(self.rng.random() * self.rng.choice((0.01, 6)))
                self.net.link(number, self.settings[number])
            case 2:
                levels = LevelSet(self.rng.randrange(1, 4))
                self.change(number, levels=levels)
            case 3:
                self.change(number, priority=self.rng.randrange(128))
            case 4:
                self.change(number, hello_interval=self.rng.choice((0.5, 1.0, 2.0)))
            case 5:
                self.areas[number] = self.rng.choice(self.choices)
                self.net.apply(number, areas=self.areas[number])
            case 6:
                self.cable.loss = self.rng.choice((0.0, 0.0, 0.3, 0.9))
        self.net.run(self.rng.random() * self.rng.choice((0.01, 1, 6)))

    def change(self, number: int, **values) -> None:
        self.settings[number] = replace(self.settings[number], **values)
        self.net.link(number, self.settings[number])

    def expected(self, a: int, b: int) -> LevelSet:
        """Levels in which two routers are adjacent."""
        common = self.settings[a].levels & self.settings[b].levels
        if not set(self.areas[a]) & set(self.areas[b]):
            common &= LevelSet.TWO
        return common


@pytest.mark.parametrize("seed", range(10))
def test_a_pair_agrees_in_the_end(seed):
    fate = Fate(seed, (1, 2), broadcast=False)
    for _ in range(STEPS):
        fate.step()
    fate.cable.loss = 0.0
    fate.net.run(5)
    assert fate.routers[1].up() == fate.routers[2].up() == fate.expected(1, 2)
    for router in fate.routers.values():
        told = {1: False, 2: False}
        for call in router.watcher.take():
            if call[0] == "adjacency":
                assert told[call[3]] is not call[4], "the watcher is told changes and nothing else"
                told[call[3]] = call[4]
        assert told == {level: bool(router.up() & level) for level in (1, 2)}


@pytest.mark.parametrize("seed", range(10))
def test_a_lan_agrees_in_the_end(seed):
    numbers = (1, 2, 3)
    fate = Fate(seed, numbers, broadcast=True)
    for _ in range(STEPS):
        fate.step()
    fate.cable.loss = 0.0
    fate.net.run(12)
    for level in Level:
        for number in numbers:
            expected = {
                other
                for other in numbers
                if other != number and fate.expected(number, other) & level
            }
            router = fate.routers[number]
            if level not in router.circuit().lan:
                assert expected == set()
                continue
            assert router.heard(level) == expected
            ranked = [
                (fate.settings[other].priority, mac(other, 1), other)
                for other in (*expected, number)
            ]
            assert router.dis(level) == (max(ranked)[2] if expected else 0)
