"""The delay between an engine's update and the computation."""

from __future__ import annotations

import random

import numpy as np
import pytest
from msgspec.structs import replace

from fared.core.ids import SystemId, isis_node, parse_prefix
from fared.paths.rib.settings import SolverSettings
from fared.paths.ted.events import LocalLinksChanged, TedUpdated
from fared.paths.ted.model import LocalLink, NodeBlock, PathType, PrefixReachability
from fared.paths.weights.adaptation import AdaptationSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.protocols.isis.settings import IsisSettings
from fared.router.adapting import LOAD_GAP, STEP_AFTER
from fared.router.protocols import ISIS
from fared.router.router import Router
from fared.router.schedule import CAPACITY_GAP
from fared.router.settings import RouterSettings
from tests.router.told_engine import Engine

ME, OTHER = isis_node(1), isis_node(2)
FAR = PrefixReachability(parse_prefix("10.2.0.0/24"), 10, PathType.LEVEL_2, capacity=1e9)


def description(of: int, to: int, prefixes=(), capacity: float = 1e9) -> NodeBlock:
    return NodeBlock(
        node=of,
        neighbors=np.array([to], np.int64),
        metrics=np.array([10], np.int64),
        capacities=np.array([capacity]),
        availables=np.array([np.nan]),
        local_ids=np.array([of], np.int64),
        remote_ids=np.array([to], np.int64),
        prefixes=prefixes,
        transit=True,
        hostname=None,
    )


class Timed:
    """A router that runs when it wants to, on a clock of milliseconds."""

    def __init__(self, solver: SolverSettings | None = None) -> None:
        protocols = {ISIS: IsisSettings(SystemId(1), (b"\x49",), families=(4,))}
        settings = RouterSettings(protocols, solver=solver or SolverSettings())
        self.now = 0.0
        self.router = Router(settings, random.Random(1), 0.0, lambda: self.now)
        self.engine = Engine()
        self.router.instances[ISIS].engine = self.engine
        link = LocalLink(1, "eth1", OTHER, 0x0A000002, ME, 10, None)
        self.engine.said.append(LocalLinksChanged(2, (link,), "adjacency", 0.0, 4))
        self.tell(description(ME, OTHER))
        self.tell(description(OTHER, ME, (FAR,)))
        self.run(10)
        assert self.router.instances[ISIS].routes[FAR.prefix].nexthops is not None

    @property
    def computed(self) -> int:
        counts = self.router.journal.counts
        return counts["spf"] + counts["capacity"]

    def tell(self, block: NodeBlock) -> None:
        cause = TedUpdated(2, block.node, block, "lsp", self.now, 4)
        self.engine.said.append(cause)
        self.wake()

    def wake(self) -> None:
        self.router.tick(self.now)
        while self.router.take_outputs():
            pass

    def run(self, seconds: float) -> None:
        """Let time pass, a millisecond at a time."""
        for _ in range(round(seconds * 1000)):
            self.now += 0.001
            deadline = self.router.next_deadline()
            if deadline is not None and deadline <= self.now:
                self.wake()


def loaded(available: float) -> NodeBlock:
    block = description(OTHER, ME, (FAR,))
    return replace(block, availables=np.array([available]))


@pytest.mark.parametrize(("period", "most"), [(1.0, 1 / 0.9), (0.01, 1 / LOAD_GAP)])
def test_a_storm_of_loads_is_computed_with_the_steps_of_the_weights(period, most):
    """At most ten times a second, whatever the period; a lost link in between at once."""
    adaptation = AdaptationSettings(period=period)
    timed = Timed(SolverSettings(mode=WeightMode.AVAILABLE, adaptation=adaptation))
    timed.tell(loaded(1e9))
    timed.run(2)
    before, runs = timed.computed, []
    for number in range(3000):
        timed.tell(loaded(5e8 + 1e5 * number))
        timed.run(0.001)
        if timed.computed > before + len(runs):
            runs.append(timed.now)
    assert 2 <= len(runs) <= 3 * most + 1
    before = timed.computed
    timed.tell(loaded(1e6))
    assert timed.computed == before
    timed.tell(_without_links(loaded(1e6)))
    assert timed.computed == before + 1


def test_weights_take_their_step_in_a_turn_after_the_loads_were_computed():
    """No turn takes as long as both; the period counts from when the step was due."""
    adaptation = AdaptationSettings(period=1.0, jitter=0.0)
    timed = Timed(SolverSettings(mode=WeightMode.AVAILABLE, adaptation=adaptation))
    clock = timed.router.adaptation
    timed.tell(loaded(1e9))
    timed.run(2.5)
    due = clock.next_at
    for number in range(3):
        timed.tell(loaded(5e8 + 1e8 * number))
        before = timed.computed
        while timed.computed == before:
            timed.run(0.001)
        assert timed.now == pytest.approx(due + number, abs=0.004)
        assert clock.next_at == pytest.approx(timed.now + STEP_AFTER)
        timed.tell(loaded(4e8))  # this is computed with the next step
        timed.run(STEP_AFTER + 0.001)
        assert timed.computed == before + 1
        assert clock.next_at == pytest.approx(due + number + 1, abs=0.004)


def _without_links(block: NodeBlock) -> NodeBlock:
    whole, real = np.empty(0, np.int64), np.empty(0)
    ends = {"neighbors": whole, "metrics": whole, "local_ids": whole, "remote_ids": whole}
    return replace(block, **ends, capacities=real, availables=real)


def announcing(capacity: float) -> NodeBlock:
    return description(OTHER, ME, (replace(FAR, capacity=capacity),))


def test_a_capacity_announced_with_a_prefix_counts_at_once():
    """The first after a quiet time, and the last of a few that come together."""
    timed = Timed()
    before = timed.computed
    timed.tell(announcing(5e8))
    assert timed.computed == before + 1
    timed.run(0.002)
    timed.tell(announcing(4e8))
    timed.run(CAPACITY_GAP + 0.002)
    (hop,) = timed.router.instances[ISIS].routes[FAR.prefix].nexthops.hops
    assert hop.capacity == pytest.approx(4e8)


def test_a_storm_of_announced_capacities_is_computed_a_few_times_a_second():
    """They move with load far away. Capacities of links are still followed at once."""
    timed = Timed()
    before = timed.computed
    for step in range(300):
        timed.tell(announcing(1e9 - 1e6 * step))
        timed.run(0.01)
    storm = timed.computed - before
    assert storm <= 3.0 / 0.2 + 0.5 / CAPACITY_GAP
    before = timed.computed
    timed.tell(announcing(1e8))
    assert timed.computed == before
    timed.tell(description(OTHER, ME, (replace(FAR, capacity=1e8),), capacity=2e8))
    timed.run(CAPACITY_GAP + 0.002)
    assert timed.computed == before + 1
