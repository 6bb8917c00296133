"""BIER: tables of large fabrics, changes of nftables, copies by the kernel and by the process.

Needs root or a user namespace, and nftables. ``python -m bench bier`` prints the rows.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import time
from collections.abc import Callable
from typing import Any

from bench.report import show
from fared.core.bier import bift_id
from fared.core.ids import ipv4_prefix
from fared.extensions.lab import sandbox
from fared.extensions.lab.errors import LabError
from fared.kernel.bier import KernelBier, open_bier
from fared.kernel.bier_user import UserBier
from fared.paths.bier.bift import make_bifts
from fared.paths.bier.birt import BfrNeighbor, BirtEntry, make_birt
from fared.paths.bier.header import ETHERTYPE, BierHeader, encode_header
from fared.paths.fib.bier import BierFib, BierPlanner, BierPort
from tests.kernel.netns import Namespaces, inside

LEAVES, SPINES = 512, 64
COPIES = 8
PACKETS = 3000
REPEAT = 10
TABLES_GOAL_MS, CHANGE_GOAL_MS, COPIES_GOAL = 50.0, 100.0, 1.5
Row = dict[str, Any]


def birt(weak: int = 0) -> dict[int, tuple[BirtEntry, ...]]:
    """A leaf of 64x512: all other leaves over all spines, one of them over a weak link."""
    spines = [BfrNeighbor(100 + n, n + 1, f"d{n}") for n in range(SPINES)]
    usual = tuple((spine, 4) for spine in spines)
    weakened = tuple((spine, 1 if n == weak else 4) for n, spine in enumerate(spines))
    return make_birt(
        BirtEntry(n + 1, ipv4_prefix(n + 1, 32), weakened if n == 7 else usual)
        for n in range(LEAVES)
    )


def tables_row() -> Row:
    """From the BIRT to BIFTs, 16 tables of 512 bits."""
    entries = birt()
    spent = _least(lambda: make_bifts(entries, LEAVES), time.process_time)
    return {
        "name": f"BIFTs of a leaf, {LEAVES} BFERs over {SPINES} spines, 16 tables, CPU",
        "ours": spent,
        "unit": "ms",
        "goal": f"< {TABLES_GOAL_MS:g} ms",
        "met": spent < TABLES_GOAL_MS,
    }


def change_rows(namespaces: Namespaces) -> list[Row]:
    """A spine of 64 leaves: one BFER moves, beside writing all anew; CPU with that of nft."""
    name = namespaces.add()
    with inside(name):
        for n in range(SPINES):
            os.system(f"ip link add d{n} index {100 + n} type veth peer name o{n}")
        kernel = _opened()
        planner = BierPlanner(1, 64)
        planner.adopt(0)
        anew, changed = [], []
        for at in range(REPEAT):
            started = _cpu()
            kernel.remove()
            kernel.write(_spine(planner, 0))
            anew.append(_cpu() - started)
            started = _cpu()
            kernel.write(_spine(planner, at + 1))
            changed.append(_cpu() - started)
    spent, whole = (1e3 * statistics.mean(times) for times in (changed, anew))
    return [
        {
            "name": f"nftables: one BFER of {SPINES} moves, beside a new table, CPU",
            "ours": spent,
            "other": whole,
            "unit": "ms",
            "ratio": whole / spent,
            "goal": f"< {CHANGE_GOAL_MS:g} ms",
            "met": spent < CHANGE_GOAL_MS,
        }
    ]


def _cpu() -> float:
    """CPU seconds of this process and of programs that it ran."""
    return sum(os.times()[:4])


def _spine(planner: BierPlanner, turn: int) -> BierFib:
    """The state of a spine; the first BFER is behind leaf ``turn``."""
    leaves = [BfrNeighbor(100 + n, n + 1, f"d{n}") for n in range(SPINES)]
    entries = make_birt(
        BirtEntry(n + 1, ipv4_prefix(n + 1, 32), ((leaves[n or turn % SPINES], 1),))
        for n in range(SPINES)
    )
    ports = [BierPort(leaf.ifindex, leaf.interface, 2) for leaf in leaves]
    planner.desire(make_bifts(entries, 64), ports)
    assert planner.desired is not None
    return planner.desired


def copies_row(namespaces: Namespaces) -> Row:
    """8 copies by the rules of nftables, beside the process that forwards where nft is missing."""
    name, far = namespaces.add(), namespaces.add()
    ends = [namespaces.pair(name, far, f"e{n}", None)[0] for n in range(COPIES)]
    neighbors = [BfrNeighbor(ifindex, 1, f"e{n}") for n, ifindex in enumerate(ends)]
    with inside(name):
        os.system("ip link set lo up")
        kernel = _opened()
        planner = BierPlanner(1, 64)
        planner.adopt(0)
        entries = make_birt(
            BirtEntry(n + 1, ipv4_prefix(n + 1, 32), ((neighbor, 1),))
            for n, neighbor in enumerate(neighbors)
        )
        ports = [BierPort(n.ifindex, n.interface, 2) for n in neighbors] + [BierPort(1, "lo", 0)]
        planner.desire(make_bifts(entries, 64), ports)
        assert planner.desired is not None
        kernel.write(planner.desired)
        header = BierHeader(bift_id(64, 1, 0), (1 << COPIES) - 1, 64)
        frame = bytes(12) + ETHERTYPE.to_bytes(2, "big") + encode_header(header) + bytes(1400)
        with _socket("lo") as sock:
            kernel_us = 1e6 * _per_packet(lambda: sock.send(frame))
        kernel.remove()
        process_us = 1e6 * asyncio.run(_in_process(planner.desired, frame))
    return {
        "name": f"{COPIES} copies of a packet of 1.4 kB: by the kernel, by the process",
        "ours": kernel_us,
        "other": process_us,
        "unit": "us",
        "ratio": process_us / kernel_us,
        "goal": ">= 1.5x",
        "met": process_us / kernel_us >= COPIES_GOAL,
    }


async def _in_process(state: BierFib, frame: bytes) -> float:
    user = UserBier()
    user.write(state)
    try:
        return _per_packet(lambda: user.forward(frame))
    finally:
        user.close()


def _socket(interface: str) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.bind((interface, 0))
    return sock


def _per_packet(send: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        for _ in range(PACKETS):
            send()
        best = min(best, (time.perf_counter() - started) / PACKETS)
    return best


def _opened() -> KernelBier:
    found = open_bier()
    if found is None:
        raise LabError("nftables is not installed")
    return found


def _least(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """The least milliseconds of several runs."""
    best = float("inf")
    for _ in range(REPEAT):
        started = clock()
        work()
        best = min(best, clock() - started)
    return 1e3 * best


def rows() -> list[Row]:
    """All rows."""
    namespaces = Namespaces()
    try:
        return [tables_row(), *change_rows(namespaces), copies_row(namespaces)]
    finally:
        namespaces.close()


def main() -> int:
    """Print the rows."""

    def shown() -> int:
        show(rows())
        return 0

    return shown() if sandbox.inside() or os.geteuid() == 0 else sandbox.run(shown)
