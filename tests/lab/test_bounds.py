"""Upper bounds of a fabric's performance, compared with figures computed by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fared.core.units import BytesPerSecond
from fared.extensions.lab import topology
from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.expected import Rate
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.workloads.bounds import least_seconds

MBIT = 1e6 / 8


@pytest.fixture
def clos3(repository: Path) -> AddressPlan:
    return make_plan(topology.load(repository / "containerlab" / "clos3.clab.yml"))


def rates(**other: BytesPerSecond) -> Rate:
    """100 Mbit/s everywhere, but for links named like ``S1_L2``."""

    def rate(port: PortAddresses) -> BytesPerSecond | None:
        return other.get(f"{port.node}_{port.peer}", 100 * MBIT)

    return rate


def test_the_bound_of_one_pair_is_the_sum_of_its_paths(clos3: AddressPlan):
    """256 MB over 100, 100, 100 and 20 Mbit/s: 6.4 s; over four whole paths 5.12 s."""
    demand = {("L1", "L2"): 256e6}
    assert least_seconds(clos3, rates(), demand) == pytest.approx(5.12)
    assert least_seconds(clos3, rates(S1_L2=20 * MBIT), demand) == pytest.approx(6.4)


def test_the_links_of_the_busiest_router_set_the_bound(clos3: AddressPlan):
    """Two senders to one leaf wait for its downlinks; one sender to two for its uplinks."""
    slow = rates(S1_L2=20 * MBIT)
    assert least_seconds(clos3, slow, {("L1", "L2"): 40e6, ("L3", "L2"): 40e6}) == pytest.approx(2)
    apart = {("L1", "L2"): 50e6, ("L1", "L3"): 50e6}
    assert least_seconds(clos3, rates(), apart) == pytest.approx(2)
    assert least_seconds(clos3, rates(L1_S1=1 * MBIT), apart) == pytest.approx(800 / 301)


def test_the_slowest_pair_bounds_a_ring_and_directions_are_independent(
    clos3: AddressPlan,
):
    """Every leaf sends to the next: each has all its uplinks for itself."""
    leaves = [leaf.name for leaf in clos3.leaves]
    ring = dict.fromkeys(zip(leaves, leaves[1:] + leaves[:1], strict=True), 40e6)
    assert least_seconds(clos3, rates(), ring) == pytest.approx(0.8)
    assert least_seconds(clos3, rates(S1_L2=20 * MBIT), ring) == pytest.approx(1.0)
    both = {("L1", "L2"): 50e6, ("L2", "L1"): 50e6}
    assert least_seconds(clos3, rates(), both) == pytest.approx(1.0)


def test_nothing_to_send_takes_no_time_and_no_path_takes_forever(clos3: AddressPlan):
    """Hosts of one router do not use the fabric."""
    assert least_seconds(clos3, rates(), {("L1", "L1"): 1e9, ("L1", "L2"): 0.0}) == 0.0
    assert least_seconds(clos3, lambda _: 0.0, {("L1", "L2"): 1.0}) == math.inf


def test_the_stage_with_the_least_capacity_bounds_a_five_stage_fabric(repository: Path):
    """Between PoDs the paths of all planes count, as far as each stage carries them."""
    plan = make_plan(topology.load(repository / "containerlab" / "clos5.clab.yml"))
    first, last = plan.leaves[0].name, plan.leaves[-1].name
    uplinks = len(plan.equal_cost_ports(first, last))
    assert least_seconds(plan, rates(), {(first, last): uplinks * 12.5e6}) == pytest.approx(1.0)
