"""The routes of a protocol, and of the table that follows them, while weights begin and cease to
follow load: each change is reported, and nothing else is."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import Prefix
from fared.paths.rib.adapted import AdaptedRoutes
from fared.paths.rib.model import Route, RouteDelta
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import WeightMode
from fared.paths.rib.table import RoutingTable
from fared.paths.ted.model import NodeBlock
from fared.paths.weights.adaptation import AdaptationSettings
from fared.router.instance import ProtocolInstance
from fared.router.protocols import RoutingProtocol, Started
from tests.router.told_engine import Engine
from tests.ted.fabrics import AREA, three_stage

DAMPED = AdaptationSettings(time_constant=3.0, dead_band=0.0)
CAPACITY = SolverSettings()
LOAD = SolverSettings(mode=WeightMode.AVAILABLE, adaptation=DAMPED)
OTHER_LOAD = replace(LOAD, adaptation=replace(DAMPED, floor=0.3))
FEW_PATHS = replace(LOAD, max_paths=2)
MODES = (CAPACITY, LOAD, OTHER_LOAD, FEW_PATHS)
ALL = 10**6


class Leaf:
    """A leaf with one protocol or several, of the same fabric, and the table of all."""

    def __init__(self, wanted: SolverSettings, families: tuple[int, ...], *names: str) -> None:
        self.fabric, self.whole = three_stage(3, 4), three_stage(3, 4)
        root = self.fabric.id("L1")
        protocol = RoutingProtocol(
            "told", "Told", "", "", "", 1, str, lambda _, __: Started(Engine(), root, families)
        )
        self.instances = {
            name: ProtocolInstance(protocol, None, random.Random(1), wanted) for name in names
        }
        self.table = RoutingTable()
        for name, instance in self.instances.items():
            self.table.follow(name, instance)
        self.held: dict[Prefix, Route] = {}
        self.apply(self.table.prefer({name: at for at, name in enumerate(names)}))
        for name in names:
            self.tell(name)

    def __getitem__(self, name: str) -> ProtocolInstance:
        return self.instances[name]

    def tell(self, name: str) -> None:
        """Flood the fabric as it is in one protocol."""
        for family, solver in self[name].solvers.items():
            for node in self.fabric.names:
                block = of_family(self.fabric.block(node), family)
                solver.put_block(AREA, block.node, block)
            solver.set_local_links(AREA, self.fabric.local_links("L1"))

    def load(self, spine: str, available: float) -> None:
        """Leave so much of the links of a spine."""
        for link in self.fabric.links:
            if spine in (link.tail, link.head):
                link.available = available

    def solve(self, name: str) -> RouteDelta:
        """Compute; check that the instance reports the difference, and so does the table."""
        before = dict(self[name].routes.items())
        changed, _ = self[name].solve()
        return self.check(name, before, changed)

    def step(self, name: str, most: int = ALL) -> RouteDelta:
        """Let weights follow load."""
        self[name].step(1.0, stale=False)
        before, changed = dict(self[name].routes.items()), self[name].program(most)
        return self.check(name, before, changed)

    def check(self, name: str, before: Mapping[Prefix, Route], changed: RouteDelta) -> RouteDelta:
        now = self[name].routes
        assert changed == {
            at: now.get(at)
            for at in dict.fromkeys((*before, *now))
            if before.get(at) is not now.get(at)
        }
        self.apply(self.table.take(changed))
        return changed

    def apply(self, changed: RouteDelta) -> None:
        """Follow the table by its changes; each must be one."""
        for prefix, route in changed.items():
            assert self.held.get(prefix) is not route
            if route is None:
                del self.held[prefix]
            else:
                self.held[prefix] = route
        routes = self.table.routes
        assert self.held.keys() == routes.keys()
        assert all(routes[prefix] is route for prefix, route in self.held.items())


def of_family(block: NodeBlock, family: int) -> NodeBlock:
    if family == 4:
        return block
    prefixes = [replace(p, prefix=Prefix(6, p.prefix.network << 96, 64)) for p in block.prefixes]
    return replace(block, prefixes=tuple(prefixes))


def weights(routes: Mapping[Prefix, Route], prefix: Prefix) -> tuple[int, ...]:
    hops = routes[prefix].nexthops
    assert hops is not None
    return tuple(hop.weight for hop in hops.hops)


_STEPS = st.tuples(
    st.sampled_from(["load", "cut", "uncut", "prefix", "mode", "solve", "solve", "step", "prefer"]),
    st.integers(0, 10**6),
)


@settings(max_examples=100)
@given(
    st.sampled_from([(4,), (4, 6)]),
    st.sampled_from([("a",), ("a", "b")]),
    st.sampled_from(MODES),
    st.lists(_STEPS, max_size=20),
)
def test_all_changes_are_reported_and_nothing_else_in_any_order(families, names, mode, steps):
    leaf = Leaf(mode, families, *names)
    for what, draw in steps:
        name, link = names[draw % len(names)], leaf.whole.links[draw % len(leaf.whole.links)]
        match what:
            case "load":
                leaf.load(f"S{1 + draw % 3}", (10.0, 200.0, 399.0)[draw % 7 % 3])
            case "cut":
                leaf.fabric.cut(link.tail, link.head)
            case "uncut":
                leaf.fabric.links = list(leaf.whole.links)
            case "prefix":
                items = leaf.fabric.prefixes[f"L{2 + draw % 3}"]
                items[1:] = [replace(items[0], prefix=Prefix(4, draw << 8, 24))] * (draw % 2)
            case "mode":
                leaf[name].apply_settings(MODES[draw % len(MODES)])
            case "solve":
                leaf.tell(name)
                leaf.solve(name)
                assert leaf[name].routes.keys() == leaf[name]._solved.keys()
                if not leaf[name].adapted:
                    assert leaf[name].routes is leaf[name]._solved
            case "step":
                leaf.step(name, 1 if draw % 2 else ALL)
            case _:
                leaf.apply(leaf.table.prefer({at: (draw >> n) % 3 for n, at in enumerate(names)}))


@pytest.mark.parametrize("families", [(4,), (4, 6)])
def test_the_table_has_the_routes_of_the_solvers_and_no_copy(families):
    leaf = Leaf(CAPACITY, families, "a")
    leaf.solve("a")
    instance = leaf["a"]
    for prefix, route in instance.routes.items():
        assert instance.solvers[prefix.family].routes[prefix] is route
    assert leaf.table.routes is instance.routes
    assert len(instance.routes) == len(families) * 7
    if len(families) == 1:
        assert instance.routes is instance.solver.routes


def test_weights_begin_to_follow_load_at_the_routes_that_are_programmed():
    leaf = Leaf(CAPACITY, (4,), "a")
    leaf.solve("a")
    to, before = leaf.fabric.prefix("L2"), dict(leaf.table.routes.items())
    leaf.load("S1", 100.0)
    leaf.tell("a")
    leaf["a"].apply_settings(LOAD)
    assert dict(leaf.table.routes.items()) == before, "nothing is computed yet"
    assert leaf.fabric.prefix("S2") not in leaf.solve("a")
    assert weights(leaf.table.routes, to) == (1, 4, 4)
    leaf.load("S1", 400.0)
    leaf.tell("a")
    leaf.solve("a")
    leaf.step("a")
    least, most, _ = weights(leaf.table.routes, to)
    assert 1 / 4 < least / most < 1, "it goes on in steps"


def test_weights_cease_to_follow_load_with_the_next_run():
    leaf = Leaf(LOAD, (4,), "a")
    for available in (400.0, 100.0):
        leaf.load("S1", available)
        leaf.tell("a")
        leaf.solve("a")
    leaf.step("a")
    to, gone = leaf.fabric.prefix("L2"), leaf.fabric.prefix("L3")
    before = dict(leaf.table.routes.items())
    assert weights(before, to) not in ((1, 1, 1), weights(leaf["a"].solver.routes, to))
    leaf["a"].apply_settings(CAPACITY)
    assert leaf["a"].program(ALL) == {}
    assert dict(leaf.table.routes.items()) == before
    leaf["a"].solver.put_block(AREA, leaf.fabric.id("L3"), None)
    changed = leaf.solve("a")
    assert changed[gone] is None
    assert weights(leaf.table.routes, to) == (1, 1, 1)
    assert leaf.table.routes is leaf["a"].solver.routes


def test_weights_that_follow_load_with_other_settings_go_on_from_the_same_routes():
    leaf = Leaf(LOAD, (4,), "a")
    leaf.load("S1", 1.0)
    leaf.tell("a")
    leaf.solve("a")
    leaf.step("a")
    programmed = leaf.table.routes
    leaf["a"].apply_settings(CAPACITY)
    leaf["a"].apply_settings(OTHER_LOAD)
    assert leaf.table.routes is programmed
    leaf.solve("a")
    leaf.step("a")
    assert leaf.table.routes is programmed


def test_weights_that_begin_to_follow_load_do_so_where_nothing_has_changed(monkeypatch):
    """All prefixes join their vectors then; later only those that change are looked at."""
    looked_at: list[int] = []
    take = AdaptedRoutes.take

    def counted(self, changed, **others):
        looked_at.append(len(changed))
        return take(self, changed, **others)

    monkeypatch.setattr(AdaptedRoutes, "take", counted)
    leaf = Leaf(CAPACITY, (4,), "a")
    leaf.solve("a")
    leaf["a"].apply_settings(LOAD)
    assert leaf.solve("a") == {}
    leaf.solve("a")
    assert looked_at == [len(leaf.table.routes), 0]
    leaf.load("S1", 100.0)
    leaf.tell("a")
    leaf.solve("a")
    assert leaf.fabric.prefix("L2") in leaf.step("a")
