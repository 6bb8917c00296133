"""With the configuration's defaults, weights follow path capacities in every fabric we ship."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from fared.core.units import BytesPerSecond
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, clos3, clos5
from fared.extensions.sim.levels import clos3_isis, clos5_levels
from tests.sim.configured import (
    THRESHOLD,
    bounds,
    capacities,
    lab_fabric,
    planned,
    with_defaults,
    wrong_shares,
)

pytestmark = pytest.mark.slow

LABS = Path("containerlab")
MIXED = {path: path.with_name(path.name.replace("-mixed", "")) for path in LABS.glob("*-mixed.*")}
"""Fabrics with routers of other makes, which run ours here, and those of the same form."""
FILES = sorted(path for path in LABS.glob("*.clab.yml") if not MIXED.get(path, LABS).is_file())
SIMULATED = {
    "three stages": lambda: clos3(4, 4),
    "three stages, IS-IS": lambda: clos3_isis(4, 4),
    "five stages, one area": lambda: clos5(2, 2, 4, 2),
    "five stages, areas": lambda: clos5_areas(2, 2, 4, 2),
    "five stages, levels": lambda: clos5_levels(2, 2, 4, 2),
}
QUANTUM = 0.045
"""An advertised path capacity may be 3 % old, and weights are whole numbers."""


def started(fabric: Fabric) -> Fabric:
    fabric.network.start_all()
    fabric.network.run_until_quiet(90)
    return fabric


def last_link(fabric: Fabric) -> tuple[str, str]:
    """A link from a router above to the last leaf."""
    leaf = list(fabric.leaf_prefixes)[-1]
    above = next(b if a == leaf else a for a, b in fabric.links if leaf in (a, b))
    return above, leaf


def degrade(fabric: Fabric, capacity: BytesPerSecond) -> None:
    fabric.network.set_capacity(*last_link(fabric), capacity)
    fabric.network.run_until_quiet(90)


def test_engines_built_without_a_file_have_the_settings_of_an_empty_one():
    """Other tests run the defaults of classes: they prove something about the configuration.

    Apart from the timers of neighbors, in seconds here and in the RFCs' defaults there, and from
    loads, which are advertised for display only.
    """
    bare, configured = clos3(1, 1), with_defaults(clos3(1, 1))
    names = bare.network.nodes
    for before, after in zip(names.values(), configured.network.nodes.values(), strict=True):
        own, made = before.settings, after.settings
        assert made.solver == own.solver
        assert (made.fib, made.backoff) == (own.fib, own.backoff)
        for name, engine in own.protocols.items():
            rules = made.protocols[name].advertise
            assert rules.path_threshold == engine.advertise.path_threshold
            assert replace(made.protocols[name], advertise=engine.advertise) == engine


@pytest.mark.parametrize("path", sorted({*MIXED} - {*FILES}), ids=lambda path: path.name)
def test_with_ours_in_place_of_other_makes_a_mixed_lab_is_the_lab_of_its_form(path):
    """So that one of them stands for both."""
    mixed, pure = lab_fabric(planned(path)), lab_fabric(planned(MIXED[path]))
    assert mixed.links == pure.links
    for link in pure.links:
        capacities = [made.network.find_port(*link).capacity for made in (mixed, pure)]
        assert len({*capacities}) == 1
    for name, node in pure.network.nodes.items():
        assert mixed.network.nodes[name].settings == node.settings


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_lab_with_the_configuration_that_it_writes_follows_a_link_at_four_fifths(path):
    """80 % is less than the threshold of displayed loads; routers of other makes run ours here."""
    plan = planned(path)
    fabric = started(lab_fabric(plan))
    assert list(wrong_shares(fabric, QUANTUM)) == []
    above, leaf = last_link(fabric)
    degrade(fabric, 0.8 * (fabric.network.find_port(above, leaf).capacity or 0.0))
    assert list(wrong_shares(fabric, QUANTUM)) == []


@pytest.mark.parametrize("name", SIMULATED)
def test_a_simulated_fabric_with_the_defaults_follows_a_link_at_four_fifths(name):
    fabric = started(with_defaults(SIMULATED[name]()))
    degrade(fabric, 0.8 * DEFAULT_CAPACITY)
    assert list(wrong_shares(fabric, QUANTUM)) == []
    degrade(fabric, DEFAULT_CAPACITY)
    assert list(wrong_shares(fabric, QUANTUM)) == []


@pytest.mark.parametrize("build", [clos5_areas, clos5_levels])
def test_each_percent_that_a_link_of_another_pod_loses_shows_within_the_threshold(build):
    """From 99 to 50 % and back, one percent at a time: small steps do not add up unnoticed."""
    fabric = started(with_defaults(build(2, 1, 2, 1)))
    source, target = list(fabric.leaf_prefixes)
    for percent in (*range(99, 49, -1), *range(50, 101)):
        degrade(fabric, percent / 100 * DEFAULT_CAPACITY)
        found = capacities(fabric, source, target)
        wanted = bounds(fabric, source, target)
        assert min(wanted.values()) == pytest.approx(percent / 100 * DEFAULT_CAPACITY)
        assert found == pytest.approx(wanted, rel=THRESHOLD), percent
    assert found == pytest.approx(wanted), "a repaired link counts in full"
