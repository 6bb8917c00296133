"""Processes of ``fared-ina`` and workers in namespaces: two leaves that sum, a root, static routes.

w1, w2 - L1 - S - L2 - w3, w4
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from fared.extensions.ina.messages import Install, JobEpoch, MemberAddress
from fared.extensions.ina.operator import OperatorError, ask, state
from fared.extensions.ina.plan.model import Vertex
from fared.extensions.ina.slots.packet import DEFAULT_PORT, largest_payload
from fared.extensions.ina.slots.setup import JobSetup, TreeSetup
from fared.extensions.lab.namespaces import Netns
from tests.waiting import wait_for

PROGRAM = Path(__file__).parent / "worker_program.py"
ROOT, LEAVES = 1, (2, 3)
ROUTERS = (ROOT, *LEAVES)
WORKERS = (1, 2, 3, 4)
MTU = 9000
WORKER_PORT = 54300
MATCH = f"udp dport {{ {DEFAULT_PORT}, {WORKER_PORT} }}"
LOOP = (
    "link add d0 mtu 9000 type veth peer name d1 mtu 9000",
    "link set d1 up",
    "link set d0 up",
)
PARENTS: dict[Vertex, Vertex] = {-1: 2, -2: 2, -3: 3, -4: 3, 2: ROOT, 3: ROOT}


def loopback(router: int) -> str:
    return f"10.9.255.{router}"


def host(bfr_id: int) -> str:
    return f"10.9.{bfr_id}.2"


def gateway(bfr_id: int) -> str:
    return f"10.9.{bfr_id}.1"


class LiveFabric:
    """Namespaces and processes, until ``close``."""

    def __init__(self, directory: Path, prefix: str) -> None:
        self.directory = directory
        self.processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self.routers = {router: Netns.create(f"{prefix}r{router}") for router in ROUTERS}
        self.hosts = {bfr_id: Netns.create(f"{prefix}w{bfr_id}") for bfr_id in WORKERS}
        for number, leaf in enumerate(LEAVES, 11):
            self._link(self.routers[ROOT], self.routers[leaf], number, f"s{leaf}", "up")
        for bfr_id in WORKERS:
            leaf = self.routers[PARENTS[-bfr_id]]
            self._link(leaf, self.hosts[bfr_id], bfr_id, f"w{bfr_id}", "eth0")
            self.hosts[bfr_id].ip("route", "add", "default", "via", gateway(bfr_id))
        for router, netns in self.routers.items():
            netns.ip("addr", "add", f"{loopback(router)}/32", "dev", "lo")
            netns.sysctl("ipv4.ip_forward", 1)
        for number, leaf in enumerate(LEAVES, 11):
            self.routers[leaf].ip("route", "add", "default", "via", f"10.9.{number}.1")
            self.routers[ROOT].batch("ip", self.routes_behind(leaf))

    def _link(self, near: Netns, far: Netns, subnet: int, name: str, far_name: str) -> None:
        a, b = 100 + 2 * subnet, 101 + 2 * subnet
        near.ip(
            *f"link add {name} index {a} mtu {MTU} type veth peer name {far_name}"
            f" index {b} mtu {MTU} netns {far.name}".split()
        )
        for netns, device, number in ((near, name, 1), (far, far_name, 2)):
            netns.ip("addr", "add", f"10.9.{subnet}.{number}/24", "dev", device)
            netns.ip("link", "set", "dev", device, "up")

    def routes_behind(self, leaf: int) -> list[str]:
        """The root's routes to a leaf and its workers, as commands of ip."""
        behind = [f"10.9.{b}.0/24" for b in WORKERS if PARENTS[-b] == leaf]
        via = f"10.9.{LEAVES.index(leaf) + 11}.2"
        return [f"route add {to} via {via}" for to in (f"{loopback(leaf)}/32", *behind)]

    def socket(self, router: int) -> Path:
        return self.directory / f"ina{router}.sock"

    def start_router(self, router: int, *options: str) -> subprocess.Popen[bytes]:
        """Start ``fared-ina``; it is ready when it answers."""
        command = [
            sys.executable,
            "-m",
            "fared.extensions.ina.inad.main",
            "--address",
            loopback(router),
        ]
        command += ["--socket", str(self.socket(router)), *options]
        process = self.routers[router].start(command, self.directory / f"ina{router}.log")
        self.processes.append(process)
        wait_for(lambda: self._answers(router), 60, lambda: self.log(f"ina{router}"))
        return process

    def _answers(self, router: int) -> bool:
        try:
            return state(self.socket(router)) is not None
        except OperatorError:
            return False

    def log(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text()

    def install(self, job: JobEpoch) -> None:
        for router in ROUTERS:
            ask(self.socket(router), Install(job, router))

    def start_worker(self, job: str, rank: int, **given: object) -> subprocess.Popen[bytes]:
        """Start a worker; its lines go to a log of its own."""
        task = {"job": job, "rank": rank, "size": 4, "calls": 1, "elements": 5000, "kind": "int"}
        text = json.dumps(task | given)
        log = self.directory / f"{job}-{rank}.log"
        process = self.hosts[rank + 1].start([sys.executable, str(PROGRAM), text], log)
        self.workers.append(process)
        return process

    def end_workers(self) -> None:
        for process in self.workers:
            process.kill()
            process.wait()
        self.workers.clear()

    def lines(self, job: str, rank: int) -> list[dict]:
        text = self.log(f"{job}-{rank}")
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def results(self, job: str, seconds: float, ranks=range(4)) -> list[dict]:
        """Wait for the last line of each worker."""

        def there() -> bool:
            return all(len(self.lines(job, rank)) == 2 for rank in ranks)

        wait_for(there, seconds, lambda: "\n".join(self.log(f"{job}-{r}") for r in ranks))
        return [self.lines(job, rank)[1] for rank in ranks]

    def run(self, job: str, seconds: float, **given: object) -> list[dict]:
        for rank in range(4):
            self.start_worker(job, rank, **given)
        return self.results(job, seconds)

    def lose(self, rule: str) -> None:
        """Apply a rule of nftables to the packets that routers and hosts receive."""
        for netns in (*self.routers.values(), *self.hosts.values()):
            links = [link for link in _links(netns) if link != "lo"]
            chains = [_chain(at, link, f"{MATCH} {rule}") for at, link in enumerate(links)]
            _nft(netns, chains)

    def delay(self) -> None:
        """Double a fifth of what routers receive, and delay another, through a slow loop."""
        for netns in self.routers.values():
            links = [link for link in _links(netns) if link != "lo"]
            netns.batch("ip", LOOP)
            netns.batch("tc", ["qdisc add dev d0 root tbf rate 200mbit burst 9100 limit 400000"])
            for name in ("all", *links, "d1"):
                netns.sysctl(f"ipv4/conf/{name}/rp_filter", 0)
            some = "numgen random mod 5"
            rules = f'{MATCH} {some} 0 dup to "d0"\n{MATCH} {some} 0 fwd to "d0"'
            chains = [_chain(at, link, rules) for at, link in enumerate(links)]
            _nft(netns, [*chains, _chain(99, "d1", "meta pkttype set host")])

    def undisturb(self) -> None:
        for netns in (*self.routers.values(), *self.hosts.values()):
            netns.run(["nft", "flush", "ruleset"])
            if "d0" in _links(netns):
                netns.ip("link", "del", "d0")

    def close(self) -> None:
        self.end_workers()
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
        for netns in (*self.routers.values(), *self.hosts.values()):
            netns.delete()


def _links(netns: Netns) -> list[str]:
    return [link["ifname"] for link in json.loads(netns.ip("-j", "link", "show"))]


def _chain(at: int, device: str, rules: str) -> str:
    kind = f'type filter hook ingress device "{device}" priority 0;'
    return f"chain c{at} {{\n{kind}\n{rules}\n}}"


def _nft(netns: Netns, chains: list[str]) -> None:
    text = "\n".join(["table netdev ina {", *chains, "}\n"])
    netns.run(["nft", "-f", "-"], stdin=text)


def live_fabric(directory: Path, prefix: str) -> Iterator[LiveFabric]:
    """The body of a fixture: a fabric with a process in every router."""
    fabric = LiveFabric(directory, prefix)
    try:
        for router in ROUTERS:
            fabric.start_router(router)
        yield fabric
    finally:
        fabric.close()


def job(
    name: str,
    job_id: int,
    *,
    epoch: int = 1,
    window: int = 8,
    ring: bool = False,
    since: int | None = None,
    lost: tuple[int, ...] = (),
    **changes: object,
) -> JobEpoch:
    """A job of four workers with one tree, or none; elastic if ``since`` is given."""
    left = tuple(bfr_id for bfr_id in WORKERS if bfr_id not in lost)
    parents = {child: to for child, to in PARENTS.items() if -child not in lost}
    trees = () if ring else (TreeSetup(0, ROOT, 1, window, parents),)
    setup = JobSetup(
        job_id, epoch, 64, largest_payload(MTU, 64), left, trees,
        elastic=since is not None, since=since or 0,
    )  # fmt: skip
    members = {-b: MemberAddress(host(b), WORKER_PORT) for b in WORKERS}
    members |= {router: MemberAddress(loopback(router), DEFAULT_PORT) for router in ROUTERS}
    return JobEpoch(name, setup, members, lost=lost, **changes)
