"""A leaf of PoD 1 announces an external prefix: every node learns the way to it, area by area."""

from fractions import Fraction

import pytest

from fared.core.ids import AreaId, ipv4_prefix, length_mask
from fared.ospf import contents
from fared.ospf.packet.bodies import AsExternalLsa
from fared.ospf.packet.body import encode_body
from fared.ospf.packet.lsa import LsType, encode_lsa
from fared.ospf.settings import AreaSettings
from fared.sim import invariants
from fared.sim.areas import clos5_areas
from fared.sim.fabric import Fabric
from fared.sim.network import Network
from fared.ted.model import PathType

OUTSIDE = ipv4_prefix(0xC0000200, 24)


def with_external(monkeypatch, *, type_2: bool, pod_area: AreaSettings | None = None) -> Fabric:
    """p1.L1 sets its E bit and floods one AS-external LSA of metric 5, as FRR or BIRD would."""
    fabric = clos5_areas(2, 2, 4, 2, network=Network(seed=4), pod_area=pod_area)
    asbr = fabric.router_ids["p1.L1"]
    plain = contents.router_lsa

    def router_lsa(instance, area):
        body = plain(instance, area)
        return bytes([body[0] | 2]) + body[1:] if instance.router_id == asbr else body

    monkeypatch.setattr(contents, "router_lsa", router_lsa)
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    engine = fabric.network.nodes["p1.L1"].running.engine
    lsa = encode_lsa(
        ls_age=0,
        options=2,
        ls_type=LsType.AS_EXTERNAL,
        link_state_id=OUTSIDE.network,
        advertising_router=asbr,
        ls_sequence_number=-0x7FFFFFFF,
        body=encode_body(AsExternalLsa(length_mask(OUTSIDE.length), type_2, 5, 0, 0)),
    )
    engine._flooding.install_and_flood(engine._instance.as_scope, lsa)
    fabric.network.input("p1.L1", _nothing())
    fabric.network.run_until_quiet(60)
    return fabric


def _nothing():
    from fared.ospf.events import LoadMeasured

    return LoadMeasured(0, 0.0)


@pytest.mark.parametrize(
    ("type_2", "kind", "metrics"),
    [(False, PathType.EXTERNAL_1, [15, 25, 35, 45]), (True, PathType.EXTERNAL_2, [5] * 4)],
)
def test_every_node_reaches_it_over_its_border_routers(monkeypatch, type_2, kind, metrics):
    """Type 4 summaries lead through the planes; type 1 counts the way, type 2 does not."""
    fabric = with_external(monkeypatch, type_2=type_2)
    table = invariants.forwarding(fabric, OUTSIDE)
    assert table["p2.L1"] == {f"p2.S{k}": Fraction(1, 4) for k in range(1, 5)}
    assert table["p2.S1"] == {"SS1.1": Fraction(1, 2), "SS1.2": Fraction(1, 2)}
    assert table["SS1.1"] == {"p1.S1": 1}
    assert table["p1.S1"] == {"p1.L1": 1}
    assert "p1.L1" not in table
    for name, metric in zip(("p1.S1", "SS1.1", "p2.S1", "p2.L1"), metrics, strict=True):
        route = fabric.network.nodes[name].running.solver.routes[OUTSIDE]
        assert (route.path_type, route.metric) == (kind, metric)


def test_a_stub_area_has_neither_the_external_nor_the_way_to_its_origin(monkeypatch):
    fabric = with_external(monkeypatch, type_2=True, pod_area=AreaSettings(AreaId(0), stub=True))
    assert "p2.L1" not in invariants.forwarding(fabric, OUTSIDE)
    for database in fabric.network.nodes["p2.L1"].running.engine.snapshot(0.0).databases:
        types = {view.lsa.header.ls_type for view in database.lsas}
        assert types.isdisjoint({LsType.AS_EXTERNAL, LsType.SUMMARY_ASBR})


def test_when_the_origin_is_cut_off_the_route_goes(monkeypatch):
    fabric = with_external(monkeypatch, type_2=False)
    for k in range(1, 5):
        fabric.network.set_link("p1.L1", f"p1.S{k}", up=False)
    fabric.network.run_until_quiet(60)
    table = invariants.forwarding(fabric, OUTSIDE)
    assert not {name for name, shares in table.items() if shares}
