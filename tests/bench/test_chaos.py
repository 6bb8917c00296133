"""Faults at random in a live fabric of all implementations: all are repaired."""

from __future__ import annotations

import math
import random
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bench import ROOT
from bench.chaos import chaos
from bench.chaos import checks as chaos_checks
from bench.chaos import faults as chaos_faults
from bench.chaos.chaos import Entry
from bench.chaos.peers import PATIENCE, Peers
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kinds.bird import Bird

SEED, FAULTS = 21, 4
MISSING = "fabric: Cannot find next hop for LSA (Type: 2001, Id: 10.255.0.5, Rt: 10.255.0.5)"
LEDGER = [
    Entry("link down", "L1 S1", 0.1, 0.4, 5, 1000),
    Entry("link down", "L2 S1", 0.3, 0.6, 15, 1000),
    Entry("kill -9", "L1 (fared)", 0.0, 60.0, 900, 9000, "kernels: no route"),
]


BGP = ROOT / "bench" / "chaos" / "bgp.clab.yml"


class DeafRecorder:
    """In place of the recorder, which needs namespaces."""

    def __init__(self, fabric: Fabric) -> None:
        """Open nothing."""

    def close(self) -> None:
        """Close nothing."""


def drawn(
    monkeypatch: pytest.MonkeyPatch, seed: int, count: int, file: Path = chaos.FABRIC
) -> list[tuple[str, str, float]]:
    monkeypatch.setattr(chaos_faults, "Recorder", DeafRecorder)
    random.seed()  # nothing but the seed counts
    faults = chaos_faults.Faults(Fabric.from_file(file), seed)
    return [(fault.kind, fault.target, fault.hold) for fault in islice(faults, count)]


def test_a_seed_draws_the_same_faults_each_time_and_another_seed_others(
    monkeypatch: pytest.MonkeyPatch,
):
    first = drawn(monkeypatch, SEED, 100)
    assert first == drawn(monkeypatch, SEED, 100)
    assert first != drawn(monkeypatch, SEED + 1, 100)


def test_every_round_has_every_kind_of_fault(monkeypatch: pytest.MonkeyPatch):
    kinds = [kind for kind, _, _ in drawn(monkeypatch, SEED, 26)]
    assert len(set(kinds)) == 13
    assert set(kinds[:13]) == set(kinds[13:]) == set(kinds)


def test_where_bgp_runs_beside_others_only_their_packets_come_again(
    monkeypatch: pytest.MonkeyPatch,
):
    """A fabric of BGP alone has no such fault; all others are of every plane."""
    faults = drawn(monkeypatch, SEED, 1300, BGP.with_name("mixed.clab.yml"))
    routers: dict[str, set[str]] = {}
    for kind, target, _ in faults:
        routers.setdefault(kind, set()).add(target[0])
    assert routers["replay"] == set("SLTM")
    assert routers["kill -9"] == set("SLTMBN")
    assert routers["foreign delete"] == set("SLTMBN")
    assert "replay" not in {kind for kind, *_ in drawn(monkeypatch, SEED, 24, BGP)}


class SlowPlane:
    """A plane whose kernels are right after some seconds of ``time``."""

    plan = SimpleNamespace(nodes={})

    def __init__(self, seconds: float) -> None:
        self.now, self._right = 0.0, seconds

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def kernels(self, _down: object, seconds: float) -> float | None:
        if self.now < self._right:
            self.now = min(self._right, self.now + seconds)
        return self.now if self.now >= self._right else None

    def problem(self, _down: object, _excused: object) -> str | None:
        return f"wrong at {self.now:g}" if self.now < self._right else None


@pytest.mark.parametrize("seconds", [2.0, 9.0, 24.0, 99.0])
def test_the_ledger_has_what_was_wrong_for_long(seconds: float, monkeypatch: pytest.MonkeyPatch):
    plane = SlowPlane(seconds)
    clock = SimpleNamespace(monotonic=lambda: plane.now, sleep=plane.sleep)
    monkeypatch.setattr(chaos, "time", clock)
    run = object.__new__(chaos.Chaos)
    run.planes = [cast("chaos_checks.Plane", plane)]
    run.peers = cast("Peers", SimpleNamespace(look=lambda _: None))
    repair = run._await_right((), chaos.DEADLINE)
    assert (repair.slow is None) == (seconds < chaos.SLOW)
    assert (repair.problem is None) == (seconds < chaos.DEADLINE)
    if repair.problem is None:
        assert repair.kernels == pytest.approx(seconds, abs=0.2)


def test_refused_hellos_are_excused_after_a_replay_only(monkeypatch: pytest.MonkeyPatch):
    now = 1000.0
    monkeypatch.setattr(chaos, "time", SimpleNamespace(monotonic=lambda: now))
    run = object.__new__(chaos.Chaos)
    excused: list[object] = []
    plane = SimpleNamespace(problem=lambda _, each: excused.append(each))
    run.planes = [cast("chaos_checks.Plane", plane)]
    run._problem(())
    run.replayed = now
    run._problem(())
    now += chaos.REFUSALS_END
    run._problem(())
    assert excused == [(), (chaos_checks.REFUSED,), ()]


class OneNode:
    """A fabric of one router with one process."""

    def __init__(self, directory: Path, kind: str, log: str, *, alive: bool = False) -> None:
        self.directory = directory
        self.kind = Bird()
        self.log = directory / "daemon.log"
        self.log.write_text(log, "utf-8")
        self.plan = SimpleNamespace(
            routers=[SimpleNamespace(name="S1", node=SimpleNamespace(kind=kind))]
        )
        self.processes = [SimpleNamespace(alive=lambda: alive)]
        self.started: list[str] = []
        self.called: list[list[str]] = []

    def node(self, _name: str) -> OneNode:
        return self

    def stop_node(self, _name: str, *, kill: bool) -> None:
        assert kill

    def start_node(self, name: str) -> None:
        self.started.append(name)

    def call(self, command: list[str]) -> None:
        self.called.append(command[3:])


@pytest.mark.parametrize(
    ("kind", "log", "again"),
    [
        ("frr", "OSPF: Received signal 11 at 1795688118 (si_addr 0x0)", True),
        ("frr", "OSPF: Terminating on signal", False),
        ("fared", "Received signal 11", False),
    ],
)
def test_only_a_peer_that_crashed_by_itself_is_started_again(
    tmp_path: Path, kind: str, log: str, again: bool
):
    fabric = OneNode(tmp_path, kind, log)
    peers = Peers(cast("Fabric", fabric))
    peers.look(0.0)
    assert fabric.started == (["S1"] if again else [])
    assert peers.done() == (" (S1 crashed)" if again else "")


@pytest.mark.parametrize(
    ("kind", "line", "wrong", "again"),
    [
        ("bird", MISSING, PATIENCE + 1, True),
        ("bird", MISSING, PATIENCE - 1, False),
        ("bird", "fabric: Bad DBDES packet", PATIENCE + 1, False),
        ("fared", MISSING, PATIENCE + 1, False),
    ],
)
def test_only_bird_that_lacks_a_next_hop_since_the_fault_computes_again_and_once(
    tmp_path: Path, kind: str, line: str, wrong: float, again: bool
):
    fabric = OneNode(tmp_path, kind, MISSING, alive=True)
    peers = Peers(cast("Fabric", fabric))
    peers.fault()
    peers.look(wrong)
    assert fabric.called == [], "what was logged before the fault"
    fabric.log.write_text(fabric.log.read_text("utf-8") + line, "utf-8")
    peers.look(wrong)
    peers.look(wrong)
    assert fabric.called == ([["reload", "fabric"]] if again else [])
    assert peers.done() == (" (S1 lacked a next hop)" if again else "")
    assert peers.done() == ""


def test_the_table_counts_faults_repairs_and_lost_packets_by_kind():
    words = [line.split() for line in chaos.table(LEDGER)]
    assert words[1][:4] == ["kill", "-9", "1", "0"]
    assert words[1][-2:] == ["900", "900"]
    assert words[2][:4] == ["link", "down", "2", "2"]
    assert words[2][4:6] == ["0.20", "s"]  # the median until kernels are right
    assert words[2][-2:] == ["20", "15"]
    assert words[3][:3] == ["all", "3", "2"]
    assert words[3][-2:] == ["920", "900"]


def test_a_fault_left_unrepaired_misses_the_goal_of_the_report_with_its_reason():
    row = chaos.rows_of(LEDGER)[0]
    assert (row["ours"], row["met"]) == (1, False)
    assert "kernels: no route" in row["note"]
    assert chaos.rows_of(LEDGER[:2])[0]["met"]


@pytest.mark.netns
@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_faults_one_after_the_other_leave_nothing_unrepaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The first ones of a seed, however long the machine takes."""
    monkeypatch.setattr(chaos, "LOGS", tmp_path)
    for patience in ("START", "DEADLINE"):  # other tests run at the same time
        monkeypatch.setattr(chaos, patience, 5 * getattr(chaos, patience))
    with chaos.running(chaos.FABRIC, tmp_path / "lab") as fabric, ExitStack() as stack:
        faults = chaos.Chaos(fabric, SEED, stack).entries(math.inf)
        ledger = list(islice(faults, FAULTS))
        problems = [(e.kind, e.target, e.problem) for e in ledger if e.problem is not None]
        if problems:
            chaos.keep(fabric, SEED, len(ledger))
    print("\n".join(chaos.table(ledger)))  # noqa: T201
    assert problems == []
    assert len(ledger) == FAULTS
    assert len({entry.kind for entry in ledger}) > 1
