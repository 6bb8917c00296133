"""Whole routers on a virtual clock: adjacencies, equal databases, restarts, settings, shutdown."""

import pytest
from msgspec.structs import replace

from fared.paths.ted.events import TedUpdated
from fared.protocols.igp.events import (
    AdjacencyChanged,
    LinkRemoved,
    PacketReceived,
    SettingsApplied,
    ShutdownRequested,
)
from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey
from fared.protocols.isis.ids import LevelSet, lsp_id
from fared.protocols.isis.pdu.codec import decode_pdu, encode_pdu
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import AreaAddresses, of_type
from tests.isis.net import BOTH, ONE, TWO, Network, node, pair, prefixes


def chain(*levels: LevelSet, seed: int = 1, **kwargs) -> Network:
    """Routers 1, 2, 3... in a row, with these levels."""
    net = Network(seed)
    for number, level in enumerate(levels, start=1):
        net.add(number, levels=level)
    for left in range(1, len(levels)):
        net.join(left, left + 1, **kwargs)
    return net


def test_two_routers_come_up_and_hold_the_same_database():
    """Within two hello intervals; each has both LSPs."""
    net = pair()
    took = net.until(lambda: net.all_up() and net.in_sync(), 3.0)
    assert took < 2.0
    net.run(2)
    assert set(net.database(1)) == {lsp_id(1), lsp_id(2)}
    assert [a.up for a in net.adjacencies(1)] == [True]


@pytest.mark.rfc("ISO 10589 §8.2.5.2")
@pytest.mark.parametrize("level", [ONE, TWO, BOTH])
def test_levels_in_common_are_used(level):
    """Level 1, level 2, or both with one adjacency and two databases."""
    net = pair(level=level)
    net.settle(*level.levels)
    assert [a.levels for a in net.adjacencies(1)] == [level]
    for each in level.levels:
        assert net.blocks(1, each)[node(2)].neighbors.tolist() == [node(1)]
        assert net.local_links(1, each)[0].neighbor == node(2)


def test_a_chain_floods_over_a_lossy_link():
    """A tenth of all frames lost: retransmission and CSNPs still make databases equal."""
    net = chain(TWO, TWO, TWO, TWO, loss=0.1, hello_multiplier=10)
    net.until(lambda: net.all_up() and net.in_sync() and len(net.database(1)) == 4, 120.0)


@pytest.mark.rfc("ISO 10589 §7.3.8")
def test_a_lan_elects_one_designated_is_and_its_pseudonode_joins_all():
    """Four routers: one pseudonode LSP, with metric 0 to each router."""
    net = Network()
    net.lan(1, 2, 3, 4, priorities={3: 100})
    net.settle()
    pseudonode = net.lsp(1, 3, pseudonode=2)
    assert pseudonode is not None
    blocks = net.blocks(4)
    assert blocks[node(3, 2)].network
    assert blocks[node(3, 2)].neighbors.tolist() == [node(n) for n in (1, 2, 3, 4)]
    assert blocks[node(3, 2)].metrics.tolist() == [0, 0, 0, 0]
    assert blocks[node(1)].neighbors.tolist() == [node(3, 2)]
    assert {link.neighbor for link in net.local_links(1)} == {node(n) for n in (2, 3, 4)}
    local = {link.local_id for link in net.local_links(1)}
    assert local == set(blocks[node(1)].local_ids.tolist())


def test_another_designated_is_takes_over_when_it_dies():
    """The pseudonode of the new DIS replaces that of the failed one in the graph."""
    net = Network()
    net.lan(1, 2, 3, priorities={3: 100, 2: 90})
    net.settle()
    net.stop(3)
    net.until(lambda: node(2, 2) in net.blocks(1), 20.0)
    net.run(5)
    assert net.blocks(1)[node(1)].neighbors.tolist() == [node(2, 2)]
    assert sorted(net.blocks(1)[node(2, 2)].neighbors.tolist()) == [node(1), node(2)]


@pytest.mark.rfc("ISO 10589 §8.4.5")
def test_a_designated_is_that_resigns_purges_its_pseudonode():
    """A router with a higher priority appears: all routers remove the old pseudonode LSP."""
    net = Network()
    net.lan(1, 2, 3, priorities={3: 100})
    net.settle()
    net.change(1, 2, priority=120)
    net.until(lambda: net.lsp(2, 1, pseudonode=2) is not None, 20.0)
    net.run(5)
    assert net.lsp(2, 3, pseudonode=2) is None
    assert node(3, 2) not in net.blocks(2)


def test_a_cut_link_is_out_of_both_descriptions_at_once():
    """Carrier lost: both ends flood it within milliseconds, in one LSP each."""
    net = chain(TWO, TWO, TWO)
    net.settle()
    before = net.lsp(3, 1).sequence_number
    net.set_up(net.cables[0], up=False)
    net.run(0.1)
    assert net.blocks(3)[node(2)].neighbors.tolist() == [node(3)]
    assert net.local_links(2)[0].neighbor == node(3)
    assert len(net.local_links(2)) == 1
    net.set_up(net.cables[0], up=True)
    net.settle()
    assert net.lsp(3, 1).sequence_number - before <= 4


@pytest.mark.rfc("ISO 10589 §7.3.16.1")
def test_a_router_that_restarts_outdoes_its_old_lsps():
    """It begins with sequence number 1, and continues after the number received from neighbors."""
    net = chain(TWO, TWO, TWO)
    net.settle()
    for _ in range(3):
        net.set_up(net.cables[0], up=False)
        net.run(3)
        net.set_up(net.cables[0], up=True)
        net.settle()
    old = net.lsp(3, 1).sequence_number
    assert old > 4
    net.stop(1)
    net.run(5)
    net.restart(1)
    net.settle()
    lsp = net.lsp(3, 1)
    assert lsp.sequence_number > old
    assert net.blocks(3)[node(1)].neighbors.tolist() == [node(2)]


@pytest.mark.rfc("ISO 10589 §7.3.16.4")
def test_fragments_of_a_former_life_that_are_not_wanted_are_purged():
    """It originated a pseudonode, and restarts on a LAN that has another DIS now."""
    net = Network()
    net.lan(1, 2, 3, priorities={1: 100})
    net.settle()
    assert net.lsp(2, 1, pseudonode=2) is not None
    net.stop(1)
    net.run(10)
    link, settings = net.nodes[1].links[2]
    net.nodes[1].links[2] = (link, replace(settings, priority=1))
    net.restart(1)
    net.settle()
    assert net.lsp(2, 1, pseudonode=2) is None


def test_shutdown_purges_and_sends_final_hellos():
    """Neighbors drop the adjacency at once, and all routers remove the LSP."""
    net = chain(TWO, TWO, TWO)
    net.settle()
    net.input(1, ShutdownRequested())
    net.nodes[1].stopped = True
    net.run(0.2)
    assert net.lsp(3, 1) is None
    assert node(1) not in net.blocks(3)
    last = net.nodes[2].said(AdjacencyChanged)[-1]
    assert (last.neighbor, last.state) == (node(1), "Down")
    assert net.nodes[1].engine.next_deadline() is None


def test_a_stopped_engine_says_nothing_more():
    """After a shutdown inputs are ignored."""
    net = pair()
    net.settle()
    net.input(1, ShutdownRequested())
    said = len(net.nodes[1].outputs)
    net.input(1, LinkRemoved(2))
    assert len(net.nodes[1].outputs) == said


def test_areas_and_hostname_change_without_losing_the_adjacency():
    """A second area is added; later the first one is removed."""
    net = pair()
    net.settle()
    areas = (bytes.fromhex("490001"), bytes.fromhex("490002"))
    changed = replace(net.nodes[1].settings, areas=areas, hostname="edge")
    net.input(1, SettingsApplied(changed))
    net.run(3)
    (told,) = of_type(net.lsp(2, 1).tlvs, AreaAddresses)
    assert told.addresses == areas
    assert net.blocks(2)[node(1)].hostname == "edge"
    assert not [c for c in net.nodes[1].said(AdjacencyChanged) if c.state == "Down"]


def test_families_change_at_run_time():
    """Without IPv6 there is no IPv6 block and no IPv6 link, and the prefixes are withdrawn."""
    net = pair()
    net.settle()
    net.input(1, SettingsApplied(replace(net.nodes[1].settings, families=(4,))))
    net.run(3)
    assert node(1) not in net.blocks(2, family=6)
    assert net.local_links(2, family=6) == ()
    assert net.local_links(1, family=6) == ()
    assert node(1) in net.blocks(2)


def test_progress_and_activity():
    """The input of start-up stages: circuits, those with neighbors, those forming; activity."""
    net = pair()
    assert net.nodes[1].engine.adjacency_progress() == (1, 0, 0)
    net.until(net.all_up)
    assert net.nodes[1].engine.adjacency_progress() == (1, 1, 1)
    net.run(5)
    assert net.nodes[1].engine.adjacency_progress() == (1, 1, 0)
    before = net.nodes[1].engine.activity()
    net.run(60)
    assert net.nodes[1].engine.activity() == before
    assert not net.nodes[1].engine.takes_routes


@pytest.mark.rfc("ISO 10589 §7.3.5")
def test_lsps_are_refreshed_before_they_expire():
    """In one hour LSPs are only refreshed, and none expires."""
    net = pair(hello_interval=20.0)
    net.settle()
    first = net.lsp(2, 1).sequence_number
    net.run(3600)
    assert 4 <= net.lsp(2, 1).sequence_number - first <= 6
    assert dict(net.nodes[1].engine.counters.lsdb).get("expired", 0) == 0
    assert net.all_up()


def test_all_that_is_sent_is_well_formed_and_small_enough():
    """Each PDU decodes, and none exceeds an Ethernet frame with an LLC header."""
    net = chain(ONE, BOTH, TWO)
    net.lan(1, 2)
    net.settle(1, 2)
    for _, _, pdu in net.trace:
        decode_pdu(pdu.payload)
        assert len(pdu.payload) <= 1497


@pytest.mark.rfc("RFC 5304 §2")
def test_authenticated_routers_form_adjacencies_and_keep_others_out():
    """One key for hellos, one for LSPs; a router without them is ignored."""
    hello = (TimedKey(AuthKey(Algorithm.HMAC_SHA_256, 1, b"hello")),)
    area = ((2, (TimedKey(AuthKey(Algorithm.MD5, 0, b"area")),)),)
    net = Network()
    net.add(1, lsp_authentication=area)
    net.add(2, lsp_authentication=area)
    net.add(3)
    net.join(1, 2, authentication=hello)
    cable = net.join(2, 3)
    net.run(10)
    assert net.lsp(2, 1) is not None
    assert net.lsp(1, 2) is not None
    assert net.lsp(2, 3) is None
    assert dict(net.nodes[2].engine.counters.errors)["auth"] > 0
    assert cable.ends[0][0] == 2


def test_the_same_inputs_give_the_same_run():
    """Deterministic replay: frame for frame."""

    def run() -> list:
        net = chain(ONE, BOTH, TWO, TWO, loss=0.05, seed=7)
        net.lan(2, 3)
        net.run(20)
        net.set_up(net.cables[1], up=False)
        net.run(10)
        return [(t, n, o) for n in net.nodes for t, o in net.nodes[n].outputs]

    first, second = run(), run()
    assert [(t, n, o) for t, n, o in first if not isinstance(o, TedUpdated)] == [
        (t, n, o) for t, n, o in second if not isinstance(o, TedUpdated)
    ]


def test_garbage_is_counted_and_changes_nothing():
    """Truncated PDUs and flipped bits raise no error and change no state."""
    net = pair()
    net.settle()
    real = [pdu for _, source, pdu in net.trace if source == 2][-40:]
    before = net.database(1)
    for number, pdu in enumerate(real):
        bad = bytearray(pdu.payload)
        bad[number % len(bad)] ^= 0xFF
        net.input(1, PacketReceived(2, 0x020000020002, pdu.destination, bytes(bad)))
        net.input(1, PacketReceived(2, 0x020000020002, pdu.destination, pdu.payload[:number]))
    net.run(10)
    assert net.all_up()
    assert net.in_sync()
    assert set(net.database(1)) == set(before)
    assert sum(dict(net.nodes[1].engine.counters.errors).values()) > 10


def test_prefixes_of_all_links_are_announced_in_both_families():
    """Loopbacks have metric 0, links their metric; link-local addresses are not advertised."""
    net = pair()
    net.settle()
    assert prefixes(net.blocks(2)[node(1)]) == {
        "10.128.0.0/31": (10, "LEVEL_2"),
        "10.255.0.1/32": (0, "LEVEL_2"),
    }
    assert prefixes(net.blocks(2, family=6)[node(1)]) == {"2001:db8::1/128": (0, "LEVEL_2")}


def test_frames_of_our_own_are_ignored():
    """A multicast that returns to its sender creates no adjacency."""
    net = pair()
    net.run(1)
    own = next(pdu for _, source, pdu in net.trace if source == 1)
    hardware = net.nodes[1].links[2][0].hardware_address
    net.input(1, PacketReceived(own.ifindex, hardware, own.destination, own.payload))
    assert dict(net.nodes[1].engine.counters.errors) == {}


def forge(net: Network, of: int, sequence_number: int, *, fragment: int = 0, pseudonode: int = 0):
    """Let router 2 flood an LSP with the LSP id of another router to router 1."""
    lsp = Lsp(2, lsp_id(of, pseudonode, fragment), sequence_number, 1200)
    source = net.nodes[2].links[2][0].hardware_address
    net.input(1, PacketReceived(2, source, 0, encode_pdu(lsp)))


def test_forged_lsps_of_ours_cost_a_bounded_number_of_answers():
    """A hundred in five seconds, each newer: a few are answered, and so is the last."""
    net = pair()
    net.settle()
    began = net.now
    for number in range(100):
        forge(net, 1, 1000 + 10 * number)
        net.run(0.05)
    answers = [pdu for t, s, pdu in net.trace if t > began and s == 1 and pdu.payload[4] & 31 == 20]
    assert len(answers) <= 12
    net.run(10)
    assert net.lsp(2, 1).sequence_number > 1990
    assert net.blocks(2)[node(1)].neighbors.tolist() == [node(2)]


@pytest.mark.rfc("ISO 10589 §7.3.16.4")
def test_lsps_that_we_never_issued_are_purged():
    """Unknown fragments and pseudonodes with our system id are purged and removed."""
    net = pair()
    net.settle()
    for number in range(1, 40):
        forge(net, 1, 7, fragment=number)
        forge(net, 1, 7, pseudonode=number)
    net.run(2)
    assert set(net.database(1)) == {lsp_id(1), lsp_id(2)}
    net.run(120)
    assert len(net.instance(1).databases[TWO]) == 2


@pytest.mark.rfc("ISO 10589 §7.3.16.1")
def test_a_far_future_sequence_number_does_no_harm():
    """An LSP with any number but the last is exceeded at once."""
    net = pair()
    net.settle()
    forge(net, 1, 0xFFFF_FFF0)
    net.run(1)
    assert net.lsp(2, 1).sequence_number == 0xFFFF_FFF1
    assert net.blocks(2)[node(1)].neighbors.tolist() == [node(2)]


@pytest.mark.rfc("ISO 10589 §7.3.16.1")
def test_a_purge_of_ours_by_others_is_answered():
    """A purge storm: the LSP is in the database again within the longest gap of the throttle."""
    net = pair()
    net.settle()
    source = net.nodes[2].links[2][0].hardware_address
    for _ in range(50):
        present = net.lsp(1, 1)
        number = 1 if present is None else present.sequence_number
        purge = Lsp(2, lsp_id(1), number, 0)
        net.input(1, PacketReceived(2, source, 0, encode_pdu(purge)))
        net.run(0.02)
    net.run(6)
    assert net.lsp(2, 1) is not None
    assert net.blocks(2)[node(1)].neighbors.tolist() == [node(2)]
