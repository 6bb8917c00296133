"""What hosts make of sprayed packets: settings of the kernel, and congestion controls, in a table.

The fabric of ``elephants``, damaged, over ``granularity: packet``: 128 MB from host to host over
one TCP connection and over eight. Each cell is the part of the max-flow bound that was reached, and
in brackets the part of the segments that was sent again although none was lost. The first line has
the hosts as the lab makes them, which send up to 64 KB as one packet; in all others segments leave
the hosts one by one, as they leave a NIC. Not part of ``make bench``; docs/hosts.md has its
results.
"""

from __future__ import annotations

import argparse
import statistics
import sys

from bench.lab.fabrics import clos, configure
from bench.report import layout
from bench.traffic.dataplane import Rate, state
from bench.traffic.dataplane_runs import MTU, READY, SLOW
from bench.traffic.elephants import await_routing
from bench.traffic.elephants_runs import PACKET
from fared.extensions.lab import sandbox
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from fared.extensions.lab.workloads.bounds import bound
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.run import run

SIZE = 128_000_000
CONTROLS = ("cubic", "reno", "bbr")
COUNTS = (1, 8)
OFFLOAD = "defaults, segments in packets of 64 KB"
DEFAULTS: dict[str, int] = {
    "tcp_recovery": 1,
    "tcp_reordering": 3,
    "tcp_max_reordering": 300,
    "tcp_min_rtt_wlen": 300,
}
SETTINGS: dict[str, dict[str, int]] = {
    OFFLOAD: {},
    "defaults": {},
    "tcp_reordering=300": {"tcp_reordering": 300},
    "tcp_reordering=300, tcp_max_reordering=3000": {
        "tcp_reordering": 300,
        "tcp_max_reordering": 3000,
    },
    "tcp_recovery=5": {"tcp_recovery": 5},
    "tcp_min_rtt_wlen=0": {"tcp_min_rtt_wlen": 0},
    "tcp_min_rtt_wlen=0, tcp_recovery=5": {"tcp_min_rtt_wlen": 0, "tcp_recovery": 5},
}


def measure(controls: list[str], draws: int) -> list[str]:
    """Return the lines of the table; also print each result as it is known."""
    body = []
    with Fabric.from_topology(clos(mtu=MTU)) as fabric:
        if await_paths(fabric, READY) is None:
            raise SystemExit("not every router has all paths")
        configure(fabric, {"metric": "capacity", "granularity": PACKET})
        with state(fabric, SLOW) as rates:
            await_routing(fabric, PACKET, rates)
            for name, settings in SETTINGS.items():
                _set(fabric, settings, single=name != OFFLOAD)
                columns = [(control, count) for control in controls for count in COUNTS]
                cells = [_cell(fabric, rates, *column, draws) for column in columns]
                body.append([name, *cells])
                print(*body[-1], sep="; ", file=sys.stderr, flush=True)
    heads = [f"{control}, {count}" for control in controls for count in COUNTS]
    return layout(["hosts", *heads], body, range(1, len(heads) + 1))


def _set(fabric: Fabric, settings: dict[str, int], *, single: bool) -> None:
    for host in fabric.plan.hosts:
        netns = fabric.node(host.name).netns
        for name, value in (DEFAULTS | settings).items():
            netns.sysctl(f"ipv4.{name}", value)
        for port in host.ports:
            segments = "1" if single else "65535"
            netns.ip("link", "set", "dev", port.name, "gso_max_segs", segments)


def _cell(fabric: Fabric, rates: Rate, control: str, count: int, draws: int) -> str:
    hosts = tuple(node.name for node in fabric.plan.hosts[:2])
    job = Job("broadcast", hosts, SIZE, elephants=count, iterations=1)
    done = [run(fabric, [job], seed=seed, congestion=control).jobs[0] for seed in range(draws)]
    seconds = statistics.median(one.median for one in done)
    spurious = statistics.median(one.order.spurious / one.order.segments for one in done)
    return f"{bound(job, fabric.plan, rates) / seconds:.0%} ({spurious:.1%})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Settings of hosts under sprayed packets.")
    parser.add_argument("--control", action="append", choices=CONTROLS)
    parser.add_argument("--draws", type=int, default=1, help="draws of ports")
    given = parser.parse_args()

    def play() -> int:
        print("\n".join(measure(given.control or list(CONTROLS), given.draws)))
        return 0

    sys.exit(sandbox.run(play))
