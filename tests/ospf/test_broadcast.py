"""Broadcast networks: designated routers, network LSAs, flooding on a LAN (RFC 2328 §9, §13)."""

import random

import pytest
from msgspec.structs import replace

from fared.core.ids import NETWORK_NODE, parse_dotted, parse_prefix
from fared.protocols.igp.events import LinkChanged, SettingsApplied
from fared.protocols.ospf.engine import OspfEngine
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.codec import decode_packet
from fared.protocols.ospf.packet.lsa import LsType
from fared.protocols.ospf.packet.opaque import TeLink
from fared.protocols.ospf.packet.packets import Hello, LsAck, LsUpdate
from fared.protocols.ospf.settings import AreaSettings, OspfSettings
from tests.ospf.harness import BACKBONE, FAST, LAN, MULTICAST, Network, router_id
from tests.ospf.scripted import Scripted, router_lsa

BASE = parse_dotted("10.192.0.0")
ALL_DR = parse_dotted("224.0.0.6")
ALL_SPF = parse_dotted("224.0.0.5")


def lan_of(count: int, seed: int = 1, **options) -> Network:
    net = Network(seed)
    net.lan(*range(1, count + 1), **options)
    return net


def settled(count: int = 4, **options) -> Network:
    """A LAN after its election and all exchanges."""
    net = lan_of(count, **options)
    net.run(10.0)
    return net


def live(net: Network) -> list[int]:
    return [number for number, node in net.nodes.items() if not node.stopped]


def roles(net: Network) -> list[str]:
    return [net.interface(number).state.value for number in live(net)]


def role(net: Network, number: int) -> str:
    return net.interface(number).state.value


def offices(net: Network) -> set[tuple[int, int]]:
    """The DR and BDR by node number, on which all routers must agree."""
    views = [net.interface(number) for number in live(net)]
    return {
        (
            max(0, view.designated_router - BASE),
            max(0, view.backup_designated_router - BASE),
        )
        for view in views
    }


def network_lsas(net: Network, viewer: int) -> dict[int, list[int]]:
    """Attached routers of each live network LSA, by its link state id."""
    return {
        entry.key.link_state_id: list(decode_body(entry.lsa).attached_routers)
        for entry in net.lsdb(viewer)
        if entry.key.ls_type == LsType.NETWORK and entry.age(net.now) < 3600
    }


def router_links(
    net: Network, number: int, viewer: int | None = None
) -> list[tuple[int, int, int]]:
    lsa = net.lsdb(viewer or number).entries[router_lsa(router_id(number))].lsa
    return [(k.link_type, k.link_id, k.link_data) for k in decode_body(lsa).links]


@pytest.mark.rfc("RFC 2328 §9.4")
def test_the_highest_router_id_becomes_designated_when_all_start_together():
    """After the wait timer; the next highest is BDR, the others stay in 2-Way with each other."""
    net = settled(4)
    assert offices(net) == {(4, 3)}
    assert roles(net) == ["DR Other", "DR Other", "Backup", "DR"]
    assert sorted(net.states(1)) == ["2-Way", "Full", "Full"]
    assert net.states(4) == ["Full"] * 3
    assert net.in_sync()


@pytest.mark.rfc("RFC 2328 §9.4")
def test_nobody_is_elected_before_the_wait_timer():
    """For RouterDeadInterval a router waits for hellos of an existing DR."""
    net = lan_of(3)
    net.run(3.9)
    assert roles(net) == ["Waiting"] * 3
    assert net.states(1) == ["2-Way"] * 2
    net.run(0.2)
    assert offices(net) == {(3, 2)}


@pytest.mark.rfc("RFC 2328 §9.4 (2)")
def test_priority_counts_before_the_router_id():
    net = settled(4, priorities={1: 9, 2: 5})
    assert offices(net) == {(1, 2)}


@pytest.mark.rfc("RFC 2328 §9.4")
def test_priority_zero_is_never_elected():
    net = settled(3, priorities={2: 0, 3: 0})
    assert offices(net) == {(1, 0)}
    assert roles(net) == ["DR", "DR Other", "DR Other"]
    assert net.in_sync()


@pytest.mark.rfc("RFC 2328 §12.4.1.2")
def test_where_nobody_is_eligible_the_network_is_a_stub():
    net = settled(3, priorities={1: 0, 2: 0, 3: 0})
    assert offices(net) == {(0, 0)}
    assert net.states(1) == ["2-Way"] * 2
    assert network_lsas(net, 1) == {}
    assert (3, BASE, 0xFFFFFF00) in router_links(net, 1)


@pytest.mark.rfc("RFC 2328 §9.4")
def test_a_new_router_of_higher_priority_does_not_replace_dr_or_bdr():
    net = settled(3)
    net.add(9)
    net.attach(9, net.cables[0], BASE, LAN, priority=200)
    net.run(10.0)
    assert offices(net) == {(3, 2)}
    assert role(net, 9) == "DR Other"
    assert net.in_sync()


@pytest.mark.rfc("RFC 2328 §9.2")
def test_a_new_router_learns_dr_and_bdr_from_the_first_hellos():
    """BackupSeen ends the state Waiting: it is Full long before its wait timer expires."""
    net = settled(3)
    net.add(9)
    began = net.now
    net.attach(9, net.cables[0], BASE, LAN)
    net.until(lambda: net.states(9).count("Full") == 2)
    assert net.now - began < 1.1


@pytest.mark.rfc("RFC 2328 §9.4 (3)")
def test_the_backup_becomes_designated_when_the_designated_router_fails():
    net = settled(4)
    net.stop(4)
    began = net.now
    net.until(lambda: offices(net) == {(3, 2)} and sorted(net.states(1)) == ["Full", "Full"])
    assert net.now - began < 4.2
    net.run(1.0)
    assert network_lsas(net, 1)[BASE + 3] == [router_id(n) for n in (1, 2, 3)]
    assert (2, BASE + 3, BASE + 1) in router_links(net, 1)
    assert net.in_sync()


@pytest.mark.rfc("RFC 2328 §9.4 (2)")
def test_the_backup_is_replaced_when_it_fails():
    net = settled(4)
    net.stop(3)
    net.run(6.0)
    assert offices(net) == {(4, 2)}
    assert net.states(2).count("Full") == 2
    assert net.in_sync()


@pytest.mark.rfc("RFC 2328 §9.4")
def test_a_designated_router_that_shuts_down_is_replaced_at_once():
    net = settled(4)
    link, _ = net.nodes[4].links[2]
    net.link(4, link, None)
    began = net.now
    net.until(lambda: {net.interface(n).designated_router for n in (1, 2, 3)} == {BASE + 3})
    assert net.now - began < 0.1
    net.run(1.0)
    assert list(network_lsas(net, 1)) == [BASE + 3]


@pytest.mark.rfc("RFC 2328 §13.4")
def test_a_former_designated_router_that_restarts_flushes_its_network_lsa():
    net = settled(4)
    net.stop(4)
    net.run(6.0)
    assert set(network_lsas(net, 1)) == {BASE + 3, BASE + 4}
    old = net.nodes.pop(4)
    net.add(4)
    for link, settings in old.links.values():
        net.link(4, link, settings)
    net.run(8.0)
    assert offices(net) == {(3, 2)}
    assert set(network_lsas(net, 1)) == {BASE + 3}
    assert net.in_sync()


@pytest.mark.rfc("RFC 2328 §9.4", "RFC 2328 §10.4")
def test_a_designated_router_set_to_priority_zero_resigns_and_needed_adjacencies_stay():
    net = settled(3)
    link, settings = net.nodes[3].links[2]
    net.link(3, link, replace(settings, router_priority=0))
    net.run(3.0)
    assert offices(net) == {(2, 1)}
    assert set(network_lsas(net, 1)) == {BASE + 2}
    assert net.in_sync()


@pytest.mark.rfc("RFC 2328 §9.4")
def test_two_halves_of_a_partitioned_lan_elect_one_designated_router_when_they_join():
    net = settled(4)
    cable = net.cables[0]
    whole = cable.ends
    cable.ends = whole[:2]
    others = type(cable)(whole[2:])
    for end in whole[2:]:
        net.by_end[end] = others
    net.run(10.0)
    assert offices(net) == {(2, 1), (4, 3)}
    cable.ends = whole
    for end in whole[2:]:
        net.by_end[end] = cable
    net.run(10.0)
    assert offices(net) == {(4, 3)}
    assert net.in_sync()
    assert set(network_lsas(net, 1)) == {BASE + 4}


@pytest.mark.rfc("RFC 2328 §12.4.1.2")
def test_a_router_alone_announces_the_network_as_a_stub():
    net = settled(1)
    assert role(net, 1) == "DR"
    assert network_lsas(net, 1) == {}
    assert (3, BASE, 0xFFFFFF00) in router_links(net, 1)
    assert net.local_links(1) == ()


@pytest.mark.rfc("RFC 2328 §12.4.2")
def test_the_network_is_a_vertex_with_the_prefix_of_the_lan():
    net = settled(3)
    node = NETWORK_NODE | (BASE + 3)
    block = net.blocks(1)[node]
    assert block.network
    assert block.neighbors.tolist() == [router_id(n) for n in (1, 2, 3)]
    assert [a.prefix for a in block.prefixes] == [parse_prefix("10.192.0.0/24")]
    mine = net.blocks(2)[router_id(1)]
    assert mine.neighbors.tolist() == [node]
    assert mine.local_ids.tolist() == [BASE + 1]
    assert mine.capacities.tolist() == [12.5e6]
    assert parse_prefix("10.192.0.0/24") not in [a.prefix for a in mine.prefixes]


@pytest.mark.rfc("RFC 2328 §16.1.1")
def test_next_hops_on_a_lan_are_all_routers_from_which_hellos_arrive():
    """Two routers, neither DR nor BDR, are not adjacent, but forward to each other directly."""
    net = settled(4)
    links = net.local_links(1)
    assert [(k.neighbor, k.gateway) for k in links] == [(router_id(n), BASE + n) for n in (2, 3, 4)]
    assert {k.local_id for k in links} == {BASE + 1}


@pytest.mark.rfc("RFC 3630 §2.5.1", "RFC 3630 §2.5.2")
def test_te_links_on_a_lan_are_multi_access_and_named_by_the_designated_router():
    net = settled(3)
    bodies = [decode_body(e.lsa) for e in net.lsdb(1) if e.key.ls_type == LsType.OPAQUE_AREA]
    links = [body for body in bodies if isinstance(body, TeLink)]
    assert {(k.link_type, k.link_id) for k in links} == {(2, BASE + 3)}
    assert {k.local_addresses for k in links} == {(BASE + n,) for n in (1, 2, 3)}


def packets_of(net: Network, kind: type) -> list[tuple[int, int, object]]:
    """(node, destination, body) of all packets of a type so far."""
    found = [(number, p.destination, decode_packet(p.payload).body) for _, number, p in net.trace]
    return [item for item in found if isinstance(item[2], kind)]


def change_cost(net: Network, number: int, cost: int) -> None:
    link, settings = net.nodes[number].links[2]
    net.link(number, link, replace(settings, cost=cost))


@pytest.mark.rfc("RFC 2328 §13.3")
def test_a_change_goes_to_the_designated_routers_and_from_there_to_all():
    net = settled(4)
    net.trace.clear()
    change_cost(net, 1, 77)
    net.run(0.5)
    sent = [(number, to) for number, to, _ in packets_of(net, LsUpdate)]
    assert sent == [(1, ALL_DR), (4, ALL_SPF)]  # one update has the router LSA and the TE LSA
    acks = {(number, to) for number, to, _ in packets_of(net, LsAck)}
    # The flood of the DR is R1's implied acknowledgment; the backup and the others acknowledge.
    assert acks == {(2, ALL_DR), (3, ALL_SPF)}
    net.run(3.0)
    assert len(packets_of(net, LsUpdate)) == 2
    assert net.in_sync()


@pytest.mark.rfc("RFC 2328 §13.3", "RFC 2328 §13.5")
def test_what_the_designated_router_originates_is_sent_once_and_acknowledged_by_each():
    net = settled(4)
    net.trace.clear()
    change_cost(net, 4, 77)
    net.run(3.0)
    assert [(n, to) for n, to, _ in packets_of(net, LsUpdate)] == [(4, ALL_SPF)]
    assert {(n, to) for n, to, _ in packets_of(net, LsAck)} == {
        (1, ALL_DR),
        (2, ALL_DR),
        (3, ALL_SPF),
    }


@pytest.mark.rfc("RFC 2328 §13.6")
def test_a_lost_flood_is_retransmitted_only_to_the_router_that_lacks_it():
    net = settled(4)
    net.trace.clear()
    change_cost(net, 4, 77)
    net.lose(1)
    net.run(3.0)
    updates = packets_of(net, LsUpdate)
    # The backup retransmits too: the designated router might fail right after its flood.
    assert {(n, to) for n, to, _ in updates} == {(4, ALL_SPF), (4, BASE + 1), (3, BASE + 1)}
    assert len(updates) == 3
    assert net.in_sync()


def test_lans_in_a_row_are_in_sync_and_survive_losses():
    net = Network(3)
    net.lan(1, 2, 3)
    net.lan(3, 4, 5)
    net.join(1, 5)
    for cable in net.cables:
        cable.loss = 0.1
    net.run(60.0)
    for cable in net.cables:
        cable.loss = 0.0
    net.run(30.0)
    assert net.in_sync()
    assert len(network_lsas(net, 1)) == 2


@pytest.mark.parametrize("seed", range(4))
def test_random_failures_and_restarts_end_with_one_designated_router(seed):
    net = settled(5, seed=seed)
    alive = set(range(1, 6))
    for _ in range(8):
        number = net.rng.choice(range(1, 6))
        link, settings = net.nodes[number].links[2]
        up = number not in alive
        net.link(number, replace(link, up=up), settings)
        net.nodes[number].links[2] = (link, settings)
        (alive.add if up else alive.discard)(number)
        net.run(net.rng.random() * 6)
    for number in set(range(1, 6)) - alive:
        net.link(number, *net.nodes[number].links[2])
    net.run(20.0)
    assert len(offices(net)) == 1
    assert sorted(roles(net)) == ["Backup", "DR", "DR Other", "DR Other", "DR Other"]
    assert net.in_sync()
    ((designated, _),) = offices(net)
    assert network_lsas(net, 1) == {BASE + designated: [router_id(n) for n in range(1, 6)]}


# Packets that a single router accepts


def on_a_lan(**changes) -> Scripted:
    return Scripted(settings=replace(LAN, **changes))


@pytest.mark.rfc("RFC 2328 §10.5")
def test_hellos_with_another_mask_are_refused():
    peer = on_a_lan()
    peer.greet(peer.me, network_mask=0xFFFFFF00)
    assert peer.state == "Down"
    assert peer.errors() == {"network-mask-mismatch": 1}


@pytest.mark.rfc("RFC 2328 §8.2")
def test_packets_from_another_subnet_are_refused():
    peer = on_a_lan()
    peer.send(peer.hello(peer.me), source=parse_dotted("10.9.9.9"))
    assert peer.errors() == {"source-network": 1}


@pytest.mark.rfc("RFC 2328 §8.2")
def test_packets_to_all_designated_routers_are_ignored_silently_by_others():
    peer = on_a_lan(router_priority=0)
    peer.greet(peer.me)
    peer.raw(b"anything", destination=ALL_DR)
    assert peer.errors() == {}


@pytest.mark.rfc("RFC 2328 §10.5")
def test_another_router_id_with_the_same_address_is_a_new_neighbor():
    peer = on_a_lan()
    peer.greet(peer.me)
    assert peer.neighbor.router_id == peer.peer
    peer.send(peer.hello(), peer=router_id(77))
    assert peer.neighbor.router_id == router_id(77)
    assert peer.state == "Init"


@pytest.mark.rfc("RFC 2328 §12.4.1.2")
def test_a_passive_interface_on_a_lan_is_a_stub_without_election():
    peer = on_a_lan(passive=True)
    peer.at(20.0)
    assert peer.got() == []
    interface = peer.engine.instance.ordered_interfaces()[0]
    assert (interface.state.value, interface.designated_router) == ("DR Other", 0)


@pytest.mark.rfc("RFC 2328 §9.5")
def test_hellos_name_the_designated_routers():
    net = settled(3)
    net.trace.clear()
    net.run(1.1)
    hellos = packets_of(net, Hello)
    assert {(h.designated_router, h.backup_designated_router) for _, _, h in hellos} == {
        (BASE + 3, BASE + 2)
    }
    assert {to >> 28 for _, to, _ in hellos} == {MULTICAST}


@pytest.mark.rfc("RFC 2328 §8.1")
def test_exchanges_on_a_lan_are_unicast_and_on_a_point_to_point_link_are_not():
    net = settled(2)
    kinds = {p.payload[1]: p.destination for _, _, p in net.trace if p.payload[1] in (2, 3)}
    assert set(kinds.values()) <= {BASE + 1, BASE + 2}
    other = Network(1)
    other.add(1)
    other.add(2)
    other.join(1, 2, FAST)
    other.run(2.0)
    assert {p.destination for _, _, p in other.trace} == {ALL_SPF}


def test_a_changed_network_type_restarts_the_interface():
    peer = Scripted()
    peer.to_full()
    peer.handle(LinkChanged(peer.link, LAN))
    assert peer.state == "Down"
    assert peer.engine.instance.ordered_interfaces()[0].state.value == "Waiting"


@pytest.mark.rfc("RFC 2328 §13.4")
def test_after_a_change_of_router_id_the_old_network_lsa_is_flushed():
    """RFC 2328 §13.4: a network LSA whose id is an own address is self-originated."""
    net = settled(3)
    new = OspfSettings(router_id=router_id(77), areas=(AreaSettings(BACKBONE),))
    other = net.nodes[3]
    net.stop(3)
    net.run(0.1)
    net.nodes[3] = type(other)(
        3, OspfEngine(new, random.Random(5)), 5, new, links=dict(other.links)
    )
    for link, settings in other.links.values():
        net.link(3, link, settings)
    net.run(12.0)
    assert len(offices(net)) == 1
    makers = {
        entry.key.advertising_router
        for entry in net.lsdb(1)
        if entry.key.ls_type == LsType.NETWORK
        and entry.age(net.now) < 3600
        and entry.key.link_state_id == BASE + 3
    }
    assert router_id(3) not in makers
    assert net.in_sync()


def test_adjacencies_on_a_lan_are_formed_again_when_the_area_becomes_stub():
    net = settled(3)
    stub = (AreaSettings(BACKBONE, stub=True),)
    for number in (1, 2, 3):
        net.input(number, SettingsApplied(OspfSettings(router_id=router_id(number), areas=stub)))
    net.run(8.0)
    assert len(offices(net)) == 1
    assert net.in_sync()
    assert len(network_lsas(net, 1)) == 1


def test_two_interfaces_on_one_lan_are_two_neighbors_of_the_others():
    """On broadcast networks, neighbors are identified by address."""
    net = settled(3)
    net.attach(1, net.cables[0], BASE + 100, LAN)
    net.run(6.0)
    seen = [(n.router_id, n.address) for n in net.neighbors(3)]
    assert (router_id(1), BASE + 1) in seen
    assert (router_id(1), BASE + 101) in seen
    assert net.in_sync()
