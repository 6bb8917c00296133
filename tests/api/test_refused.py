"""Hellos that are refused, and an id that another router has, in documents and ``validate``."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.extensions.sim.levels import clos3_isis
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import OspfBuilder
from fared.management.documents.views import ospf, protocol
from fared.management.documents.views.missing import link_counts
from fared.management.documents.views.validate import validate
from fared.protocols.igp.refusals import RefusedHello
from tests.api.seen import seen_from

WHY = "its hello interval differs: 10, ours 1"


@pytest.fixture(scope="module")
def both():
    """A spine and two leaves over OSPF and IS-IS."""
    fabric = clos3_isis(1, 2, network=Network(seed=1), beside=[OspfBuilder()])
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    return fabric


@pytest.fixture(params=["ospf", "isis"])
def context(request, both):
    return seen_from(both, "L1").narrowed(request.param)


def refusal(context, ago: float) -> RefusedHello:
    at = context.now - ago
    cause = "hello-interval-mismatch"
    return RefusedHello("S1", "10.0.0.9", "10.255.0.9", cause, WHY, at - 5, at, 6)


def check(context, name: str) -> tuple[bool, str]:
    found = next(c for c in validate(context).checks if c.name == name)
    return found.ok, found.detail


def test_refused_hellos_are_in_the_documents_of_neighbors_and_interfaces(context, monkeypatch):
    (instance,) = context.instances
    monkeypatch.setattr(instance.engine, "refused", lambda _: (refusal(context, 2.0),))
    (row,) = protocol.neighbors(context).refused
    assert (row.proto, row.interface, row.text) == (instance.name, "S1", WHY)
    assert (row.first, row.last, row.times) == (7.0, 2.0, 6)
    interfaces = protocol.interfaces(context).interfaces
    assert {i.interface: i.refused for i in interfaces if i.refused} == {"S1": [row]}


@pytest.mark.parametrize(("ago", "passes"), [(2.0, False), (200.0, True)])
def test_validate_fails_while_hellos_are_refused(context, monkeypatch, ago, passes):
    (instance,) = context.instances
    monkeypatch.setattr(instance.engine, "refused", lambda _: (refusal(context, ago),))
    ok, detail = check(context, "hellos are accepted")
    assert (ok, f"10.0.0.9 on S1: {WHY}" in detail) == (passes, not passes)


def test_validate_fails_while_another_router_has_our_id(context, monkeypatch):
    (instance,) = context.instances
    assert check(context, "router id is unique") == (True, "no other router has it")
    monkeypatch.setattr(instance.engine, "contested", lambda _: "1 10.255.0.1 10.255.0.1")
    ok, detail = check(context, "router id is unique")
    assert not ok
    assert "another router has our id" in detail


def test_validate_does_not_call_our_id_unique_while_a_neighbor_with_it_is_refused(
    context, monkeypatch
):
    (instance,) = context.instances
    twin = replace(refusal(context, 2.0), cause="duplicate-router-id")
    monkeypatch.setattr(instance.engine, "refused", lambda _: (twin,))
    found = check(context, "router id is unique")
    assert found == (False, "another router has our id: 10.0.0.9 on S1")


def test_a_link_over_which_no_path_leads_is_missing_though_its_neighbor_is_full(both, monkeypatch):
    """Its neighbor has another network type: it names a designated router."""
    context = seen_from(both, "L1").narrowed("ospf")
    (neighbor,) = context.ospf.instance.neighbors()
    assert link_counts(context).missing == []
    monkeypatch.setattr(neighbor, "designated_router", 1)
    (missing,) = link_counts(context).missing
    assert (missing.interface, missing.cause) == ("S1", "network-type-mismatch")
    assert list(ospf.census(context).on("S1").values()) == [False]


def test_validate_names_the_problem_of_a_neighbor_that_is_full(both, monkeypatch):
    """Its MTU has changed: all works, but the adjacency would not form again."""
    context = seen_from(both, "L1").narrowed("ospf")
    neighbor = context.ospf.instance.neighbors()[0]
    monkeypatch.setattr(neighbor, "mtu", neighbor.interface.link.mtu + 1)
    ok, detail = check(context, "neighbors are full")
    assert not ok
    assert detail.startswith("1 neighbor with a problem: ")
    assert f"on {neighbor.interface.name}: its MTU differs" in detail
    problem = protocol.neighbors(context).neighbors[0].problem
    assert problem is not None
    assert problem.cause == "mtu-mismatch"
