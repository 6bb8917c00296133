"""Filters between areas and levels, in five-stage fabrics on the virtual clock.

The prefix of leaf p2.L2 is denied at the spines, which are the border routers: those of PoD 1 let
it not in (``in`` of the area, leaking into level 1), or those of PoD 2 not out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from fared.core.filters import Filter, parse_item
from fared.core.ids import AreaId, Prefix
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import Fabric
from fared.extensions.sim.levels import clos5_levels
from fared.extensions.sim.network import Network
from fared.router.events import RouterSettingsApplied
from tests.sim.as_before import routes
from tests.sim.shared import mend

SIZE = (2, 2, 2, 1)
"""PoDs, leaves, spines, super-spines."""
FAR = {"p1.L1", "p1.L2"}
OUTSIDE = FAR | {"p1.S1", "p1.S2", "SS1.1", "SS2.1"}


class Case(NamedTuple):
    """A place for a filter: the spines of a PoD, and who then has no route."""

    protocol: str
    setting: str
    pod: int
    without: set[str]


CASES = [
    Case("ospf", "filter_in", 1, FAR),
    Case("ospf", "filter_out", 2, OUTSIDE),
    Case("isis", "filter_down", 1, FAR),
    Case("isis", "filter_up", 2, OUTSIDE),
]
NAMES = [f"{case.protocol}-{case.setting}" for case in CASES]
BUILD: dict[str, Callable[..., Fabric]] = {"ospf": clos5_areas, "isis": clos5_levels}


@pytest.fixture(scope="module")
def fabrics() -> dict[str, Fabric]:
    made = {name: build(*SIZE, network=Network(seed=7)) for name, build in BUILD.items()}
    for fabric in made.values():
        fabric.network.start_all()
        fabric.network.run_until_quiet(60)
    return made


@pytest.fixture
def fabric(fabrics: dict[str, Fabric], case: Case) -> Iterator[Fabric]:
    fabric = fabrics[case.protocol]
    yield fabric
    configure(fabric, case, None)
    mend(fabric)


def denied(fabric: Fabric) -> Prefix:
    return fabric.leaf_prefixes["p2.L2"]


def without(fabric: Fabric) -> Filter:
    items = (f"deny {denied(fabric)}", "permit any")
    return Filter("all-but-one", tuple(map(parse_item, items)))


def configure(fabric: Fabric, case: Case, wanted: Filter | None) -> None:
    """Reload the spines of a PoD with another filter."""
    for name in (f"p{case.pod}.S1", f"p{case.pod}.S2"):
        node = fabric.network.nodes[name]
        changes: dict[str, Any] = {case.setting: wanted}
        if case.protocol == "ospf":
            areas = node.settings.protocols["ospf"].areas  # type: ignore[attr-defined]
            changes = {
                "areas": tuple(
                    replace(a, **changes) if a.area == AreaId(case.pod) else a for a in areas
                )
            }
        node.settings = node.settings.with_protocol(case.protocol, **changes)
        fabric.network.input(name, RouterSettingsApplied(node.settings))


def having(fabric: Fabric, prefix: Prefix) -> set[str]:
    """The routers with a route to a prefix."""
    nodes = fabric.network.nodes.items()
    return {name for name, node in nodes if prefix in node.running.table.routes}


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_reload_of_a_filter_moves_exactly_the_prefixes_that_it_decides_otherwise(
    fabric: Fabric, case: Case
):
    before = routes(fabric)
    configure(fabric, case, without(fabric))
    fabric.network.run_until_quiet(60)
    after = routes(fabric)
    moved = {
        (name, prefix)
        for name, found in before.items()
        for prefix in found.keys() | after[name].keys()
        if found.get(prefix) != after[name].get(prefix)
    }
    assert moved == {(name, denied(fabric)) for name in case.without}
    assert having(fabric, denied(fabric)) == fabric.network.nodes.keys() - case.without
    configure(fabric, case, None)
    fabric.network.run_until_quiet(60)
    assert routes(fabric) == before


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_no_denied_prefix_leaks_whatever_links_fail_and_heal(fabric: Fabric, case: Case):
    configure(fabric, case, without(fabric))
    fabric.network.run_until_quiet(60)
    dice = Random(3)
    for a, b in dice.sample(fabric.links, 2):
        for up in (False, True):
            fabric.network.set_link(a, b, up=up)
            for _ in range(2):
                fabric.network.run_for(dice.choice((0.001, 0.02, 0.1, 0.4)))
                assert not having(fabric, denied(fabric)) & case.without, (a, b, up)
    fabric.network.run_until_quiet(60)
    assert having(fabric, denied(fabric)) == fabric.network.nodes.keys() - case.without
    assert having(fabric, fabric.leaf_prefixes["p2.L1"]) == fabric.network.nodes.keys()


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_border_router_says_which_item_keeps_a_prefix_out(fabric: Fabric, case: Case):
    configure(fabric, case, without(fabric))
    fabric.network.run_until_quiet(60)
    engine = fabric.network.nodes[f"p{case.pod}.S1"].running.instances[case.protocol].engine
    found = list(engine.withheld(denied(fabric)))
    place = {
        "filter_in": "summaries of area 0.0.0.1",
        "filter_out": "summaries of area 0.0.0.0",
        "filter_down": "leaking into level-1",
        "filter_up": "leaking into level-2",
    }
    reason = f"filter all-but-one, item 1: deny {denied(fabric)}"
    assert found == [(place[case.setting], reason)]
    assert not list(engine.withheld(fabric.leaf_prefixes["p2.L1"]))
