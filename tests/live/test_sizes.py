"""Sizes that no lab has: reloads under traffic, links and routes of a kernel, entries of CSNPs."""

from __future__ import annotations

import contextlib
import copy
import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from fared.protocols.isis.pdu.model import PduType
from tests.live import storms
from tests.live.daemons import LINKS, RIGHT_STUB, Pair
from tests.live.isis_daemons import RIGHT_SYSTEM, running_isis_pair
from tests.live.test_flood import sender
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]

_SOAK = (pytest.mark.soak, pytest.mark.timeout(1800))
RELOADS = [5, pytest.param(100, marks=_SOAK)]
KERNELS = [(100, 5_000), pytest.param((1_000, 100_000), marks=_SOAK, id="full")]
"""Interfaces, and routes of another program."""
ENTRIES = [100_000, pytest.param(3_000_000, marks=_SOAK)]
"""LSPs that CSNPs list."""
A_BATCH = 500
"""Commands of one ``ip``: it takes a moment to make an interface."""
A_TLV, A_CSNP = 15, 75
REQUESTED = 16 << 20
"""Bytes for requests of as many LSPs as a level may hold, 20,000."""
SOON = 60.0
PORT = 9999


class Flow(threading.Thread):
    """A hundred UDP packets a second from the left stub network to the right one."""

    def __init__(self, pair: Pair) -> None:
        super().__init__()
        self._over = threading.Event()
        self._in = pair.right.netns.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._in.bind(("10.0.92.1", PORT))
        self._in.setblocking(False)
        self._out = pair.left.netns.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._out.bind(("10.0.91.1", PORT))
        self.sent = self.received = 0

    def run(self) -> None:
        while not self._over.wait(0.01):
            self._out.sendto(b"packet", ("10.0.92.1", PORT))
            self.sent += 1
            self._receive()

    def _receive(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            while self._in.recv(100):
                self.received += 1
        return self.received == self.sent

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        with self._in, self._out, contextlib.suppress(AssertionError):
            wait_for(self._receive, 20, "all packets")


@pytest.mark.parametrize("count", RELOADS)
def test_reloads_with_other_costs_lose_no_packet_and_no_adjacency(pair: Pair, count: int):
    """Both links cost the same each time; for a moment one of them may be the cheaper one."""
    victim = pair.left
    before = victim.counters()["neighbor-transitions"]
    config = copy.deepcopy(victim.config)
    links = config["ospf"]["areas"]["0.0.0.0"]["interfaces"]
    with Flow(pair) as flow:
        for number in range(count):
            for link in LINKS:
                links[link]["cost"] = 11 + number % 50
            victim.reload(config)
    victim.reload()
    pair.await_routes()
    print(f"\n{count} reloads: {flow.sent} packets sent, {flow.received} received")  # noqa: T201
    assert flow.received == flow.sent > count
    assert victim.counters()["neighbor-transitions"] == before
    assert victim.complaints() == []


@pytest.mark.parametrize("size", KERNELS)
def test_a_kernel_full_of_interfaces_and_foreign_routes(size: tuple[int, int], tmp_path: Path):
    """Networks of all interfaces are advertised; routes of others stay as they are."""
    interfaces, routes = size
    pair = Pair("sz", tmp_path)
    victim = pair.left
    area = victim.config["ospf"]["areas"]["0.0.0.0"]["interfaces"]
    area["dm*"] = {"passive": True}

    def learnt() -> int:
        return sum(prefix.startswith("10.200.") for prefix in right.routes())

    def foreign() -> int:
        return victim.netns.ip("route", "show", "table", "main", "proto", "static").count("\n")

    def network(number: int) -> str:
        return f"10.{200 + (number >> 14)}.{number >> 6 & 255}.{(number & 63) << 2}"

    lines = []
    for number in range(interfaces):
        name, address = f"dm{number}", network(number).rpartition(".")
        if not number % 2:
            lines.append(f"link add {name} type veth peer name dm{number + 1}")
        lines.append(f"link set {name} up")
        lines.append(f"addr add {address[0]}.{int(address[2]) + 1}/30 dev {name}")
    lines += [
        f"route add blackhole 11.{n >> 16}.{n >> 8 & 255}.{n & 255} proto static"
        for n in range(routes)
    ]
    try:
        for first in range(0, len(lines), A_BATCH):
            victim.netns.batch("ip", lines[first : first + A_BATCH])
        assert foreign() == routes
        pair.start()
        right = type(pair.view)(pair.right.netns)
        with contextlib.closing(right):
            wait_for(lambda: learnt() == interfaces, SOON, f"{interfaces} networks")
            # with one end of a pair the other one goes
            for first in range(0, interfaces // 2, 50):
                gone = range(first, first + 50, 2)
                victim.netns.batch("ip", [f"link del dm{number}" for number in gone])
            wait_for(lambda: learnt() == interfaces // 2, SOON, "half of them")
        assert pair.used(RIGHT_STUB) == set(LINKS)
        assert foreign() == routes
        code, _ = victim.terminate()
        assert code == 0
        assert foreign() == routes
        assert pair.right.complaints() == victim.complaints() == []
    finally:
        pair.close()


def csnps(rng: random.Random, count: int) -> Iterator[bytes]:
    """CSNPs of the right router about the whole level, with so many LSPs that nobody has."""
    source = bytes.fromhex(RIGHT_SYSTEM.replace(".", "")) + b"\0"
    head = bytes((0x83, 33, 1, 0, PduType.L2_CSNP, 1, 0, 0))
    size = 33 + A_CSNP * 16 + A_CSNP // A_TLV * 2
    for _ in range(0, count, A_CSNP):
        pdu = head + size.to_bytes(2, "big") + source + bytes(8) + b"\xff" * 8
        for _ in range(0, A_CSNP, A_TLV):
            pdu += bytes((9, 16 * A_TLV))
            for _ in range(A_TLV):
                pdu += (1200).to_bytes(2, "big") + rng.randbytes(6) + bytes(2)
                pdu += (1).to_bytes(4, "big") + rng.randbytes(2)
        yield pdu


@pytest.mark.parametrize("count", ENTRIES)
def test_lsps_that_csnps_list_take_memory_only_while_there_is_room_for_them(
    count: int, tmp_path: Path
):
    """A neighbor that claims to have millions is asked for as many as the level may hold."""
    with running_isis_pair("sc", tmp_path) as pair:
        with sender(pair, "isis") as send:
            shots = csnps(random.Random(1), count)
            storm = storms.fire(pair.left, storms.ISIS, shots, send, calm=1.0)
        storms.report(f"{count} entries of CSNPs", storm)
        assert storm.received >= 0.95 * storm.sent
        assert max(storm.grown, storm.kept) < REQUESTED
        assert storm.transitions == 0
        assert pair.left.complaints() == pair.right.complaints() == []
        pair.await_routes()
