"""The flooding procedure (RFC 2328 §13): newer, older and equal LSAs, acknowledgments,
retransmissions."""

import gc

import pytest
from msgspec.structs import replace

from fared.protocols.igp.events import LinkChanged, LogRecord, PacketReceived
from fared.protocols.ospf.flooding import database
from fared.protocols.ospf.lsdb import LsaEntry, Scope
from fared.protocols.ospf.packet.codec import decode_packet, encode_packet
from fared.protocols.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, MAX_AGE, Lsa, LsaKey
from fared.protocols.ospf.packet.packets import DdFlags, LsAck, LsUpdate
from fared.protocols.ospf.settings import AreaSettings
from tests.ospf.harness import BACKBONE, FAST, Network, router_id
from tests.ospf.scripted import (
    ALL_SPF,
    Scripted,
    ack,
    dd,
    make_lsa,
    request,
    router_lsa,
    update,
)

OTHER = router_id(30)


@pytest.fixture
def peer() -> Scripted:
    """A Full neighbor with an equal database, and nothing unacknowledged."""
    peer = Scripted()
    peer.to_full()
    peer.at(0.5)
    acknowledge_all(peer)
    return peer


def acknowledge_all(peer: Scripted) -> None:
    for sent in peer.got(LsUpdate):
        peer.send(ack(*sent.lsas))
    assert peer.retransmissions == 0


def chain(length: int, **kwargs) -> Network:
    """Routers in a row."""
    net = Network(5)
    for n in range(1, length):
        net.join(n, n + 1, **kwargs)
    net.until(lambda: net.all_full() and net.in_sync())
    net.run(2)
    return net


@pytest.mark.rfc("RFC 2328 §13 (5)")
def test_a_new_lsa_is_stored_and_acknowledged(peer):
    lsa = make_lsa(OTHER)
    peer.send(update(lsa))
    assert peer.lsas()[lsa.header.key][0] == lsa
    (answer,) = peer.acks()
    assert answer.lsa_headers == (lsa.header,)


def test_instances_that_were_replaced_are_not_kept(peer):
    others = range(router_id(77), router_id(77) + 10)
    for n in range(10):
        peer.at(peer.now + 1.1)
        peer.greet(peer.me)
        peer.send(update(*(make_lsa(other, INITIAL_SEQUENCE_NUMBER + n) for other in others)))
    gc.collect()
    entries = [kept for kept in gc.get_objects() if isinstance(kept, LsaEntry)]
    kept = [entry for entry in entries if entry.key.advertising_router in others]
    assert len(kept) <= 2 * len(others), "those now, and those whose checksums are being verified"


def test_the_verification_of_checksums_keeps_no_instance_that_was_replaced(peer):
    others = range(router_id(77), router_id(77) + 100)

    def learn(instance: int) -> None:
        peer.send(update(*(make_lsa(at, INITIAL_SEQUENCE_NUMBER + instance) for at in others)))

    def verify_some() -> None:
        for _ in range(11):
            peer.at(peer.now + 1.0)
            peer.greet(peer.me)

    learn(0)
    verify_some()
    learn(1)
    verify_some()
    gc.collect()
    entries = [kept for kept in gc.get_objects() if isinstance(kept, LsaEntry)]
    kept = [entry for entry in entries if entry.key.advertising_router in others]
    assert len(kept) == len(others)


@pytest.mark.rfc("RFC 2328 §14")
@pytest.mark.parametrize("piece", [1, 7, 64, 4096])
def test_an_lsa_that_was_damaged_in_memory_is_found_though_others_are_replaced(
    peer, monkeypatch, piece
):
    """Each is verified within CheckAge, 300 s (RFC 2328 §14)."""
    monkeypatch.setattr(database, "_PIECE", piece)
    others = range(router_id(77), router_id(77) + 64)
    peer.send(update(*map(make_lsa, others)))
    for _ in range(40):
        peer.at(peer.now + 1.0)
        peer.greet(peer.me)
    peer.send(update(*(make_lsa(at, INITIAL_SEQUENCE_NUMBER + 1) for at in others[::3])))
    entries = peer.engine.instance.areas[BACKBONE].lsdb.entries
    damaged = {router_lsa(at) for at in others[1::3]}
    for key in damaged:
        entry = entries[key]
        entry.raw = entry.raw[:-1] + bytes([entry.raw[-1] ^ 1])
    for _ in range(300):
        peer.at(peer.now + 1.0)
        peer.greet(peer.me)
    logs = [log for log in peer.outputs if isinstance(log, LogRecord)]
    found = [log.fields["lsa"] for log in logs if log.event == "ospf-lsdb-corrupt"]
    assert set(found) == set(map(str, damaged))
    assert peer.errors() == {"lsdb-checksum": len(found)}


@pytest.mark.rfc("RFC 2328 §13.5")
def test_acks_of_one_update_are_sent_in_one_packet(peer):
    peer.send(update(*(make_lsa(OTHER + n) for n in range(20))))
    (answer,) = peer.acks()
    assert len(answer.lsa_headers) == 20


@pytest.mark.rfc("RFC 2328 §13.5")
def test_acks_of_floods_within_a_short_time_are_sent_in_one_packet(peer):
    """The two ends of a link advertise its failure in turn; one packet acknowledges both."""
    for n in range(5):
        peer.send(update(make_lsa(OTHER + n)))
        peer.at(peer.now + 0.015)
    (answer,) = peer.acks()
    assert len(answer.lsa_headers) == 5


@pytest.mark.rfc("RFC 2328 §13.5")
def test_a_full_packet_of_acks_is_sent_at_once(peer):
    peer.send(update(*(make_lsa(OTHER + n) for n in range(100))))
    assert sum(len(answer.lsa_headers) for answer in peer.got(LsAck)) == 100


@pytest.mark.rfc("RFC 2328 §13.3")
def test_an_lsa_is_flooded_a_second_older_and_not_sent_back():
    net = chain(3)
    before = len(net.trace)
    net.cables[0].delay = net.cables[1].delay = 0.001
    link, settings = net.nodes[1].links[2]
    net.link(1, link, replace(settings, cost=55))
    net.run(0.01)
    packets = [(node, p.ifindex, p.payload[1]) for _, node, p in net.trace[before:]]
    # r1 and r2 flood the router LSA and the TE LSA (its TE metric is the cost) once each
    updates = [(node, ifindex) for node, ifindex, kind in packets if kind == 4]
    assert updates == [(1, 2), (2, 3)]
    assert net.lsdb(3).entries[router_lsa(router_id(1))].age(net.now) == 2


@pytest.mark.rfc("RFC 2328 §13.1")
def test_newer_replaces_older():
    peer = Scripted()
    peer.to_full()
    for seq in (5, 6, 9):
        peer.send(update(make_lsa(OTHER, seq)))
    assert peer.lsas()[router_lsa(OTHER)][0].header.ls_sequence_number == 9


@pytest.mark.rfc("RFC 2328 §13.1")
def test_a_larger_checksum_wins_at_the_same_sequence_number(peer):
    a, b = make_lsa(OTHER, 5), make_lsa(OTHER, 5, body=bytes.fromhex("02000000"))
    low, high = sorted((a, b), key=lambda lsa: lsa.header.ls_checksum)
    peer.send(update(high))
    peer.send(update(low))
    assert peer.lsas()[router_lsa(OTHER)][0] == high


@pytest.mark.rfc("RFC 2328 §13.1")
def test_at_the_same_sequence_number_an_age_younger_by_maxagediff_wins_and_less_does_not(peer):
    peer.send(update(make_lsa(OTHER, 5, age=1000)))
    peer.send(update(make_lsa(OTHER, 5, age=200)))
    assert peer.lsas()[router_lsa(OTHER)][1] == 1000
    peer.send(update(make_lsa(OTHER, 5, age=99)))
    assert peer.lsas()[router_lsa(OTHER)][1] == 99


@pytest.mark.rfc("RFC 2328 §13 (8)")
def test_an_older_lsa_is_answered_with_ours_once_a_second(peer):
    peer.send(update(make_lsa(OTHER, 9)))
    peer.got()
    peer.send(update(make_lsa(OTHER, 5)))
    (answer,) = peer.got()
    assert answer.lsas[0].header.ls_sequence_number == 9
    peer.send(update(make_lsa(OTHER, 5)))
    assert peer.got() == []
    assert peer.retransmissions == 0


@pytest.mark.rfc("RFC 2328 §13.5")
def test_a_duplicate_is_acknowledged_directly(peer):
    lsa = make_lsa(OTHER)
    peer.send(update(lsa))
    peer.acks()
    peer.send(update(lsa))
    (answer,) = peer.acks()
    assert answer.lsa_headers == (lsa.header,)


@pytest.mark.rfc("RFC 2328 §13 (7)")
def test_duplicates_are_acknowledged_each_time_that_they_come(peer):
    lsas = [make_lsa(OTHER + n) for n in range(3)]
    headers = tuple(lsa.header for lsa in lsas)
    for _ in range(4):
        peer.send(update(*lsas))
        assert [answer.lsa_headers for answer in peer.acks()] == [headers]
    assert peer.engine.counters.lsdb["duplicate"] == 9


@pytest.mark.rfc("RFC 2328 §13 (8)")
def test_a_duplicate_seen_before_is_answered_with_the_instance_that_has_replaced_it(peer):
    old, new = make_lsa(OTHER, 5), make_lsa(OTHER, 6)
    for _ in range(3):
        peer.send(update(old))
    peer.at(peer.now + 2)
    peer.send(update(new))
    peer.acks()
    peer.send(update(old))
    (answer,) = peer.got(LsUpdate)
    assert answer.lsas[0].header.ls_sequence_number == 6
    assert peer.acks() == []


@pytest.mark.rfc("RFC 2328 §13.1")
def test_a_duplicate_seen_before_is_newer_once_its_age_is_younger_by_maxagediff(peer):
    lsa = make_lsa(OTHER, 5)
    for _ in range(3):
        peer.send(update(lsa))
    for _ in range(452):
        peer.at(peer.now + 2)
        peer.greet(peer.me)
    assert peer.lsas()[router_lsa(OTHER)][1] > 902
    peer.send(update(lsa))
    assert peer.lsas()[router_lsa(OTHER)][1] == 1


def test_copies_and_new_lsas_of_one_update_are_told_apart(peer):
    known, new = make_lsa(OTHER), make_lsa(OTHER + 1)
    peer.send(update(known))
    peer.acks()
    peer.send(update(new, known))
    acknowledged = {header for answer in peer.acks() for header in answer.lsa_headers}
    assert acknowledged == {known.header, new.header}
    assert peer.lsas()[router_lsa(OTHER + 1)][0] == new


@pytest.mark.rfc("RFC 2328 §13 (7)")
def test_a_duplicate_of_what_we_sent_is_an_implied_acknowledgment():
    peer = Scripted()
    peer.to_full()
    peer.at(0.5)
    (sent, *_) = (lsa for u in peer.got(LsUpdate) for lsa in u.lsas)
    before = peer.retransmissions
    peer.send(update(sent))
    assert peer.retransmissions == before - 1
    assert peer.got() == []


@pytest.mark.rfc("RFC 2328 §13.6")
def test_unacknowledged_lsas_are_retransmitted_every_interval():
    peer = Scripted()
    peer.to_full()
    peer.at(0.5)
    peer.got()
    peer.at(3.5)
    repeats = [lsa for u in peer.got(LsUpdate) for lsa in u.lsas]
    assert len(repeats) >= 2 * peer.retransmissions > 0
    peer.send(ack(*repeats))
    assert peer.retransmissions == 0
    peer.greet(peer.me)
    peer.at(7.0)
    assert peer.got(LsUpdate) == []


@pytest.mark.rfc("RFC 2328 §13.7")
def test_an_acknowledgment_of_another_instance_does_not_count(peer):
    own = peer.own_router_lsa()
    peer.handle(LinkChanged(peer.link, replace(peer.settings, cost=99)))
    peer.at(1.0)
    assert peer.retransmissions
    before = peer.retransmissions
    peer.send(ack(own))
    assert peer.retransmissions == before


@pytest.mark.rfc("RFC 2328 §13 (5)(a)")
def test_a_second_change_within_minlsarrival_is_retransmitted_early():
    """A neighbor drops it by MinLSArrival (1 s); the default interval would be 5 s."""
    peer = Scripted(settings=replace(FAST, rxmt_interval=5.0, router_dead_interval=40))
    peer.to_full()
    peer.at(3.0)
    acknowledge_all(peer)
    for cost in (20, 21):
        peer.handle(LinkChanged(peer.link, replace(peer.settings, cost=cost)))
        peer.at(peer.now + 0.1)
    changes = peer.got(LsUpdate)
    peer.at(peer.now + 1.2)
    repeated = {x.header.key for u in peer.got(LsUpdate) for x in u.lsas}
    assert repeated == {x.header.key for u in changes[1:] for x in u.lsas} != set()


@pytest.mark.rfc("RFC 2328 §13 (1)")
def test_an_lsa_with_a_bad_checksum_is_dropped_and_the_rest_of_the_packet_accepted(peer):
    good, bad = make_lsa(OTHER), make_lsa(OTHER + 1)
    bad = Lsa(bad.header, bad.raw[:-1] + bytes([bad.raw[-1] ^ 1]))
    peer.send(update(bad, good))
    assert good.header.key in peer.lsas()
    assert bad.header.key not in peer.lsas()
    assert peer.errors() == {"lsa-checksum": 1}
    assert peer.acks()[0].lsa_headers == (good.header,)


@pytest.mark.rfc("RFC 2328 §13 (2)")
def test_an_lsa_of_unknown_type_is_dropped_and_the_rest_accepted(peer):
    good = make_lsa(OTHER)
    peer.send(update(make_lsa(OTHER, ls_type=8, body=b""), good))
    assert good.header.key in peer.lsas()
    assert peer.errors() == {"lsa-type": 1}


def test_a_router_lsa_with_a_malformed_body_is_not_flooded(peer):
    broken = make_lsa(OTHER, body=bytes.fromhex("0000ffff"))
    peer.send(update(broken))
    assert broken.header.key not in peer.lsas()
    assert peer.errors() == {"lsa-body": 1}


@pytest.mark.rfc("RFC 5250 §3")
def test_an_opaque_lsa_is_installed_with_any_contents(peer):
    """RFC 5250: opaque LSAs are flooded independently of their contents."""
    strange = make_lsa(OTHER, ls_type=10, lsid=0x01000001, body=b"\xff" * 16)
    peer.send(update(strange))
    assert strange.header.key in peer.lsas()
    assert peer.state == "Full"


@pytest.mark.rfc("RFC 2328 §13")
def test_updates_before_exchange_are_ignored():
    peer = Scripted()
    peer.to_exstart()
    peer.send(update(make_lsa(OTHER)))
    assert router_lsa(OTHER) not in peer.lsas()


@pytest.mark.rfc("RFC 2328 §13 (4)")
def test_a_maxage_lsa_without_a_database_copy_is_acknowledged_and_not_installed(peer):
    dead = make_lsa(OTHER, age=MAX_AGE)
    peer.send(update(dead))
    assert dead.header.key not in peer.lsas()
    assert peer.acks()[0].lsa_headers == (dead.header,)


@pytest.mark.rfc("RFC 2328 §14")
def test_maxage_of_a_stored_lsa_removes_it(peer):
    lsa = make_lsa(OTHER)
    peer.send(update(lsa))
    peer.send(update(make_lsa(OTHER, age=MAX_AGE)))
    assert lsa.header.key not in peer.lsas()


@pytest.mark.rfc("RFC 2328 §14")
def test_maxage_stays_while_a_neighbor_is_in_exchange():
    """RFC 2328 §14: the neighbor may still request it."""
    peer = Scripted()
    peer.to_exchange()
    dead = make_lsa(OTHER, age=MAX_AGE)
    peer.send(update(dead))
    assert dead.header.key in peer.lsas()
    peer.send(dd(DdFlags.MS, 1001))
    assert peer.state == "Full"
    assert dead.header.key not in peer.lsas()


@pytest.mark.rfc("RFC 2328 §13 (5)(a)")
def test_min_ls_arrival_drops_without_acknowledgment():
    peer = Scripted(min_ls_arrival=1.0)
    peer.to_full()
    peer.at(0.5)
    peer.send(update(make_lsa(OTHER, 5)))
    assert len(peer.acks()) == 1
    peer.send(update(make_lsa(OTHER, 6)))
    assert peer.acks() == []
    peer.at(1.6)
    peer.send(update(make_lsa(OTHER, 6)))
    assert len(peer.acks()) == 1


@pytest.mark.rfc("RFC 5250 §3")
def test_opaque_lsas_are_kept_from_neighbors_without_the_o_bit():
    peer = Scripted()
    peer.to_full(options=0x02)
    peer.at(1.0)
    assert {lsa.header.ls_type for u in peer.got(LsUpdate) for lsa in u.lsas} == {1}


@pytest.mark.rfc("RFC 5250 §3")
def test_link_local_opaque_lsas_stay_on_their_link(peer):
    local = make_lsa(router_id(9), ls_type=9, lsid=0x03000000, body=bytes(4))
    peer.send(update(local))
    assert local.header.key not in peer.lsas()
    (interface,) = peer.engine.instance.interfaces.values()
    assert [entry.lsa for entry in interface.lsdb] == [local]


@pytest.mark.rfc("RFC 2328 §13 (3)", "RFC 5250 §3")
def test_as_scope_lsas_are_kept_apart_and_refused_in_stub_areas():
    stub = Scripted(areas=(AreaSettings(BACKBONE, stub=True),))
    wide = make_lsa(OTHER, ls_type=11, lsid=0x04000000, body=bytes(4))
    stub.send(stub.hello(stub.me, options=0))
    stub.send(dd(DdFlags.I | DdFlags.M | DdFlags.MS, 7, options=0x40))
    stub.send(update(wide))
    assert stub.errors() == {"lsa-type": 1}
    normal = Scripted()
    normal.to_full()
    normal.send(update(wide))
    assert [d.scope for d in normal.engine.instance.databases() if len(d)] == [Scope.AREA, Scope.AS]


@pytest.mark.rfc("RFC 2328 §A.1")
def test_an_lsa_larger_than_the_mtu_is_sent_in_a_packet_of_its_own(peer):
    body = bytes(3000)
    peer.send(update(make_lsa(OTHER, ls_type=10, body=body)))
    key = LsaKey(10, OTHER, OTHER)
    assert len(peer.lsas()[key][0].raw) == 3020


def test_floods_are_batched_up_to_the_mtu():
    """500 LSAs for a new neighbor fill packets, and are not sent one by one."""
    peer = Scripted()
    peer.to_full()
    lsas = [make_lsa(OTHER, lsid=n, ls_type=10, body=bytes(100)) for n in range(100)]
    for start in range(0, 100, 10):
        peer.send(update(*lsas[start : start + 10]))
    peer.got()
    peer.send(request(*(x.header.key for x in lsas)))
    sent = peer.got(LsUpdate)
    assert sum(len(u.lsas) for u in sent) == 100
    assert len(sent) == 9


def test_the_first_flood_is_sent_at_once_and_those_shortly_after_are_sent_together():
    net = chain(3)
    net.run(2)
    net.cables[0].delay = 0.0
    before = len(net.trace)
    for n in range(10):
        packet = encode_packet(router_id(1), 0, update(make_lsa(OTHER + n)))
        source = net.nodes[1].links[2][0].addresses[0].address
        net.input(2, PacketReceived(2, source, ALL_SPF, packet, 1))
    net.run(0.05)
    bodies = [decode_packet(p.payload).body for _, node, p in net.trace[before:] if node == 2]
    assert [len(b.lsas) for b in bodies if isinstance(b, LsUpdate)] == [1, 9]


def test_an_lsa_replaced_before_it_is_sent_is_sent_once_in_its_newest_instance(peer):
    for cost in (20, 21):
        peer.handle(LinkChanged(peer.link, replace(peer.settings, cost=cost)))
    peer.at(peer.now + 3.0)
    sent = [x for u in peer.got(LsUpdate) for x in u.lsas if x.header.ls_type == 1]
    numbers = [x.header.ls_sequence_number for x in sent]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("seed", range(3))
def test_a_lossy_chain_converges_by_retransmission(seed):
    net = Network(seed)
    for n in range(1, 5):
        net.join(n, n + 1, loss=0.3)
    net.until(lambda: net.all_full() and net.in_sync() and len(net.database(1)) == 5 * 3 + 8, 200)
