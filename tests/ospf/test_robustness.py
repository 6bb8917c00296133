"""Malformed input is counted and changes nothing. Runs are deterministic."""

import random

import pytest

from fared.core.checksum import internet_checksum
from fared.core.ids import parse_dotted
from fared.protocols.igp.events import LogRecord
from fared.protocols.ospf.packet.codec import encode_packet
from fared.protocols.ospf.packet.lsa import Lsa
from fared.protocols.ospf.packet.packets import DatabaseDescription, LsAck, LsRequest, LsUpdate
from tests.igp.log_lines import bare_ids
from tests.ospf.harness import DEFAULTS, FAST, Network, pair, router_id
from tests.ospf.scripted import THEIRS, Scripted, make_lsa, update

pytestmark = pytest.mark.slow


def hello_bytes(peer: Scripted) -> bytes:
    return encode_packet(peer.peer, 0, peer.hello(peer.me))


def flip(data: bytes, offset: int, value: int = 0xFF) -> bytes:
    return data[:offset] + bytes([data[offset] ^ value]) + data[offset + 1 :]


@pytest.mark.rfc("RFC 2328 §8.2")
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda p: b"", "truncated"),
        (lambda p: p[:20], "truncated"),
        (lambda p: p[:-4], "truncated"),
        (lambda p: flip(p, 0), "version"),
        (lambda p: flip(p, 1), "type"),
        (lambda p: flip(p, 12), "checksum"),
        (lambda p: flip(p, 30), "checksum"),
    ],
    ids=["empty", "header cut", "body cut", "version", "type", "checksum", "one bit"],
)
def test_a_malformed_packet_is_counted_by_reason_and_changes_nothing(spoil, reason):
    peer = Scripted()
    peer.to_full()
    before = peer.state_without_counters()
    peer.raw(spoil(hello_bytes(peer)))
    assert peer.state_without_counters() == before
    assert peer.errors() == {reason: 1}


def test_random_bytes_and_mutated_packets_never_raise():
    """2,000 damaged packets with a correct packet checksum."""
    peer = Scripted()
    peer.to_full()
    random_damage(peer, random.Random(3), 2000)


def random_damage(peer: Scripted, rng: random.Random, count: int) -> None:
    """Damaged packets with a correct packet checksum, and random bytes."""
    bodies = [
        peer.hello(peer.me),
        update(make_lsa(router_id(30)), make_lsa(router_id(31))),
        DatabaseDescription(1500, 0x42, 7, 1, (make_lsa(router_id(30)).header,)),
        LsRequest((make_lsa(router_id(30)).header.key,)),
        LsAck((make_lsa(router_id(30)).header,)),
    ]
    for _ in range(count):
        packet = bytearray(encode_packet(peer.peer, 0, rng.choice(bodies)))
        for _ in range(rng.randrange(1, 6)):
            packet[rng.randrange(24, len(packet))] = rng.randrange(256)
        packet[12:14] = bytes(2)
        packet[12:14] = internet_checksum(bytes(packet[:16] + packet[24:])).to_bytes(2, "big")
        peer.raw(bytes(packet))
        peer.raw(rng.randbytes(rng.randrange(200)))


@pytest.mark.rfc("RFC 2328 §8.2")
@pytest.mark.parametrize("kind", [LsUpdate, LsAck, LsRequest])
def test_packets_from_strangers_change_nothing(kind):
    peer = Scripted()
    before = peer.state_without_counters()
    lsa = make_lsa(router_id(30))
    body = {
        LsUpdate: update(lsa),
        LsAck: LsAck((lsa.header,)),
        LsRequest: LsRequest((lsa.header.key,)),
    }
    peer.send(body[kind])
    assert peer.state_without_counters() == before
    assert peer.errors() == {"unknown-neighbor": 1}


@pytest.mark.rfc("RFC 2328 §8.2")
def test_packets_to_other_addresses_and_for_other_interfaces_are_dropped():
    peer = Scripted()
    peer.raw(hello_bytes(peer), destination=parse_dotted("10.9.9.9"))
    assert peer.errors() == {"destination": 1}


def test_bad_packets_are_logged_once_a_minute_by_source_and_reason():
    peer = Scripted(length=24)
    for _ in range(50):
        peer.raw(b"")
    peer.raw(b"", source=THEIRS + 77)
    assert len([o for o in peer.outputs if isinstance(o, LogRecord)]) == 2
    assert peer.errors() == {"truncated": 51}
    peer.now = 61.0
    peer.raw(b"")
    assert len([o for o in peer.outputs if isinstance(o, LogRecord)]) == 3


def test_log_lines_write_ids_and_addresses_dotted():
    """The lines are caused by wrong hellos, headers, LSAs and keys, and by random damage."""
    peer = Scripted(length=24)
    peer.greet(hello_interval=9)
    peer.greet(router_dead_interval=9)
    peer.greet(options=0)
    peer.send(peer.hello(), area=7 << 24)
    peer.send(peer.hello(), peer=peer.me)
    peer.send(LsAck(()))
    peer.raw(hello_bytes(peer), destination=parse_dotted("10.9.9.9"))
    peer.to_full()
    peer.send(peer.hello(), peer=router_id(77), source=parse_dotted("10.128.0.77"))
    lsa = make_lsa(router_id(30))
    broken = flip(lsa.raw, 16, 0x40)
    peer.send(LsUpdate((Lsa(lsa.header, broken),)))
    random_damage(peer, random.Random(3), 300)
    records = [output for output in peer.outputs if isinstance(output, LogRecord)]
    reasons = {record.fields.get("reason") for record in records}
    assert reasons >= {
        "hello-interval-mismatch",
        "dead-interval-mismatch",
        "options-mismatch",
        "area-mismatch",
        "duplicate-router-id",
        "unknown-neighbor",
        "destination",
        "second-neighbor",
        "lsa-checksum",
    }
    assert bare_ids(records) == []
    named = [r.fields["router_id"] for r in records if "router_id" in r.fields]
    assert {"10.255.0.9", "10.255.0.77"} <= set(named)


def test_a_storm_from_forged_sources_logs_few_lines():
    """All packets are counted, a few are logged; the last line states that others are not."""
    peer = Scripted(length=16)
    for number in range(5000):
        peer.raw(b"", source=THEIRS + number)
    records = [o for o in peer.outputs if isinstance(o, LogRecord)]
    assert len(records) < 50
    assert records[-1].event == "ospf-rejected-many"
    assert peer.errors() == {"truncated": 5000}


def random_network(seed: int, *, loss: float = 0.0) -> Network:
    """20 routers: a ring, and 15 chords."""
    rng = random.Random(seed)
    net = Network(seed)
    for n in range(1, 21):
        net.add(n)
    edges = {(n, n % 20 + 1) for n in range(1, 21)}
    while len(edges) < 35:
        a, b = sorted(rng.sample(range(1, 21), 2))
        edges.add((a, b))
    for a, b in sorted(edges):
        net.join(a, b, FAST, loss=loss, delay=rng.uniform(0.0001, 0.003))
    return net


@pytest.mark.parametrize("seed", [1, 2])
def test_all_databases_of_a_random_network_agree_after_failures(seed):
    """Keys, sequence numbers and checksums, after links went down and came back, under loss."""
    net = random_network(seed, loss=0.05)
    rng = random.Random(seed)
    net.until(net.all_full, 60, every=0.25)
    for _ in range(8):
        cable = rng.choice(net.cables)
        net.set_up(cable, up=cable.cut)
        net.run(rng.uniform(0.01, 0.7))
    for cable in net.cables:
        (a, _), (b, _) = cable.ends
        if cable.cut and b in (a % 20 + 1, a - 1):  # a complete ring keeps the network connected
            net.set_up(cable, up=True)
    net.until(lambda: net.all_full() and net.in_sync(), 60, every=0.25)
    net.until(lambda: not any(any(net.retransmissions(number)) for number in net.nodes), every=0.25)
    adjacent = {
        frozenset((router_id(a), router_id(b)))
        for c in net.cables
        if not c.cut
        for (a, _), (b, _) in [c.ends]
    }
    for number in net.nodes:
        seen = {
            frozenset((int(b.node), int(n)))
            for b in net.blocks(number).values()
            for n in b.neighbors
        }
        assert seen == adjacent


def test_the_same_seed_gives_the_same_run_to_the_last_byte():
    def run():
        net = random_network(7, loss=0.1)
        net.run(1.5)
        net.set_up(net.cables[3], up=False)
        net.run(1.5)
        return [(t, node, p.ifindex, p.payload) for t, node, p in net.trace]

    assert run() == run()


def test_a_clos_fabric_starts_in_a_fraction_of_a_second():
    """4 spines, 8 leaves, default timers: every block is complete 0.2 s after the start."""
    net = Network(3)
    for spine in range(1, 5):
        for leaf in range(5, 13):
            net.join(spine, leaf, DEFAULTS)

    def complete():
        return (
            all(sum(len(b.neighbors) for b in net.blocks(n).values()) == 64 for n in (1, 5, 12))
            and net.in_sync()
        )

    assert net.until(complete, every=0.005) < 0.2


def test_a_pair_is_quiet_when_nothing_happens():
    """Ten minutes: hellos only."""
    net = pair()
    net.until(lambda: net.all_full() and net.in_sync())
    net.run(5)
    before = dict(net.sent)
    net.run(600)
    changed = {kind for kind in net.sent if net.sent[kind] != before.get(kind)}
    assert changed == {1}
