"""A plan tells the longest delay between its ends, of a database with several areas."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fared.extensions.offline.plan.fabric import PlanFabric, read_fabric
from tests.ted.fabrics import Fabric


def planned(delay: int | None) -> PlanFabric:
    """Leaf a is in area 1 with border b; b and c, with a long link between them, in area 0."""
    whole = Fabric()
    for ends in (("a", "b"), ("b", "c")):
        whole.connect(*ends)
    whole.slow("b", "c", delay)
    blocks = {
        area: {
            whole.id(name): replace(whole, links=links).block(name)
            for name in {link.tail for link in links}
        }
        for area, links in ((1, whole.links[:2]), (0, whole.links[2:]))
    }
    names = {whole.id(name): name for name in whole.names}
    return read_fabric(SimpleNamespace(blocks=blocks, hostnames=names), ends=("a", "c"))


def test_the_way_to_another_area_has_the_delay_of_all_its_links():
    fabric = planned(20_000)
    assert fabric.longest is not None
    ends = [fabric.names[fabric.graph.index(end)] for end in fabric.longest.ends]
    assert (ends, fabric.longest.delay) == (["a", "c"], 20_000)


@pytest.mark.parametrize("delay", [None, 0])
def test_without_delays_there_is_none(delay):
    assert planned(delay).longest is None
