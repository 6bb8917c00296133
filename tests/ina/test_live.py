"""``fared-ina`` and workers as processes in namespaces: real packets, losses, sudden ends."""

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from fared.extensions.ina.messages import Install, JobEpoch, Remove
from fared.extensions.ina.operator import OperatorError, ask, state
from fared.extensions.ina.slots.packet import DEFAULT_PORT, Header, PacketKind, encode_header
from tests.ina.live import (
    LEAVES,
    ROOT,
    ROUTERS,
    WORKER_PORT,
    gateway,
    host,
    job,
    live_fabric,
    loopback,
)
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    yield from live_fabric(tmp_path_factory.mktemp("ina"), f"ina{os.getpid()}")


@pytest.fixture
def removed(fabric):
    """Workers and jobs of a test end with it."""
    yield
    fabric.end_workers()
    for router in ROUTERS:
        for one in state(fabric.socket(router)).jobs:
            ask(fabric.socket(router), Remove(one.job_id))


pytestmark.append(pytest.mark.usefixtures("removed"))


def same(results: list[dict]) -> bool:
    assert all("digest" in result for result in results), results
    assert not any("control-sum" in result["counters"] for result in results)
    return len({result["digest"] for result in results}) == 1


def workers(fabric) -> dict[int, str]:
    """The state of each rank of the only job at the router that it joined."""
    seen = [one for leaf in LEAVES for one in state(fabric.socket(leaf)).jobs[0].workers]
    return {one.rank: one.state for one in seen if one.state != "absent"}


@pytest.mark.parametrize("kind", ["int", "float"])
def test_workers_get_the_same_right_sums(fabric, kind):
    made = job(f"sums-{kind}", 1)
    fabric.install(made)
    assert same(fabric.run(made.name, 60, calls=20, elements=100_000, kind=kind))
    seen = state(fabric.socket(LEAVES[0])).jobs[0]
    assert [worker.state for worker in seen.workers] == ["left", "left", "absent", "absent"]
    assert (seen.trees, seen.open_slots, seen.waited_for) == (1, 0, [])


def test_all_operations_and_widths_give_the_same_right_values(fabric):
    """Sums of 16 bits are as exact as they can be, and the same bits at all workers."""
    fabric.install(job("ways", 12))
    results = fabric.run("ways", 60, elements=30_000, errors=True)
    assert same(results)
    for short, long in (result["errors"] for result in results):
        assert long < 1e-6
        assert 1e-5 < short < 4e-3


@pytest.mark.soak
def test_a_thousand_calls_at_one_percent_loss_give_the_same_bits(fabric):
    fabric.install(job("loss", 3))
    fabric.lose("numgen random mod 1000 < 10 drop")
    try:
        results = fabric.run("loss", 200, calls=1000, elements=5000)
    finally:
        fabric.undisturb()
    assert same(results)
    assert sum(result["counters"]["repeated"] for result in results) > 100


def test_a_hundred_calls_with_doubled_and_late_packets_give_the_same_bits(fabric):
    fabric.install(job("late", 4))
    fabric.delay()
    try:
        assert same(fabric.run("late", 120, calls=100, elements=50_000))
    finally:
        fabric.undisturb()
    counters = state(fabric.socket(ROOT)).jobs[0].counters
    assert counters.get("duplicate", 0) + counters.get("stale", 0) > 100


def test_a_killed_worker_is_named_to_all_others(fabric):
    fabric.install(job("killed", 5))
    started = [fabric.start_worker("killed", rank, calls=10**6) for rank in range(4)]
    wait_for(lambda: all(fabric.lines("killed", rank) for rank in range(4)), 30, "all joined")
    started[2].send_signal(signal.SIGKILL)
    results = fabric.results("killed", 20, ranks=(0, 1, 3))
    assert [(r.get("error"), r.get("ranks")) for r in results] == [("WorkerLost", [2])] * 3


def test_workers_that_end_because_of_a_loss_are_not_named_themselves(fabric):
    """Rank 3 is at the router of the lost one and ends first; the job goes on telling for 0.8 s."""
    fabric.install(job("first", 90))
    started = [fabric.start_worker("first", rank, calls=10**6) for rank in range(4)]
    wait_for(lambda: all(fabric.lines("first", rank) for rank in range(4)), 30, "all joined")
    started[2].send_signal(signal.SIGKILL)
    fabric.results("first", 20, ranks=(0, 1, 3))
    for process in started:
        process.wait(20)
    assert workers(fabric) == {0: "left", 1: "left", 2: "lost", 3: "left"}


def begun_together(fabric, begin: Path, name: str, **given) -> list:
    """Start four workers that wait for one another before the first call; their processes."""
    started = [fabric.start_worker(name, rank, begin=str(begin), **given) for rank in range(4)]
    wait_for(lambda: all(fabric.lines(name, rank) for rank in range(4)), 60, "all joined")
    begin.touch()
    return started


def test_a_silent_worker_is_named_after_the_timeout(fabric, tmp_path):
    """The router beside it knows it; from the other side only its router's sum is missing."""
    fabric.install(job("silent", 6))
    begun_together(fabric, tmp_path / "begin", "silent", calls=3, silent=[1, 3], timeout=2.0)
    results = fabric.results("silent", 30, ranks=(0, 1, 2))
    assert {r.get("error") for r in results} <= {"CallTimeout", "WorkerLost"}
    first = [r for r in results if r["error"] == "CallTimeout"]
    assert first
    assert all(3 in r["ranks"] for r in first)


def test_a_partition_is_an_error(fabric, tmp_path):
    fabric.install(job("cut", 7))
    begun_together(fabric, tmp_path / "begin", "cut", calls=10**6, timeout=2.0)
    fabric.routers[ROOT].ip("link", "set", "s3", "down")
    try:
        assert {r.get("error") for r in fabric.results("cut", 30)} <= {"CallTimeout", "WorkerLost"}
    finally:
        fabric.routers[ROOT].ip("link", "set", "s3", "up")
        fabric.routers[ROOT].batch("ip", fabric.routes_behind(3))


def test_a_killed_root_that_comes_back_in_a_new_epoch_completes_the_call(fabric):
    fabric.install(job("root", 8))
    for rank in range(4):
        fabric.start_worker("root", rank, calls=300, elements=50_000)
    wait_for(lambda: all(fabric.lines("root", rank) for rank in range(4)), 30, "all joined")
    root = next(p for p in fabric.processes if p.args[4] == loopback(ROOT) and p.poll() is None)
    root.send_signal(signal.SIGKILL)
    root.wait()
    fabric.start_router(ROOT)
    fabric.install(job("root", 8, epoch=2, reason="root restarted"))
    results = fabric.results("root", 60)
    assert same(results)
    assert {result["epoch"] for result in results} == {2}


# -- without a tree -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["int", "float"])
def test_a_ring_gives_the_bits_of_a_tree(fabric, kind):
    given = {"calls": 8, "elements": 60_000, "kind": kind}
    digests = set()
    for number, ring in enumerate((False, True), 30):
        made = job(f"{kind}-{number}", number if kind == "int" else number + 10, ring=ring)
        fabric.install(made)
        results = fabric.run(made.name, 60, **given)
        assert same(results)
        digests.add(results[0]["digest"])
    assert len(digests) == 1


def test_calls_go_on_over_a_ring_and_then_over_a_tree_again(fabric, tmp_path):
    """The root is killed; the job has no tree until it starts again, in the middle of call 60."""
    release = tmp_path / "release"
    held = {"held": [60, 3], "release": str(release)}
    fabric.install(job("between", 50))
    for rank in range(4):
        fabric.start_worker("between", rank, calls=80, elements=50_000, **held)
    wait_for(lambda: all(fabric.lines("between", rank) for rank in range(4)), 30, "all joined")
    root = next(p for p in fabric.processes if p.args[4] == loopback(ROOT) and p.poll() is None)
    root.send_signal(signal.SIGKILL)
    root.wait()
    ring = job("between", 50, epoch=2, ring=True)
    for leaf in LEAVES:
        ask(fabric.socket(leaf), Install(ring, leaf))
    wait_for(
        lambda: any(sum(told.sizes) > 0 for _, told in _told(fabric, "between", 2)),
        30,
        lambda: str(_workers_of(fabric, "between")),
    )
    fabric.start_router(ROOT)
    fabric.install(job("between", 50, epoch=3))
    release.touch()
    results = fabric.results("between", 90)
    assert same(results)
    assert {result["epoch"] for result in results} == {3}


def missed(results: list[dict]) -> set[tuple[int, ...]]:
    """Whom the workers name whose timeout was the first."""
    return {tuple(result["ranks"]) for result in results if result["error"] == "CallTimeout"}


def test_a_silent_worker_is_named_in_a_ring(fabric, tmp_path):
    fabric.install(job("ring-silent", 51, ring=True))
    begun_together(fabric, tmp_path / "begin", "ring-silent", calls=3, silent=[1, 2], timeout=2.0)
    assert missed(fabric.results("ring-silent", 30, ranks=(0, 1, 3))) == {(2,)}


def test_a_frozen_worker_is_named_in_a_ring(fabric, tmp_path):
    """Its kernel still takes what others send."""
    fabric.install(job("ring-frozen", 52, ring=True))
    begin = tmp_path / "begin"
    started = begun_together(fabric, begin, "ring-frozen", calls=10**6, timeout=3.0)
    started[1].send_signal(signal.SIGSTOP)
    assert missed(fabric.results("ring-frozen", 30, ranks=(0, 2, 3))) == {(1,)}


def test_a_killed_worker_is_named_in_a_ring(fabric):
    fabric.install(job("ring-killed", 53, ring=True))
    started = [fabric.start_worker("ring-killed", rank, calls=10**6) for rank in range(4)]
    wait_for(lambda: all(fabric.lines("ring-killed", rank) for rank in range(4)), 30, "joined")
    started[2].send_signal(signal.SIGKILL)
    results = fabric.results("ring-killed", 20, ranks=(0, 1, 3))
    assert [(r.get("error"), r.get("ranks")) for r in results] == [("WorkerLost", [2])] * 3


def test_a_stranger_cannot_take_a_place_in_a_ring(fabric):
    """Only the worker before may connect; rank 0 listens, and rank 3 is the one before it."""
    fabric.install(job("ring-stranger", 54, ring=True))
    for rank in range(4):
        fabric.start_worker("ring-stranger", rank, calls=300, elements=50_000)
    wait_for(lambda: all(fabric.lines("ring-stranger", r) for r in range(4)), 30, "joined")
    with fabric.hosts[2].socket(socket.AF_INET, socket.SOCK_STREAM) as stranger:
        stranger.settimeout(10)
        stranger.connect((host(1), WORKER_PORT))
        assert stranger.recv(1) == b""
    results = fabric.results("ring-stranger", 60)
    assert same(results)
    assert results[0]["counters"]["address"] >= 1


def _workers_of(fabric, name: str):
    jobs = [one for leaf in LEAVES for one in state(fabric.socket(leaf)).jobs if one.name == name]
    return [worker for one in jobs for worker in one.workers if worker.progress is not None]


def _told(fabric, name: str, epoch: int):
    """Rank and progress of the workers that told of an epoch."""
    found = _workers_of(fabric, name)
    return [(one.rank, one.progress) for one in found if one.progress.epoch == epoch]


# -- elastic jobs -----------------------------------------------------------------------------


def over(fabric, name: str, rank: int) -> list[list[int]]:
    """The sets of ranks over which a worker got sums, as they followed each other."""
    return [line["over"] for line in fabric.lines(name, rank) if "over" in line]


def refusals(fabric) -> int:
    return state(fabric.socket(LEAVES[1])).counters.get("guest-refused", 0)


@pytest.mark.parametrize(("kind", "ring"), [("int", False), ("float", False), ("float", True)])
def test_an_elastic_job_goes_on_without_a_killed_worker_and_then_with_it(
    fabric, tmp_path, kind, ring
):
    """The test is the head: it begins an epoch without rank 2, and one in which it is back."""
    name, number = f"elastic-{kind}-{ring}", 60 + 2 * ring + (kind == "int")
    given = {"stop": str(tmp_path / "stop"), "elements": 60_000, "kind": kind}
    every = [0, 1, 2, 3]
    fabric.install(job(name, number, ring=ring, since=1))
    started = [fabric.start_worker(name, rank, **given) for rank in every]
    told = lambda: "\n".join(fabric.log(f"{name}-{rank}") for rank in every)  # noqa: E731
    wait_for(lambda: all(every in over(fabric, name, r) for r in every), 60, told)
    started[2].send_signal(signal.SIGKILL)
    wait_for(lambda: workers(fabric)[2] == "lost", 30, "the loss is seen")
    refused = refusals(fabric)
    fabric.start_worker(name, 2, **given)
    wait_for(lambda: refusals(fabric) > refused, 30, "no epoch without it has begun yet")
    fabric.install(job(name, number, epoch=2, ring=ring, since=2, lost=(3,)))
    wait_for(lambda: all([0, 1, 3] in over(fabric, name, r) for r in (0, 1, 3)), 60, told)
    wait_for(lambda: workers(fabric)[2] == "returning", 30, "it wants to come back")
    fabric.install(job(name, number, epoch=3, ring=ring, since=3))
    wait_for(lambda: all(over(fabric, name, r)[-1:] == [every] for r in every), 60, told)
    (tmp_path / "stop").touch()
    wait_for(lambda: all("ranks" in fabric.lines(name, r)[-1] for r in every), 60, told)
    last = [fabric.lines(name, rank)[-1] for rank in every]
    assert [line["sets"] for line in last] == [
        [every] if rank == 2 else [every, [0, 1, 3], every] for rank in every
    ]
    assert [(line["ranks"], line["lost"]) for line in last] == [(4, [])] * 4


def test_a_worker_that_is_taken_for_lost_is_told_so_itself(fabric, tmp_path):
    """Its connection breaks while it computes; others go on, and its place may be another's."""
    given = {"stop": str(tmp_path / "stop"), "elements": 20_000}
    fabric.install(job("suspect", 70, since=1))
    for rank in range(4):
        fabric.start_worker("suspect", rank, **given)
    wait_for(lambda: all(over(fabric, "suspect", r) for r in range(4)), 40, "calls")
    fabric.hosts[4].ip("link", "set", "eth0", "down")
    try:
        wait_for(lambda: workers(fabric)[3] == "lost", 20, "the loss is seen")
        fabric.install(job("suspect", 70, epoch=2, since=2, lost=(4,)))
        wait_for(lambda: all(len(over(fabric, "suspect", r)) > 1 for r in (0, 1, 2)), 20, "calls")
    finally:
        fabric.hosts[4].ip("link", "set", "eth0", "up")
        fabric.hosts[4].ip("route", "add", "default", "via", gateway(4))
    wait_for(lambda: "error" in fabric.lines("suspect", 3)[-1], 20, lambda: fabric.log("suspect-3"))
    line = fabric.lines("suspect", 3)[-1]
    assert (line["error"], line["ranks"]) == ("WorkerLost", [3])
    (tmp_path / "stop").touch()
    wait_for(lambda: all("ranks" in fabric.lines("suspect", r)[-1] for r in (0, 1, 2)), 30, "end")
    assert fabric.lines("suspect", 0)[-1]["lost"] == [3]


def test_a_rank_that_is_present_is_refused_to_another_process(fabric, tmp_path):
    given = {"stop": str(tmp_path / "stop"), "elements": 5000}
    fabric.install(job("present", 71, since=1))
    for rank in range(4):
        fabric.start_worker("present", rank, **given)
    wait_for(lambda: all(over(fabric, "present", r) for r in range(4)), 40, "calls")
    fabric.start_worker("present", 1, timeout=1.0)
    wait_for(lambda: any("error" in line for line in fabric.lines("present", 1)), 20, "an error")
    (line,) = (line for line in fabric.lines("present", 1) if "error" in line)
    assert (line["error"], "rank 1 of job present is present" in line["text"]) == (
        "JoinError",
        True,
    )
    (tmp_path / "stop").touch()
    wait_for(lambda: all("ranks" in fabric.lines("present", r)[-1] for r in (0, 2, 3)), 30, "end")
    assert {tuple(fabric.lines("present", r)[-1]["lost"]) for r in (0, 2, 3)} == {()}


# -- what is refused --------------------------------------------------------------------------


def test_jobs_beyond_the_limits_are_refused(fabric):
    with pytest.raises(OperatorError, match="of 67108864 are free"):
        fabric.install(job("large", 20, window=4096))
    wrong = job("wrong", 21)
    with pytest.raises(OperatorError, match="no address"):
        fabric.install(job("wrong", 21).__class__(wrong.name, wrong.setup, {}))
    for number in range(16):
        fabric.install(job(f"n{number}", 100 + number))
    with pytest.raises(OperatorError, match="16 jobs run already"):
        fabric.install(job("n16", 116))
    with pytest.raises(OperatorError, match="job n0 has the id 100"):
        ask(fabric.socket(ROOT), Install(job("n0", 101, epoch=2), ROOT))


def test_packets_of_strangers_are_counted_and_not_summed(fabric):
    """Another port of a worker's host, another host; and a worker that sends another's bit."""
    fabric.install(job("strangers", 9))
    header = Header(PacketKind.DATA, 9, 0, 1, 0, 1, 8)

    def counted() -> tuple[int, int]:
        seen = state(fabric.socket(LEAVES[0]))
        assert set(seen.jobs[0].counters) <= {"address"}
        return seen.jobs[0].counters.get("address", 0), seen.counters.get("no-job", 0)

    for bfr_id, job_id, what in ((1, 9, 0), (3, 9, 0), (1, 99, 1)):
        data = encode_header(header._replace(job=job_id)) + bytes(8)
        before = counted()[what]
        with fabric.hosts[bfr_id].socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            deadline = time.monotonic() + 20
            while counted()[what] == before:  # a datagram may be lost
                assert time.monotonic() < deadline, state(fabric.socket(LEAVES[0]))
                sock.sendto(data, (loopback(LEAVES[0]), DEFAULT_PORT))


def test_joins_that_do_not_fit_the_job_are_refused(fabric):
    fabric.install(job("joins", 10))
    fabric.start_worker("joins", 0, size=5, timeout=1.0)
    fabric.start_worker("nothing", 1, timeout=1.0)
    fabric.start_worker("joins", 3, timeout=1.0, gateway=loopback(LEAVES[0]))
    for name, rank, told in (
        ("joins", 0, "has 4 workers, not 5"),
        ("nothing", 1, "no job nothing at this router"),
    ):
        wait_for(lambda n=name, r=rank: fabric.lines(n, r), 20, "an error")
        line = fabric.lines(name, rank)[0]
        assert line["error"] == "JoinError"
        assert told in line["text"]


def test_a_rank_that_ended_cannot_begin_again(fabric):
    fabric.install(job("again", 11))
    assert same(fabric.run("again", 30))
    fabric.start_worker("again", 1, timeout=1.0)
    wait_for(lambda: len(fabric.lines("again", 1)) == 3, 20, "an error")
    assert "has ended: create it again" in fabric.lines("again", 1)[2]["text"]


def test_a_rank_that_may_have_begun_before_its_router_forgot_it_is_refused(fabric):
    """``fared-ina`` and a worker of L2 die together, in the first window; the worker starts again.

    An elastic job takes it for lost, so that it may come back in another epoch.
    """
    leaf, names = LEAVES[1], {"forgot": None, "forgot-elastic": 1}

    def made(name: str, number: int) -> JobEpoch:
        doors = {leaf: state(fabric.socket(leaf)).instance for leaf in LEAVES}
        return job(name, number, since=names[name], doors=doors)

    jobs = [made(name, number) for number, name in enumerate(names, 70)]
    for one in jobs:
        fabric.install(one)
    process = next(p for p in fabric.processes if p.args[4] == loopback(leaf) and p.poll() is None)
    process.kill()
    process.wait()
    fabric.start_router(leaf)
    for one in jobs:
        ask(fabric.socket(leaf), Install(one, leaf))
        fabric.start_worker(one.name, 2, timeout=1.0)
    for name, told in (("forgot", "may have begun before"), ("forgot-elastic", "is lost")):
        wait_for(lambda n=name: fabric.lines(n, 2), 20, lambda n=name: fabric.log(f"{n}-2"))
        assert told in fabric.lines(name, 2)[0]["text"]
    seen = {one.name: one.workers[2].state for one in state(fabric.socket(leaf)).jobs}
    assert [seen[name] for name in names] == ["absent", "lost"]
