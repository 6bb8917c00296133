"""Cost of sprayed packets: CPU for each, the rate, and the time of a change of 500 destinations.

The destinations share 50 distinct weight vectors over four links. One flow of UDP is forwarded with
its packets sprayed, in flowlets, and hashed, in turn, in one run; the kernel segments what the
sender passes to it, so its own cost is small. CPU time is that of the sender, in whose context the
kernel forwards between network namespaces; the rate is what one core forwards in it. Needs root or
a user namespace, nftables and ethtool. Run alone (``python -m bench spraying``) or through the
runner.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.report import show
from bench.rows import compared
from fared.core.ids import Prefix
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.namespaces import Netns
from fared.kernel.fib import KernelFib
from fared.kernel.spray import open_spray
from fared.kernel.sysctl import SysctlMode, apply_sysctls, wanted_sysctls
from fared.paths.fib.model import Member, PutGroup, PutNextHop, PutRoute
from fared.paths.fib.settings import FibSettings, Granularity, SpraySettings
from fared.paths.fib.spray import SprayState
from fared.paths.fib.spray_planner import SprayPlanner
from tests.kernel.netns import Namespaces, inside, run
from tests.waiting import wait_for

LINKS, DESTINATIONS, VECTORS = 4, 500, 50
ROUNDS, PACKETS, SEGMENT, AT_ONCE = 5, 320_000, 400, 64
SPREAD = 20
"""Calls to destinations of other vectors, in turn."""
_UDP_SEGMENT = 103
BASE, GROUP = FibSettings().id_base, FibSettings().group_base
HOPS = [BASE + n for n in range(LINKS)]
PREFIXES = [Prefix(4, 0x0B00_0000 + (n << 8), 24) for n in range(DESTINATIONS)]
SETTINGS = {
    "packet": SpraySettings(Granularity.PACKET),
    "flowlet": SpraySettings(Granularity.FLOWLET),
    "flow": SpraySettings(),
}
GOALS = {"packet": 0.6, "flowlet": 0.5}
"""The rate with packets sprayed, as a part of the rate with flows hashed."""
GOAL_ONE = 2
ONE = "change of one vector of 50, with 500 destinations"
EVERY = "change of all 50 vectors, with 500 destinations"
Row = dict[str, Any]


class Box:
    """A source, a router with four links, and a sink that drops what arrives."""

    def __init__(self, namespaces: Namespaces) -> None:
        self.source, self.router, self.sink = (namespaces.add() for _ in range(3))
        namespaces.pair(self.source, self.router, "in", 9)
        links = [namespaces.pair(self.router, self.sink, f"e{n}", n)[0] for n in range(LINKS)]
        Netns(self.source).run(["ethtool", "-K", "in", "tx-udp-segmentation", "off"])
        run("ip route add default via 10.0.9.2", self.source)
        Netns(self.sink).run(["nft", "-f", "-"], stdin=_DROPPED)
        with inside(self.router):
            apply_sysctls(SysctlMode.SET, wanted_sysctls(1))
            self.fib = KernelFib()
        for n, link in enumerate(links):
            self.fib.apply([PutNextHop(HOPS[n], (link, 4, 0x0A00_0002 + (n << 8), False))])
        for vector in range(VECTORS):
            self.weigh(vector, vector + 2, replace=False)
        self.fib.apply([PutRoute(p, GROUP + n % VECTORS) for n, p in enumerate(PREFIXES)])
        wait_for(self.resolved, 10, "the neighbors answer")
        opened = open_spray(self.fib)
        if opened is None:
            raise LabError("nftables is not installed")
        self.kernel = opened
        self.planner = SprayPlanner(SETTINGS["flow"])
        self.planner.adopt(SprayState())

    def resolved(self) -> bool:
        """Whether all gateways are resolved."""
        found = json.loads(run("ip -json neigh show proto 201", self.router))
        return sum("lladdr" in entry for entry in found) == LINKS

    def weigh(self, vector: int, weight: int, *, replace: bool = True) -> None:
        """Set the weights of a vector."""
        weights = (weight, *(VECTORS + n for n in range(1, LINKS)))
        members = tuple(map(Member, HOPS, weights))
        self.fib.apply([PutGroup(GROUP + vector, members, replace=replace)])

    def follow(self) -> tuple[float, int]:
        """Bring nftables to the state of the FIB; return milliseconds, and operations."""
        state = self.fib.dump()
        begun = time.perf_counter()
        self.planner.desire(state, state.routes, ())
        operations = self.planner.plan(0.0)
        with inside(self.router):
            self.kernel.apply(operations)
        self.planner.answered("", None, 0.0)
        return (time.perf_counter() - begun) * 1e3, len(operations)

    def forwarded(self) -> float:
        """Forward packets; return microseconds of CPU for each."""
        with Netns(self.source).socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, SEGMENT)
            block = bytes(SEGMENT * AT_ONCE)
            targets = [(f"11.0.{n}.9", 4791) for n in range(SPREAD)]
            before = time.process_time()
            for number in range(PACKETS // AT_ONCE):
                sock.sendto(block, targets[number % SPREAD])
            return (time.process_time() - before) / PACKETS * 1e6


_HOOK = "type filter hook ingress device {0} priority 0;"
_DROPPED = "\n".join(
    [
        "add table netdev sink",
        *(
            f"add chain netdev sink e{n} {{ {_HOOK.format(f'e{n}')} }}\n"
            f"add rule netdev sink e{n} ip protocol udp drop"
            for n in range(LINKS)
        ),
    ]
)


def rows() -> list[Row]:
    """Measure. Raises LabError without the tools or privileges."""
    namespaces = Namespaces()
    try:
        box = Box(namespaces)
        return [*_cpu(box), *_changes(box)]
    finally:
        namespaces.close()


def _cpu(box: Box) -> list[Row]:
    found: dict[str, list[float]] = {kind: [] for kind in SETTINGS}
    for _ in range(ROUNDS):
        for kind, settings in SETTINGS.items():
            box.planner.settings = settings
            box.follow()
            found[kind].append(box.forwarded())
    least = {kind: min(values) for kind, values in found.items()}
    return [
        compared(
            f"packets a second of one core, {kind} / flow"
            f" (CPU of each {least[kind]:.2f} / {least['flow']:.2f} us)",
            1e6 / least[kind],
            1e6 / least["flow"],
            "/s",
            goal,
            more_is_better=True,
        )
        for kind, goal in GOALS.items()
    ]


def _changes(box: Box) -> list[Row]:
    """Time a change of one vector, and of all, beside writing everything anew."""
    box.planner.settings = SETTINGS["packet"]

    def anew() -> float:
        box.planner.adopt(SprayState())
        return box.follow()[0]

    def one() -> float:
        box.weigh(0, next(weight))
        milliseconds, operations = box.follow()
        assert operations == 1, operations
        return milliseconds

    def every() -> float:
        """Each vector gets the weights of another one."""
        shift = next(shifts)
        for vector in range(VECTORS):
            box.weigh(vector, (vector + shift) % VECTORS + 2)
        milliseconds, operations = box.follow()
        assert operations == VECTORS, operations
        return milliseconds

    weight, shifts = iter(range(VECTORS + 2, 2 * VECTORS)), iter(range(1, VECTORS))
    whole = _median(anew)
    return [
        compared(f"{ONE} / all written anew", _median(one), whole, "ms", GOAL_ONE),
        compared(f"{EVERY} / all written anew", _median(every), whole, "ms"),
    ]


def _median(measured: Callable[[], float]) -> float:
    return statistics.median(measured() for _ in range(ROUNDS))


def main() -> None:
    """Print the rows."""
    if os.geteuid():
        sys.exit("needs root, or a user namespace (unshare -rmn)")
    show(rows())
