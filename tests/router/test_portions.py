"""A step of the weights in portions, between which other changes are computed."""

from __future__ import annotations

import random

import numpy as np

from fared.core.ids import SystemId, isis_node, parse_prefix
from fared.paths.fib.model import FibOperation, PutGroup
from fared.paths.fib.simulated import SimulatedFib
from fared.paths.rib.settings import SolverSettings
from fared.paths.ted.events import LocalLinksChanged, TedUpdated
from fared.paths.ted.model import LocalLink, NodeBlock, PathType, PrefixReachability
from fared.paths.weights.adaptation import AdaptationSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.protocols.igp import events as igp
from fared.protocols.isis.settings import IsisSettings
from fared.router import events
from fared.router.protocols import ISIS
from fared.router.router import Router
from fared.router.settings import RouterSettings
from tests.router.told_engine import Engine

ME, SPINES = isis_node(1), (isis_node(2), isis_node(3), isis_node(4))
LEAVES = tuple(isis_node(10 + number) for number in range(40))
PREFIXES = [parse_prefix(f"10.0.{number}.0/24") for number in range(len(LEAVES))]
OF_ONE = 8
"""Vectors in a portion."""
AT_ONCE = 1000
CAPACITY = 1e9


def block(node: int, neighbors: list[int], left: list[float], prefix=None) -> NodeBlock:
    count = len(neighbors)
    known = () if prefix is None else (PrefixReachability(prefix, 10, PathType.LEVEL_2),)
    return NodeBlock(
        node=node,
        neighbors=np.array(neighbors, np.int64),
        metrics=np.full(count, 10, np.int64),
        capacities=np.full(count, CAPACITY),
        availables=np.array(left),
        local_ids=np.zeros(count, np.int64),
        remote_ids=np.zeros(count, np.int64),
        prefixes=known,
        transit=True,
        hostname=None,
    )


def local(spine: int) -> LocalLink:
    number = SPINES.index(spine) + 1
    return LocalLink(number, f"eth{number}", spine, 0x0A000000 + number, ME, 10, None)


class Leaf:
    """A router before spines and leaves, on a clock of milliseconds, with a simulated kernel."""

    def __init__(self, portion: int = OF_ONE) -> None:
        """``portion``: how many vectors one turn programs."""
        adaptation = AdaptationSettings(period=1.0, jitter=0.0, time_constant=0.0)
        solver = SolverSettings(mode=WeightMode.AVAILABLE, adaptation=adaptation)
        protocols = {ISIS: IsisSettings(SystemId(1), (b"\x49",), families=(4,))}
        self.now = 0.0
        settings = RouterSettings(protocols, solver=solver)
        self.router = Router(settings, random.Random(1), 0.0, lambda: self.now)
        self.router.adaptation.portion = portion * len(SPINES)
        self.engine = self.router.instances[ISIS].engine = Engine(neighbors=len(SPINES))
        self.kernel = SimulatedFib()
        self.left = {(s, leaf): CAPACITY for s in SPINES for leaf in LEAVES}
        self.lost: set[tuple[int, int]] = set()
        self.turns: list[list[FibOperation]] = []
        """What each wakeup wrote, if anything."""
        self.batches: list[list[str]] = []
        """The causes of what was written without computing more between."""
        links = tuple(local(spine) for spine in SPINES)
        self.engine.said.append(LocalLinksChanged(2, links, "adjacency", 0.0, 4))
        self.flood(block(ME, list(SPINES), [CAPACITY] * len(SPINES)))
        for number, leaf in enumerate(LEAVES):
            left = [CAPACITY] * len(SPINES)
            self.flood(block(leaf, list(SPINES), left, PREFIXES[number]))
        self.tell_spines()
        self.run(5.0)
        assert set(self.kernel.state.routes) == set(PREFIXES)
        self.turns.clear()

    def flood(self, described: NodeBlock) -> None:
        """Have the engine report a block in the next wakeup."""
        said = TedUpdated(2, described.node, described, "lsp", self.now, 4)
        self.engine.said.append(said)

    def tell_spines(self) -> None:
        """Flood the links of the spines as they are now."""
        for spine in SPINES:
            leaves = [leaf for leaf in LEAVES if (spine, leaf) not in self.lost]
            left = [self.left[spine, leaf] for leaf in leaves]
            self.flood(block(spine, [ME, *leaves], [CAPACITY, *left]))
        self.wake()

    def load(self, seed: int) -> None:
        """Have other loads on all links from spines to leaves; all shares change."""
        dice = random.Random(seed)
        busy = dice.choice(SPINES)
        for spine, leaf in self.left:
            low, high = (0.2, 0.3) if spine == busy else (0.5, 0.9)
            self.left[spine, leaf] = CAPACITY * dice.uniform(low, high)
        self.tell_spines()

    def wake(self) -> None:
        """A timer fires: do what is due, and write it."""
        self.router.tick(self.now)
        self.flush()

    def flush(self) -> None:
        written: list[FibOperation] = []
        while outputs := self.router.take_outputs():
            causes = [each.cause for each in outputs if isinstance(each, events.ApplyFib)]
            self.batches += [causes] if causes else []
            for output in outputs:
                if isinstance(output, events.ApplyFib):
                    written += output.operations
                    results = tuple(self.kernel.apply(output.operations))
                    assert not any(result.error for result in results)
                    self.router.handle(events.FibApplied(output, results), self.now)
        if written:
            self.turns.append(written)

    def run(self, seconds: float) -> None:
        """Let time pass, a millisecond at a time."""
        for _ in range(round(seconds * 1000)):
            self.pass_on()

    def pass_on(self) -> None:
        """Let a millisecond pass."""
        self.now += 0.001
        deadline = self.router.next_deadline()
        if deadline is not None and deadline <= self.now:
            self.wake()

    def until_written(self) -> None:
        """Let time pass until something is written."""
        before = len(self.turns)
        while len(self.turns) == before:
            self.pass_on()
            assert self.now < 100.0

    def paths(self) -> list[dict[object, int] | None]:
        """The next hops and weights of all prefixes in the kernel."""
        return [self.kernel.path(prefix) for prefix in PREFIXES]

    def spines_of(self, leaf: int) -> set[int]:
        """The spines over which the kernel reaches a leaf."""
        path = self.kernel.path(PREFIXES[LEAVES.index(leaf)])
        assert path is not None
        return {SPINES[hop[0] - 1] for hop in path}

    def changed(self, before: list[dict[object, int] | None]) -> list[int]:
        """The leaves whose paths differ from ``before``."""
        pairs = zip(LEAVES, before, self.paths(), strict=True)
        return [leaf for leaf, old, new in pairs if old != new]


def test_a_step_is_written_in_portions_each_in_a_turn_of_its_own():
    leaf = Leaf()
    leaf.load(1)
    leaf.run(1.2)
    groups = [sum(isinstance(one, PutGroup) for one in turn) for turn in leaf.turns]
    assert groups == [OF_ONE] * (len(LEAVES) // OF_ONE)
    assert leaf.router.journal.counts["adaptation"] == 1


def test_no_portion_is_programmed_while_packets_are_read():
    """Only a timer makes a portion due: ``receive`` and what follows it never take as long."""
    leaf = Leaf()
    leaf.load(1)
    leaf.until_written()
    for _ in range(10):
        leaf.now += 0.001
        leaf.router.receive(ISIS, iter(()), leaf.now)
        leaf.flush()
    assert len(leaf.turns) == 1
    leaf.wake()
    assert len(leaf.turns) == 2


def test_portions_end_at_the_weights_of_a_step_at_once():
    whole, divided = Leaf(portion=AT_ONCE), Leaf()
    for seed in range(3):
        for leaf in (whole, divided):
            leaf.load(seed)
            leaf.run(1.2)
        assert divided.paths() == whole.paths()
        assert len({tuple(sorted(path.items())) for path in whole.paths()}) > len(LEAVES) / 2
    assert len(divided.turns) > 2 * len(whole.turns)


def test_a_link_that_is_lost_between_two_portions_is_acted_on_before_the_next():
    """What was not yet programmed follows with the weights of its own, now other, paths."""
    leaf = Leaf()
    before = leaf.paths()
    leaf.load(1)
    leaf.until_written()
    done = leaf.changed(before)
    assert len(done) == OF_ONE
    waiting = next(one for one in LEAVES if one not in done)
    for lost in (waiting, done[0]):
        leaf.lost.add((SPINES[0], lost))
    leaf.turns.clear()
    leaf.tell_spines()
    assert len(leaf.turns) == 1
    for lost in (waiting, done[0]):
        assert leaf.spines_of(lost) == set(SPINES[1:])
    assert len(leaf.changed(before)) < len(LEAVES) / 2
    for _ in range(100):
        leaf.pass_on()
        for lost in (waiting, done[0]):
            assert leaf.spines_of(lost) == set(SPINES[1:])
    assert leaf.changed(before) == list(LEAVES)


def test_a_lost_link_is_written_before_a_portion_that_is_due_with_it_is_programmed():
    leaf = Leaf()
    leaf.load(1)
    leaf.until_written()
    leaf.batches.clear()
    leaf.now += 0.01
    leaf.lost.add((SPINES[0], LEAVES[0]))
    leaf.tell_spines()
    assert leaf.batches == [["lsp"], ["load"]]


def test_after_a_link_was_lost_between_portions_all_weights_are_those_of_a_step_at_once():
    whole, divided = Leaf(portion=AT_ONCE), Leaf()
    for leaf in (whole, divided):
        leaf.load(1)
        leaf.until_written()
        leaf.lost.update({(SPINES[0], LEAVES[0]), (SPINES[1], LEAVES[-1])})
        leaf.tell_spines()
        leaf.run(2.5)
    assert divided.paths() == whole.paths()


def test_no_portion_writes_a_next_hop_of_a_local_link_that_was_lost_before_it():
    leaf = Leaf()
    leaf.load(1)
    leaf.until_written()
    leaf.turns.clear()
    leaf.kernel.link_down(1)
    leaf.router.handle(igp.LinkRemoved(1), leaf.now)
    remaining = tuple(local(spine) for spine in SPINES[1:])
    leaf.engine.said.append(LocalLinksChanged(2, remaining, "link-lost", leaf.now, 4))
    leaf.flush()
    for _ in range(100):
        leaf.pass_on()
        assert all(leaf.spines_of(one) == set(SPINES[1:]) for one in LEAVES)
    assert leaf.turns


def test_prefixes_withdrawn_between_two_portions_stay_away():
    leaf = Leaf()
    before = leaf.paths()
    leaf.load(1)
    leaf.until_written()
    done = leaf.changed(before)
    waiting = next(one for one in LEAVES if one not in done)
    prefix = PREFIXES[LEAVES.index(waiting)]
    leaf.flood(block(waiting, list(SPINES), [CAPACITY] * len(SPINES)))
    leaf.run(2.5)
    assert leaf.kernel.path(prefix) is None
    others = [path for at, path in zip(PREFIXES, leaf.paths(), strict=True) if at != prefix]
    assert all(path is not None and len(path) == len(SPINES) for path in others)
    instance = leaf.router.instances[ISIS]
    assert not instance.unprogrammed
