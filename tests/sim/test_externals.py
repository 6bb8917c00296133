"""A leaf of PoD 1 redistributes a static route: every node learns the way to it, area by area."""

from fractions import Fraction

import pytest

from fared.core.ids import AreaId
from fared.extensions.sim import invariants
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import Fabric
from fared.extensions.sim.network import Network
from fared.paths.ted.model import PathType
from fared.protocols.ospf.packet.lsa import LsType
from fared.protocols.ospf.settings import AreaSettings
from tests.sim.externals import OUTSIDE, announce, externals, hops, route, started

pytestmark = pytest.mark.slow


def with_external(
    name: str = "p1.L1", *, type_2: bool = True, pod_area: AreaSettings | None = None
) -> Fabric:
    """The five-stage fabric, of which one node announces an external prefix of metric 5."""
    fabric = clos5_areas(2, 2, 4, 2, network=Network(seed=4), pod_area=pod_area)
    announce(fabric, name, metric=5, type_2=type_2)
    return started(fabric)


@pytest.mark.rfc("RFC 2328 §16.4")
@pytest.mark.parametrize(
    ("type_2", "kind", "metrics"),
    [(False, PathType.EXTERNAL_1, [15, 25, 35, 45]), (True, PathType.EXTERNAL_2, [5] * 4)],
)
def test_every_node_reaches_an_external_prefix_over_its_border_routers(type_2, kind, metrics):
    """Type 4 summaries lead through the planes; type 1 counts the way, type 2 does not."""
    fabric = with_external(type_2=type_2)
    table = invariants.forwarding(fabric, OUTSIDE)
    assert table["p2.L1"] == {f"p2.S{k}": Fraction(1, 4) for k in range(1, 5)}
    assert table["p2.S1"] == {"SS1.1": Fraction(1, 2), "SS1.2": Fraction(1, 2)}
    assert table["SS1.1"] == {"p1.S1": 1}
    assert table["p1.S1"] == {"p1.L1": 1}
    assert "p1.L1" not in table
    for name, metric in zip(("p1.S1", "SS1.1", "p2.S1", "p2.L1"), metrics, strict=True):
        found = route(fabric, name)
        assert (found.path_type, found.metric) == (kind, metric)


def types_held(fabric: Fabric, name: str) -> set[int]:
    instance = fabric.network.nodes[name].running.instances["ospf"].engine.instance
    return {entry.key.ls_type for lsdb in instance.databases() for entry in lsdb}


@pytest.mark.rfc("RFC 2328 §3.6")
def test_a_stub_area_has_neither_externals_nor_asbr_summaries():
    """Nor has a router inside a stub area anybody to tell: it sets no E bit and originates none."""
    fabric = with_external("SS1.1", pod_area=AreaSettings(AreaId(0), stub=True))
    assert hops(fabric, "p1.S1") == {"SS1.1"}
    for leaf in ("p1.L1", "p2.L1"):
        assert not hops(fabric, leaf)
        assert types_held(fabric, leaf).isdisjoint({LsType.AS_EXTERNAL, LsType.SUMMARY_ASBR})
    announce(fabric, "p1.L1")
    fabric.network.run_until_quiet(60)
    assert not externals(fabric, "p1.L1")
    assert not hops(fabric, "p1.S1") & {"p1.L1"}


def test_externals_of_a_border_router_are_reached_from_its_areas_and_from_others():
    """Its own areas see its E bit; in others it is found by type 4 summaries."""
    fabric = with_external("p1.S1")
    assert hops(fabric, "p1.L1") == {"p1.S1"}
    assert hops(fabric, "SS1.1") == {"p1.S1"}
    assert hops(fabric, "p2.S1") == {"SS1.1", "SS1.2"}
    assert hops(fabric, "p2.L1") == {"p2.S1"}
    assert not hops(fabric, "p1.S1")


def test_an_external_route_is_removed_when_its_originator_is_unreachable():
    fabric = with_external(type_2=False)
    for k in range(1, 5):
        fabric.network.set_link("p1.L1", f"p1.S{k}", up=False)
    fabric.network.run_until_quiet(60)
    table = invariants.forwarding(fabric, OUTSIDE)
    assert not {name for name, shares in table.items() if shares}


def test_a_withdrawn_external_is_removed_everywhere():
    fabric = with_external()
    assert ("p1.L1", OUTSIDE) in externals(fabric, "p2.L2")
    fabric.network.set_local_route("p1.L1", OUTSIDE, None)
    fabric.network.run_for(0.5)
    for name in fabric.network.nodes:
        assert not externals(fabric, name)
        assert not hops(fabric, name)
