"""LSPs that many neighbors send: copies are taken together, and acknowledged together."""

from __future__ import annotations

import random
from itertools import chain, groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.protocols.igp.events import PacketReceived, PacketsReceived, SendPacket
from fared.protocols.isis.ids import Level, LspId
from fared.protocols.isis.pdu.codec import encode_pdu, with_lifetime
from fared.protocols.isis.pdu.model import PduType
from fared.protocols.isis.update.copies import Copies
from fared.protocols.isis.update.shared_flags import SharedFlags
from tests.isis.floodnet import LAN, Network, mac, make_lsp, name

NEIGHBORS = 4
_ORIGINATORS = (2, 3, 9)


def star() -> Network:
    """Router 1 with neighbors on point-to-point links, and with one on a LAN."""
    net = Network()
    net.add(*range(1, NEIGHBORS + 3))
    for number in range(2, NEIGHBORS + 2):
        net.join(1, number)
    net.join(1, NEIGHBORS + 2, settings=LAN)
    net.run(2)
    net.sent.clear()
    return net


def received(ifindex: int, payload: bytes) -> PacketReceived:
    return PacketReceived(ifindex, mac(ifindex + 1, 1), 0, payload)


def runs(packets: list[PacketReceived]) -> list[PacketsReceived]:
    """What each neighbor sent one after another."""
    return [
        PacketsReceived(*sender, tuple([packet.payload for packet in some]))
        for sender, some in groupby(packets, lambda one: (one.ifindex, one.source, one.destination))
    ]


def take(net: Network, packets: list[PacketReceived], *, together: bool, run: bool = False) -> None:
    """Deliver packets to router 1, those that arrived together or one after another.

    ``run``: those of a neighbor as one input.
    """
    router = net[1]
    router.instance.process.now = net.now

    def one(packet: PacketReceived) -> None:
        router.receive(packet.ifindex, packet.source, packet.payload)

    if together:
        router.flooding.copies.take(iter(runs(packets) if run else packets), one)
    else:
        for packet in packets:
            one(packet)
    net.send_all()


def state(net: Network) -> tuple[object, ...]:
    router = net[1]
    sent = [(at, number, output) for at, number, output in net.sent if number == 1]
    errors = router.instance.process.counters.errors
    return router.known(), router.flags(), dict(router.counts), dict(errors), sent


LSPS = st.builds(
    lambda originator, sequence, text, lifetime, damaged, padding: (
        with_lifetime(
            encode_pdu(make_lsp(name(originator), sequence, text)),
            lifetime,
        )[: -1 if damaged else None]
        + bytes(padding)
    ),
    st.sampled_from(_ORIGINATORS),
    st.integers(1, 3),
    st.sampled_from(("a", "b")),
    st.sampled_from((1200, 1100, 0)),
    st.booleans(),
    st.sampled_from((0, 0, 7)),
)


def check_idle(net: Network) -> None:
    """Circuits that are passed over by a bitmap have no flags of their own."""
    for router in net.routers.values():
        transmitter = router.lsp_transmitter
        for level, shared in transmitter.shared.items():
            for queue in transmitter.active(level):
                if shared.idle & queue.bit:
                    assert queue.is_idle(net.now)


NUMBER = st.integers(1, NEIGHBORS + 1)
ONE = st.builds(lambda ifindex, lsp: [received(ifindex, lsp)], NUMBER, LSPS)
SAME = st.builds(
    lambda lsps, ifindexes: [received(ifindex, lsp) for ifindex in ifindexes for lsp in lsps],
    st.lists(LSPS, max_size=4),
    st.lists(NUMBER, max_size=6),
)
PACKETS = st.lists(st.one_of(ONE, SAME), max_size=12).map(lambda found: list(chain(*found)))


@settings(max_examples=60, deadline=None)
@given(st.lists(PACKETS, min_size=1, max_size=4))
def test_packets_that_arrive_together_have_the_effect_of_one_after_another(batches):
    nets = star(), star(), star()
    ways = (False, False), (True, False), (True, True)
    for net, (together, run) in zip(nets, ways, strict=True):
        for number, packets in enumerate(batches):
            take(net, packets, together=together, run=run)
            check_idle(net)
            net.run(0.02 * number)
            check_idle(net)
        net.run(0.3)
    assert state(nets[0]) == state(nets[1]) == state(nets[2])


def test_a_packet_that_raises_an_exception_is_lost_alone():
    """Not what its sender sent behind it."""
    net = star()
    raws = [encode_pdu(make_lsp(name(9, part), 1, "x")) for part in range(4)]
    copies, passed = net[1].flooding.copies, []

    def fail(packet: PacketReceived) -> None:
        passed.append(packet.payload)
        if packet.payload is raws[1]:
            raise ValueError

    left = iter(runs([received(ifindex, raw) for ifindex in (1, 2) for raw in raws]))
    for _ in range(2):
        with pytest.raises(ValueError):
            copies.take(left, fail)
    assert copies.take(left, fail) == 0
    assert passed == raws * 2


def psnps(net: Network, number: int = 1) -> list[SendPacket]:
    found = [output for _, by, output in net.sent if by == number]
    return [output for output in found if output.payload[4] & 0x1F == PduType.L2_PSNP]


@pytest.mark.rfc("ISO 10589 §7.3.15.1")
def test_what_all_neighbors_have_sent_is_acknowledged_with_the_same_bytes():
    net = star()
    raw = encode_pdu(make_lsp(name(9), 1, "x"))
    take(net, [received(ifindex, raw) for ifindex in range(1, NEIGHBORS + 1)], together=True)
    net.run(0.2)
    acks = psnps(net)
    assert [ack.ifindex for ack in acks] == list(range(1, NEIGHBORS + 1))
    assert len({id(ack.payload) for ack in acks}) == 1
    assert net[1].flags() == 0


def test_what_one_neighbor_alone_has_sent_is_acknowledged_to_it_alone():
    net = star()
    common, own = (encode_pdu(make_lsp(name(9, part), 1, "x")) for part in (0, 1))
    packets = [received(ifindex, common) for ifindex in (1, 2, 3)]
    take(net, [*packets, received(2, own)], together=True)
    net.run(0.11)
    sizes = {ack.ifindex: len(ack.payload) for ack in psnps(net)}
    assert sizes == {1: 17 + 2 + 16, 2: 17 + 2 + 32, 3: 17 + 2 + 16}


def test_neighbors_that_have_sent_the_same_share_bytes_whatever_others_have_not_sent_yet():
    net = star()
    raws = [encode_pdu(make_lsp(name(9, part), 1, "x")) for part in range(3)]
    packets = [received(ifindex, raw) for ifindex in (1, 2, 3) for raw in raws]
    take(net, [*packets, received(4, raws[0])], together=True)
    net.run(0.11)
    acks = {ack.ifindex: ack.payload for ack in psnps(net)}
    assert len({id(acks[ifindex]) for ifindex in (1, 2, 3)}) == 1
    assert [len(acks[ifindex]) for ifindex in (1, 4)] == [17 + 2 + 3 * 16, 17 + 2 + 16]
    assert net[1].flags() == 0


def test_a_neighbor_that_has_sent_a_full_psnp_waits_for_none_of_the_others():
    net = star()
    raws = [encode_pdu(make_lsp(name(9, part), 1, "x")) for part in range(90)]
    began = net.now
    take(net, [received(1, raw) for raw in raws], together=True)
    take(net, [received(2, raws[-1])], together=True)  # not yet sent to it
    (ack,) = psnps(net)
    assert (ack.ifindex, len(ack.payload)) == (1, 17 + 6 * (2 + 15 * 16))
    net.run(0.2)
    (last,) = (out for out in psnps(net) if out.ifindex == 2)
    sent_at = next(at for at, _, out in net.sent if out is last)
    assert sent_at - began == pytest.approx(0.1)


def test_a_circuit_that_comes_up_has_no_flags_of_one_that_went_down():
    shared = SharedFlags()
    one, other = shared.join(), shared.join()
    shared.set_ssn(LspId(1), one)
    shared.set_ssn(LspId(1), other)
    shared.defer(LspId(2), one | other, 5.0)
    shared.leave(one)
    assert shared.join() == one
    assert shared.acks == {LspId(1): other}
    assert (shared.deferred_for(one), shared.deferred_for(other)) == ([], [LspId(2)])
    shared.leave(other)
    assert not shared.acks
    assert not shared.deferred


def test_an_lsp_is_deferred_for_each_circuit_as_long_as_for_that():
    shared, rng = SharedFlags(), random.Random(1)
    bits = [shared.join() for _ in range(8)]
    due = {bit: rng.choice((1.0, 2.0, 3.0)) for bit in bits}
    for bit, at in due.items():
        shared.defer(LspId(7), bit, at)
    shared.clear_deferral(LspId(7), bits[0])
    found = {}
    for now in (1.0, 2.0, 3.0):
        assert shared.deferred_due <= now
        for _, circuits in shared.end_deferral(now):
            found.update({bit: now for bit in bits if bit & circuits})
    assert found == {bit: at for bit, at in due.items() if bit != bits[0]}
    assert not shared.deferred


def sent_at(shared: SharedFlags) -> float:
    """When the one LSP that is deferred is sent, if a timer looks whenever it might be due."""
    while not list(shared.end_deferral(now := shared.deferred_due)):
        assert shared.deferred_due > now
    return now


@pytest.mark.parametrize(("copies", "sent"), [([0.001], 0.1), ([0.02, 0.06, 0.09], 0.14)])
def test_while_copies_arrive_the_ones_of_other_neighbors_are_awaited(copies, sent):
    shared = SharedFlags()
    bits = [shared.join() for _ in range(5)]
    shared.defer(LspId(7), sum(bits), 0.1, patient=True)
    for bit, at in zip(bits, copies, strict=False):
        shared.clear_deferral(LspId(7), bit, at)
    assert sent_at(shared) == pytest.approx(sent)


def test_a_neighbor_that_shows_nothing_is_sent_a_copy_in_a_second_whatever_others_send():
    shared = SharedFlags()
    bits = [shared.join() for _ in range(60)]
    shared.defer(LspId(7), sum(bits), 0.1, patient=True)
    for number, bit in enumerate(bits[1:]):
        at = 0.03 * number
        assert at > 1.1 or not list(shared.end_deferral(at))
        shared.clear_deferral(LspId(7), bit, at)
    assert dict(shared.end_deferral(1.1)) == {LspId(7): bits[0]}


@pytest.mark.parametrize(("late", "sent"), [(0.0, True), (0.06, False)])
def test_a_router_that_is_late_awaits_the_copies_in_its_sockets(late, sent):
    shared = SharedFlags()
    bit = shared.join()
    shared.defer(LspId(7), bit, 0.1, patient=True)
    now = 0.1 + late
    assert bool(list(shared.end_deferral(now))) is sent
    if not sent:
        assert shared.deferred_due == pytest.approx(now + 0.05)
        assert dict(shared.end_deferral(shared.deferred_due)) == {LspId(7): bit}


class Unsearched(dict[LspId, None]):
    """Flags that are looked up only: a search visits the places of all that were cleared, too."""

    def keys(self):
        raise AssertionError

    __iter__ = values = items = keys


def test_copies_are_taken_together_where_a_circuit_has_flags_of_other_lsps(monkeypatch):
    """A router that is late sends some LSPs to all neighbors, and others come meanwhile."""
    net, one_by_one = star(), list[LspId]()
    raws = [encode_pdu(make_lsp(name(9, part), 1, "x")) for part in range(3)]
    take(net, [received(1, raw) for raw in raws], together=True)
    net.run(0.3)
    queue = net[1].lsp_transmitter.active(Level.TWO)[0]
    flagged = queue.database.entries[LspId(name(9, 2))]
    queue.set_srm(flagged)
    queue.pending = Unsearched(queue.pending)
    monkeypatch.setattr(Copies, "_same", lambda _, _queue, entry: one_by_one.append(entry.lsp_id))
    take(net, [received(1, raw) for raw in raws[:2]], together=True, run=True)
    take(net, [received(1, raws[0])], together=True)
    assert one_by_one == []
    take(net, [received(1, raw) for raw in raws[1:]], together=True, run=True)
    assert one_by_one == [flagged.lsp_id]


class Counted(dict[LspId, None]):
    """Flags that count how often their first one is looked for."""

    looks = 0

    def __iter__(self):
        self.looks += 1
        return super().__iter__()


def test_the_lsps_of_a_burst_are_looked_for_once():
    """Each look visits the places of all that were sent since the dict was made."""
    net = star()
    raws = [encode_pdu(make_lsp(name(9, part), 1, "x")) for part in range(15)]
    take(net, [received(1, raw) for raw in raws], together=True)
    net.run(0.3)
    transmitter = net[1].lsp_transmitter
    queue = transmitter.active(Level.TWO)[0]
    flags = queue.pending = Counted(dict.fromkeys(map(LspId, queue.database.entries)))
    assert transmitter._send_lsps(queue, 10) == 0
    assert len(queue.unacknowledged) == 10
    assert flags.looks == 1
