"""BFD with IS-IS neighbors (RFC 5882), and the BFD-enabled TLV (RFC 6213)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.bfd import BfdChanged, BfdSettings, BfdStatus, BfdWanted, SessionSettings
from fared.protocols.isis.circuit import AdjacencyState, CircuitSettings
from fared.protocols.isis.pdu.tlvs import (
    MT_IPV4,
    MT_IPV6,
    NLPID_IPV4,
    NLPID_IPV6,
    BfdEnabled,
    of_type,
)
from tests.isis.hellonet import LAN, P2P, Net, Router

NORMAL = replace(P2P, bfd=BfdSettings())
STRICT = replace(P2P, bfd=BfdSettings(strict=True))
HELD = replace(P2P, bfd=BfdSettings(strict=True, hold_time=5.0))
SOON = 0.05


def wanted(router: Router) -> dict[int, SessionSettings | None]:
    """The last wish for each session, by the length of its address."""
    found = [output for _, output in router.said if isinstance(output, BfdWanted)]
    return {len(item.remote): item.settings for item in found}


def sessions(
    net: Net, router: Router, status: BfdStatus, *sizes: int, independent: bool = False
) -> None:
    """Report the status of the sessions of a router, or of those with addresses of these sizes."""
    items = {
        (item.ifindex, item.remote): item
        for _, item in router.said
        if isinstance(item, BfdWanted) and (not sizes or len(item.remote) in sizes)
    }
    router.instance.process.now = net.now
    for ifindex, remote in items:
        changed = BfdChanged(ifindex, remote, status, independent=independent)
        router.hello.detection.changed(changed)
    net.take_outputs(router)


def started(settings: CircuitSettings, other: CircuitSettings | None = None, **options) -> tuple:
    net = Net()
    a, b = net.pair(options, options, settings, other or settings)
    net.run(SOON)
    return net, a, b


def test_without_bfd_no_session_is_wanted():
    _, a, _ = started(P2P)
    assert a.up()
    assert wanted(a) == {}


@pytest.mark.rfc("RFC 5882 §10.1")
def test_an_adjacency_gets_a_session_for_each_family():
    _, a, _ = started(NORMAL)
    assert a.up()
    assert wanted(a) == {4: SessionSettings(), 16: SessionSettings()}
    _, a, _ = started(NORMAL, families=(6,))
    assert wanted(a) == {16: SessionSettings()}


@pytest.mark.rfc("RFC 5882 §10.2")
@pytest.mark.parametrize("size", [4, 16])
def test_a_failed_session_ends_the_adjacency_at_once(size: int):
    net, a, _ = started(NORMAL)
    sessions(net, a, BfdStatus.UP)
    sessions(net, a, BfdStatus.DOWN, size)
    assert a.adjacency() is None
    assert wanted(a) == {4: None, 16: None}


def test_a_neighbor_that_disables_bfd_is_no_failure():
    net, a, _ = started(NORMAL)
    sessions(net, a, BfdStatus.UP)
    sessions(net, a, BfdStatus.ADMIN_DOWN)
    assert a.up()


def test_both_levels_of_a_lan_share_a_session():
    net = Net()
    a, b = net.add(1), net.add(2)
    net.cable((1, 1), (2, 1))
    for number in (1, 2):
        net.link(number, replace(LAN, bfd=BfdSettings()))
    net.run(3.0)
    items = [item for _, item in a.said if isinstance(item, BfdWanted)]
    assert sorted(len(item.remote) for item in items) == [4, 16]
    sessions(net, a, BfdStatus.UP)
    sessions(net, a, BfdStatus.DOWN, 16)
    assert a.heard() == set()
    assert wanted(a) == {4: None, 16: None}
    assert b.heard()


def test_a_reload_begins_and_ends_sessions():
    net, a, _ = started(P2P)
    net.link(1, NORMAL)
    assert wanted(a) == {4: SessionSettings(), 16: SessionSettings()}
    net.link(1, P2P)
    assert wanted(a) == {4: None, 16: None}
    assert a.up()


# -- strict mode


@pytest.mark.rfc("RFC 6213 §2")
@pytest.mark.parametrize(
    ("options", "pairs"),
    [
        ({}, ((MT_IPV4, NLPID_IPV4), (MT_IPV4, NLPID_IPV6))),
        ({"multi_topology": True}, ((MT_IPV4, NLPID_IPV4), (MT_IPV6, NLPID_IPV6))),
        ({"families": (4,)}, ((MT_IPV4, NLPID_IPV4),)),
    ],
)
def test_strict_hellos_have_the_bfd_enabled_tlv(options: dict, pairs: tuple):
    _, a, _ = started(STRICT, **options)
    hello = a.hellos()[0][1]
    assert of_type(hello.tlvs, BfdEnabled) == (BfdEnabled(pairs),)


@pytest.mark.rfc("RFC 6213 §3.1")
def test_a_strict_adjacency_initializes_until_its_sessions_are_up():
    net, a, b = started(STRICT)
    net.run(3.0)
    assert a.adjacency().state is b.adjacency().state is AdjacencyState.INITIALIZING
    assert wanted(a) == {4: SessionSettings(), 16: SessionSettings()}
    sessions(net, a, BfdStatus.UP)
    sessions(net, b, BfdStatus.UP, 4)
    net.run(2.0)
    # RFC 6213 §3.1: all protocols of the topology
    assert b.adjacency().state is AdjacencyState.INITIALIZING
    sessions(net, b, BfdStatus.UP, 16)
    net.run(SOON)
    assert a.up()
    assert b.up()


@pytest.mark.rfc("RFC 6213 §3.1")
def test_with_two_topologies_the_sessions_of_one_suffice():
    net, a, b = started(STRICT, multi_topology=True)
    for router in (a, b):
        sessions(net, router, BfdStatus.UP, 4)
    net.run(2.0)
    assert a.up()


@pytest.mark.rfc("RFC 6213 §3.1")
def test_one_strict_end_does_not_wait():
    _, a, b = started(STRICT, NORMAL)
    assert a.up()
    assert b.up()


@pytest.mark.rfc("RFC 6213 §3.2")
def test_strict_mode_on_a_lan():
    net = Net()
    a, b = net.add(1), net.add(2)
    net.cable((1, 1), (2, 1))
    for number in (1, 2):
        net.link(number, replace(LAN, bfd=BfdSettings(strict=True)))
    net.run(3.0)
    assert not a.heard()
    for router in (a, b):
        sessions(net, router, BfdStatus.UP)
    net.run(SOON)
    assert a.heard()
    assert b.heard()


@pytest.mark.rfc("RFC 6213 §3.2")
def test_a_failed_session_of_a_strict_neighbor_makes_it_wait_again():
    net, a, b = started(STRICT)
    for router in (a, b):
        sessions(net, router, BfdStatus.UP)
    net.run(SOON)
    assert a.up()
    for router in (a, b):
        sessions(net, router, BfdStatus.DOWN)
    net.run(5.0)
    assert a.adjacency().state is AdjacencyState.INITIALIZING


def test_the_hold_time_passes_before_the_adjacency_forms():
    net, a, b = started(HELD)
    for router in (a, b):
        sessions(net, router, BfdStatus.UP)
    net.run(4.0)
    assert not a.up()
    net.run(1.5)
    assert a.up()


def test_hellos_while_an_adjacency_waits_cause_no_storm():
    net, a, _ = started(STRICT)
    begin = net.now
    net.run(10.0)
    assert len(a.hellos(begin)) <= 15
