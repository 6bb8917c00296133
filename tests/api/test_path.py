"""``path`` on a border router: others use its summaries, though it does not."""

import pytest

from fared.extensions.sim.areas import clos5_areas
from fared.management.documents.views.path import path
from tests.api.seen import seen_from
from tests.sim.externals import OUTSIDE, announce, started


@pytest.fixture(scope="module")
def areas():
    """Five stages; p1.L1 and p2.L2 are AS boundary routers, p2.L2 by a type 1 metric."""
    fabric = clos5_areas(2, 2, 2, 2)
    announce(fabric, "p1.L1", metric=5)
    announce(fabric, "p2.L2", metric=6, type_2=False)
    return started(fabric)


@pytest.mark.rfc("RFC 2328 §16.2 (2)")
@pytest.mark.parametrize(("border", "leaf"), [("p1.S1", "p1.L2"), ("p2.S2", "p2.L1")])
def test_a_border_router_knows_the_paths_of_its_area_through_itself(areas, border, leaf):
    """To every prefix: those of other areas, and of boundary routers of other areas, too."""
    table, known = (areas.network.nodes[name].running.table.routes for name in (leaf, border))
    compared = set()
    for prefix, route in table.items():
        if route.nexthops is None or prefix not in known:
            continue
        found = path(seen_from(areas, border), leaf, str(prefix))
        firsts = {e.to_hostname: e.share for e in found.edges if e.from_hostname == leaf}
        weights = {areas.name_of(hop.neighbor): hop.weight for hop in route.nexthops.hops}
        whole = sum(weights.values())
        assert found.metric == route.metric
        assert firsts == pytest.approx({name: w / whole for name, w in weights.items()}, abs=1e-6)
        if border in firsts:
            compared.add(prefix)
    assert len(compared) > 3
    assert OUTSIDE in compared
