"""The jobs of one router: which job gets which packets of a train."""

import socket
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fared.extensions.ina.inad.jobs import Jobs
from fared.extensions.ina.inad.process import InaProcess, Settings
from fared.extensions.ina.inad.results import UnicastReplication
from fared.extensions.ina.messages import Install, JobEpoch, MemberAddress
from fared.extensions.ina.slots.packet import Header, PacketKind, encode_header
from fared.extensions.ina.slots.setup import JobSetup, TreeSetup
from tests.ina.network import joined

WORKER, OTHER = ("10.0.1.2", 54201), ("10.0.2.2", 54201)


class Trains:
    """Notes the packets that go to each address."""

    def __init__(self) -> None:
        self.sent: list[tuple[tuple[str, int], bytes]] = []

    def put(self, addresses, size, *buffers) -> None:
        del size
        self.sent += [(address, b"".join(map(bytes, buffers))) for address in addresses]


@pytest.fixture
def jobs() -> tuple[Jobs, Trains]:
    """Jobs 7 and 8 of the same two workers, which this router sums."""
    trains = Trains()
    made = Jobs(1 << 20, 2, trains, UnicastReplication(trains))
    members = {
        -1: MemberAddress(*WORKER),
        -2: MemberAddress(*OTHER),
        5: MemberAddress("10.255.0.5", 54200),
    }
    for number in (7, 8):
        tree = TreeSetup(0, 5, 1, 4, {-1: 5, -2: 5})
        setup = JobSetup(number, 1, 64, 64, (1, 2), (tree,)).checked()
        made.install(Install(JobEpoch(f"job{number}", setup, members, "created"), 5))
    return made, trains


def packet(job: int, sequence: int, bits: int) -> bytes:
    values = np.full(16, job, "<i4")
    header = Header(PacketKind.DATA, job, 0, 1, sequence, bits, 64, control=16 * job)
    return encode_header(header) + values.tobytes()


def test_a_train_with_packets_of_several_jobs_is_divided_between_them(jobs):
    """A router that passes sums of two jobs to one parent sends them in one train."""
    made, trains = jobs
    order = [(7, 0), (8, 0), (8, 1), (9, 0), (7, 1)]
    for source, bits in ((WORKER, 1), (OTHER, 2)):
        packets = [packet(job, sequence, bits) for job, sequence in order]
        ((train, step),) = joined([*packets, b"short"])
        made.receive(source, train, step, 0.0)
    assert {job: run.aggregator.counters["added"] for job, run in made.all.items()} == {7: 4, 8: 4}
    assert made.counters == {"no-job": 4}
    results = Counter(data[40:44] for _, data in trains.sent)
    assert results == {b"\x0e\0\0\0": 4, b"\x10\0\0\0": 4}


def test_each_packet_of_a_train_of_strangers_is_counted(jobs):
    made, trains = jobs
    ((train, step),) = joined([packet(7, sequence, 1) for sequence in range(3)])
    made.receive(("10.0.9.2", 54201), train, step, 0.0)
    assert made.all[7].aggregator.counters == {"address": 3}
    assert not trains.sent


def test_the_least_patience_of_trees_whose_sums_follow_each_other_counts(jobs):
    made, _ = jobs
    assert made.patience() == 0
    for number, seconds in ((7, 0.0002), (8, 0.0004)):
        (tree,) = made.all[number].aggregator.trees
        for at in range(6):
            tree.pace.note(1, at * seconds, more=True)
        assert made.patience() == pytest.approx(3 * 0.0002)


def test_the_process_sleeps_as_long_as_packets_may_wait(tmp_path: Path, monkeypatch):
    process = InaProcess(
        Settings("127.0.0.1", 0, tmp_path / "ina.sock", 1 << 20, 1), time.monotonic
    )
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        process.stop()

    monkeypatch.setattr(process.jobs, "patience", lambda: 0.00075)
    monkeypatch.setattr("fared.extensions.ina.inad.process.time.sleep", sleep)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"packet", process._udp.getsockname())
        process.run()
    assert slept == [0.00075]
