"""One daemon in a fabric of 64 spines and 512 leaves: joining it, a lost link, changed bandwidths.

The daemon under test, fared or FRR, is leaf 0 in a network namespace, on one core; one process on
another core emulates all of its spines (``neighbors``), which offer the whole database, each
of them, and flood every announcement over every link. So everything is as in a fabric of that size,
except that the other routers cost nothing here.

Measured: *joined*, from the first hello of the neighbors until all adjacencies are full, the
database is loaded and the kernel has every route over every path; a distant link lost: time to the
last route in the kernel, and CPU; then, for each rate of changed available bandwidths: CPU, which
part of the LSAs was acknowledged within a second (of each to each neighbor; a later instance counts
for those before it), adjacencies lost, the longest time between hellos, how long the loop was held
(fared), memory.

``python -m bench scale --daemon fared --fabric 64x512 --te --rate 200 --seconds 20`` runs one row,
``--protocol isis`` the same over IS-IS; ``--profile FILE`` writes a profile (pstats) of the rates,
or of ``--phase join|lost``; ``--table`` runs all cases, as ``make bench`` does, and records what
README.md and docs/scale.md show (``scale_pages``).
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bench.lab.sandboxed import measured, possible
from bench.neighbors.fabric import Fabric
from bench.scale.device import SCRIPT_CORE, Scaled
from bench.scale.pages import begin, record
from bench.scale.report import rows_of, table

PATIENCE = 60.0
"""Seconds to join."""
_ROUTES_SEEN = 0.5
_SPACING = 2.2
"""Longer than the hold-down of the SPF back-off (RFC 8405): at most two seconds here."""
_REACTION = 30.0
_QUIET = 0.5
_READERS_BEGIN = 5.0
"""Seconds in which the HTTP server and all views are loaded."""
_CATCH_UP = 20.0
"""Seconds in which all of a rate is to be acknowledged."""
Json = dict[str, Any]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What to run."""

    daemon: str = "fared"
    protocol: str = "ospf"
    spines: int = 64
    leaves: int = 512
    te: bool = False
    rates: tuple[float, ...] = ()
    seconds: float = 10.0
    events: int = 3
    hello: int = 1
    pace: float = 0.01
    spread: float = 0.001
    metric: str = "available"
    patience: float = PATIENCE
    profile: str | None = None
    phase: str = ""
    read: float = 0.0
    """Rate at which a client reads meanwhile; 0: none does."""


CASES = (
    Case(),
    Case(spines=256, leaves=256, patience=240),
    Case(te=True, rates=(50, 200, 1000, 4000, 4000), patience=120, read=1000),
    Case(spines=16, leaves=64, te=True, rates=(50, 200, 1000)),
    Case(protocol="isis", patience=120),
    Case(protocol="isis", spines=256, leaves=256, patience=240),
    Case(protocol="isis", te=True, rates=(20, 100, 500, 1000), patience=120),
    Case(protocol="isis", spines=16, leaves=64, te=True, rates=(20, 100, 500)),
)
"""What ``make bench`` and ``--table`` run, with fared and with FRR: a quarter of an hour.

The last result of a rate counts: memory must not grow when an overload comes again.
"""


class Run:
    """One daemon, through all phases of a case."""

    def __init__(self, case: Case, directory: Path) -> None:
        self.case = case
        fabric = Fabric(case.spines, case.leaves, te=case.te)
        profile = Path(case.profile).absolute() if case.profile else None
        self.device = Scaled(
            case.daemon,
            case.protocol,
            fabric,
            directory,
            hello=case.hello,
            spread=case.spread,
            metric=case.metric,
            profile=profile,
        )
        self.script = self.device.script
        self.kernel = self.device.kernel
        self.found: Json = {"case": msgspec.to_builtins(case)}

    def run(self) -> Json:
        """Run all phases; return what was measured."""
        gc.collect()
        gc.freeze()
        gc.disable()
        os.sched_setaffinity(0, {SCRIPT_CORE} & os.sched_getaffinity(0) or {0})
        with self._phase("join"):
            self.join()
        if not self.found["joined"]:
            return self.found
        self._idle()
        if self.case.events:
            with self._phase("lost"):
                self.found["lost"] = self.lose()
        self.found["rates"] = {}
        for rate in self.case.rates:
            with self._phase("rate"):
                self.found["rates"][f"{rate:g}"] = measured = self.announce(rate)
            print(f"{self.case.daemon} {rate:g}/s: {_shown(measured)}", flush=True)
        if self.case.read and self.case.daemon == "fared":
            self.found["read"] = {
                "without": self.announce(self.case.read),
                "with": self.read(self.case.read),
            }
            print(f"read: {_shown(self.found['read']['with'])}", flush=True)
        return self.found

    def read(self, rate: float) -> Json:
        """Announce, while a client scrapes and reads large documents without a pause."""
        here = self.device.directory
        script = str(Path(__file__).with_name("reader.py"))
        command = [sys.executable, script, str(here / "fared.sock"), "9547"]
        reader = self.device.inside.start(command, here / "reader.log")
        try:
            self.device.serve(_READERS_BEGIN)
            measured = self.announce(rate)
            if reader.poll() is not None:
                raise RuntimeError((here / "reader.log").read_text())
            return measured
        finally:
            reader.terminate()
            reader.wait()

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Profile a phase, if it is the one."""
        wanted = self.case.phase or ("rate" if self.case.rates else "join")
        if name == "join" and name == wanted and self.case.profile:
            self.device.start()
            self.device.profiled(on=True)
        elif name == wanted:
            self.device.profiled(on=True)
        yield
        if name == wanted:
            self.device.profiled(on=False)
            self.device.serve(1.0)

    # Joining

    def join(self) -> None:
        """Start the daemon; bring up all adjacencies at once."""
        device, script = self.device, self.script
        script.offer()
        if not device.processes:
            device.start()
        neighbors = script.neighbors
        if not device.serve(30.0, lambda: all(each.heard_at for each in neighbors)):
            raise RuntimeError(f"no hello on each link: {device.diagnosis()}")
        device.serve(0.5)
        began, cpu, core = time.monotonic(), device.cpu(), device.core()
        script.reset()
        full = loaded = routes = 0.0

        def complete() -> bool:
            nonlocal full, loaded, routes
            now = time.monotonic()
            full = (full or now) if script.links == len(neighbors) else 0.0
            if not script.missing:
                loaded = loaded or now
            if full and loaded and (not routes or now < self.kernel.changed_at + _ROUTES_SEEN):
                routes = self.kernel.changed_at if self._every_route() else 0.0
            return bool(routes) and now > self.kernel.changed_at + _ROUTES_SEEN

        for neighbor in neighbors:
            neighbor.silent = False
            neighbor.hello()
        joined = device.serve(self.case.patience, complete)
        self.found["joined"] = max(full, loaded, routes) - began if joined else None
        self.found["join"] = {
            "full": full - began if full else None,
            "loaded": loaded - began if loaded else None,
            "routes": routes - began if routes else None,
            "cpu": device.cpu() - cpu,
            "others": device.core() - core - (device.cpu() - cpu),
            "links": script.links,
            "missing": len(script.missing),
            "lost": script.lost,
            "lapse": script.lapse,
            "turn": device.late,
            "packets": script.received,
            "memory": device.resident(),
        }
        print(f"{self.case.daemon}: joined {self.found['joined']} {_shown(self.found['join'])}")
        sys.stdout.flush()

    def _every_route(self) -> bool:
        """Whether the kernel has all routes, those to leaves over all spines."""
        fabric, width = self.device.fabric, self.kernel.width
        paths = self._installed(fabric.spines)
        return all(
            width(fabric.leaf(leaf), 32) == paths and width(fabric.host_network(leaf), 24) == paths
            for leaf in range(1, fabric.leaves)
        ) and all(width(fabric.spine(spine), 32) == 1 for spine in range(fabric.spines))

    def _idle(self) -> None:
        """Wait until the daemon is idle; note what it costs then."""
        device = self.device
        for _ in range(60):
            before = device.cpu()
            device.serve(1.0)
            self.found["idle"] = device.cpu() - before
            if self.found["idle"] < 0.1:
                break
        self.found["memory"] = device.resident()

    # A lost link

    def lose(self) -> Json:
        """Cut distant links, one after another, and restore them."""
        times, costs = [], []
        fabric, contents = self.device.fabric, self.device.contents
        for event in range(self.case.events):
            link = self._link(event)
            took, cpu = self._event(contents.cut(link))
            self._check(link[1], fabric.spines - 1)
            times.append(took * 1e3)
            costs.append(cpu * 1e3)
            self.device.serve(_SPACING)
            self._event(contents.restore(link))
            self._check(link[1], fabric.spines)
            before, began = self.device.cpu(), time.monotonic()
            self.device.serve(_SPACING)
            self.found["idle"] = (self.device.cpu() - before) / (time.monotonic() - began)
        found = {"last": statistics.median(times), "cpu": statistics.median(costs), "all": times}
        print(f"{self.case.daemon}: link lost {_shown(found)}", flush=True)
        return found

    def _link(self, event: int) -> tuple[int, int]:
        """The spine and leaf of a distant link that routes use (``_installed``)."""
        leaf = 1 + event * 37 % (self.device.fabric.leaves - 1)
        used = sorted(int(name[1:]) for name in self.device.width(leaf))
        return used[1 + event * 5 % (len(used) - 1)], leaf

    def _event(self, lsas: list[bytes]) -> tuple[float, float]:
        """Send LSAs from all neighbors; return the seconds to the last route, and of CPU."""
        device, kernel = self.device, self.kernel
        kernel.read()
        before, cpu = kernel.changes, device.cpu()
        began = time.monotonic()
        self.script.announce(lsas, began)
        device.serve(
            _REACTION,
            lambda: kernel.changes > before and time.monotonic() > kernel.changed_at + _QUIET,
        )
        if kernel.changes == before:
            raise RuntimeError(f"no reaction to a changed link: {device.diagnosis()}")
        idle = self.found["idle"] * (time.monotonic() - began)
        return kernel.changed_at - began, device.cpu() - cpu - idle

    def _installed(self, paths: int) -> int:
        """How many of equal paths the daemon installs: FRR 64 at most."""
        return min(paths, 64) if self.case.daemon == "frr" else paths

    def _check(self, leaf: int, paths: int) -> None:
        """Check that the kernel has this many paths to a leaf. Raises RuntimeError."""
        found = self.kernel.width(self.device.fabric.host_network(leaf), 24)
        if found != self._installed(paths):
            raise RuntimeError(f"{found} paths to leaf {leaf} instead of {paths}")

    # Changed bandwidths

    def announce(self, rate: float) -> Json:
        """Announce changed bandwidths, so many a second."""
        device, script = self.device, self.script
        device.serve(1.0)
        script.reset()
        device.late = 0.0
        if device.lag is not None:
            device.lag.longest = 0.0
        memory = device.resident()
        began, cpu, own = time.monotonic(), device.cpu(), time.process_time()
        core = device.core()
        announcer = Announcer(device, rate, self.case)
        device.announcer = announcer.turn
        device.serve(self.case.seconds)
        device.announcer = None
        used, taken = device.cpu() - cpu, time.monotonic() - began
        others = device.core() - core - used
        scripted = time.process_time() - own
        device.serve(1.1)
        in_time = script.in_time
        ended = time.monotonic()
        device.serve(_CATCH_UP, lambda: not script.sent)
        return {
            "announced": announcer.done / taken,
            "cpu": 100 * used / taken,
            "others": 100 * others / taken,
            "acknowledged": 100 * in_time / max(1, script.copies),
            "copies": script.copies / max(1, announcer.done),
            "lag": device.lag.longest * 1e3 if device.lag else None,
            "lost": script.lost,
            "lapse": script.lapse,
            "memory": device.resident(),
            "growth": device.resident() - memory,
            "script": 100 * scripted / taken,
            "turn": device.late * 1e3,
            "retransmitted": script.retransmitted,
            "packets": script.received / taken,
            "behind": time.monotonic() - ended,
            "open": len(script.sent),
        }


class Announcer:
    """Announces changed bandwidths at a steady rate, in one update for all that are due."""

    def __init__(self, device: Scaled, rate: float, case: Case) -> None:
        self.done = 0
        self._device, self._rate, self._pace = device, rate, case.pace
        self._count = round(rate * case.seconds)
        self._began = self._due = time.monotonic()

    def turn(self, now: float) -> float:
        """Announce what is due; return when to be called again."""
        if now >= self._due:
            wanted = min(self._count, int((now - self._began) * self._rate) + 1)
            lsas = [self._device.contents.announcement() for _ in range(wanted - self.done)]
            if lsas:
                self._device.script.announce(lsas, now)
            self.done = wanted
            self._due = max(now + self._pace, self._began + wanted / self._rate)
        return self._due


def _shown(found: Json) -> str:
    def one(value: object) -> str:
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    return ", ".join(f"{name} {one(value)}" for name, value in found.items())


def measure(cases: Sequence[Case]) -> list[Json]:
    """Run cases one after another, each in a sandbox of its own; those that fail are left out."""
    found = [measured("scale", partial(_one, case)) for case in cases]
    return [one for one in found if one is not None]


def _one(case: Case) -> Json:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o777)
        run = Run(case, Path(directory))
        try:
            return run.run()
        finally:
            run.device.stop()


def both(cases: Sequence[Case]) -> list[Case]:
    """Each case with fared, and with FRR if it is installed."""
    daemons = ("fared", "frr") if shutil.which("/usr/lib/frr/zebra") else ("fared",)
    return [msgspec.structs.replace(case, daemon=daemon) for case in cases for daemon in daemons]


def rows() -> list[Json]:
    """The report's rows; none if no sandbox can be made."""
    return rows_of(measure(both(CASES))) if possible() else []


def main() -> int:
    """Run what the arguments select."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--daemon", default="fared,frr", help="fared, frr or both")
    parser.add_argument("--protocol", default="ospf", choices=("ospf", "isis"))
    parser.add_argument("--fabric", default="64x512", help="spines x leaves")
    parser.add_argument("--spines", type=int)
    parser.add_argument("--leaves", type=int)
    parser.add_argument("--te", action="store_true", help="with a TE LSA for each link end")
    parser.add_argument("--rate", default="", help="changed bandwidths a second: 50,200")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each rate")
    parser.add_argument("--events", type=int, default=3, help="lost links")
    parser.add_argument("--hello", type=int, default=1, help="hello interval; dead: four times")
    parser.add_argument("--pace", type=float, default=0.01, help="seconds between updates")
    parser.add_argument("--spread", type=float, default=0.001, help="first to last copy, seconds")
    parser.add_argument("--metric", default="available", choices=("available", "capacity", "off"))
    parser.add_argument("--profile", help="file for the profile of fared")
    parser.add_argument("--phase", default="", choices=("", "join", "lost", "rate"))
    parser.add_argument("--read", type=float, default=0.0, help="rate while a client reads")
    parser.add_argument("--table", action="store_true", help="all cases, and record them")
    given = parser.parse_args()
    spines, leaves = map(int, given.fabric.split("x"))
    rates = tuple(float(rate) for rate in given.rate.split(",") if rate)
    cases = [
        Case(
            daemon=daemon,
            protocol=given.protocol,
            spines=given.spines or spines,
            leaves=given.leaves or leaves,
            te=given.te or bool(rates),
            rates=rates,
            seconds=given.seconds,
            events=given.events,
            hello=given.hello,
            spread=given.spread,
            pace=given.pace,
            metric=given.metric,
            profile=given.profile,
            phase=given.phase,
            read=given.read,
        )
        for daemon in given.daemon.split(",")
    ]
    if given.table:
        cases = [case for case in both(CASES) if case.daemon in given.daemon.split(",")]
    began = begin()
    found = measure(cases)
    print("\n".join(table(found)))
    if given.table and {case.daemon for case in cases} == {"fared", "frr"}:
        record(began, found)
    return 0 if len(found) == len(cases) else 1
