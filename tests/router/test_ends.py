"""Which link ends share the budget of announcements: those that routes could be computed from."""

from __future__ import annotations

from types import SimpleNamespace

from fared.extensions.sim.fabric import clos3
from fared.paths.rib.settings import SolverSettings
from fared.paths.te.budget import AnnounceBudget
from fared.paths.ted.events import EndsCounted
from fared.router.ends import EndsCounter
from tests.ted.fabrics import AREA, Fabric, Link, three_stage


class Counting:
    """Router L1 of a fabric, whose engine has a budget."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.solver = fabric.solver("L1", SolverSettings())
        self.budget = AnnounceBudget(500.0, 0.03)
        engine = SimpleNamespace(budgets={"0.0.0.0": self.budget})
        self.counter = EndsCounter(engine, [self.solver])

    def count(self) -> EndsCounted | None:
        self.solver.solve()
        return self.counter.count()


def test_ends_count_if_both_ends_advertise_the_link_and_it_is_reached():
    fabric = three_stage(3, 4)
    for number in range(1000):
        fabric.node(f"invented {number}")
        fabric.links.append(Link("S1", f"invented {number}", 9000 + number, 0))
    fabric.connect("island 1", "island 2")
    assert Counting(fabric).count() == EndsCounted({AREA: (3, 24)})


def test_ends_without_a_bandwidth_do_not_count():
    fabric = three_stage(3, 4)
    for ends in (("S1", "L2"), ("L2", "S1")):
        fabric.limit(*ends, None)
    assert Counting(fabric).count() == EndsCounted({AREA: (3, 22)})


def test_ends_are_counted_again_only_if_there_are_others_or_other_paths():
    counting = Counting(three_stage(3, 4))
    assert counting.count()
    assert counting.count() is None
    counting.budget.ends.put("one more", 1, 0.0, own=False)
    assert counting.count()
    counting.fabric.cut("S1", "L2")
    for name in ("S1", "L2"):
        block = counting.fabric.block(name)
        counting.solver.put_block(AREA, block.node, block)
    assert counting.count() == EndsCounted({AREA: (3, 22)})


def test_ends_are_counted_a_second_after_the_first_computation(monkeypatch):
    """Not before its routes are planned, and once for changes that come together."""
    fabric = clos3(2, 3)
    network = fabric.network
    network.start_all()
    network.run_until_quiet(60.0, quiet=2.0)
    counted: list[float] = []
    count = EndsCounter.count

    def noted(self: EndsCounter) -> EndsCounted | None:
        counted.append(network.now)
        return count(self)

    monkeypatch.setattr(EndsCounter, "count", noted)
    failed = network.now
    network.set_link(*fabric.links[0], up=False)
    network.run_until_quiet(60.0, quiet=2.0)
    assert len(counted) == len(network.nodes)
    assert min(counted) >= failed + 1.0
