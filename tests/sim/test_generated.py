"""Every generated topology on the virtual clock, with the configuration that the lab writes.

Path capacities are compared with networkx's maximum flow while a link slows down, and all 992
weight vectors of the draft's Figure 2 with arithmetic.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.generate.clos3 import Clos3
from fared.extensions.lab.generate.clos5 import Clos5
from fared.extensions.lab.generate.clustered import Clustered
from fared.extensions.lab.generate.dragonfly import Dragonfly
from fared.extensions.lab.generate.fat_tree import FatTree
from fared.extensions.lab.generate.full_mesh import FullMesh
from fared.extensions.lab.generate.hypercube import Hypercube
from fared.extensions.lab.generate.model import Generator
from fared.extensions.lab.generate.permutation import Permutation
from fared.extensions.lab.generate.rails import Rails
from fared.extensions.lab.generate.random import RandomRegular
from fared.extensions.lab.generate.sites import Sites
from fared.extensions.lab.generate.star import Star
from fared.extensions.lab.generate.torus import Torus
from fared.extensions.lab.generate.writer import text
from fared.extensions.lab.topology import from_document
from fared.extensions.sim import invariants
from fared.extensions.sim.fabric import GIGABIT, Fabric
from tests.lab.damages import SLOW_LINKS, WHOLE, Arithmetic, proportional
from tests.sim.configured import THRESHOLD, bounds, capacities, lab_fabric

PERCENTS = (99, 90, 80, 74, 50, 100)
"""Of the rate of one link, one after the other."""
SETTLED = 90.0
"""Most seconds, on the virtual clock, until a fabric rests."""
SMALL: list[Generator] = [
    Clos5(2, 2, 1, 2),
    Clos5(2, 2, 1, 2, protocol="isis"),
    RandomRegular(8),
    Sites(2, "200M", borders=1, leaves=1),
]
MORE: list[Generator] = [
    Clos3(2, 2, protocol="isis"),
    Clos5(2, 2, 1, 2, area="one"),
    FatTree(4, area="pod"),
    FatTree(4, area="pod", protocol="isis"),
    Dragonfly(3, 2),
    Torus("3x3", protocol="isis"),
    Hypercube(3),
    FullMesh(4),
    Star(4),
    Clustered(4, 2),
    Permutation(8, 2, protocol="isis"),
    Rails(2, 2, 2, protocol="isis"),
    Sites(4, "200M", shape="ring", protocol="isis"),
]
"""In a soak."""
EACH = [
    *(pytest.param(one, id=one.lab) for one in SMALL),
    *(pytest.param(one, id=f"{one.lab}-", marks=pytest.mark.soak) for one in MORE),
]


def planned(generator: Generator) -> AddressPlan:
    """Return the plan of the file."""
    return make_plan(from_document(yaml.safe_load(text(generator)), Path(generator.file)))


def started(plan: AddressPlan) -> Fabric:
    """Return the fabric, at rest."""
    fabric = lab_fabric(plan)
    fabric.network.start_all()
    fabric.network.run_until_quiet(SETTLED)
    return fabric


def last_link(plan: AddressPlan, source: str, target: str) -> tuple[str, str]:
    """Return the last link of a shortest path."""
    at = source
    while (onward := plan.equal_cost_ports(at, target)[0].peer) != target:
        at = onward
    return at, target


@pytest.mark.parametrize("generator", EACH)
def test_path_capacities_follow_a_link_that_slows_down_as_the_maximum_flow_does(
    generator: Generator,
):
    """Through areas and levels too: what falls by less than a quarter is advertised as well."""
    plan = planned(generator)
    fabric = started(plan)
    source, target = plan.farthest_leaves()
    tail, head = last_link(plan, source, target)
    rate = fabric.network.find_port(tail, head).capacity or 0.0
    for percent in PERCENTS:
        fabric.network.set_capacity(tail, head, rate * percent / WHOLE)
        fabric.network.run_until_quiet(SETTLED)
        wanted = bounds(fabric, source, target)
        assert capacities(fabric, source, target) == pytest.approx(wanted, rel=THRESHOLD), percent
    assert min(wanted.values()) == pytest.approx(rate)


def test_a_slow_link_in_a_site_is_known_in_another_after_the_delay_between_them():
    fabric = started(planned(Sites(2, borders=1, spines=1, leaves=1, wan="100M", delay="300ms")))
    network, whole = fabric.network, {"s2-S1": pytest.approx(0.1 * GIGABIT)}
    network.set_capacity("s1-S1", "s1-L1", 0.05 * GIGABIT)
    network.run(0.29)
    assert capacities(fabric, "s2-L1", "s1-L1") == whole
    network.run_until_quiet(SETTLED)
    assert capacities(fabric, "s2-L1", "s1-L1") == {"s2-S1": pytest.approx(0.05 * GIGABIT)}


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("protocol", ["ospf", "isis"])
def test_nine_slow_links_in_figure_2_give_the_992_weight_vectors_of_arithmetic(protocol: str):
    """Weights in kernels are min(up, sum over the plane of min(in, out), down), without rest."""
    plan = planned(Clos5(8, supers=4, protocol=protocol))
    fabric = started(plan)
    for (tail, head), percent in SLOW_LINKS.items():
        rate = fabric.network.find_port(tail, head).capacity or 0.0
        fabric.network.set_capacity(tail, head, rate * percent / WHOLE)
    fabric.network.run_until_quiet(SETTLED)
    right = Arithmetic(plan, SLOW_LINKS)
    wrong, vectors = [], 0
    for target, prefix in fabric.leaf_prefixes.items():
        held = invariants.forwarding(fabric, prefix)
        for source in fabric.leaf_prefixes.keys() - {target}:
            vectors += 1
            wanted = right.vector(source, target)
            if not proportional(held[source], wanted):
                wrong.append(f"{source} to {target}: {held[source]}, not {wanted}")
    assert vectors == 32 * 31
    assert wrong == []
