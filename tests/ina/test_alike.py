"""Packets in trains do the same as packets one by one, whatever trains are made of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.extensions.ina.slots.aggregator import Aggregator
from fared.extensions.ina.slots.alike import Alike
from fared.extensions.ina.slots.packet import (
    DataType,
    Flag,
    Header,
    Op,
    PacketKind,
    control_of,
    decode_header,
    encode_header,
)
from fared.extensions.ina.slots.setup import JobSetup
from fared.extensions.ina.slots.worker import WorkerMachine
from tests.ina.fabrics import clos, figure_1, workers
from tests.ina.network import joined, setup_for


def one_of(*usual, rare):
    """Mostly a usual one: trains are long only if most packets are alike."""
    return st.sampled_from([*usual * 8, *rare])


HEADERS = st.builds(
    Header,
    kind=one_of(PacketKind.DATA, rare=PacketKind),
    job=one_of(7, rare=[8]),
    tree=one_of(0, rare=[1]),
    epoch=one_of(5, rare=[4, 6]),
    sequence=st.integers(0, 12) | st.integers(2**32 - 6, 2**32 - 1),
    bits=one_of(0b0011, 0b1100, rare=[0b0001]),
    size=one_of(64, rare=[8, 32]),
    data_type=one_of(DataType.INT32, rare=[DataType.INT16, DataType.FLOAT32]),
    op=one_of(Op.SUM, rare=[Op.MAX]),
    flags=one_of(0, rare=[Flag.WANT, Flag.WANT | Flag.ASK]),
    exponent=st.integers(-3, 3),
    control=st.just(0),
    length=st.just(64),
    set_id=st.just(0),
    sub_domain=st.just(0),
    receiver=one_of(0, rare=[1, 3]),
)
SHAPES = st.tuples(
    one_of(64, rare=[8, 32]) | st.just(0),
    one_of(DataType.INT32, rare=[DataType.INT16, DataType.FLOAT32]),
    one_of(Op.SUM, rare=[Op.MAX]),
    st.sampled_from([0, 1, 3]),
)
SHAPE = ("size", "data_type", "op", "receiver")
FAULTS = one_of(None, rare=["damaged", "cut"])


@st.composite
def visits(draw, headers) -> list[tuple[int, list[bytes]]]:
    """What senders 1 and 2 send at a time: runs of consecutive sequences, most of one shape.

    That of a reduce has a receiver; results for others have no values.
    """
    shape, found = draw(SHAPES), []
    for _ in range(draw(st.integers(1, 8))):
        runs = st.lists(st.tuples(headers, st.integers(1, 6), FAULTS), min_size=1, max_size=3)
        packets = []
        for header, count, fault in draw(runs):
            usual = draw(st.integers(0, 9))
            told = header._replace(**dict(zip(SHAPE, shape, strict=True)))
            packets += packets_of(told if usual else header, count, draw(st.integers(0, 99)), fault)
        found.append((draw(st.integers(1, 2)), packets))
    return found


def packets_of(header: Header, count: int, seed: int, fault: str | None = None) -> list[bytes]:
    """Packets of consecutive sequences, the middle one damaged or the last one cut off."""
    rng, found = np.random.default_rng(seed), []
    for at in range(count):
        sequence = (header.sequence + at) % 2**32
        wanted = header.size // header.data_type.dtype.itemsize
        values = rng.integers(-100, 100, wanted).astype(header.data_type.dtype)
        told = header._replace(sequence=sequence, control=control_of(values))
        found.append(encode_header(told) + values.tobytes())
    if fault == "damaged":
        middle = bytearray(found[count // 2])
        middle[int(rng.integers(len(middle)))] ^= 1 << int(rng.integers(8))
        found[count // 2] = bytes(middle)
    elif fault == "cut":
        found[-1] = found[-1][: int(rng.integers(1, len(found[-1])))]
    return found


class Noted:
    """A port that notes all that a machine does."""

    def __init__(self) -> None:
        self.done: list[tuple] = []

    def __getattr__(self, name: str):
        def note(*told, **more) -> None:
            plain = [
                bytes(each) if isinstance(each, memoryview | np.ndarray) else each for each in told
            ]
            self.done.append((name, *plain, *more.items()))

        return note


def router() -> tuple[Aggregator, Noted]:
    port = Noted()
    made = Aggregator(5, port)
    made.install(setup_for(*figure_1("s1 s2 s5"), epoch=5))
    return made, port


@settings(max_examples=150, deadline=None)
@given(visits(HEADERS))
def test_a_router_does_the_same_with_trains_as_with_single_packets(sent):
    (single, singly), (train, together) = router(), router()
    for number, (sender, packets) in enumerate(sent):
        for data in packets:
            single.receive(sender, data, float(number))
        for data, step in joined(packets):
            train.receive_train(sender, data, step, float(number))
        assert together.done == singly.done
        assert train.counters == single.counters
    assert train.waited_for() == single.waited_for()
    assert [tree.size for tree in train.trees] == [tree.size for tree in single.trees]


def test_a_train_of_usual_packets_is_added_together():
    """Also around the end of the slots, and with a shorter packet at the end."""
    made, port = router()
    like = Header(PacketKind.DATA, 7, 0, 5, 0, 0b0011, 64)
    for first in range(0, 24, 4):
        for sender, bits in ((1, 0b0011), (2, 0b1100)):
            header = like._replace(sequence=first, bits=bits)
            packets = packets_of(header, 4, first + sender)
            short = header._replace(sequence=first + 3, size=32)
            packets[-1:] = packets_of(short, 1, sender)
            ((data, step),) = joined(packets)
            made.receive_train(sender, data, step, 0.0)
    assert made.counters == {"added": 48}
    results = [decode_header(data) for name, _, data in port.done if name == "disseminate"]
    assert [result.sequence for result in results] == list(range(24))
    assert [result.size for result in results] == ([64] * 3 + [32]) * 6


def worker(setup: JobSetup, chunks: int, receiver: int = 0) -> tuple[WorkerMachine, Noted]:
    port = Noted()
    made = WorkerMachine(1, port)
    made.install(setup, 0.0)
    base = np.zeros(1, "<i8")
    sync = Header(PacketKind.SYNC_RESULT, 7, 0, setup.epoch, 0, setup.bits, 8, DataType.INT64)
    made.receive(encode_header(sync) + base.tobytes(), 0.0)
    for chunk in range(chunks):
        made.put(np.full(16 if chunk % 7 else 8, chunk, "<i4"), receiver=receiver)
    made.pump(0.0)
    return made, port


RESULTS = HEADERS.map(
    lambda header: header._replace(
        kind=PacketKind.RESULT if header.kind is PacketKind.DATA else header.kind,
        bits=0b1111 if header.bits != 1 else 1,
        sequence=header.sequence % 16,
    )
)


@settings(max_examples=150, deadline=None)
@given(visits(RESULTS), st.sampled_from([0, 1, 3]))
def test_a_worker_does_the_same_with_trains_as_with_single_packets(sent, receiver):
    setup = setup_for(clos(2, 4), workers(4), epoch=5, window=8)
    (single, singly), (train, together) = (worker(setup, 60, receiver) for _ in range(2))
    for number, (_, packets) in enumerate(sent, 1):
        for data in packets:
            single.take(data, number / 1000)
        for data, step in joined(packets):
            train.take_train(data, step, number / 1000)
        single.pump(number / 1000)
        train.pump(number / 1000)
        assert together.done == singly.done
        assert train.counters == single.counters
        assert (train.next, train.lacking()) == (single.next, single.lacking())


def test_what_was_known_of_an_epoch_is_forgotten_and_memory_is_bounded():
    alike = Alike[int]()
    header = Header(PacketKind.DATA, 7, 0, 5, 0, 1, 0)
    for job in range(3000):
        alike.remember(1, encode_header(header._replace(job=job)), job)
    assert len(alike._known) <= 1024
    data = memoryview(encode_header(header._replace(job=2999, sequence=9, control=4)))
    assert alike.first(1, data, 0, len(data)) == (2999, [(9, 0, 4)])
    assert alike.first(2, data, 0, len(data)) == (None, [])
    alike.clear()
    assert alike.first(1, data, 0, len(data)) == (None, [])


def test_a_packet_with_bits_of_others_is_refused_in_the_middle_of_a_train():
    made, port = router()
    like = Header(PacketKind.DATA, 7, 0, 5, 0, 0b0011, 64)
    wrong = like._replace(sequence=1, bits=0b1111)
    packets = [*packets_of(like, 1, 1), *packets_of(wrong, 1, 1)]
    packets += packets_of(like._replace(sequence=2), 1, 1)
    for _ in range(2):
        ((data, step),) = joined(packets)
        made.receive_train(1, data, step, 0.0)
    assert made.counters == {"added": 2, "sender": 2, "duplicate": 2}
    assert not port.done


@pytest.mark.parametrize("data_type", [DataType.INT32, DataType.INT16, DataType.FLOAT32])
@pytest.mark.parametrize("size", [16, 64])
def test_packets_that_do_not_fill_their_slots_are_added_to_their_own_values(size, data_type):
    made, port = router()
    count = size // data_type.dtype.itemsize
    for sender, bits in ((1, 0b0011), (2, 0b1100)):
        packets = []
        for sequence in range(4):
            values = np.full(count, 10 * sequence + sender, data_type.dtype)
            header = Header(PacketKind.DATA, 7, 0, 5, sequence, bits, size, data_type)
            packets.append(encode_header(header) + values.tobytes())
        ((data, step),) = joined(packets)
        made.receive_train(sender, data, step, 0.0)
    found = [np.frombuffer(data[40:], data_type.dtype).tolist() for _, _, data in port.done]
    assert found == [[20 * sequence + 3] * count for sequence in range(4)]
