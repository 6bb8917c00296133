"""Weights that follow load, for minutes, in real kernels: what they gain, and that they hold still.

4 spines and 8 leaves with links of 10 Mbit/s, so that the machine is not the bottleneck.

- steady: half of what spine S1's links can carry is taken by load that only leads through S1;
  every host sends 56 % of what its leaf's uplinks can carry to the next, in 1024 paced UDP
  flows. By capacity a link of S1 is offered 1.06 of its rate, by available capacity 0.82
  (fluid); undamped the loop gain is 1.8 and the weights must swing.
- on/off: all-reduce rings over TCP in half of each period of 0.5, 2 and 20 s, with the same load
  through S1.

``python bench/adaptive_kernel.py [SECONDS [RUN...]]``: how long to watch each run after it has
settled, 300 s if not given, and which runs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from fared.lab.fabric import Fabric
    from fared.lab.recorder import Behaviour, Moment
    from fared.lab.steady import Stream

RESULTS = ROOT / "build" / "bench"
STEADY_RATE = 10e6 / 8
TCP_RATE = 40e6 / 8
FILLED = 0.4
"""What part of what the uplinks can carry a ring is sized to fill while it is on."""
ELEPHANTS = 8
ON_LOAD = 0.75
"""What part of what the uplinks can carry the flows of an on/off ring are while it is on."""
PAYLOAD = 2700
MTU = 3000
FLOWS = 1024
"""Each sends one packet a second: a window of a second sees every flow once."""
BACKGROUND = 0.5
SPINE = "S1"
ON_OFF_RUNS = {f"on/off {period:g} s": period for period in (0.5, 2.0, 20.0)}
TCP_RUNS = {f"TCP on/off {period:g} s": period for period in (0.5, 2.0, 20.0)}
AVAILABLE = {"metric": "available"}
SETTINGS: dict[str, dict[str, Any]] = {
    "capacity": {"metric": "capacity"},
    "available": AVAILABLE,
    "undamped": AVAILABLE | {"time-constant": "0s"},
}
LONG, LONG_SETTLING = 300.0, 100.0
SHORT, SHORT_SETTLING = 20.0, 40.0
READY = 120.0
MOST_DEVIATION = 3.0
MOST_SWING = 10.0
MOST_REWRITES = 0.2
MOST_BURST = 5


def ring(fabric: Fabric) -> Iterator[tuple[str, str, str]]:
    """Each host, the next one, and the leaf of the next one."""
    hosts = [node.name for node in fabric.plan.hosts]
    for source, target in zip(hosts, [*hosts[1:], hosts[0]], strict=True):
        yield source, target, fabric.plan.leaf_of(target)[0].name


def background(fabric: Fabric, rate: float) -> list[Stream]:
    """Half the rate, bytes/s, of all links of one spine, both ways."""
    from fared.lab.steady import through

    return [
        replace(through(fabric, source, SPINE, leaf, BACKGROUND * rate), payload=PAYLOAD)
        for source, _, leaf in ring(fabric)
    ]


def demand(fabric: Fabric, period: float | None) -> list[Stream]:
    """From every host to the next: steady, each flow once a second, or in half of each period."""
    from fared.lab.steady import OVERHEAD, between_hosts

    rate = FLOWS * (PAYLOAD + OVERHEAD) if period is None else ON_LOAD * 4 * STEADY_RATE
    return [
        replace(between_hosts(fabric, source, target, rate, FLOWS), payload=PAYLOAD, period=period)
        for source, target, _ in ring(fabric)
    ]


def fluid() -> dict[str, float]:
    """The most a link is offered if load were fluid, as a part of its rate."""
    from fared.lab.steady import OVERHEAD

    spines = 4
    each = FLOWS * (PAYLOAD + OVERHEAD) / (spines * STEADY_RATE)
    left = 1 - BACKGROUND
    return {
        "capacity": each + BACKGROUND,
        "available": BACKGROUND + each * spines * left / (spines - BACKGROUND),
    }


def watch(name: str, settling: float, seconds: float) -> Behaviour:
    """Run one of ``runs()`` in a fabric of its own; return how it behaves after settling."""
    from bench.labs import clos, configure
    from fared.lab.fabric import Fabric
    from fared.lab.jobs import Job
    from fared.lab.recorder import Recorder, behaviour
    from fared.lab.steady import OVERHEAD, steady
    from fared.lab.waiting import await_paths
    from fared.lab.workload import run

    tcp, period = name in TCP_RUNS, {**ON_OFF_RUNS, **TCP_RUNS}.get(name)
    rate = TCP_RATE if tcp else STEADY_RATE
    with Fabric.from_topology(clos(f"{rate * 8:.0f}", MTU)) as fabric, ExitStack() as stack:
        if await_paths(fabric, READY) is None:
            raise SystemExit(f"{name}: not every router has all paths")
        configure(fabric, SETTINGS.get(name, AVAILABLE))
        streams = background(fabric, rate)
        if not tcp:
            streams += demand(fabric, period)
        stack.enter_context(steady(fabric, streams))
        stack.enter_context(recorder := Recorder(fabric, packet=PAYLOAD + OVERHEAD))
        if tcp and period is not None:
            hosts = tuple(node.name for node in fabric.plan.hosts)
            job = Job(
                "all-reduce-ring",
                hosts,
                message(period),
                ELEPHANTS,
                iterations=None,
                seconds=settling + seconds,
                period=period,
            )
            report = run(fabric, [job], timeout=settling + seconds + 120.0).jobs[0]
            print(f"{name}: {len(report.iterations)} iterations, {report.median:.3g} s")
        else:
            time.sleep(settling + seconds)
    track = [plain(moment) for moment in recorder.moments]
    (RESULTS / f"{slug(name)}-moments.json").write_text(json.dumps(track), "utf-8")
    return behaviour([moment for moment in recorder.moments if moment.at >= settling])


def slug(name: str) -> str:
    """The name of a run as that of a file."""
    return "adaptive-" + name.replace("/", "-").replace(" ", "-")


def plain(moment: Moment) -> dict[str, Any]:
    """A reading as JSON takes it."""
    return {
        "at": moment.at,
        "shares": {" ".join(key): round(share, 5) for key, share in moment.shares.items()},
        "offered": {" ".join(key): round(part, 5) for key, part in moment.offered.items()},
        "rewrites": moment.rewrites,
        "sequences": {" ".join(key): number for key, number in moment.sequences.items()},
    }


def message(period: float) -> int:
    """A message whose all-reduce takes half a period at most: 2 * 7/8 of it leave every host."""
    return round(period / 2 * FILLED * 4 * TCP_RATE / (2 * 7 / 8) / 8) * 8


def runs() -> list[str]:
    """All there are."""
    return [*SETTINGS, *ON_OFF_RUNS, *TCP_RUNS]


def play(names: list[str], settling: float, seconds: float) -> dict[str, Behaviour]:
    """Run each in a sandbox of its own, one after the other."""
    from fared.lab import sandbox
    from fared.lab.recorder import Behaviour

    found = {}
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in names:
        results = RESULTS / f"{slug(name)}.json"

        def one(name: str = name, results: Path = results) -> int:
            behaved = watch(name, settling, seconds)
            print(f"{name}: {behaved}", file=sys.stderr, flush=True)
            results.write_text(json.dumps(asdict(behaved)), "utf-8")
            return 0

        if sandbox.run(one) == 0:
            found[name] = Behaviour(**json.loads(results.read_text("utf-8")))
    return found


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else LONG
    names = sys.argv[2:] or runs()
    settling = LONG_SETTLING if seconds >= LONG else SHORT_SETTLING
    for name, found in play(names, settling, seconds).items():
        print(name, found)
