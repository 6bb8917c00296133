"""The loop of ``fared-ina``: what is wrong with one job, or one connection, ends that alone."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from fared.extensions.ina.inad.jobs import RunningJob
from fared.extensions.ina.inad.process import InaProcess, Settings
from fared.extensions.ina.messages import (
    Done,
    Install,
    JobEpoch,
    Join,
    MemberAddress,
    Remove,
    RequestRefused,
)
from fared.runtime.connection import LineConnection
from tests.ina.absurd import ABSURD, NODE, plain, right

HERE, WORKER = "127.0.0.2", ("127.0.0.9", 54201)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[InaProcess]:
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        port = probe.getsockname()[1]
    made = InaProcess(Settings(HERE, port, tmp_path / "ina.sock", 1 << 20, 16), time.monotonic)
    yield made
    made.close()


def asked(process: InaProcess, request: object) -> object:
    """The answer to a request over the unix socket."""
    near, far = socket.socketpair()
    with near, far:
        return process._answered(msgspec.json.encode(request), LineConnection(near, 1 << 16))


@pytest.mark.parametrize("change", ABSURD.values(), ids=ABSURD)
def test_an_absurd_job_is_refused_and_the_process_goes_on(process, change):
    job = plain(right().job, change)
    answer = asked(process, {"type": "install", "job": job, "node": NODE})
    assert isinstance(answer, RequestRefused)
    assert asked(process, Install(right().job, NODE)) == Done()
    assert [job.name for job in process.state().jobs] == ["job"]


@pytest.mark.parametrize("where", ["receive_train", "open_slots"])
def test_an_exception_of_one_job_ends_that_job_alone(process, where, monkeypatch):
    for number, name in ((7, "good"), (8, "bad")):
        asked(process, Install(right(number, name).job, NODE))
    monkeypatch.setattr(process.jobs.all[8].aggregator, where, raises)
    packet = bytes(7) + b"\x08" + bytes(32)
    process.jobs.receive(("10.0.1.2", 54201), memoryview(packet), len(packet), 0.0)
    assert [job.name for job in process.state().jobs] == ["good"]
    assert process.counters["internal-error"] == 1


def test_a_job_that_cannot_begin_is_refused(process, monkeypatch):
    monkeypatch.setattr(RunningJob, "install", raises)
    assert isinstance(asked(process, Install(right().job, NODE)), RequestRefused)
    assert not process.state().jobs


def raises(*_: object) -> None:
    raise OverflowError


# -- who may join ------------------------------------------------------------------------------


def local_job() -> JobEpoch:
    """A job whose workers are on this host, which is reached from 127.0.0.1."""
    members = {-1: MemberAddress(*WORKER), -2: MemberAddress("127.0.0.10", 54201)}
    return replace(right().job, members=members | {NODE: MemberAddress(HERE, 54200)})


def connected(process: InaProcess, source: str, to: str = HERE) -> socket.socket:
    found = socket.create_connection((to, process.settings.port), source_address=(source, 0))
    process._turn()
    return found


def test_workers_join_at_the_address_of_the_router_and_at_that_of_their_link(process):
    assert process._listeners.addresses == {HERE}
    process.jobs.install(Install(local_job(), NODE))
    process._follow()
    assert process._listeners.addresses == {HERE, "127.0.0.1"}
    asked(process, Remove(7))
    assert process._listeners.addresses == {HERE}


@pytest.mark.parametrize("source", ["127.0.0.66", WORKER[0]], ids=["strangers", "its own host"])
def test_connections_that_say_nothing_keep_no_worker_out(process, source):
    process.jobs.install(Install(local_job(), NODE))
    process._follow()
    silent = [connected(process, source) for _ in range(100)]
    worker = connected(process, WORKER[0])
    worker.sendall(msgspec.json.encode(Join("job", 0, 2)) + b"\n")
    process._turn()
    process._turn()
    assert worker.recv(1 << 16).startswith(b'{"type":"epoch"')
    assert len(process.guests.all) <= 65
    for sock in (*silent, worker):
        sock.close()
