"""Exactly-once sums over packets that are lost, doubled and late; epochs; the checker itself."""

from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.extensions.ina.plan.given import parse_tree
from fared.extensions.ina.plan.model import Capacities
from fared.extensions.ina.slots.aggregator import Aggregator
from fared.extensions.ina.slots.packet import (
    DataType,
    Flag,
    Header,
    Op,
    PacketKind,
    agrees,
    decode_header,
    encode_header,
    values_of,
)
from fared.extensions.ina.slots.setup import SetupError
from fared.extensions.ina.slots.slot import SumPace
from fared.extensions.ina.slots.window import FIRST_TIMEOUT, LEAST_BURST, LEAST_TIMEOUT, RoundTrip
from fared.extensions.ina.slots.worker import REST_AFTER, WorkerMachine
from tests.ina.fabrics import FIGURE_1, both, clos, figure_1, leaf, workers
from tests.ina.network import PAYLOAD, InvariantError, TrainJob, VirtualJob, setup_for

pytestmark = pytest.mark.slow

ROUGH = {"loss": 0.3, "double": 0.2, "delay": (1e-4, 2e-2)}
LATE = {"loss": 0.1, "double": 0.6, "delay": (1e-4, 0.2)}
"""Copies arrive after the epoch in which they were sent."""


def figure(**network) -> VirtualJob:
    """The draft's Figure 1 with sums at s1, s2 and the root s5."""
    seed = network.pop("seed", 1)
    window = network.pop("window", 4)
    return VirtualJob(setup_for(*figure_1("s1 s2 s5"), window=window), seed, **network)


def test_without_loss_each_chunk_takes_the_fewest_packets_e13():
    """Four up from workers, two sums of inner routers, four results."""
    job = figure()
    job.run_for(0.1)
    before = job.packets
    job.call(200)
    job.run()
    assert job.packets - before == 2000
    assert not sum(machine.counters.total() for machine in job.workers.values())


class Sizes(VirtualJob):
    """Notes the bytes of values of all results, by worker."""

    def __init__(self, *args, **kwargs) -> None:
        self.sizes: Counter[tuple[int, int]] = Counter()
        super().__init__(*args, **kwargs)

    def send(self, source, target, data):
        header = decode_header(data)
        if header.kind is PacketKind.RESULT:
            self.sizes[target, header.size] += 1
        super().send(source, target, data)


def test_the_sum_of_a_reduce_goes_to_one_worker_and_the_others_learn_that_it_is_complete():
    """As many packets as an all-reduce has, of which three of four results are headers only."""
    job = Sizes(setup_for(*figure_1("s1 s2 s5")), 1)
    job.run_for(0.1)
    before = job.packets
    job.call(200, to=3)
    job.run()
    assert job.packets - before == 2000
    assert job.sizes == {(-3, PAYLOAD): 200} | {(-other, 0): 200 for other in (1, 2, 4)}
    assert not sum(machine.counters.total() for machine in job.workers.values())


class FormerRouter(Aggregator):
    """A router of a former version: it ignores the receiver, and sends 0."""

    def receive(self, sender, data, now):
        super().receive(sender, data[:22] + bytes(2) + data[24:], now)


@pytest.mark.parametrize("former", [{1}, {5}, {1, 2, 5}])
def test_with_a_router_of_a_former_version_all_get_the_sum_and_one_takes_it(former):
    def made(node, port):
        return (FormerRouter if node in former else Aggregator)(node, port)

    job = Sizes(setup_for(*figure_1("s1 s2 s5")), 1, router=made, **ROUGH)
    job.call(60, slack=0.05, to=2)
    job.run(600)
    assert all(len(results) == 60 for results in job.got.values())
    assert job.sizes.keys() == {(-bfr_id, PAYLOAD) for bfr_id in job.workers}


def test_packets_far_beyond_the_window_stop_no_job():
    """Who forges a worker's address could empty all slots, and what followed seemed old."""
    job = figure()
    job.run_for(0.1)
    router = job.routers[job.setup.trees[0].parents[-1]]
    for sequence in range(2**31 - 17, 2**31):
        header = Header(PacketKind.DATA, 7, 0, 1, sequence, 1, 64)
        router.receive(-1, encode_header(header) + bytes(64), job.now)
    assert router.counters["beyond-window"] == 17
    job.call(20)
    job.run()


@pytest.mark.parametrize("network", [VirtualJob, TrainJob])
@pytest.mark.parametrize("seed", range(6))
def test_every_worker_gets_every_sum_once_over_a_rough_network_e13(seed, network):
    job = network(setup_for(*figure_1("s1 s2 s5")), seed, **ROUGH)
    job.call(30, slack=0.05)
    job.call(30, slack=0.05, to=seed % 5)
    job.run(600)
    assert all(len(results) == 60 for results in job.got.values())
    assert job.kinds[PacketKind.RESULT] > 240


@pytest.mark.parametrize("network", [VirtualJob, TrainJob])
def test_a_router_passes_on_what_has_none_of_its_bits(network):
    """draft-song-ina-00 §2.1, Figure 1: s7 sums w3 and w4, and passes the sum of s1 on to s6."""
    links, job = figure_1("s1 s6 s7")
    given = parse_tree("s1,s7,s6", FIGURE_1.__getitem__)
    setup = setup_for(links, replace(job, given=given))
    (tree,) = setup.trees
    assert (tree.parents[1], tree.sums) == (7, {7: (3, 4)})
    virtual = network(setup, 3, **ROUGH)
    virtual.call(60, slack=0.05)
    virtual.run(600)
    assert all(len(results) == 60 for results in virtual.got.values())
    assert virtual.routers[7].counters["passed"] >= 60
    assert virtual.routers[1].counters["passed"] == 0
    wrong = replace(tree, sums={7: (2, 3, 4)})
    with pytest.raises(SetupError, match="7 cannot sum"):
        replace(setup, trees=(wrong,)).checked()
    with pytest.raises(SetupError, match="6 cannot sum"):
        replace(setup, trees=(replace(tree, sums={6: (1, 2)}),)).checked()


@pytest.mark.parametrize("seed", range(6))
def test_a_root_that_dies_is_replaced_in_the_middle_of_a_call(seed):
    network, job = clos(spines=2, leaves=4), workers(4)
    first = setup_for(network, job)
    virtual = VirtualJob(first, seed, **ROUGH)
    virtual.call(40, slack=0.05)
    virtual.run_for(0.2)
    virtual.dead.add(1)
    virtual.run_for(0.2)
    left = Capacities({k: v for k, v in network.links.items() if 1 not in k}, network.adders)
    virtual.begin(setup_for(left, job, epoch=2))
    virtual.call(20, slack=0.05)
    virtual.run(600)
    assert all(len(results) == 60 for results in virtual.got.values())


def test_chunks_that_two_epochs_sum_have_the_same_bits():
    network, job = clos(spines=2, leaves=4), workers(4)
    virtual = VirtualJob(setup_for(network, job), 3, loss=0.2)
    virtual.call(200)
    check = virtual.check

    def noted(bfr_id, chunk, values, *, again: bool):
        check(bfr_id, chunk, values, again=again)
        repeated.append(again)

    repeated: list[bool] = []
    virtual.check = noted
    for epoch in range(2, 12):
        virtual.run_for(0.03)
        virtual.begin(setup_for(network, job, epoch=epoch), spread=0.001)
    virtual.run()
    assert any(repeated)


@settings(max_examples=75, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    loss=st.floats(0, 0.35),
    double=st.floats(0, 0.4),
    spread=st.floats(0, 0.03),
    epochs=st.lists(st.tuples(st.floats(0.001, 0.2), st.integers(0, 2)), max_size=4),
    window=st.integers(1, 6),
    network=st.sampled_from([VirtualJob, TrainJob]),
    receivers=st.lists(st.integers(0, 4), min_size=5, max_size=5),
)
def test_sums_are_right_over_any_schedule_of_loss_order_epochs_and_receivers(
    *, seed, loss, double, spread, epochs, window, network, receivers
):
    networks = [clos(2, 4), clos(2, 4, both(1, 2, 0.25)), clos(3, 4, both(2, 3, 0.0))]
    job = workers(4)
    setup = setup_for(networks[0], job, window=window)
    virtual = network(setup, seed, loss=loss, double=double, delay=(1e-4, 1e-4 + spread))
    virtual.call(12, slack=0.02, to=receivers[0])
    for epoch, (wait, which) in enumerate(epochs, 2):
        virtual.run_for(wait)
        virtual.begin(setup_for(networks[which], job, epoch=epoch, window=window))
        virtual.call(3, slack=0.02, to=receivers[epoch - 1])
    virtual.run(2000)


def test_a_thousand_calls_at_one_percent_loss():
    network = clos(changes=both(1, 2, 0.25))
    virtual = VirtualJob(setup_for(network, workers(), window=8), 11, loss=0.01)
    for _ in range(1000):
        virtual.call(3)
        virtual.run()
    results = [virtual.got[bfr_id] for bfr_id in virtual.workers]
    assert all(len(result) == 3000 for result in results)
    assert all(result == results[0] for result in results)
    assert not any(machine.counters["control-sum"] for machine in virtual.workers.values())


class SlowLinks(VirtualJob):
    """Each link takes its time for a packet; others wait in its queue."""

    def __init__(self, *args, seconds: float, **kwargs) -> None:
        self.seconds, self._free = seconds, Counter()
        super().__init__(*args, **kwargs)

    def send(self, source, target, data):
        begun = max(self.now, self._free[source, target])
        self._free[source, target] = begun + self.seconds
        self.at(begun, lambda: super(SlowLinks, self).send(source, target, data))


def test_a_window_that_waits_behind_itself_at_a_slow_link_is_not_repeated():
    """A window takes 114 ms, as 16 jumbo frames do at 10 Mbit/s; a packet alone 22 ms."""
    virtual = SlowLinks(setup_for(*figure_1("s1 s2 s5"), window=16), 1, seconds=0.0071)
    for _ in range(3):
        virtual.run_for(0.5)
        virtual.call(100)
        virtual.run()
    assert not any(machine.counters["repeated"] for machine in virtual.workers.values())


class Stalling(VirtualJob):
    """What the network carries in the time until ``stalled_until`` arrives after it."""

    stalled_until = 0.0

    def at(self, when, run):
        super().at(max(when, self.stalled_until), run)


def test_while_everything_is_late_a_few_packets_of_a_window_are_repeated():
    """0.25 s are two timeouts: 4 and 8 packets of the window, not all of it each time."""
    virtual = Stalling(setup_for(*figure_1("s1 s2 s5"), window=16), 1)
    virtual.run_for(0.1)
    virtual.call(40)
    virtual.run_for(0.0015)
    virtual.stalled_until = virtual.now + 0.25
    virtual.run()
    repeated = [machine.counters["repeated"] for machine in virtual.workers.values()]
    assert all(0 < count <= 4 + 8 for count in repeated)
    virtual.stalled_until = 0.0
    assert {tree.burst for m in virtual.workers.values() for tree in m._trees} == {LEAST_BURST}


def test_results_wait_for_others_less_than_a_window_takes_and_the_last_of_a_call_do_not():
    virtual = figure(window=16)
    virtual.run_for(0.1)
    machine = virtual.workers[1]
    assert machine.patience() == 0
    virtual.call(100)
    virtual.run_for(0.01)
    assert 0 < machine.next < 100 - 16
    # A round trip takes 3 ms: to s1, to the root s5, and straight back.
    assert machine.patience() == pytest.approx(0.003 / 4)
    while machine.has_unsent:
        virtual.step(1.0)
    waits = {100 - machine.next: machine.patience()}
    while virtual.step(1.0) and machine.next < 100:
        waits[100 - machine.next] = machine.patience()
    assert waits == {
        left: pytest.approx(0.003 / 8 * left / 16 if left > 4 else 0) for left in waits
    }
    assert 1 in waits
    assert max(waits) > 8


def test_results_of_a_call_that_fits_the_windows_wait_for_nothing():
    virtual = figure(window=16)
    virtual.call(100)
    virtual.run_for(1.0, until=lambda: virtual.finished)
    virtual.call(16)
    waits = set()
    while virtual.step(2.0) and not virtual.finished:
        waits |= {machine.patience() for machine in virtual.workers.values()}
    assert waits == {0.0}


def test_a_router_lets_packets_wait_for_three_sums_while_sums_follow_each_other():
    pace = SumPace()
    for at in range(4):
        assert pace.patience() == 0
        pace.note(1, 0.0002 * at, more=True)
    pace.note(2, 0.001, more=True)
    assert pace.patience() == pytest.approx(3 * 0.0002)
    for at in range(1, 40):
        pace.note(1, 0.001 + 0.003 * at, more=True)
    assert pace.patience() == 0.004
    pace.note(1, 1.0, more=False)
    assert pace.patience() == 0
    pace.note(1, 9.0, more=True)
    assert pace.patience() == 0


def test_packets_wait_at_routers_in_long_calls_only_and_not_at_their_end():
    setup = setup_for(clos(2, 4), workers(4), window=8)
    virtual = SlowLinks(setup, 1, seconds=0.0004, delay=(1e-4, 2e-3))

    def waits() -> set[bool]:
        found = set()
        while not virtual.finished:
            virtual.run_for(0.0002)
            found |= {router.patience() > 0 for router in virtual.routers.values()}
        return found

    virtual.run_for(0.1)
    for _ in range(20):
        virtual.call(2)  # a chunk for each tree
        assert waits() == {False}
    virtual.call(100)
    assert waits() == {False, True}
    assert not any(router.patience() for router in virtual.routers.values())


def test_a_lost_window_is_repeated_in_less_than_half_a_second():
    virtual = figure(window=16)
    virtual.run_for(0.1)
    virtual.loss = 1.0
    virtual.call(16)
    virtual.loss, begun = 0.0, virtual.now
    virtual.run()
    assert virtual.now - begun < 0.5


def test_chunks_are_made_when_they_are_sent_and_no_more_after_a_stop():
    virtual = figure()
    virtual.run_for(0.1)
    machine, made = virtual.workers[1], []

    def source(chunk: int) -> np.ndarray:
        made.append(chunk)
        return np.zeros(16, "<i4")

    for chunk in range(10):
        machine.put(partial(source, chunk))
    machine.pump(virtual.now)
    window = virtual.setup.trees[0].window
    assert made == list(range(window)) != list(range(10))
    machine.stop()
    for other in virtual.workers.values():
        if other is not machine:
            for _ in range(10):
                other.put(np.zeros(16, "<i4"))
            other.pump(virtual.now)
    virtual.truth += [np.zeros(16, "<i4")] * 10
    virtual.run_for(1.0)
    assert (machine.next, len(made)) == (window, window)


@pytest.mark.parametrize("by", ["time", "a result"])
def test_a_call_begins_with_some_packets_of_each_tree_and_the_rest_of_the_windows_follows(by):
    virtual = VirtualJob(setup_for(clos(2, 4), workers(4), window=8), 1)
    virtual.run_for(0.1)
    machine = virtual.workers[1]
    for _ in range(100):
        machine.put(np.zeros(16, "<i4"))

    def sent() -> list[range]:
        return [range(min(tree.sent), max(tree.sent) + 1) for tree in machine._trees]

    machine.begin(virtual.now)
    assert sent() == [range(3)] * 2
    assert machine.deadline() == pytest.approx(virtual.now + REST_AFTER)
    if by == "time":
        machine.tick(virtual.now + REST_AFTER)
    else:
        machine.pump(virtual.now + REST_AFTER / 2)
    assert sent() == [range(8)] * 2
    assert machine.deadline() == pytest.approx(virtual.now + FIRST_TIMEOUT)


def test_a_result_of_another_type_is_no_result():
    virtual = figure()
    virtual.run_for(0.1)
    machine = virtual.workers[1]
    machine.put(np.zeros(16, "<i4"))
    virtual.truth.append(np.zeros(16, "<i4"))
    machine.pump(virtual.now)
    setup = virtual.setup
    header = Header(PacketKind.RESULT, setup.job_id, 0, setup.epoch, 0, setup.bits, 64)
    wrongs = ({"op": Op.MAX}, {"data_type": DataType.INT16}, {"size": 32}, {"bits": 1})
    completions = ({"size": 0}, {"size": 0, "receiver": 2})
    for wrong in (*wrongs, *completions):
        told = header._replace(**wrong)
        machine.take(encode_header(told) + bytes(told.size), virtual.now)
    assert (machine.next, machine.counters["incomplete"]) == (0, 6)
    machine.take(encode_header(header) + bytes(64), virtual.now)
    assert machine.next == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("data_type", "factors", "product"),
    [
        (DataType.INT32, (3, -5, 7, 1), -105),
        (DataType.INT32, (1 << 20, 1 << 20, 1, 3), 0),
        (DataType.FLOAT32, (1.5, -2.0, 4.0, 1.0), -12.0),
        (DataType.FLOAT32, (1e30, 1e30, 1.0, 1.0), np.inf),
    ],
)
def test_products_of_integers_wrap_and_those_of_floats_become_infinite(data_type, factors, product):
    setup = setup_for(*figure_1("s6"))
    port = Results()
    router = Aggregator(setup.trees[0].root, port)
    router.install(setup)
    for bfr_id, factor in enumerate(factors, 1):
        values = np.full(16, factor, data_type.dtype)
        header = Header(
            PacketKind.DATA, 7, 0, 1, 0, 1 << bfr_id - 1, values.nbytes, data_type, Op.PRODUCT
        )
        router.receive(-bfr_id, encode_header(header) + values.tobytes(), 0.0)
    ((header, values),) = port.got
    assert (header.bits, header.op) == (0b1111, Op.PRODUCT)
    assert agrees(header, values)
    assert values.tolist() == [product] * 16


class Results:
    """The port of a root: the results that it sends."""

    def __init__(self) -> None:
        self.got: list = []

    def disseminate(self, bits, data) -> None:
        header = decode_header(data)
        self.got.append((header, values_of(header, bytes(data))))


def test_who_waits_for_a_sum_takes_no_packet_that_only_tells_that_it_is_complete():
    virtual = figure()
    virtual.run_for(0.1)
    virtual.call(1, to=1)
    machine, setup = virtual.workers[1], virtual.setup
    header = Header(PacketKind.RESULT, setup.job_id, 0, setup.epoch, 0, setup.bits, 0)
    for receiver in (0, 1, 2):
        machine.take(encode_header(header._replace(receiver=receiver)), virtual.now)
        virtual.workers[2].take(encode_header(header._replace(receiver=receiver)), virtual.now)
    assert (machine.next, machine.counters["incomplete"]) == (0, 3)
    assert (virtual.workers[2].next, virtual.workers[2].counters["incomplete"]) == (1, 1)


def test_a_reduce_to_a_worker_that_is_lost_ends_without_a_sum():
    made, port = router()
    for sender, bits in ((1, 0b0011), (2, 0b1100)):
        made.receive(sender, packet(bits, receiver=9), 0.0)
    ((bits, data),) = port.results
    told = decode_header(data)
    assert (bits, told.bits, told.size, told.receiver) == (0b1111, 0b1111, 0, 9)


def test_a_hundred_calls_with_doubled_and_reordered_packets():
    virtual = VirtualJob(setup_for(clos(), workers(), window=8), 12, double=0.3, delay=(1e-4, 1e-2))
    for _ in range(100):
        virtual.call(8, slack=0.005)
        virtual.run()
    results = [virtual.got[bfr_id] for bfr_id in virtual.workers]
    assert all(result == results[0] for result in results)


# -- relays ----------------------------------------------------------------------------------


class Watched(VirtualJob):
    """Notes which packets of chunks went over which edge of which tree."""

    def __init__(self, *args, **kwargs) -> None:
        self.edges: Counter[tuple[int, PacketKind, int, int]] = Counter()
        super().__init__(*args, **kwargs)

    def send(self, source, target, data):
        header = decode_header(data)
        self.edges[header.tree, header.kind, source, target] += 1
        super().send(source, target, data)


def relayed(**changes) -> VirtualJob:
    """4 x 8, S1-L2 and S2-L3 at a quarter: w2 sends over S2 and L1 to S1."""
    network = clos(changes=both(1, 2, 0.25) | both(2, 3, 0.25))
    return Watched(setup_for(network, workers(), window=8), 1, **changes)


def test_streams_and_results_of_a_relay_take_its_way_and_no_other():
    virtual = relayed()
    (number,) = (tree.tree_id for tree in virtual.setup.trees if tree.above)
    assert [tree.weight for tree in virtual.setup.trees] == [1, 1, 4, 4, 3]
    virtual.run_for(0.1)
    virtual.edges.clear()
    virtual.call(130)
    virtual.run()
    found = {edge[1:]: count for edge, count in virtual.edges.items() if edge[0] == number}
    data, result, relay = PacketKind.DATA, PacketKind.RESULT, leaf(1)
    up = {(data, -2, 2), (data, 2, relay), (data, -1, relay), (data, relay, 1)}
    down = {(result, 1, relay), (result, relay, 2), (result, relay, -1), (result, 2, -2)}
    others = {(data, -n, 1) for n in range(3, 9)} | {(result, 1, -n) for n in range(3, 9)}
    assert found == dict.fromkeys(up | down | others, 30)


def test_relays_are_exactly_once_over_a_rough_network_and_through_new_epochs():
    virtual = relayed(**ROUGH)
    virtual.call(60, slack=0.05, to=2)  # behind the relay
    virtual.run_for(0.3)
    for epoch, changes in ((2, {}), (3, both(1, 2, 0.25) | both(2, 3, 0.25))):
        virtual.begin(setup_for(clos(changes=changes), workers(), epoch=epoch, window=8))
        virtual.run_for(0.3)
    virtual.call(60, slack=0.05, to=1)
    virtual.run(600)
    assert all(len(results) == 120 for results in virtual.got.values())


def test_a_relay_passes_results_of_its_epoch_on_that_come_from_above():
    network = clos(changes=both(1, 2, 0.25) | both(2, 3, 0.25))
    port = Port()
    made = Aggregator(2, port)
    made.install(setup_for(network, workers(), epoch=5))
    header = Header(PacketKind.RESULT, 7, 4, 5, 0, 0xFF, 16)
    result = encode_header(header) + bytes(16)
    made.receive(leaf(1), result, 0.0)
    assert port.results == [(0b10, result)]
    made.receive(1, result, 0.0)  # not the router above
    made.receive(leaf(1), encode_header(header._replace(tree=0)) + bytes(16), 0.0)
    made.receive(leaf(1), encode_header(header._replace(epoch=4)) + bytes(16), 0.0)
    assert len(port.results) == 1
    assert made.counters == {"passed-on": 1, "sender": 2, "result-of-another-epoch": 1}


@pytest.mark.parametrize(
    ("above", "told"),
    [
        ({-2: 2, 2: 101}, "does not reach the root"),
        ({-2: 2, 2: 101, 101: 2}, "does not reach the root"),
        ({-9: 1}, "that it does not have"),
    ],
)
def test_ways_of_results_that_cannot_be_are_refused(above, told):
    setup = setup_for(clos(changes=both(1, 2, 0.25) | both(2, 3, 0.25)), workers())
    wrong = replace(setup.trees[4], above=above)
    with pytest.raises(SetupError, match=told):
        replace(setup, trees=(*setup.trees[:4], wrong)).checked()


# -- the checker: machines with a fault are caught -------------------------------------------


class AddsDuplicates(Aggregator):
    """No ``seen``: a doubled packet is added twice."""

    def _is_new(self, slot, bits):
        return not slot.complete


class OneVersion(Aggregator):
    """S entries instead of 2 S: an entry is reused while a worker may still ask for it."""

    VERSIONS = 1


class AnyEpoch(Aggregator):
    """No test of the epoch."""

    def _is_of_this_epoch(self, sender, header, setup):
        return True


class NoWindow(WorkerMachine):
    """Sends without waiting for results."""

    def _may_send(self, tree, sequence, chunk):
        return chunk < self.end


class NoWish(Aggregator):
    """Complete entries answer nobody."""

    def _answer(self, tree, slot, bits, now):
        pass


class SumOnce(Aggregator):
    """Who asks again learns only that the sum is complete, also its receiver."""

    def _answer(self, tree, slot, header, now):
        if tree.role.parent is None and slot.receiver:
            self._down(tree.role, header.bits, slot.completion(PacketKind.RESULT, Flag.AGAIN))
        else:
            super()._answer(tree, slot, header, now)


def caught(
    seed: int, *, router=Aggregator, worker=WorkerMachine, kind=ROUGH, network=VirtualJob, to=0
) -> bool:
    """Whether the checker finds a fault: a rough network, and new epochs, some with other trees."""
    networks = [clos(2, 4), clos(2, 4, both(1, 2, 0.25)), clos(2, 4)]
    job = workers(4)
    virtual = network(
        setup_for(networks[0], job, window=2), seed, router=router, worker=worker, **kind
    )
    try:
        virtual.call(60, slack=0.05, to=to)
        for epoch in range(2, 16):
            virtual.run_for(0.06 if kind is ROUGH else 0.6)
            virtual.begin(setup_for(networks[epoch % 3], job, epoch=epoch, window=2))
        virtual.run(60)
    except InvariantError:
        return True
    return False


@pytest.mark.parametrize("network", [VirtualJob, TrainJob])
@pytest.mark.parametrize(
    "fault",
    [
        {"router": AddsDuplicates},
        {"router": OneVersion},
        {"router": AnyEpoch, "kind": LATE},
        {"router": NoWish},
        {"worker": NoWindow},
        {"router": SumOnce, "to": 1},
    ],
)
def test_machines_with_a_fault_are_caught(fault, network):
    assert all(caught(seed, **fault, network=network) for seed in range(6))


@pytest.mark.parametrize("network", [VirtualJob, TrainJob])
def test_machines_without_a_fault_are_not(network):
    kinds = (ROUGH, LATE)
    assert not any(caught(seed, kind=kind, network=network) for seed in range(6) for kind in kinds)


# -- one router ------------------------------------------------------------------------------


class Port:
    def __init__(self):
        self.sent, self.results, self.nacks = [], [], []

    def up(self, parent, data):
        self.sent.append((parent, bytes(data)))

    def down(self, router, data):
        self.sent.append((router, bytes(data)))

    def disseminate(self, bits, data):
        self.results.append((bits, bytes(data)))

    def nack(self, sender, data):
        self.nacks.append((sender, data))


def router(node=5) -> tuple[Aggregator, Port]:
    port = Port()
    made = Aggregator(node, port)
    assert made.install(setup_for(*figure_1("s1 s2 s5"), epoch=5))
    return made, port


def packet(bits, *, epoch=5, flags=0, count=4, receiver=0) -> bytes:
    values = np.full(count, 1, "<i4")
    header = Header(
        PacketKind.DATA, 7, 0, epoch, 0, bits, values.nbytes, flags=flags,
        control=int(values.sum()), receiver=receiver,
    )  # fmt: skip
    return encode_header(header) + values.tobytes()


@pytest.mark.parametrize(
    ("sender", "data", "counted"),
    [
        (1, packet(0b0100), "sender"),  # a bit of another child
        (9, packet(0b0001), "sender"),
        (1, packet(0b0011, epoch=6), "epoch-ahead"),
        (1, packet(0b0011, epoch=4), "epoch-behind"),
        (1, packet(0b0011)[:-1], "malformed-length"),
        (1, packet(0), "malformed-size"),
        (1, packet(0b0011, count=400), "malformed-size"),
        (1, b"", "malformed-truncated"),
    ],
)
def test_packets_that_could_poison_a_sum_are_counted_and_dropped(sender, data, counted):
    made, port = router()
    made.receive(sender, data, 0.0)
    assert made.counters == {counted: 1}
    assert not port.sent
    assert not port.results
    assert bool(port.nacks) == (counted == "epoch-behind")


def test_the_root_answers_only_those_who_want_a_result():
    made, port = router()
    made.receive(1, packet(0b0011), 0.0)
    assert made.waited_for() == [3, 4]
    made.receive(2, packet(0b1100), 0.0)
    assert [bits for bits, _ in port.results] == [0b1111]
    made.receive(1, packet(0b0011), 0.1)
    made.receive(2, packet(0b1100, flags=2), 0.1)
    made.receive(2, packet(0b1100, flags=2), 0.1001)
    assert [bits for bits, _ in port.results] == [0b1111, 0b1100]
    assert (made.counters["duplicate"], made.counters["answered-lately"]) == (1, 1)
    assert made.waited_for() == []


def test_a_packet_of_another_shape_never_enters_a_sum():
    made, port = router()
    made.receive(1, packet(0b0011), 0.0)
    made.receive(2, packet(0b1100, count=8), 0.0)
    assert made.counters["shape"] == 1
    assert not port.results


@settings(max_examples=200)
@given(st.binary(max_size=120), st.integers(1, 2))
def test_any_bytes_are_counted(data, sender):
    made, port = router()
    made.receive(sender, data, 0.0)
    made.receive(sender, packet(0b0011)[: len(data)] + data, 0.0)
    assert made.counters.total() == 2
    assert not port.results


def one_missing() -> VirtualJob:
    """Three of four workers have contributed."""
    virtual = figure(seed=2)
    virtual.run_for(0.1)
    for machine in list(virtual.workers.values())[:3]:
        machine.put(np.zeros(16, "<i4"))
        machine.pump(virtual.now)
    virtual.truth.append(np.zeros(16, "<i4"))
    virtual.run_for(0.1)
    return virtual


def test_who_is_waited_for_is_named():
    virtual = one_missing()
    assert {at for router in virtual.routers.values() for at in router.waited_for()} == {3, 4}


def test_workers_that_wait_long_are_told_for_whom():
    """The router next to the missing worker knows it, the root only which sum it lacks."""
    virtual = one_missing()
    assert not virtual.told
    virtual.run_for(2.0)
    assert set(virtual.told) == {(1, 0b1100), (2, 0b1100), (3, 0b1000)}


def test_the_timeout_doubles_until_a_packet_that_was_sent_once_has_its_result():
    trip = RoundTrip()
    trip.measured(0.001)
    assert trip.timeout(0) == LEAST_TIMEOUT
    for _ in range(16):  # a whole window expires
        trip.expired(10.0)
    assert trip.timeout(0) == 2 * LEAST_TIMEOUT
    trip.expired(10.0 + 2 * LEAST_TIMEOUT)
    assert trip.timeout(0) == trip.timeout(2) == 4 * LEAST_TIMEOUT
    assert trip.timeout(3) == 8 * LEAST_TIMEOUT
    trip.measured(0.001)
    assert trip.timeout(0) == LEAST_TIMEOUT


class _Told:
    """The port of an aggregator that notes what is sent to workers."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, PacketKind]] = []

    def up(self, parent, data) -> None:
        raise AssertionError("a root has no parent")

    def disseminate(self, bits, data) -> None:
        self.sent.append((bits, decode_header(data).kind))

    def nack(self, sender, data) -> None:
        raise AssertionError("all packets are of this epoch")


def test_all_whose_values_are_here_are_told_for_whom_the_root_waits():
    """Workers ask at the same time, and a slot tells once in an interval."""
    setup = setup_for(clos(spines=1, leaves=3), workers(3))
    port = _Told()
    root = Aggregator(1, port)
    root.install(setup)

    def packet(bfr_id: int, flags: int) -> bytes:
        header = Header(
            PacketKind.DATA, setup.job_id, 0, setup.epoch, 0, 1 << (bfr_id - 1), 8, flags=flags,
            length=setup.length,
        )  # fmt: skip
        return encode_header(header) + bytes(8)

    for flags in (0, Flag.AGAIN | Flag.WANT | Flag.ASK):
        for bfr_id in (1, 2):
            root.receive(-bfr_id, packet(bfr_id, flags), 10.0)
    assert port.sent == [(0b011, PacketKind.LACKING)]


def test_the_oldest_open_slot_tells_for_how_long_a_router_waits():
    made, port = router(1)
    assert made.wait(5.0) == 0.0
    made.receive(-1, packet(0b01), 5.0)
    made.receive(-1, packet(0b01, flags=Flag.AGAIN), 6.0)
    assert made.wait(7.5) == 2.5
    made.receive(-2, packet(0b10), 8.0)
    assert port.sent
    assert made.wait(9.0) == 0.0
