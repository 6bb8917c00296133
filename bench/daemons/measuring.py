"""CPU cost of measuring the load of 64 links, every second and ten times a second.

Two routers are connected by 64 veth links with an OSPF adjacency on each; weights follow load. A
generator varies the loads of all links within the announce threshold, so that every measurement
takes all steps: counters, loads, available capacity, decision to advertise. CPU time is that of the
scheduler (/proc/PID/task/*/schedstat), for the whole daemon with its hellos on 64 links. The cost
of measuring is the difference to the same daemon with one measurement per hour, the median of
several rounds. On a busy machine noise exceeds that difference, so the cost of one measurement is
also taken from a hundred per second, and the larger of both figures counts. In the last rows the
loads of eight links cross the threshold: the daemon originates LSAs and floods them to the
neighbor over each of the 64 links.

``python -m bench measuring [ROUNDS]``
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from bench import OUTPUT
from bench.lab.fabrics import await_views
from bench.lab.sandboxed import possible, required
from bench.report import show
from fared.extensions.lab.namespaces import Netns
from fared.management.api.client import ControlClient, DaemonRefusedError, DaemonUnreachableError

LINKS = 64
CAPACITY = "10M"
OFF, SLOW, FAST, FASTEST = "1h", "1s", "100ms", "10ms"
GOALS = {SLOW: 1.0, FAST: 5.0}
ROUNDS = 2
RATES = {OFF: 0.0, SLOW: 1.0, FAST: 10.0, FASTEST: 100.0}
"""Samples per second. A daemon short of CPU measures less often: its cost is scaled to these."""
WINDOW = 5.0
"""Seconds of a measurement. Every five seconds a daemon reads the speed of all links: a window has
that once, whenever it begins."""
SETTLE = 0.5
READY = 120.0
HELLOS = {"hello-interval": 1, "dead-interval": 40}
"""Long enough that adjacencies survive other load on the machine."""
TICK = 0.05
QUIET, LOUD = (200, 900), (1000, 30_000)
"""Bytes per tick and link: 0.3 to 1.4 %, and 1.6 to 48 % of the capacity."""
ANNOUNCING = 8
_TICKS = 5
"""Number of ticks for which the load of a link is constant."""
_FRAME = 1400
_ETHERTYPE = 0x88B5
"""Local experimental EtherType (IEEE 802): the far end does not answer."""

Json = dict[str, Any]


class Router:
    """One daemon at one end of all links."""

    def __init__(self, number: int, directory: Path) -> None:
        self.number = number
        self.directory = directory
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        self.netns = Netns.create(f"measuring{os.getpid()}x{number}")
        self.log = directory / "fared.log"
        self.process: subprocess.Popen[bytes] | None = None

    def configure(self, period: str) -> None:
        """Write the configuration; a running daemon reloads it."""
        config = {
            "router-id": f"10.255.7.{self.number}",
            "state-directory": str(self.directory),
            "interfaces": {"m*": {"bandwidth": CAPACITY}},
            "ospf": {"areas": {0: {"interfaces": {"lo": {"passive": True}, "m*": HELLOS}}}},
            "adaptive": {
                "metric": "available",
                "measure-period": period,
                "announce-threshold": "30%" if period == FASTEST else "3%",
            },
            "api": {"socket": str(self.directory / "fared.sock"), "http": "off"},
            "log": {"level": "info", "format": "json"},
        }
        (self.directory / "fared.yaml").write_text(yaml.safe_dump(config))
        if self.process is not None:
            self.request("reload")

    def start(self) -> None:
        """Start the daemon."""
        program = Path(sys.executable).parent / "fared"
        with self.netns.entered(), self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [program, "-c", self.directory / "fared.yaml"], stdout=log, stderr=log
            )

    def request(self, command: str, what: str | None = None) -> Json:
        """Request one document from the daemon."""
        return ControlClient(str(self.directory / "fared.sock"), READY).request(command, what, {})

    def show(self, what: str) -> Json:
        """Return one document of ``show``."""
        return self.request("show", what)

    def await_neighbors(self) -> None:
        """Wait until there is a full neighbor on every link. Raises TimeoutError."""
        deadline = time.monotonic() + READY
        while time.monotonic() < deadline and self.process and self.process.poll() is None:
            with contextlib.suppress(DaemonRefusedError, DaemonUnreachableError, OSError):
                found = self.show("neighbors")["neighbors"]
                if sum(neighbor["state"] == "Full" for neighbor in found) == LINKS:
                    return
            time.sleep(0.2)
        raise TimeoutError(self.log.read_text())

    def seconds(self) -> float:
        """CPU time of all threads so far."""
        assert self.process is not None
        tasks = Path(f"/proc/{self.process.pid}/task")
        return sum(int((t / "schedstat").read_text().split()[0]) for t in tasks.iterdir()) / 1e9

    def lsas(self) -> int:
        """LSAs originated so far."""
        rows = self.show("counters")["counters"]
        return sum(r["value"] for r in rows if (r["group"], r["name"]) == ("lsas", "originated"))

    def samples(self) -> int:
        """Measurements so far."""
        rows = self.show("counters")["counters"]
        return sum(r["value"] for r in rows if (r["group"], r["name"]) == ("load-samples", "ok"))

    def close(self) -> None:
        """Stop the daemon and remove the namespace."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.netns.delete()


def join(left: Router, right: Router) -> None:
    """Create the links, with distinct interface indexes: else carrier loss is reported late."""
    far = right.netns.name
    left.netns.batch(
        "ip",
        [
            f"link add m{n} index {10 + n} type veth peer name m{n} index {110 + n} netns {far}"
            for n in range(LINKS)
        ],
    )
    for router in (left, right):
        lines = [f"addr add 10.255.7.{router.number}/32 dev lo"]
        for n in range(LINKS):
            lines += [f"addr add 10.7.{n}.{router.number - 1}/31 dev m{n}", f"link set m{n} up"]
        router.netns.batch("ip", lines)


@contextlib.contextmanager
def traffic(router: Router, loud: int = 0) -> Iterator[None]:
    """Send over all links, at a high rate over ``loud`` of them, in a separate process."""
    with router.netns.entered():
        sockets = [socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM) for _ in range(LINKS)]
    child = os.fork()
    if child == 0:
        _send(sockets, [LOUD] * loud + [QUIET] * (LINKS - loud))
    for sender in sockets:
        sender.close()
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _send(sockets: list[socket.socket], octets: list[tuple[int, int]]) -> None:
    """Send until the process is killed."""
    dice, due, levels = random.Random(1), time.monotonic(), [0] * LINKS
    for tick in range(100_000):
        if tick % _TICKS == 0:
            levels = [dice.randint(*bounds) for bounds in octets]
        for number, sender in enumerate(sockets):
            where = (f"m{number}", _ETHERTYPE, 0, 0, b"\x02\0\0\0\0\x01")
            frames = -(-levels[number] // _FRAME)
            for _ in range(frames):
                with contextlib.suppress(OSError):
                    sender.sendto(bytes(levels[number] // frames), where)
        due += TICK
        time.sleep(max(0.0, due - time.monotonic()))
    os._exit(0)


def percent(router: Router, period: str) -> Json:
    """CPU use of the daemon while it measures every ``period``, percent of a core."""
    router.configure(period)
    time.sleep(SETTLE)
    samples, lsas = router.samples(), router.lsas()
    begun, used = time.monotonic(), router.seconds()
    time.sleep(WINDOW)
    seconds, cpu = time.monotonic() - begun, router.seconds() - used
    rate = (router.samples() - samples) / seconds
    return {
        "percent": 100 * cpu / seconds,
        "samples": rate,
        "late": max(1.0, RATES[period] / rate) if rate else 1.0,
        "lsas": (router.lsas() - lsas) / seconds,
    }


def measure(directory: Path, rounds: int = ROUNDS) -> dict[str, list[Json]]:
    """Take all measurements; return by name one result per round."""
    found: dict[str, list[Json]] = {}
    routers: list[Router] = []
    try:
        routers += [Router(1, directory / "a"), Router(2, directory / "b")]
        join(*routers)
        for router in routers:
            router.configure(OFF)
            router.start()
        left = routers[0]
        left.await_neighbors()
        await_views({router.log for router in routers})
        with traffic(left):
            for _ in range(rounds):
                for period in RATES:
                    found.setdefault(period, []).append(percent(left, period))
        with traffic(left, ANNOUNCING):
            for period in GOALS:
                found[f"{period} announced"] = [percent(left, period)]
    finally:
        for router in routers:
            router.close()
    return found


def as_rows(found: dict[str, list[Json]]) -> list[Json]:
    """Rows of the report."""
    used = {name: [entry["percent"] for entry in entries] for name, entries in found.items()}
    table: list[Json] = []
    one = statistics.median(
        (on["percent"] - off) / on["samples"]
        for on, off in zip(found[FASTEST], used[OFF], strict=True)
    )
    for period, goal in GOALS.items():
        difference = statistics.median(
            (on["percent"] - off) * on["late"]
            for on, off in zip(found[period], used[OFF], strict=True)
        )
        cost = max(difference, one * RATES[period])
        table.append(
            {
                "name": f"measuring {LINKS} links every {period}, CPU",
                "ours": cost,
                "other": None,
                "unit": "% of a core",
                "ratio": None,
                "goal": f"< {goal:g} %",
                "met": cost < goal,
            }
        )
    idle = statistics.median(used[OFF])
    table.append(_whole(f"whole daemon, hellos on {LINKS} links, not measuring", idle))
    table += [_whole(f"whole daemon, every {p}", statistics.median(used[p])) for p in GOALS]
    for period in GOALS:
        (entry,) = found[f"{period} announced"]
        name = f"whole daemon, every {period}, announcing {entry['lsas']:.0f} LSAs/s"
        table.append(_whole(name, entry["percent"]))
    return table


def _whole(name: str, value: float) -> Json:
    return {"name": name, "ours": value, "other": None, "unit": "% of a core", "ratio": None}


def rows(rounds: int = ROUNDS) -> list[Json]:
    """Measure in a sandbox; no rows if none can be made."""
    if not possible():
        return []
    return as_rows(required("measuring", lambda: measure(OUTPUT / "measuring", rounds)))


def main() -> None:
    """Measure in so many rounds."""
    parser = argparse.ArgumentParser(description="CPU cost of measuring the load of links.")
    parser.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    show(rows(parser.parse_args().rounds))
