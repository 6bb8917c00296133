"""Learning a whole level-2 database from one neighbor: 64 spines, 512 leaves, TE on every link.

A sender process plays spine 1: an engine of ours that has heard the LSPs of the whole fabric
brings up an adjacency with leaf 1 on the virtual clock, and what it sends is recorded. The
receiver is another process with nothing but one router in it, which gets the recorded PDUs in
bursts as the daemon would: its CPU time until every route is planned, and the memory it grew by.
Run alone: ``python bench/isis_sync.py``.
"""

from __future__ import annotations

# ruff: noqa: E402 - threads are limited before NumPy is loaded
import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import gc
import json
import pickle
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fared.core.ids import FAMILY_IPV6, Prefix, SystemId, ipv4_prefix
from fared.core.links import InterfaceAddress, Link
from fared.fib.simulated import SimulatedFib
from fared.isis import events as isis
from fared.isis.ids import LevelSet, lsp_id
from fared.isis.pdu.codec import encode_pdu, encode_tlv
from fared.isis.pdu.model import (
    NLPID_IPV4,
    NLPID_IPV6,
    AreaAddresses,
    Hostname,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    Lsp,
    ProtocolsSupported,
    TeRouterId,
    Tlv,
)
from fared.isis.settings import CircuitKind, CircuitSettings, IsisSettings
from fared.router import events
from fared.router.router import Router
from fared.router.settings import RouterSettings
from fared.te.attributes import TeAttributes

SPINES, LEAVES = 64, 512
RATE = 50e9
AREA = bytes.fromhex("490000")
LSP_SPACE = 1492 - 27
BURST = 32
SEQUENCE = 100
"""Above what leaf 2 has reached when the fabric speaks for it."""
CIRCUIT = CircuitSettings(levels=LevelSet.TWO, hello_interval=1.0, hello_multiplier=30)
LOOPBACK = CircuitSettings(kind=CircuitKind.LOOPBACK, levels=LevelSet.TWO, passive=True)
_LINK_LOCAL = 0xFE80 << 112
_LOOPBACKS = 0x0AFE0000
_LOOPBACKS6 = 0xFD00 << 112
_HOSTS6 = 0x2001_0DB8 << 96


def spine(number: int) -> int:
    """System id of a spine, from 1."""
    return number


def leaf(number: int) -> int:
    """System id of a leaf, from 1."""
    return 0x1000 + number


def neighbor(tail: int, head: int, number: int) -> IsNeighbor:
    """One TE link, with a load of its own so that no two are alike."""
    load = (tail * 7919 + head * 104_729) % 1000 * 1e7
    attributes = TeAttributes(
        te_metric=10,
        max_bandwidth=RATE,
        max_reservable_bandwidth=RATE,
        unreserved_bandwidth=(RATE,) * 8,
        residual_bandwidth=RATE,
        available_bandwidth=RATE - load,
        utilized_bandwidth=load,
    )
    here, there = (0x0A800000 + number, 0x0A800001 + number)
    if tail > head:
        here, there = there, here
    return IsNeighbor(
        head << 8,
        10,
        attributes,
        local_addresses=(here,),
        remote_addresses=(there,),
        local_id=head & 0xFFF,
        remote_id=tail & 0xFFF,
    )


def contents(system: int, ends: list[int]) -> list[list[Tlv]]:
    """The TLVs of a router's fragments."""
    head: list[Tlv] = [
        AreaAddresses((AREA,)),
        ProtocolsSupported((NLPID_IPV4, NLPID_IPV6)),
        Hostname(f"r{system:x}"),
        TeRouterId(_LOOPBACKS | system),
    ]
    four = [IpReach(ipv4_prefix(_LOOPBACKS | system, 32), 0)]
    six = [IpReach(Prefix(FAMILY_IPV6, _LOOPBACKS6 | system, 128), 0)]
    if system >= 0x1000:
        four.append(IpReach(ipv4_prefix((100 << 24) + ((system & 0xFFF) << 8), 24), 10))
        six.append(IpReach(Prefix(FAMILY_IPV6, _HOSTS6 | (system & 0xFFF) << 64, 64), 10))
    fragments = [[*head, IpReachability(4, tuple(four)), IpReachability(6, tuple(six))]]
    sizes = [sum(len(encode_tlv(tlv)) for tlv in fragments[0])]
    for end in ends:
        low, high = sorted((system, end))
        tlv = IsReachability((neighbor(system, end, (low * LEAVES + (high & 0xFFF)) * 2),))
        size = len(encode_tlv(tlv))
        if sizes[-1] + size > LSP_SPACE:
            fragments.append([])
            sizes.append(0)
        fragments[-1].append(tlv)
        sizes[-1] += size
    return fragments


def fabric() -> Iterator[bytes]:
    """Every LSP of the fabric but those of leaf 1 and spine 1, which play themselves.

    Spine 1 has two links only: leaf 1 reaches the others through leaf 2.
    """
    spines = [spine(number) for number in range(1, SPINES + 1)]
    leaves = [leaf(number) for number in range(1, LEAVES + 1)]
    for system, ends in [*((s, leaves) for s in spines[1:]), *((x, spines) for x in leaves[1:])]:
        for number, tlvs in enumerate(contents(system, ends)):
            lsp = Lsp(2, lsp_id(system, 0, number), SEQUENCE, 1200, tlvs=tuple(tlvs), is_type=3)
            yield encode_pdu(lsp)


def router(system: int) -> Router:
    """A router with a circuit, ready for its neighbor."""
    settings = IsisSettings(SystemId(system), (AREA,), hostname=f"r{system:x}")
    made = Router(RouterSettings(isis=settings), random.Random(1), 0.0, time.perf_counter)
    made.handle(events.FibAdopted(SimulatedFib().dump()), 0.0)
    lo = (InterfaceAddress(4, _LOOPBACKS | system, 32),)
    made.handle(isis.CircuitChanged(Link(1, "lo", True, 65536, lo, loopback=True), LOOPBACK), 0.0)
    for ifindex in (2, 3) if system == spine(1) else (2,):
        addresses = (
            InterfaceAddress(4, 0x0A000000 | system & 0x1000 | ifindex, 31),
            InterfaceAddress(6, _LINK_LOCAL | system << 8 | ifindex, 64),
        )
        link = Link(
            ifindex, f"e{ifindex}", True, 1500, addresses, hardware_address=mac(system, ifindex)
        )
        made.handle(isis.CircuitChanged(link, CIRCUIT), 0.0)
    made.handle(events.LinksKnown(), 0.0)
    return made


def mac(system: int, ifindex: int) -> int:
    """The hardware address of a port."""
    return 0x02 << 40 | system << 8 | ifindex


class Wires:
    """Two or three routers on the virtual clock; every PDU takes half a millisecond."""

    def __init__(
        self, ends: dict[tuple[int, int], tuple[int, int]], made: dict[int, Router]
    ) -> None:
        self.now, self.made, self.ends = 0.0, made, ends
        self.kernels = {system: SimulatedFib() for system in made}
        self.recorded: list[tuple[float, bytes]] = []
        self._air: list[tuple[float, int, isis.PduReceived]] = []

    def step(self, until: float) -> None:
        """Move to the next event, at most to ``until``."""
        deadlines = [d for r in self.made.values() if (d := r.next_deadline()) is not None]
        self.now = max(self.now, min([until, *deadlines, *(at for at, _, _ in self._air[:1])]))
        for one in self.made.values():
            one.tick(self.now)
        due = [item for item in self._air if item[0] <= self.now]
        self._air = self._air[len(due) :]
        for _, system, pdu in due:
            if system in self.made:
                self.made[system].handle(pdu, self.now)
        for system in self.made:
            self.settle(system)

    def settle(self, system: int) -> None:
        """Carry out what a router wants."""
        one = self.made[system]
        while outputs := one.drain():
            for output in outputs:
                if isinstance(output, isis.SendPdu):
                    self._send(system, output)
                elif isinstance(output, events.ApplyFib):
                    results = tuple(self.kernels[system].apply(output.operations))
                    one.handle(events.FibApplied(output, results), self.now)

    def _send(self, system: int, output: isis.SendPdu) -> None:
        far, port = self.ends[system, output.ifindex]
        pdu = isis.PduReceived(
            port, mac(system, output.ifindex), output.destination, output.payload
        )
        self._air.append((self.now + 0.0005, far, pdu))
        if far == leaf(1):
            self.recorded.append((self.now + 0.0005, output.payload))


def record() -> list[tuple[float, bytes]]:
    """What spine 1 sends to leaf 1, with virtual times."""
    one, two, feeder = leaf(1), spine(1), leaf(2)
    ends = {(one, 2): (two, 2), (two, 2): (one, 2), (two, 3): (feeder, 2), (feeder, 2): (two, 3)}
    wires = Wires(ends, {two: router(two), feeder: router(feeder)})
    while wires.now < 1.0:
        wires.step(1.0)
    source = mac(feeder, 2)
    for raw in fabric():
        wires.made[two].handle(isis.PduReceived(3, source, 0, raw), wires.now)
    wires.settle(two)
    del wires.made[feeder]
    wires.made[one] = router(one)
    wires.kernels[one] = SimulatedFib()
    wires.recorded.clear()
    start = wires.now
    while wires.now < start + 4.0:
        wires.step(start + 4.0)
    return wires.recorded


def resident() -> int:
    """Resident memory of this process, bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def replay(file: Path) -> dict[str, float]:
    """Be leaf 1 and nothing else: take the recorded PDUs in bursts as a socket gives them."""
    recorded = pickle.loads(file.read_bytes())
    made, kernel, source = router(leaf(1)), SimulatedFib(), mac(spine(1), 2)
    gc.collect()
    before = resident() - sum(len(raw) for _, raw in recorded)
    began = time.process_time()
    now = recorded[0][0]
    for at in range(0, len(recorded), BURST):
        burst = recorded[at : at + BURST]
        now = max(now, burst[-1][0])
        for _, raw in burst:
            made.handle(isis.PduReceived(2, source, 0, raw), now)
        settle(made, kernel, now)
    while made.next_deadline() is not None and now < recorded[-1][0] + 2.0:
        now = max(now, made.next_deadline() or now)
        made.tick(now)
        settle(made, kernel, now)
    seconds = time.process_time() - began
    gc.collect()
    return {
        "seconds": seconds,
        "bytes": resident() - before,
        "lsps": len(made.isis.snapshot(now).databases[0].lsps),
        "routes": len(kernel.state.routes),
        "pdus": len(recorded),
    }


def settle(made: Router, kernel: SimulatedFib, now: float) -> None:
    """Apply what the router wants; what it sends goes nowhere."""
    while outputs := made.drain():
        for output in outputs:
            if isinstance(output, events.ApplyFib):
                results = tuple(kernel.apply(output.operations))
                made.handle(events.FibApplied(output, results), now)


def rows() -> list[dict[str, Any]]:
    """Record, then replay in a process of its own."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "pdus"
        file.write_bytes(pickle.dumps(record()))
        command = [sys.executable, "-m", "bench.isis_sync", str(file)]
        root = Path(__file__).resolve().parent.parent
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    found = json.loads(done.stdout)
    what = f"IS-IS level 2, {SPINES}x{LEAVES}, TE, {found['lsps']} LSPs"
    return [
        {"name": f"{what}: from first PDU to all routes, CPU", "ours": found["seconds"] * 1e3},
        {"name": f"{what}: memory grown", "ours": found["bytes"] / 2**20, "unit": "MiB"},
        {"name": f"{what}: routes of both families", "ours": found["routes"], "unit": "routes"},
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(replay(Path(sys.argv[1]))))
    else:
        for row in rows():
            print(f"{row['name']}: {row['ours']:.1f} {row.get('unit', 'ms')}")
