"""The engine's updates of the TED: blocks, local links and bandwidths, changes only."""

import random

import numpy as np
import pytest
from msgspec.structs import replace

from fared.core.ids import ipv4_prefix, parse_dotted
from fared.paths.te.advertise import AdvertiseSettings
from fared.paths.te.attributes import TeAttributes
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.events import LocalLinksChanged, TedUpdated
from fared.paths.ted.model import LocalLink
from fared.protocols.igp.events import (
    GracefulRestartBegun,
    LinkChanged,
    LoadsMeasured,
    SettingsApplied,
)
from fared.protocols.ospf.engine import OspfEngine
from fared.protocols.ospf.packet.bodies import RouterLink
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.opaque import TeLink
from fared.protocols.ospf.packet.te import encode_te_link
from fared.protocols.ospf.settings import AreaSettings, InterfaceSettings, OspfSettings
from tests.ospf.harness import BACKBONE, FAST, Network, make_link, pair, router_id
from tests.ospf.scripted import OURS, THEIRS, Scripted, make_lsa, router_lsa, update
from tests.ted.kinds import kinds, moves_no_path

A, B = router_id(1), router_id(2)
OTHER = router_id(30)


@pytest.fixture
def net():
    """Two routers, Full and converged."""
    net = pair()
    net.until(lambda: net.all_full() and net.in_sync())
    net.run(2)
    return net


def updates(peer: Scripted) -> list[TedUpdated]:
    said = [o for o in peer.outputs if isinstance(o, TedUpdated)]
    peer.outputs.clear()
    return said


def test_a_block_has_exactly_the_contents_of_the_lsas(net):
    for view in (1, 2):
        block = net.blocks(view)[A]
        assert block.neighbors.tolist() == [B]
        assert block.metrics.tolist() == [10]
        assert block.capacities.tolist() == [12.5e6]
        assert block.availables.tolist() == [12.5e6]
        assert block.local_ids.tolist() == [OURS]
        assert block.remote_ids.tolist() == [THEIRS]
        assert [(p.prefix, p.metric) for p in block.prefixes] == [
            (ipv4_prefix(A, 32), 0),
            (ipv4_prefix(OURS, 31), 10),
        ]
        assert block.transit
        assert block.hostname == "r1"


def test_local_links_name_gateway_and_bandwidth(net):
    assert net.local_links(1) == (
        LocalLink(2, "eth2", B, THEIRS, OURS, metric=10, bandwidth=12.5e6),
    )


def test_losing_the_adjacency_withdraws_the_local_link_at_once(net):
    net.set_up(net.cables[0], up=False)
    last = net.nodes[1].said(LocalLinksChanged)[-1]
    assert last.links == ()
    assert last.since == net.now
    assert "LLDown" in last.cause


def test_updates_carry_cause_and_time(net):
    first = net.nodes[2].said(TedUpdated)
    mine = [u for u in first if u.node == A]
    assert mine[0].cause.startswith("router-lsa 10.255.0.1 seq 0x8000000")
    assert all(0 <= u.since <= t for t, u in net.nodes[2].outputs if isinstance(u, TedUpdated))


def test_a_capacity_change_is_reported_as_such(net):
    """It is not reported as a change of topology."""
    link, settings = net.nodes[1].links[2]
    before = net.blocks(2)[A]
    count = len(net.nodes[2].said(TedUpdated))
    net.link(1, replace(link, shaped=3e6), settings)
    net.run(0.2)
    (told,) = net.nodes[2].said(TedUpdated)[count:]
    assert kinds(net.nodes[2].said(TedUpdated))[-1] is ChangeKind.CAPACITY
    assert told.cause.startswith("te-link-lsa 10.255.0.1/2 seq ")
    assert told.block.capacities.tolist() == [3e6]
    assert before.capacities.tolist() == [12.5e6]
    assert told.block.neighbors is before.neighbors
    assert net.local_links(1)[0].bandwidth == 3e6


def test_configured_capacity_overrides_the_links_own():
    net = pair(settings=replace(FAST, capacity=5e6))
    net.until(net.all_full)
    net.run(1)
    assert net.blocks(2)[A].capacities.tolist() == [5e6]


def test_unknown_capacity_is_nan_and_never_zero():
    net = pair(speed=None)
    net.until(net.all_full)
    net.run(1)
    assert np.isnan(net.blocks(2)[A].capacities).all()
    assert np.isnan(net.blocks(2)[A].availables).all()


def test_load_beyond_the_threshold_is_announced(net):
    count = len(net.nodes[2].said(TedUpdated))
    net.input(1, LoadsMeasured({2: 0.02 * 12.5e6}))
    net.run(0.5)
    assert len(net.nodes[2].said(TedUpdated)) == count
    net.input(1, LoadsMeasured({2: 0.40 * 12.5e6}))
    net.run(0.5)
    assert net.blocks(2)[A].availables.tolist() == [pytest.approx(0.6 * 12.5e6)]
    assert net.blocks(2)[A].capacities.tolist() == [12.5e6]


def test_a_load_that_is_no_longer_known_is_withdrawn(net):
    """Other routers weight the link by its capacity."""
    net.input(1, LoadsMeasured({2: 0.40 * 12.5e6}))
    net.run(2)
    net.input(1, LoadsMeasured({2: None}))
    net.run(2)
    assert net.blocks(2)[A].availables.tolist() == [12.5e6]
    (te,) = (b for b in _bodies_of_a(net) if isinstance(b, TeLink))
    assert te.attributes.residual_bandwidth == 12.5e6
    assert te.attributes.available_bandwidth is None
    assert te.attributes.utilized_bandwidth is None
    net.input(1, LoadsMeasured({2: 0.40 * 12.5e6}))
    net.run(2)
    assert net.blocks(2)[A].availables.tolist() == [pytest.approx(0.6 * 12.5e6)]


def test_each_router_advertises_its_own_direction(net):
    net.input(1, LoadsMeasured({2: 0.40 * 12.5e6}))
    net.run(1)
    assert net.blocks(1)[A].availables.tolist() == [pytest.approx(0.6 * 12.5e6)]
    assert net.blocks(1)[B].availables.tolist() == [12.5e6]


def test_a_link_that_was_down_returns_with_its_present_load(net):
    """The load before the failure is not advertised again."""
    net.input(1, LoadsMeasured({2: 0.40 * 12.5e6}))
    net.run(1)
    net.set_up(net.cables[0], up=False)
    net.input(1, LoadsMeasured({2: 0.0}))
    net.run(5)
    net.set_up(net.cables[0], up=True)
    net.until(net.all_full)
    net.run(1)
    assert net.blocks(2)[A].availables.tolist() == [12.5e6]


def _bodies_of_a(net):
    return [decode_body(e.lsa) for e in net.lsdb(2) if e.key.advertising_router == A]


def test_an_increase_waits_for_the_minimum_interval_and_advertises_the_last_value():
    net = pair()
    net.until(net.all_full)
    net.run(1)
    net.input(
        1,
        SettingsApplied(
            replace(
                net.nodes[1].engine.instance.settings,
                advertise=AdvertiseSettings(minimum_interval=5.0),
            )
        ),
    )
    net.input(1, LoadsMeasured({2: 10e6}))
    net.run(1)
    net.input(1, LoadsMeasured({2: 5e6}))
    net.run(2)
    assert net.blocks(2)[A].availables.tolist() == [2.5e6]
    net.input(1, LoadsMeasured({2: 1e6}))
    net.run(2.2)
    assert net.blocks(2)[A].availables.tolist() == [11.5e6]


def test_a_changed_budget_of_announcements_shows_with_the_next_te_lsa_of_any_router(net):
    settings = net.nodes[1].engine.instance.settings
    net.input(1, SettingsApplied(replace(settings, advertise=AdvertiseSettings(budget=70.0))))
    net.input(2, LoadsMeasured({2: 10e6}))
    net.run(2)
    assert net.blocks(1)[B].availables.tolist() == [2.5e6]
    (budget,) = net.nodes[1].engine.budgets.values()
    assert budget.budget == 70.0


@pytest.mark.rfc("RFC 3630 §2.5", "RFC 7471 §4")
def test_advertised_attributes_of_a_link():
    net = pair()
    net.until(lambda: net.all_full() and len(net.database(2)) == 8)
    (te,) = (b for b in _bodies_of_a(net) if isinstance(b, TeLink))
    assert (te.link_type, te.link_id) == (1, B)
    assert (te.local_addresses, te.remote_addresses) == ((OURS,), (THEIRS,))
    assert te.attributes.te_metric == 10
    assert te.attributes.max_bandwidth == te.attributes.residual_bandwidth == 12.5e6
    assert te.attributes.unreserved_bandwidth == (12.5e6,) * 8
    assert te.attributes.utilized_bandwidth == 0


def p2p(neighbor: int, data: int, metric: int = 10) -> RouterLink:
    return RouterLink(1, neighbor, data, metric)


def te_lsa(
    adv: int,
    number: int,
    seq: int = 1,
    *,
    neighbor: int,
    local: int = 0,
    remote: int = 0,
    capacity: float = 1e6,
):
    body = encode_te_link(
        TeLink(
            link_type=1,
            link_id=neighbor,
            local_addresses=(local,) if local else (),
            remote_addresses=(remote,) if remote else (),
            attributes=TeAttributes(max_bandwidth=capacity, available_bandwidth=capacity),
        )
    )
    return make_lsa(adv, seq, ls_type=10, lsid=0x01000000 | number, body=body)


@pytest.fixture
def peer():
    """A Full scripted neighbor; earlier outputs are discarded."""
    peer = Scripted()
    peer.to_full()
    peer.at(0.5)
    peer.outputs.clear()
    return peer


@pytest.mark.rfc("RFC 3630 §2.5.3")
def test_parallel_links_are_told_apart_by_their_addresses(peer):
    links = [p2p(A, 0x0A000001), p2p(A, 0x0A000003)]
    peer.send(
        update(
            make_lsa(OTHER, links=links),
            te_lsa(OTHER, 1, neighbor=A, local=0x0A000003, remote=0x0A000004, capacity=3e6),
            te_lsa(OTHER, 2, neighbor=A, local=0x0A000001, remote=0x0A000002, capacity=1e6),
        )
    )
    (told,) = updates(peer)
    assert told.block.capacities.tolist() == [1e6, 3e6]
    assert told.block.remote_ids.tolist() == [0x0A000002, 0x0A000004]


def test_te_lsas_before_and_after_the_router_lsa_give_the_same_block(peer):
    router = make_lsa(OTHER, links=[p2p(A, 0x0A000001), p2p(B, 0x0A000003)])
    te = te_lsa(OTHER, 1, neighbor=B, local=0x0A000003, capacity=2e6)
    peer.send(update(te))
    assert updates(peer) == []
    peer.send(update(router))
    (told,) = updates(peer)
    assert np.array_equal(told.block.capacities, [np.nan, 2e6], equal_nan=True)
    other = Scripted()
    other.to_full()
    other.send(update(router))
    other.send(update(te))
    *_, before, last = updates(other)
    assert np.array_equal(last.block.capacities, [np.nan, 2e6], equal_nan=True)
    assert moves_no_path([before, last])


@pytest.mark.rfc("RFC 3630 §2.4.2")
def test_unnumbered_links_are_matched_by_neighbor_and_order(peer):
    peer.send(
        update(
            make_lsa(OTHER, links=[p2p(A, 7), p2p(B, 8), p2p(A, 9)]),
            te_lsa(OTHER, 3, neighbor=A, capacity=1e6),
            te_lsa(OTHER, 4, neighbor=A, capacity=2e6),
        )
    )
    (told,) = updates(peer)
    assert np.array_equal(told.block.capacities, [1e6, np.nan, 2e6], equal_nan=True)


def test_withdrawn_te_leaves_the_capacity_unknown(peer):
    peer.send(
        update(
            make_lsa(OTHER, links=[p2p(A, 0x0A000001)]),
            te_lsa(OTHER, 1, neighbor=A, local=0x0A000001),
        )
    )
    before = updates(peer)
    gone = te_lsa(OTHER, 1, neighbor=A, local=0x0A000001)
    peer.send(update(make_lsa(OTHER, 1, ls_type=10, lsid=0x01000001, age=3600, body=gone.raw[20:])))
    (told,) = updates(peer)
    assert np.isnan(told.block.capacities).all()
    assert moves_no_path([*before, told])


@pytest.mark.parametrize("age", [1, 3600])
def test_a_te_lsa_that_no_longer_names_this_router_derates_none_of_its_links(peer, age):
    """A forged one, flushed without its body, left the link derated for good."""
    halved = TeAttributes(max_bandwidth=1e6, residual_bandwidth=0.5e6)
    body = encode_te_link(TeLink(link_type=1, link_id=peer.me, attributes=halved))
    lsa = {"ls_type": 10, "lsid": 0x01000001}
    (interface,) = peer.engine.instance.interfaces.values()
    peer.send(update(make_lsa(peer.peer, body=body, **lsa)))
    assert interface.far_share == 0.5
    peer.send(update(make_lsa(peer.peer, 1, age=age, body=b"", **lsa)))
    assert interface.far_share == 1.0


@pytest.mark.rfc("RFC 2328 §12.4.1")
def test_a_router_lsa_with_another_id_than_its_routers_describes_none(peer):
    """A forged one, flushed by the router in whose name it was, took that router's links along."""
    peer.send(update(make_lsa(OTHER, links=[p2p(A, 0x0A000001)])))
    (told,) = updates(peer)
    peer.send(update(make_lsa(OTHER, 7, lsid=B)))
    assert told.block.neighbors.tolist() == [A]
    assert updates(peer) == []
    assert router_lsa(OTHER, B) in peer.lsas()


def test_a_refresh_causes_no_update(peer):
    links = [p2p(A, 0x0A000001)]
    peer.send(update(make_lsa(OTHER, 1, links=links)))
    updates(peer)
    peer.send(update(make_lsa(OTHER, 2, links=links)))
    assert updates(peer) == []


@pytest.mark.rfc("RFC 2328 §16.1", "RFC 6987 §2")
def test_a_router_whose_links_all_have_the_maximum_cost_is_the_last_resort(peer):
    """RFC 2328 §16.1: that is a cost like any other."""
    peer.send(update(make_lsa(OTHER, links=[p2p(A, 1, 0xFFFF), p2p(B, 2, 0xFFFF)])))
    (before,) = updates(peer)
    assert (before.block.transit, before.block.last_resort) == (True, True)
    peer.send(update(make_lsa(OTHER, 9, links=[p2p(A, 1, 0xFFFF), p2p(B, 2, 10)])))
    (told,) = updates(peer)
    assert not told.block.last_resort
    assert kinds([before, told])[-1] >= ChangeKind.PREFIX


@pytest.mark.rfc("RFC 6987 §2")
def test_stub_router_raises_our_metrics_and_keeps_our_prefixes(net):
    settings = net.nodes[1].engine.instance.settings
    net.input(1, SettingsApplied(replace(settings, stub_router=True)))
    net.run(0.5)
    block = net.blocks(2)[A]
    assert block.metrics.tolist() == [0xFFFF]
    assert (block.transit, block.last_resort) == (True, True)
    assert [p.metric for p in block.prefixes] == [0, 10]


@pytest.mark.rfc("RFC 6987 §2")
def test_a_router_that_has_just_started_is_a_stub_router_for_a_time():
    """RFC 6987 §2: others prefer other ways until it has learned all routes."""
    net = Network(1)
    net.add(1, stub_router_on_startup=30.0)
    net.add(2)
    net.join(1, 2, FAST)
    net.run(20)
    assert net.blocks(2)[A].last_resort
    assert net.nodes[1].engine.instance.stub_router
    net.run(15)
    assert net.blocks(2)[A].metrics.tolist() == [10]


def test_after_a_graceful_restart_a_router_is_no_stub_router():
    """Its neighbors have never stopped to forward through it."""
    settings = OspfSettings(router_id(1), areas=(AreaSettings(BACKBONE),))
    engine = OspfEngine(replace(settings, stub_router_on_startup=30.0), random.Random(1))
    engine.handle(GracefulRestartBegun(remaining=5.0, planned=True), 0.0)
    engine.handle(LinkChanged(make_link(2, 0x0A000000), FAST), 0.0)
    assert not engine.instance.stub_router


def test_a_spines_te_lsas_arrive_one_by_one_at_little_cost(peer):
    """512 links, 512 TE LSAs: each patches one row and is no topology change."""
    links = [p2p(router_id(100) + n, 0x0A000000 + 2 * n) for n in range(512)]
    peer.send(update(make_lsa(OTHER, links=links)))
    before = updates(peer)
    for n in range(512):
        peer.send(
            update(
                te_lsa(
                    OTHER,
                    n + 1,
                    neighbor=links[n].link_id,
                    local=links[n].link_data,
                    capacity=1e6 + n,
                )
            )
        )
    told = updates(peer)
    assert len(told) == 512
    assert moves_no_path([*before, *told], new=512)
    assert told[-1].block.capacities.tolist() == [1e6 + n for n in range(512)]


def test_a_te_lsa_that_cannot_be_read_is_counted_and_the_link_stays(peer):
    peer.send(update(make_lsa(OTHER, links=[p2p(A, 0x0A000001)])))
    peer.send(update(make_lsa(OTHER, ls_type=10, lsid=0x01000001, body=b"\x00\x02\xff\xff")))
    assert peer.errors()["lsa-body"] == 1
    assert np.isnan(updates(peer)[-1].block.capacities).all()


@pytest.mark.rfc("RFC 2328 §12.4.1")
def test_loopbacks_are_host_routes_and_passive_links_networks():
    net = pair()
    net.until(net.all_full)
    passive = make_link(9, parse_dotted("10.0.7.1"), length=24)
    net.link(1, passive, InterfaceSettings(area=BACKBONE, passive=True, cost=33))
    net.run(1)
    prefixes = {str(p.prefix): p.metric for p in net.blocks(2)[A].prefixes}
    assert prefixes == {"10.255.0.1/32": 0, "10.128.0.0/31": 10, "10.0.7.0/24": 33}
    assert not any(
        i.name == "eth9" and i.neighbors for i in net.nodes[1].engine.instance.interfaces.values()
    )


def test_localhost_is_not_announced(peer):
    lo = make_link(1, parse_dotted("127.0.0.1"), length=8, loopback=True, name="lo")
    peer.handle(LinkChanged(lo, InterfaceSettings(area=BACKBONE, passive=True)))
    peer.at(2.0)
    assert len(decode_body(peer.own_router_lsa()).links) == 2


def test_a_load_that_is_not_advertised_leaves_the_engine_settled(net):
    """Loads are measured every second; most of them change nothing."""
    engine = net.nodes[1].engine
    while engine.take_outputs():
        pass
    deadline = engine.next_deadline()
    engine.handle(LoadsMeasured({2: 0.01 * 12.5e6}), net.now)
    assert engine.settled
    assert engine.next_deadline() == deadline
    assert net.interface(1).utilized == 0.01 * 12.5e6
    engine.handle(LoadsMeasured({2: 0.5 * 12.5e6}), net.now)
    assert not engine.settled
