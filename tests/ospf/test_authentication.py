"""Authentication between engines with keys at both ends of a link, on a virtual clock."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from fared.core.ids import parse_dotted
from fared.management.documents.views.link import keys_shown
from fared.protocols.igp.events import LogRecord, PacketReceived, SettingsApplied
from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey, accept_keys, send_key
from fared.protocols.ospf.auth.sequence import clock_number
from fared.protocols.ospf.auth.signature import au_type_of, overhead, read_auth, sign, verify
from fared.protocols.ospf.packet.codec import decode_packet, encode_packet
from fared.protocols.ospf.packet.packets import Hello, PacketType
from fared.protocols.ospf.processing.authenticate import sending_key
from fared.protocols.ospf.settings import OspfSettings
from tests.ospf.harness import FAST, Network, pair, router_id
from tests.ospf.scripted import ALL_SPF, OURS, THEIRS, Scripted

WALL = 1_800_000_000.0
HMACS = [a for a in Algorithm if a.value.startswith("hmac")]
KEYS = [
    *(AuthKey(algorithm, 7, b"fabric") for algorithm in Algorithm),
    *(AuthKey(algorithm, 70_000, b"fabric", extended=True) for algorithm in HMACS),
]
A = AuthKey(Algorithm.MD5, 1, b"first")
B = AuthKey(Algorithm.HMAC_SHA_256, 2, b"second")
EXTENDED = AuthKey(Algorithm.HMAC_SHA_512, 3, b"third", extended=True)


def keyed(*keys: AuthKey | TimedKey):
    """Settings of an interface with these keys."""
    ring = tuple(TimedKey(key) if isinstance(key, AuthKey) else key for key in keys)
    return replace(FAST, authentication=ring)


def joined(left, right, **kwargs) -> Network:
    """Two routers, their clocks at WALL, with these settings at either end of their link."""
    net = Network(1)
    for number in (1, 2):
        net.add(number, epoch=WALL, boot_count=1)
    net.join(1, 2, left, b_settings=right, **kwargs)
    return net


def change(net: Network, number: int, *keys: AuthKey | TimedKey) -> None:
    """Change the keys of one router, as a reload does."""
    link, _ = net.nodes[number].links[2]
    net.link(number, link, keyed(*keys))


def errors(net: Network, number: int) -> dict[str, int]:
    return dict(net.nodes[number].engine.counters.errors)


def losses(net: Network) -> int:
    """The number of times that a neighbor left state Full."""
    return sum(
        count
        for node in net.nodes.values()
        for (before, _), count in node.engine.counters.transitions.items()
        if before == "Full"
    )


def view(net: Network, number: int):
    """The keys in the view of the interface."""
    instance = net.nodes[number].engine.instance
    interface = instance.ordered_interfaces()[-1]
    chosen = sending_key(instance, interface, net.now)
    return keys_shown(interface.settings.authentication, chosen, instance.settings.epoch + net.now)


def logged(net: Network, number: int, event: str) -> list[LogRecord]:
    return [record for record in net.nodes[number].said(LogRecord) if record.event == event]


# -- the same key, another key ---------------------------------------------------------------


@pytest.mark.rfc("RFC 2328 §D.4.3")
@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_with_the_same_key_at_both_ends_they_become_full(key):
    """Every packet has a digest of that key; none is rejected."""
    net = joined(keyed(key), keyed(key))
    assert net.until(lambda: net.all_full() and net.in_sync()) < 0.020
    net.run(0.2)
    assert {packet.payload[1] for _, _, packet in net.trace} == set(PacketType)
    for _, number, packet in net.trace:
        source = net.nodes[number].links[2][0].addresses[0].address
        verify(packet.payload, key, source)
    assert errors(net, 1) == errors(net, 2) == {}
    assert (view(net, 1).algorithm, view(net, 1).key_id) == (key.algorithm.value, key.key_id)


@pytest.mark.rfc("RFC 2328 §D.5.3")
@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_with_different_keys_no_neighbor_is_created_and_packets_are_counted(key):
    """One count a packet, one log line a minute, and no neighbor, not even Init."""
    net = joined(keyed(key), keyed(replace(key, key=b"another")))
    net.run(30.0)
    assert net.states(1) == net.states(2) == []
    reason = "auth-key" if key.algorithm is Algorithm.CLEARTEXT else "auth-digest"
    assert errors(net, 1)[reason] >= 29
    (record,) = logged(net, 1, "ospf-rejected")
    assert record.fields["reason"] == reason
    assert "fabric" not in repr(record)


@pytest.mark.rfc("RFC 2328 §D.5")
@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        ((A,), (), "auth-type"),
        ((A,), (EXTENDED,), "auth-type"),
        ((A,), (AuthKey(Algorithm.CLEARTEXT, 0, b"first"),), "auth-type"),
        ((A,), (replace(A, key_id=2),), "auth-key"),
        ((A,), (AuthKey(Algorithm.HMAC_SHA_1, 1, b"first"),), "auth-digest"),
    ],
)
def test_other_types_ids_and_algorithms_are_told_apart_by_reason(left, right, reason):
    net = joined(keyed(*left), keyed(*right))
    net.run(5.0)
    assert net.states(1) == net.states(2) == []
    assert set(errors(net, 1)) == set(errors(net, 2)) == {reason}


def test_the_adjacency_with_a_neighbor_that_loses_the_key_ends_after_the_dead_interval():
    """Forged or unsigned hellos do not restart the inactivity timer."""
    net = joined(keyed(A), keyed(A))
    net.until(net.all_full)
    begun = net.now
    change(net, 2)
    gone = net.until(lambda: net.states(1) == [])
    assert 3.0 < gone - begun < 4.1
    change(net, 2, A)
    net.until(net.all_full)


@pytest.mark.rfc("RFC 2328 §D.5.3")
def test_a_packet_with_one_bit_changed_is_refused():
    """Digests cover the whole packet; the state machine does not process altered packets."""
    net = joined(keyed(B), keyed(B))
    net.until(net.all_full)
    packet = next(p for _, n, p in reversed(net.trace) if n == 2)
    for position in (5, 12, 20, 30, len(packet.payload) - 1):
        payload = bytearray(packet.payload)
        payload[position] ^= 1
        net.input(1, PacketReceived(2, OURS + 1, ALL_SPF, bytes(payload), 1))
    assert net.all_full()
    assert sum(errors(net, 1).values()) == 5
    assert {reason.partition("-")[0] for reason in errors(net, 1)} == {"auth"}


@pytest.mark.rfc("RFC 2328 §D.5")
def test_unreadable_authentication_is_refused_by_name():
    peer = Scripted(settings=keyed(B))
    packet = bytearray(encode_packet(peer.peer, 0, Hello(0, 1, 2, 1, 4, 0, 0, ())))
    for au_type, size, reason in ((9, 0, "auth-type"), (3, 4, "auth-digest"), (2, 32, "truncated")):
        packet[14:16] = au_type.to_bytes(2, "big")
        packet[19] = size
        peer.raw(bytes(packet) + bytes(min(size, 8)))
        assert dict(peer.engine.counters.errors)[reason] == 1


# -- sequence numbers ------------------------------------------------------------------------


def sequences(net: Network, number: int) -> list[int]:
    return [read_auth(p.payload).sequence for _, n, p in net.trace if n == number]


@pytest.mark.rfc("RFC 2328 §D.3")
def test_32_bit_sequence_numbers_rise_with_every_packet_and_follow_the_wall_clock():
    """They exceed those before a restart: hellos are sent at a lower rate than the clock counts."""
    net = joined(keyed(B), keyed(B))
    net.run(10.0)
    sent = sequences(net, 1)
    assert all(a < b for a, b in pairwise(sent))
    assert sent[0] == clock_number(WALL)
    assert clock_number(WALL + 9) <= sent[-1] <= clock_number(WALL + 10)


def test_a_clock_set_back_does_not_turn_them_back():
    net = joined(keyed(B), keyed(B))
    net.run(5.0)
    for number in (1, 2):
        settings = OspfSettings(
            router_id(number), areas=net.nodes[number].engine.instance.settings.areas, epoch=1e9
        )
        net.input(number, SettingsApplied(settings))
    net.run(10.0)
    assert net.all_full()
    assert sequences(net, 1)[-1] > clock_number(WALL + 4)
    assert losses(net) == 0


@pytest.mark.rfc("RFC 7474 §3")
def test_64_bit_sequence_numbers_count_packets_from_the_boot_count():
    net = joined(keyed(EXTENDED), keyed(EXTENDED))
    net.run(10.0)
    sent = sequences(net, 1)
    first = (1 << 32) + 1
    assert sent == list(range(first, first + len(sent)))


@pytest.mark.rfc("RFC 2328 §D.3")
def test_replayed_packets_are_refused_while_the_neighbor_is_there():
    """RFC 2328 §D.3: a number less than the last one of this neighbor; equal ones still pass."""
    net = joined(keyed(B), keyed(B))
    net.until(net.all_full)
    net.run(3.0)
    *old, last = [p for _, n, p in net.trace if n == 2]
    for packet in (*old, last):
        net.input(1, PacketReceived(2, OURS + 1, packet.destination, packet.payload, 1))
    assert errors(net, 1) == {"auth-sequence": len(old)}
    net.run(10.0)
    assert losses(net) == 0


@pytest.mark.rfc("RFC 7474 §2")
def test_with_extended_numbers_no_packet_is_accepted_twice_even_after_the_neighbor_is_removed():
    """RFC 7474: strictly increasing, by packet type, beyond the life of an adjacency."""
    net = joined(keyed(EXTENDED), keyed(EXTENDED))
    net.until(net.all_full)
    net.run(3.0)
    sent = [p for _, n, p in net.trace if n == 2]
    net.cables[0].cut = True
    net.run(10.0)
    assert net.states(1) == []
    for packet in sent:
        net.input(1, PacketReceived(2, OURS + 1, packet.destination, packet.payload, 1))
    assert errors(net, 1) == {"auth-sequence": len(sent)}
    assert net.states(1) == []


@pytest.mark.rfc("RFC 7474 §2")
def test_types_of_packets_may_overtake_one_another_with_extended_numbers():
    """RFC 4222 lets hellos go first, so each type has its own sequence."""
    peer = Scripted(settings=keyed(EXTENDED))
    for sequence, heard in ((5, ()), (9, (peer.me,))):
        hello = encode_packet(peer.peer, 0, Hello(0, 1, 2, 1, 4, 0, 0, heard))
        peer.raw(sign(hello, EXTENDED, sequence, THEIRS))
    assert peer.state == "ExStart"
    ack = bytearray(encode_packet(peer.peer, 0, Hello(0, 1, 2, 1, 4, 0, 0, ()))[:24])
    ack[1:4] = bytes([PacketType.LS_ACK, 0, 24])
    peer.raw(sign(bytes(ack), EXTENDED, 7, THEIRS))
    assert dict(peer.engine.counters.errors) == {}
    peer.raw(sign(bytes(ack), EXTENDED, 7, THEIRS))
    assert dict(peer.engine.counters.errors) == {"auth-sequence": 1}


@pytest.mark.rfc("RFC 7474 §5")
def test_extended_digests_are_bound_to_the_source_address():
    """RFC 7474 §5: a packet of one link is rejected on another."""
    peer = Scripted(settings=keyed(EXTENDED))
    hello = encode_packet(peer.peer, 0, Hello(0, 1, 2, 1, 4, 0, 0, ()))
    peer.raw(sign(hello, EXTENDED, 5, parse_dotted("10.128.0.77")))
    assert dict(peer.engine.counters.errors) == {"auth-digest": 1}


def test_packets_of_a_restarted_router_are_accepted_at_once():
    """Its clock advanced meanwhile."""
    net = joined(keyed(EXTENDED, B), keyed(EXTENDED, B))
    net.until(net.all_full)
    net.run(5.0)
    number, ifindex = 2, 2
    link, settings = net.nodes[number].links[ifindex]
    node = net.add(number, epoch=WALL, boot_count=2)
    net.link(number, link, settings)
    assert net.until(net.all_full) < 0.1
    assert node.engine is net.nodes[2].engine
    assert "auth-sequence" not in errors(net, 1)


# -- rolling keys ----------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize(("old", "new"), [(A, B), (B, A), (B, EXTENDED), (EXTENDED, KEYS[0])])
def test_keys_roll_by_reload_without_leaving_full(old, new, order):
    """A, then A and B at one end and at the other, then B: at either end first, at any pace.

    The router with both keys follows one that has B only, after one or two lost hellos.
    """
    net = joined(keyed(old), keyed(old))
    net.until(net.all_full)
    for keys in ((old, new), (new,)):
        for number in order:
            change(net, number, *keys)
            net.run(20.0)
            assert net.all_full()
    assert losses(net) == 0
    refused = [*errors(net, 1).values(), *errors(net, 2).values()]
    assert sum(refused) <= 2
    assert read_auth(net.trace[-1][2].payload).au_type == au_type_of(new)
    used = [r.fields["algorithm"] for r in logged(net, 1, "auth-key-in-use")]
    assert used == [old.algorithm.value, new.algorithm.value]


def test_key_lists_in_different_order_do_not_make_keys_alternate():
    """Each would follow the other forever if the one with the higher router id did not lead."""
    net = joined(keyed(A, B), keyed(B, A))
    net.until(net.all_full)
    net.run(60.0)
    assert view(net, 1).key_id == view(net, 2).key_id
    assert sum(len(logged(net, number, "auth-key-in-use")) for number in (1, 2)) <= 3
    assert losses(net) == 0


@pytest.mark.rfc("RFC 2328 §D.3")
def test_keys_roll_by_the_clock_without_leaving_full():
    """Overlapping lifetimes compensate clocks that differ, here by a minute."""
    ring = (
        TimedKey(A, send_end=WALL + 200, accept_end=WALL + 300),
        TimedKey(B, send_start=WALL + 100, accept_start=WALL),
    )
    net = Network(1)
    net.add(1, epoch=WALL)
    net.add(2, epoch=WALL - 60)
    net.join(1, 2, keyed(*ring))
    net.until(net.all_full)
    seen = []
    while net.now < 400:
        net.run(20.0)
        assert net.all_full()
        seen.append((view(net, 1).key_id, view(net, 2).key_id))
    assert sorted(set(seen), key=seen.index) == [(1, 1), (2, 1), (2, 2)]
    assert view(net, 1).accepted_key_ids == view(net, 2).accepted_key_ids == [2]
    assert losses(net) == 0
    assert errors(net, 1) == errors(net, 2) == {}


@pytest.mark.rfc("RFC 2328 §D.3")
def test_an_expired_key_is_accepted_no_more_while_there_is_another():
    net = joined(
        keyed(TimedKey(A, accept_end=WALL + 10), B), keyed(TimedKey(A, accept_end=WALL + 10), B)
    )
    net.until(net.all_full)
    begun = 10.0
    gone = net.until(lambda: net.states(1) == [])  # both still send A
    assert begun < gone < begun + 4.1
    assert errors(net, 1)["auth-key"] > 0
    change(net, 1, B)
    change(net, 2, B)
    net.until(net.all_full)


@pytest.mark.rfc("RFC 2328 §D.3")
def test_the_last_key_is_used_after_its_end_and_a_warning_is_logged():
    """RFC 2328 §D.3: the alternatives are no authentication, or no routing."""
    mortal = TimedKey(A, send_end=WALL + 10, accept_end=WALL + 10)
    net = joined(keyed(mortal), keyed(mortal))
    net.until(net.all_full)
    net.run(60.0)
    assert net.all_full()
    assert view(net, 1).expired
    (record,) = logged(net, 1, "auth-last-key-expired")
    assert record.level == "warning"
    assert {read_auth(p.payload).au_type for _, _, p in net.trace} == {2}


@pytest.mark.rfc("RFC 2328 §D.3")
def test_before_the_first_key_is_valid_nothing_is_sent_or_accepted():
    early = TimedKey(A, send_start=WALL + 10, accept_start=WALL + 10)
    net = joined(keyed(early), keyed())
    net.run(9.0)
    assert [n for _, n, p in net.trace if p.ifindex == 2 and n == 1] == []
    assert net.states(1) == []
    assert view(net, 1).algorithm is None
    assert errors(net, 1)["auth-no-key"] >= 8
    assert len(logged(net, 1, "auth-no-key")) == 1
    change(net, 2, A)
    net.until(net.all_full)


@pytest.mark.rfc("RFC 2328 §D.3")
def test_which_key_is_sent_and_which_are_accepted():
    """The newest valid one, the first of equals; all that are valid."""
    first, second = TimedKey(A), TimedKey(B)
    later = TimedKey(EXTENDED, send_start=50.0, accept_start=40.0, send_end=80.0, accept_end=90.0)
    ring = (first, second, later)
    assert [send_key(ring, wall) for wall in (49.9, 50.0, 79.9, 80.0)] == [
        first,
        later,
        later,
        first,
    ]
    assert accept_keys(ring, 39.9) == (first, second)
    assert accept_keys(ring, 40.0) == ring
    assert send_key((later,), 10.0) is None
    assert accept_keys((later,), 10.0) == ()
    assert send_key((later,), 99.0) == later
    assert accept_keys((later,), 99.0) == (later,)
    assert overhead(ring) == 72
    assert overhead(()) == 0


# -- room for digests ------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_no_packet_with_its_digest_needs_fragmentation(key):
    """Database descriptions, requests, updates and acknowledgments leave room for it."""
    net = joined(keyed(key), keyed(key))
    net.add(3, epoch=WALL)
    for _ in range(20):
        net.join(1, 3)
    net.until(lambda: net.all_full() and net.in_sync(), every=0.1)
    sizes = [len(p.payload) + 20 for _, n, p in net.trace if n in (1, 2) and p.ifindex == 2]
    assert 1380 < max(sizes) <= 1500


@pytest.mark.rfc("RFC 2328 §D.1")
def test_without_keys_packets_have_no_authentication():
    net = pair()
    net.until(net.all_full)
    assert {decode_packet(p.payload).au_type for _, _, p in net.trace} == {0}
    assert view(net, 1) is None
