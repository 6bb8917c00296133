"""LSPs reach all routers, once if possible, also over lossy links."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import SystemId
from fared.protocols.isis.circuit import Adjacency, AdjacencyState
from fared.protocols.isis.ids import (
    ALL_ISS,
    ALL_L2_ISS,
    FIRST_LSP,
    LAST_LSP,
    Level,
    LevelSet,
    LspId,
    system_of,
)
from fared.protocols.isis.pdu.codec import decode_pdu, decode_raw, encode_pdu, peek_lsp_id
from fared.protocols.isis.pdu.model import Csnp, Lsp, PduType, Psnp
from fared.protocols.isis.pdu.tlvs import LspEntries, LspEntry, UnknownTlv, of_type
from fared.protocols.isis.update.circuit_tx import Request
from tests.isis.floodnet import LAN, P2P, TWO, Network, mac, make_lsp, name

LSP = PduType.L2_LSP
CSNP = PduType.L2_CSNP
PSNP = PduType.L2_PSNP


def line(length: int, **cable) -> Network:
    """Routers 1 to N in a row, synchronized."""
    net = Network()
    net.add(*range(1, length + 1))
    for number in range(1, length):
        net.join(number, number + 1, **cable)
    net.run(1)
    net.sent.clear()
    return net


def ring(length: int, **cable) -> Network:
    net = line(length, **cable)
    net.join(length, 1, **cable)
    net.run(1)
    net.sent.clear()
    return net


def listed(pdu) -> list:
    return [entry for tlv in of_type(pdu.tlvs, LspEntries) for entry in tlv.entries]


@pytest.mark.rfc("ISO 10589 §7.3.15.1")
def test_an_lsp_reaches_the_end_of_a_line_at_once_and_crosses_each_link_once():
    net = line(5)
    net.say(1, "hello")
    net.run(0.003)  # four links of half a millisecond each
    assert all(r.known() == {name(1): (1, "hello")} for r in net.routers.values())
    net.run(20)
    assert [number for _, number, _ in net.pdus(LSP)] == [1, 2, 3, 4]
    assert all(r.flags() == 0 for r in net.routers.values())


@pytest.fixture
def decoded(monkeypatch) -> list[LspId]:
    """The LSPs that routers decoded."""
    seen: list[LspId] = []

    def decode(raw, **how):
        seen.append(peek_lsp_id(raw.data))
        return decode_raw(raw, **how)

    monkeypatch.setattr("fared.protocols.isis.update.flooding.decode_raw", decode)
    return seen


def test_on_a_ring_copies_meet_and_are_not_decoded_twice(decoded):
    net = ring(6)
    net.say(1, "hello")
    net.run(20)
    assert net.agree()
    assert decoded == [name(1)] * 5
    assert all(r.flags() == 0 for r in net.routers.values())


def test_an_lsp_is_read_against_the_one_it_replaces_unless_that_was_read_in_another_way():
    """Equal TLVs are the same objects; after a change of code points they are decoded again."""
    net = line(2)
    router = net.routers[2]

    def tlv_of(sequence: int) -> UnknownTlv:
        net.run(0.1)
        net.inject(2, 1, encode_pdu(make_lsp(name(9), sequence, "hello")))
        net.run(0.1)
        entry = router.instance.databases[TWO].get(name(9))
        assert entry.sequence_number == sequence
        return entry.lsp.tlvs[0]

    first = tlv_of(1)
    assert tlv_of(2) is first
    before = router.instance.settings
    router.instance.settings = replace(before, path_capacity_code=None)
    router.flooding.settings_changed(before)
    third = tlv_of(3)
    assert third == first
    assert third is not first
    assert tlv_of(4) is third


@pytest.mark.rfc("ISO 10589 §7.3.16.3")
def test_an_lsp_is_passed_on_as_it_came_but_for_its_lifetime():
    net = line(3)
    net.say(1, "hello")
    net.run(1)
    first, second = (output.payload for _, _, output in net.sent if output.payload[4] == LSP)
    assert first[:10] + first[12:] == second[:10] + second[12:]
    lifetimes = [int.from_bytes(raw[10:12], "big") for raw in (first, second)]
    assert lifetimes == [1199, 1199]  # RFC 7987: the receiver raises it again


@pytest.mark.rfc("RFC 5309 §4.1", "ISO 10589 §8.4.8")
def test_pdus_go_to_all_intermediate_systems_on_links_and_to_those_of_the_level_on_lans():
    net = Network()
    net.add(1, 2, 3, 4)
    net.join(1, 2)
    net.join(2, 3, 4)
    net.say(1, "hello")
    net.run(5)
    addresses = {(number, output.ifindex): output.destination for _, number, output in net.sent}
    assert addresses[1, 1] == addresses[2, 1] == ALL_ISS
    assert addresses[2, 2] == ALL_L2_ISS


@pytest.mark.rfc("ISO 10589 §7.3.15.4")
def test_acknowledgments_travel_together_within_a_tenth_of_a_second():
    net = line(2)
    for fragment in range(10):
        net.say(1, "x", fragment)
    net.run(0.2)
    acks = net.pdus(PSNP, by=2)
    assert [len(listed(pdu)) for _, _, pdu in acks] == [10]
    assert acks[0][0] - net.sent[0][0] < 0.11
    assert net[1].counts["acked"] == 10


def test_the_first_lsp_of_a_burst_goes_at_once_and_the_rest_in_bursts():
    net = line(2)
    start = net.now
    for fragment in range(50):
        net.say(1, "x", fragment)
    net.run(1)
    times = [at - start for at, _, _ in net.pdus(LSP)]
    assert times[0] == 0
    assert len(times) == 50
    assert sorted(set(times)) == pytest.approx([0, 0.005, 0.010, 0.015])


def test_while_nobody_acknowledges_the_pace_slows_down():
    net = line(2)
    net.cables[0].cut = True
    start = net.now
    for fragment in range(250):
        net.say(1, "x", fragment)
    net.run(4)
    times = [at - start for at, _, _ in net.pdus(LSP)]
    assert len(times) == 250
    assert sum(at < 0.06 for at in times) <= 220
    assert times[-1] > 0.1


def test_a_large_database_of_one_level_does_not_hold_up_the_other():
    net = Network()
    net.add(1, 2, levels=LevelSet.BOTH)
    net.join(1, 2)
    for router in net.routers.values():
        circuit = router.instance.circuits[1]
        circuit.adjacency.levels = LevelSet.BOTH
        router.flooding.adjacency_up(circuit, Level.ONE)
    net.send_all()
    net.run(1)
    for fragment in range(200):
        net[1].flooding.install_own(Level.ONE, make_lsp(name(1, fragment), 1, level=Level.ONE))
    net.say(1, "of level 2")
    net.run(0.012)
    assert net.agree()
    net.run(5)
    assert len(net[2].instance.databases[Level.ONE].entries) == 200


def test_what_changes_again_while_it_waits_is_sent_once():
    net = line(2)
    net.say(1, "first")
    for version in range(5):
        net.say(1, f"version {version}")
    net.run(1)
    assert [pdu.sequence_number for _, _, pdu in net.pdus(LSP)] == [1, 6]


@pytest.mark.rfc("ISO 10589 §7.3.15.5")
def test_an_lsp_is_repeated_until_it_is_acknowledged_and_then_no_more():
    net = line(2)
    cable = net.cables[0]
    cable.cut = True
    net.say(1, "hello")
    net.run(11)
    assert len(net.pdus(LSP)) == 3
    cable.cut = False
    net.run(30)
    assert len(net.pdus(LSP)) == 4
    assert net[1].counts["retransmitted"] == 3
    assert net.agree()


@pytest.mark.rfc("ISO 10589 §7.3.17")
def test_neighbors_with_equal_databases_exchange_csnps_and_no_lsps():
    net = line(3)
    for number in (1, 2, 3):
        for fragment in range(40):
            net.say(number, "x", fragment)
    net.run(10)
    cable = net.cables[0]
    net.down(cable)
    net.run(1)
    net.sent.clear()
    net.up(cable)
    net.run(10)
    assert net.pdus(LSP) == []
    assert {number for _, number, _ in net.pdus(CSNP)} == {1, 2}
    assert all(r.flags() == 0 for r in net.routers.values())


@pytest.mark.rfc("ISO 10589 §7.3.15.2")
def test_neighbors_that_were_apart_exchange_what_differs():
    net = line(2)
    for fragment in range(40):
        net.say(1, "x", fragment)
    net.run(1)
    net.down(net.cables[0])
    net.say(1, "one", 7)
    net.say(2, "two", 0)
    net.sent.clear()
    net.up(net.cables[0])
    net.run(1)
    assert {pdu.lsp_id for _, _, pdu in net.pdus(LSP)} == {name(1, 7), name(2, 0)}
    assert net.agree()


@pytest.mark.rfc("ISO 10589 §7.3.15.2")
def test_databases_become_equal_even_if_all_csnps_of_the_beginning_are_lost():
    net = line(2)
    net.down(net.cables[0])
    for fragment in range(40):
        net.say(1, "x", fragment)
        net.say(2, "y", fragment)
    net.up(net.cables[0])
    net.lose(1, 2)
    net.run(8)
    assert net.agree()
    assert len(net[1].known()) == 80


@pytest.mark.parametrize(("arrives", "sent"), [(7, []), (8, [8]), (6, [6])])
def test_an_lsp_is_not_sent_to_who_has_listed_this_instance_but_acknowledged(arrives, sent):
    """A router that joins a fabric learns each LSP from one neighbor; all others list it."""
    net = line(3)
    entry = LspEntry(name(9), 7, 1200, 0)
    raw = encode_pdu(make_lsp(name(9), 7, "text"))
    lists = replace(entry, checksum=int.from_bytes(raw[24:26], "big"))
    csnp = Csnp(2, 3 << 8, FIRST_LSP, LAST_LSP, (LspEntries((lists,)),))
    net.inject(2, 2, encode_pdu(csnp))
    net.run(0.01)
    net.inject(2, 1, make_lsp(name(9), arrives, "text"))
    net.run(0.15)
    ours = [(out.ifindex, decode_pdu(out.payload)) for _, number, out in net.sent if number == 2]
    lsps = [pdu.sequence_number for at, pdu in ours if isinstance(pdu, Lsp) and at == 2]
    acknowledged = [
        e.sequence_number
        for at, pdu in ours
        if isinstance(pdu, Psnp) and at == 2
        for e in listed(pdu)
    ]
    assert lsps == sent
    assert acknowledged == ([] if sent else [7])
    net.run(20)
    assert all(router.flags() == 0 for router in net.routers.values())


def test_a_neighbor_whose_adjacency_comes_up_later_need_not_wait_for_repetitions():
    net = line(2)
    net.down(net.cables[0])
    for fragment in range(40):
        net.say(1, "x", fragment)
    net.cables[0].cut = False
    net.up_alone(net.cables[0], net.cables[0].ends[0])
    net.run(0.6)
    assert net[2].instance.process.counters.errors["no-adjacency"] > 40
    net.up_alone(net.cables[0], net.cables[0].ends[1])
    net.run(0.2)
    assert net.agree()


def test_csnps_that_come_while_our_adjacency_is_initializing_count_when_it_is_up():
    """FRR's adjacency comes up 50 ms before ours, and its CSNPs come once."""
    net = line(2)
    for fragment in range(100):
        net.say(1, "x", fragment)
    net.run(5)
    cable = net.cables[0]
    net.down(cable)
    net.say(1, "changed", 5)
    cable.cut = False
    net.up_at(cable, cable.ends[1])
    circuit = net[1].instance.circuits[1]
    circuit.adjacency = Adjacency(
        circuit, SystemId(2), mac(2, 1), LevelSet.TWO, AdjacencyState.INITIALIZING
    )
    net.sent.clear()
    net.send_all()
    net.run(0.05)
    assert net[1].instance.process.counters.errors["no-adjacency"] == 0
    net.up_alone(cable, cable.ends[0])
    net.run(10)
    assert [pdu.lsp_id for _, _, pdu in net.pdus(LSP)] == [name(1, 5)]
    assert net.agree()


def test_lsps_wait_for_the_rest_of_the_neighbors_csnps_however_long_the_set_takes():
    """They may wait behind the PDUs of many other neighbors."""
    net = line(2)
    for fragment in range(60):
        net.say(1, "x", fragment)
    net.run(5)
    cable = net.cables[0]
    net.down(cable)
    net.sent.clear()
    entries = [
        LspEntry(e.lsp_id, e.sequence_number, 1200, e.checksum)
        for e in net[1].instance.databases[TWO].ordered()
    ]
    net.up_alone(cable, cable.ends[0])
    cable.cut = False
    starts = [FIRST_LSP, *(entry.lsp_id + 1 for entry in entries[14:-1:15])]
    for at, start in enumerate(starts):
        some = tuple(entries[15 * at : 15 * (at + 1)])
        end = LAST_LSP if at == len(starts) - 1 else some[-1].lsp_id
        csnp = Csnp(2, 2 << 8, LspId(start), end, (LspEntries(some),))
        net.run(0.2)
        net.inject(1, 1, encode_pdu(csnp))
    net.run(1)
    assert not net.pdus(LSP, by=1)
    assert net[1].flags() == 0


def test_where_many_neighbors_come_up_at_once_lsps_wait_longer_for_their_csnps():
    net = Network()
    net.add(*range(1, 34))
    cables = [net.join(1, number, up=False) for number in range(2, 34)]
    net.say(1, "x")
    for cable in cables:
        net.up_alone(cable, cable.ends[0])
    for seconds, most in ((0.2, 0), (0.2, 14), (1.0, 32)):
        net.run(seconds)
        assert len(net.pdus(LSP, by=1)) <= most
    assert len(net.pdus(LSP, by=1)) == 32, "CSNPs may be lost"


def come_up(neighbors: int, fragments: int) -> Network:
    """Router 1, whose adjacencies come up at once, and whose neighbors send no CSNPs."""
    net = Network()
    net.add(*range(1, neighbors + 2))
    cables = [net.join(1, number + 2, up=False) for number in range(neighbors)]
    for fragment in range(fragments):
        net.say(1, "x", fragment)
    for cable in cables:
        net.up_alone(cable, cable.ends[0])
    return net


def sent_by(net: Network, router: int) -> list[tuple[int, Lsp]]:
    """The LSPs that a router has sent, with the circuits."""
    pdus = [(out.ifindex, decode_pdu(out.payload)) for _, by, out in net.sent if by == router]
    return [(ifindex, pdu) for ifindex, pdu in pdus if isinstance(pdu, Lsp)]


def test_a_router_without_csnps_of_its_neighbors_sends_its_whole_database_to_few_at_a_time():
    """And all that changes to all of them: they are synchronized otherwise."""
    net = come_up(12, 100)
    while not sent_by(net, 1):
        net.run(0.01)
    assert len({ifindex for ifindex, _ in sent_by(net, 1)}) == 4
    net.say(1, "changed", 7)
    net.run(0.1)
    changed = [at for at, lsp in sent_by(net, 1) if lsp.sequence_number == 2]
    assert sorted(changed) == list(range(1, 13))
    net.run(3)
    whole = Counter(ifindex for ifindex, _ in sent_by(net, 1))
    assert min(whole[ifindex] for ifindex in range(1, 13)) >= 100


def test_an_lsp_that_appears_is_not_sent_to_a_neighbor_whose_csnps_then_list_it():
    """A router that joins a fabric may read the LSPs of one neighbor before all CSNPs."""
    net = come_up(2, 1)
    raw = encode_pdu(make_lsp(name(9), 7, "text"))
    entry = LspEntry(name(9), 7, 1200, int.from_bytes(raw[24:26], "big"))
    csnp = Csnp(2, 3 << 8, FIRST_LSP, LAST_LSP, (LspEntries((entry,)),))
    net.inject(1, 1, raw)
    net.run(0.01)
    net.inject(1, 2, encode_pdu(csnp))
    net.run(20)
    sent = [(ifindex, lsp.lsp_id) for ifindex, lsp in sent_by(net, 1)]
    assert (2, name(1)) in sent
    assert (2, name(9)) not in sent


def test_an_lsp_that_appears_is_sent_to_a_neighbor_whose_csnps_do_not_list_it():
    net = come_up(2, 1)
    net.inject(1, 1, make_lsp(name(9), 7, "text"))
    net.run(0.01)
    net.inject(1, 2, encode_pdu(Csnp(2, 3 << 8, FIRST_LSP, LAST_LSP, ())))
    net.run(0.1)
    assert (2, name(9)) in [(ifindex, lsp.lsp_id) for ifindex, lsp in sent_by(net, 1)]


def test_csnps_that_came_long_before_the_adjacency_do_not_count():
    net = line(2)
    net.say(1, "hello")
    net.run(1)
    cable = net.cables[0]
    net.down(cable)
    circuit = net[1].instance.circuits[1]
    circuit.adjacency = Adjacency(
        circuit, SystemId(2), mac(2, 1), LevelSet.TWO, AdjacencyState.INITIALIZING
    )
    entry = net[1].entry(1)
    stale = LspEntries((LspEntry(name(1), 1, 1000, entry.checksum),))
    net.inject(1, 1, encode_pdu(Csnp(2, 2 << 8, FIRST_LSP, LAST_LSP, (stale,))))
    net.run(2)
    net.sent.clear()
    cable.cut = False
    net.up_alone(cable, cable.ends[0])
    net.run(1)
    assert len(net.pdus(LSP)) == 1


@pytest.mark.rfc("ISO 10589 §7.3.15.3")
def test_a_set_of_csnps_covers_all_ids_in_pdus_that_fit():
    net = Network()
    net.add(1, 2)
    for fragment in range(250):
        net[1].say("x", fragment)
    net.join(1, 2, mtu=600)
    net.run(1)
    mine = [pdu for _, _, pdu in net.pdus(CSNP, by=1)]
    assert mine[0].start == FIRST_LSP
    assert mine[-1].end == LAST_LSP
    assert all(a.end + 1 == b.start for a, b in pairwise(mine))
    assert sum(len(listed(pdu)) for pdu in mine) == 250
    assert max(len(output.payload) for _, _, output in net.sent) <= 597
    theirs = [pdu for _, _, pdu in net.pdus(CSNP, by=2)]
    assert [(pdu.start, pdu.end) for pdu in theirs] == [(FIRST_LSP, LAST_LSP)]


@pytest.mark.rfc("RFC 3719 §5")
def test_sequence_numbers_pdus_are_no_larger_than_lsps_whatever_our_mtu():
    """The MTU of the other end may be smaller, but LSPs pass (RFC 3719 §5)."""
    net = Network()
    net.add(1, 2)
    for fragment in range(250):
        net[1].say("x", fragment)
    net.join(1, 2, mtu=9000)
    net.run(5)
    assert max(len(output.payload) for _, _, output in net.sent) <= 1492
    assert len(net[2].instance.databases[Level.TWO].entries) == 250


def test_an_lsp_that_does_not_fit_is_counted_and_said_once():
    net = Network()
    net.add(1, 2)
    net.join(1, 2, mtu=600)
    net.run(1)
    net.say(1, "x" * 1000)
    net.say(1, "y" * 1000)
    net.run(30)
    assert [record.event for record in net[1].logs] == ["isis-lsp-too-large"]
    assert net[1].counts["too-large"] == 2
    assert net[2].known() == {}
    assert net[1].flags() == 0


@pytest.mark.rfc("ISO 10589 §7.3.15.1")
def test_on_a_lan_an_lsp_is_sent_once_and_not_acknowledged():
    net = Network()
    net.add(1, 2, 3, 4)
    net.join(1, 2, 3, 4)
    net.run(5)
    net.sent.clear()
    net.say(3, "hello")
    net.run(1)
    assert len(net.pdus(LSP)) == 1
    assert net.pdus(PSNP) == []
    assert net.agree()
    assert all(r.flags() == 0 for r in net.routers.values())


@pytest.mark.rfc("ISO 10589 §7.3.15.3")
def test_the_designated_is_tells_a_lan_what_it_has_every_csnp_interval():
    net = Network()
    net.add(1, 2, 3)
    net.join(1, 2, 3)
    net.run(5)
    net.sent.clear()
    net.run(100)
    times = [at for at, _, _ in net.pdus(CSNP)]
    assert {number for _, number, _ in net.pdus(CSNP)} == {1}
    assert 9 <= len(times) <= 14


def test_on_a_lan_csnps_follow_the_lsps_that_they_list():
    net = Network()
    net.add(1, 2, 3)
    net.join(1, 2, 3)
    for fragment in range(50):
        net[1].say("x", fragment)
    net.run(5)
    net.sent.clear()
    net.run(50)
    for fragment in range(50):
        net.say(1, "y", fragment)
    net[1].flooding.dis_changed(net[1].instance.circuits[1], TWO)
    net.send_all()
    net.run(0.5)
    assert net.pdus(PSNP) == []
    assert net.agree()


@pytest.mark.rfc("ISO 10589 §7.3.15.2")
def test_who_lost_an_lsp_on_a_lan_asks_the_designated_is_for_it():
    net = Network()
    net.add(1, 2, 3)
    cable = net.join(1, 2, 3)
    net.run(5)
    cable.loss = 1.0
    net.say(2, "lost by 1 and 3")
    net.run(0.001)
    cable.loss = 0.0
    net.run(12)
    assert net.agree()
    cable.loss = 1.0
    net.say(1, "lost by 2 and 3")
    net.run(0.001)
    cable.loss = 0.0
    net.sent.clear()
    net.run(12)
    assert net.agree()
    assert {number for _, number, _ in net.pdus(PSNP)} == {2, 3}
    assert len(net.pdus(LSP)) == 1


def test_a_request_that_is_lost_is_repeated_before_the_next_csnp():
    net = Network()
    net.add(1, 2, 3)
    cable = net.join(1, 2, 3, settings=replace(LAN, csnp_interval=60.0))
    net.run(90)
    cable.loss = 1.0
    net.say(1, "hello")
    net.run(0.001)
    cable.loss = 0.0
    start = len(net.pdus(CSNP))
    while len(net.pdus(CSNP)) == start:
        net.run(0.001)
    cable.loss = 1.0
    net.run(1)
    cable.loss = 0.0
    net.run(2)
    assert net.agree()


def test_an_lsp_that_several_neighbors_list_is_requested_of_one_at_a_time():
    """They list it and send nothing; so the next one is asked after an interval."""
    net = Network()
    net.add(1, 2, 3, 4)
    for far in (2, 3, 4):
        net.join(1, far, settings=replace(P2P, psnp_interval=2.0))
    net.run(1)
    net.sent.clear()
    entries = tuple(LspEntry(name(9, number), 1, 1200, 7) for number in range(200))
    tlvs = tuple(LspEntries(entries[at : at + 15]) for at in range(0, 200, 15))
    for far in (2, 3, 4):
        net.inject(1, far - 1, encode_pdu(Csnp(2, far << 8, FIRST_LSP, LAST_LSP, tlvs)))
    net.run(3.9)
    asked = [
        (out.ifindex, entry.lsp_id)
        for at, number, out in net.sent
        if number == 1 and isinstance(pdu := decode_pdu(out.payload), Psnp)
        for entry in listed(pdu)
        if not entry.sequence_number
    ]
    assert len(asked) == len({lsp_id for _, lsp_id in asked}) == 200
    assert {ifindex for ifindex, _ in asked} == {1, 2, 3}
    assert max(Counter(ifindex for ifindex, _ in asked).values()) < 100, "a PSNP to each"
    net.run(10)
    assert net[1].counts["requested"] <= 3 * 200
    assert net[1].flooding.awaited() == 0


def test_a_neighbor_that_was_asked_often_enough_still_has_the_lsp_that_it_listed():
    """When another one sends it, it is acknowledged to this one, and not sent there."""
    net = line(3)
    raw = encode_pdu(make_lsp(name(9), 7, "text"))
    entry = LspEntry(name(9), 7, 1200, int.from_bytes(raw[24:26], "big"))
    net.inject(2, 2, encode_pdu(Csnp(2, 3 << 8, FIRST_LSP, LAST_LSP, (LspEntries((entry,)),))))
    net.run(20)
    assert net[2].counts["requested"] == 3
    net.inject(2, 1, raw)
    net.run(1)
    ours = [decode_pdu(out.payload) for _, n, out in net.sent if n == 2 and out.ifindex == 2]
    assert not [pdu for pdu in ours if isinstance(pdu, Lsp)]
    acknowledged = [e for pdu in ours if isinstance(pdu, Psnp) for e in listed(pdu)]
    assert [e.lsp_id for e in acknowledged if e.sequence_number] == [name(9)]
    assert net[2].flooding.awaited() == 0


def test_to_count_what_is_awaited_no_request_is_looked_at(monkeypatch):
    """Start-up asks in every turn, while each of many neighbors may list a whole database."""
    net = line(2)
    entries = tuple(LspEntry(name(9, number), 1, 1200, 7) for number in range(250))
    tlvs = tuple(LspEntries(entries[at : at + 15]) for at in range(0, 250, 15))
    net.inject(1, 1, encode_pdu(Csnp(2, 2 << 8, FIRST_LSP, LAST_LSP, tlvs)))
    net.run(0.1)
    looked: list[str] = []
    monkeypatch.setattr(
        Request, "__getattribute__", lambda _, field: looked.append(field), raising=False
    )
    assert net[1].flooding.awaited() == 250
    assert looked == []


def test_more_requests_than_a_psnp_holds_are_each_sent_three_times():
    net = line(2)
    entries = tuple(LspEntry(name(9 + n // 250, n % 250), 1, 1200, 7) for n in range(500))
    for at in range(0, 500, 45):
        tlvs = tuple(LspEntries(entries[i : i + 15]) for i in range(at, min(at + 45, 500), 15))
        net.inject(1, 1, encode_pdu(Psnp(2, 2 << 8, tlvs)))
    net.run(30)
    asked = Counter(
        entry.lsp_id
        for _, number, out in net.sent
        if number == 1 and isinstance(pdu := decode_pdu(out.payload), Psnp)
        for entry in listed(pdu)
    )
    assert len(asked) == 500
    assert set(asked.values()) == {3}


def test_requests_are_not_remembered_without_limit(monkeypatch):
    """A neighbor may list LSPs that do not exist, others each time."""
    monkeypatch.setattr("fared.protocols.isis.update.requests.MOST_ASKED", 100)
    net = line(2)
    for turn in range(4):
        entries = tuple(LspEntry(name(100 + turn, number), 1, 1200, 7) for number in range(200))
        tlvs = tuple(LspEntries(entries[at : at + 15]) for at in range(0, 200, 15))
        net.inject(1, 1, encode_pdu(Psnp(2, 2 << 8, tlvs)))
        net.run(3)
    assert net[1].counts["requested"] >= 800
    assert len(net[1].lsp_transmitter._requests._asked_at) <= 100


@pytest.mark.rfc("ISO 10589 §7.3.15.1")
def test_what_comes_without_an_adjacency_is_counted_and_changes_nothing():
    net = line(2)
    net.down(net.cables[0])
    net.inject(2, 1, make_lsp(name(9), 1, "who am I"))
    net.run(1)
    assert net[2].known() == {}
    assert net[2].instance.process.counters.errors["no-adjacency"] == 1


@pytest.mark.rfc("RFC 3719 §7", "ISO 10589 §7.3.14.2")
def test_a_garbled_lsp_is_dropped_and_not_purged():
    net = line(3)
    net.say(1, "hello")
    net.run(1)
    raw = bytearray(encode_pdu(make_lsp(name(1), 2, "garbled")))
    raw[-1] ^= 1
    net.inject(2, 1, bytes(raw))
    net.run(5)
    assert net[2].instance.process.counters.errors["checksum"] == 1
    assert net[3].known() == {name(1): (1, "hello")}


@pytest.mark.rfc("RFC 8918 §4")
def test_an_lsp_with_a_malformed_tlv_is_flooded_and_the_tlv_ignored():
    """RFC 8918 §4: if it were discarded, databases would differ."""
    net = line(3)
    malformed = UnknownTlv(22, b"\0" * 3)
    lsp = make_lsp(name(9), 1, "whole")
    net.inject(2, 1, replace(lsp, tlvs=(malformed, *lsp.tlvs)))
    net.run(1)
    assert net[3].known()[name(9)][0] == 1
    assert net[3].entry(9).lsp.tlvs == (malformed, *lsp.tlvs)
    for number in (2, 3):
        assert net[number].instance.process.counters.errors == {"malformed-tlv": 1}


@pytest.mark.rfc("ISO 10589 §7.3.15.1")
def test_sequence_number_zero_is_no_lsp():
    net = line(2)
    net.inject(2, 1, make_lsp(name(9), 0, "zero"))
    net.run(1)
    assert net[2].known() == {}
    assert net[2].instance.process.counters.errors["lsp-sequence"] == 1


def test_bytes_behind_an_lsp_are_not_passed_on(decoded):
    net = line(3)
    net.inject(2, 1, encode_pdu(make_lsp(name(9), 1, "short")) + bytes(20))
    net.run(1)
    assert net[3].known() == {name(9): (1, "short")}
    assert len({len(o.payload) for _, _, o in net.sent if o.payload[4] == LSP}) == 1
    net.inject(2, 1, encode_pdu(make_lsp(name(9), 1, "short")) + bytes(30))
    net.run(1)
    assert decoded == [name(9)] * 2, "the second time 2 knew it by its bytes"


def test_shutdown_sends_all_that_waits():
    net = line(2)
    for fragment in range(100):
        net.say(1, "x", fragment)
    net.run(2)
    for fragment in range(100):
        net[1].unsay(fragment)
    net[1].flooding.flush(force=True)
    assert sum(o.payload[4] == LSP for o in net[1].instance.process.take_outputs()) == 100


def test_a_drain_looks_at_flags_and_never_at_the_whole_database(monkeypatch):
    """It reads only the LSPs of the originator, for flood suppression."""
    net = line(3)
    for fragment in range(100):
        net.say(1, "x", fragment)
    net.run(5)
    database = net[2].instance.databases[2]
    monkeypatch.setattr(database, "ordered", lambda: pytest.fail("scanned"))
    read = database.between

    def of_one_router(start, end):
        assert system_of(start) == system_of(end) == 1, "scanned"
        return read(start, end)

    monkeypatch.setattr(database, "between", of_one_router)
    net.say(1, "y", 5)
    net.run(1)
    monkeypatch.undo()
    assert net.agree()


@st.composite
def topologies(draw):
    """A connected network of links and LANs of up to seven routers."""
    size = draw(st.integers(2, 7))
    cables = [(draw(st.integers(1, number - 1)), number) for number in range(2, size + 1)]
    for _ in range(draw(st.integers(0, 3))):
        members = draw(st.lists(st.integers(1, size), min_size=2, max_size=4, unique=True))
        cables.append(tuple(members))
    return size, cables


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(
    topology=topologies(),
    seed=st.integers(0, 1 << 20),
    loss=st.sampled_from([0.0, 0.1, 0.3]),
    jitter=st.sampled_from([0.0, 0.01, 0.5]),
    words=st.lists(
        st.tuples(st.integers(1, 7), st.integers(0, 3), st.booleans(), st.floats(0, 3)),
        min_size=1,
        max_size=15,
    ),
)
def test_all_databases_end_equal(topology, seed, loss, jitter, words):
    """For random topologies, losses, reordering, and LSPs originated and withdrawn."""
    size, cables = topology
    net = Network(seed)
    net.add(*range(1, size + 1))
    for members in cables:
        net.join(*members, loss=loss, jitter=jitter)
    for whose, fragment, take_back, pause in words:
        number = (whose - 1) % size + 1
        if take_back and name(number, fragment) in net[number].texts:
            net.unsay(number, fragment)
        else:
            net.say(number, f"{pause}", fragment)
        net.run(pause)
    for _ in range(8):  # with 30 % loss a packet may need many attempts
        net.run(25)
        if net.agree() and all(r.flags() == 0 for r in net.routers.values()):
            break
    wanted = {key: text for r in net.routers.values() for key, text in r.texts.items()}
    for router in net.routers.values():
        assert {key: text for key, (_, text) in router.known().items()} == wanted
        assert router.flags() == 0


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 1 << 20),
    events=st.lists(st.tuples(st.integers(0, 4), st.floats(0, 2)), max_size=12),
)
def test_links_and_routers_come_and_go_and_in_the_end_all_is_known_everywhere(seed, events):
    net = Network(seed)
    net.add(1, 2, 3, 4)
    made = [net.join(1, 2, loss=0.1), net.join(2, 3, loss=0.1), net.join(3, 4, loss=0.1)]
    made.append(net.join(4, 1, loss=0.1, settings=replace(P2P, lsp_retransmit_interval=1.0)))
    for number in (1, 2, 3, 4):
        net.say(number, "begin")
    for which, pause in events:
        if which == 4:
            texts = net[2].texts
            net.restart(2).texts.update(texts)
            net.say(2, "back again")
        elif made[which].cut:
            net.up(made[which])
        else:
            net.down(made[which])
        net.say(1 + which % 4, f"{pause}")
        net.run(pause)
    for cable in made:
        if cable.cut:
            net.up(cable)
    net.run(40)
    assert net.agree()
    assert len(net[1].known()) == 4
