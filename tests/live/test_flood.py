"""A neighbor floods LSAs of very many originators: the database is bounded, all else unharmed.

They are sent in the name of the neighbor on the first link, with right checksums: the victim
acknowledges them and floods them to the neighbor on the second one.
"""

from __future__ import annotations

import itertools
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple, Self

import pytest

from fared.core.checksum import fletcher16, internet_checksum
from fared.protocols.isis.pdu.header import checksum_of, with_checksum
from fared.protocols.isis.pdu.model import PduType
from tests.live import storms
from tests.live.daemons import LINKS, RIGHT, RIGHT_STUB, Live, Pair
from tests.live.isis_daemons import IsisPair
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]

NEIGHBOR, ALL_ROUTERS = "10.129.0.1", "224.0.0.5"
A_PACKET = 30
"""Router LSAs in an update."""
AFTER = 60.0
"""Seconds until all is right after the flood, on a busy machine."""
_IP = struct.Struct("!BBHHHBBH4s4s")
_ALL_ISS, _LLC = bytes.fromhex("09002b000005"), b"\xfe\xfe\x03"
_SOAK = (pytest.mark.soak, pytest.mark.timeout(3600))


class Size(NamedTuple):
    """Originators, the limit of the database (None: the default), and how much memory may be used.

    ``megabytes``: by how much the daemon may grow: 4 kB for each LSA or LSP of the limit, and 16;
    ``times``: how often all is sent at most.
    """

    originators: int
    limit: int | None
    megabytes: int
    times: int = 1


def router_lsa(number: int) -> bytes:
    """An empty router LSA of a router that nobody else knows."""
    identity = (0x0B00_0000 + number).to_bytes(4, "big")
    raw = bytearray(struct.pack("!HBB4s4sIHHI", 1, 2, 1, identity, identity, 1 << 31 | 1, 0, 24, 0))
    raw[16:18] = fletcher16(bytes(raw[2:]), 14).to_bytes(2, "big")
    return bytes(raw)


def update(first: int, count: int) -> bytes:
    """An IP packet with an update of so many originators, from the neighbor."""
    body = struct.pack("!I", count) + b"".join(map(router_lsa, range(first, first + count)))
    identity, length = IPv4Address(RIGHT).packed, 24 + len(body)
    data = bytearray(struct.pack("!BBH4s4xHHQ", 2, 4, length, identity, 0, 0, 0) + body)
    data[12:14] = internet_checksum(bytes(data[:16] + data[24:])).to_bytes(2, "big")
    ends = IPv4Address(NEIGHBOR).packed, IPv4Address(ALL_ROUTERS).packed
    return _IP.pack(0x45, 0xC0, 20 + length, 0, 0, 1, 89, 0, *ends) + data


def lsp(number: int) -> bytes:
    """A frame, without its source, with an empty LSP of a system that nobody else knows."""
    raw = bytes((0x83, 27, 1, 0, PduType.L2_LSP, 1, 0, 0)) + (27).to_bytes(2, "big")
    raw += (1200).to_bytes(2, "big") + (0xBB00_0000_0000 + number).to_bytes(6, "big") + bytes(2)
    raw += (1).to_bytes(4, "big") + bytes(2) + b"\x03"
    return with_checksum(raw, checksum_of(raw))


class Watch(threading.Thread):
    """Looks at routes and answers of the victim all the time: what was ever wrong."""

    def __init__(self, pair: Pair) -> None:
        super().__init__()
        self._pair, self._over = pair, threading.Event()
        self.lost_routes = 0
        self.slowest = 0.0

    def run(self) -> None:
        while not self._over.wait(0.1):
            self.lost_routes += self._pair.used(RIGHT_STUB) != set(LINKS)
            begun = time.monotonic()
            self._pair.left.show("status")
            self.slowest = max(self.slowest, time.monotonic() - begun)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


def retransmitted(victim: Live, shots: list[bytes], protocol: str, times: int) -> Iterator[bytes]:
    """All packets, up to so many times, as of a neighbor that misses acknowledgments.

    The victim drops some while it is busy. The last time all of them meet a full database.
    """
    full = False
    for _ in range(times):
        yield from shots
        if full:
            return
        full = full_event(protocol) in [row["event"] for row in victim.complaints()]


def full_event(protocol: str) -> str:
    return f"{protocol}-database-full"


def unharmed(pair: Pair, size: Size, shots: Iterator[bytes], protocol: str) -> None:
    """Flood, and check the promises of ``docs/security.md``."""
    victim, groups = pair.left, {"ospf": storms.OSPF, "isis": storms.ISIS}[protocol]
    for daemon in (victim, pair.right):
        daemon.prioritize()
    with Watch(pair) as watch, sender(pair, protocol) as send:
        storm = storms.fire(victim, groups, shots, send, calm=0.0)
    storms.report(f"{size.originators} originators, {protocol}", storm)
    (table,) = [
        row
        for row in victim.show("memory")["tables"]
        if row["table"] == "lsdb" and row["proto"] == protocol and row["entries"] > 100
    ]
    told = f"{table['entries']} of {table['limit']}, {table['ignored']} ignored"
    print(f"  {told}; slowest answer {watch.slowest:.2f} s")  # noqa: T201
    assert [row["event"] for row in victim.complaints()] == [full_event(protocol)]
    assert table["entries"] <= table["limit"]
    assert table["ignored"] >= 0.9 * (size.originators - table["limit"])
    assert storm.grown < size.megabytes << 20
    assert storm.transitions == 0
    assert watch.lost_routes == 0
    wait_for(lambda: victim.full() == len(LINKS) == pair.right.full(), AFTER, "all neighbors full")
    pair.await_routes(AFTER)


class sender:  # noqa: N801 - reads as the context it is
    """Sends packets on the first link, from its right end."""

    def __init__(self, pair: Pair, protocol: str) -> None:
        netns, self._isis = pair.right.netns, protocol == "isis"
        if self._isis:
            self._raw = netns.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self._raw.bind((LINKS[0], 0))
            words = netns.ip("-o", "link", "show", "dev", LINKS[0]).split()
            mac = words[words.index("link/ether") + 1]
            self._head = _ALL_ISS + bytes.fromhex(mac.replace(":", ""))
        else:
            self._raw = netns.socket(socket.AF_INET, socket.SOCK_RAW, 89)
            self._raw.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)
            self._raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, LINKS[0].encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def __call__(self, payload: bytes) -> None:
        if self._isis:
            length = (len(_LLC) + len(payload)).to_bytes(2, "big")
            self._raw.send(self._head + length + _LLC + payload)
        else:
            self._raw.sendto(payload, (ALL_ROUTERS, 0))


SIZES = {
    "ospf": [Size(9_000, 6_000, 40), pytest.param(Size(200_000, None, 616, times=6), marks=_SOAK)],
    "isis": [Size(3_000, 2_000, 24), pytest.param(Size(200_000, None, 96, times=6), marks=_SOAK)],
}


@pytest.mark.parametrize("size", SIZES["ospf"], ids=lambda size: str(size.originators))
def test_lsas_of_very_many_originators_leave_routes_hellos_and_memory_alone(
    tmp_path: Path, size: Size
):
    pair = Pair("fo", tmp_path)
    if size.limit is not None:
        pair.left.config["ospf"]["max-lsas"] = size.limit
    try:
        pair.start()
        updates = [update(at, A_PACKET) for at in range(0, size.originators, A_PACKET)]
        unharmed(pair, size, retransmitted(pair.left, updates, "ospf", size.times), "ospf")
    finally:
        pair.close()


@pytest.mark.parametrize("size", SIZES["isis"], ids=lambda size: str(size.originators))
def test_lsps_of_very_many_systems_leave_routes_hellos_and_memory_alone(tmp_path: Path, size: Size):
    pair = IsisPair("fi", tmp_path)
    if size.limit is not None:
        pair.left.config["isis"]["max-lsps"] = size.limit
    try:
        pair.start()
        lsps = [lsp(number) for number in range(size.originators)]
        unharmed(pair, size, retransmitted(pair.left, lsps, "isis", size.times), "isis")
    finally:
        pair.close()


RATE, SECONDS = 15_000, 5.0
"""Updates a second, and for how long: a second longer than the dead interval."""


def flood(send: sender, shots: list[bytes]) -> int:
    """Send at ``RATE``, again and again the same; return how many packets it was."""
    begun, sent = time.monotonic(), 0
    while (passed := time.monotonic() - begun) < SECONDS:
        for _ in range(max(0, min(512, int(passed * RATE) - sent))):
            send(shots[sent % len(shots)])
            sent += 1
    return sent


def outlived(pair: Pair, protocol: str, shots: list[bytes]) -> None:
    """Flood far more than can be processed: hellos are read first, and no adjacency ends."""
    victim, groups = pair.left, {"ospf": storms.OSPF, "isis": storms.ISIS}[protocol]
    for daemon in (victim, pair.right):
        daemon.prioritize()
    before = victim.counters()
    with sender(pair, protocol) as send:
        sent = flood(send, shots)
    after = victim.counters()
    print(f"\n{protocol}: {sent} packets in {SECONDS:.0f} s; {after[groups.sockets]}")  # noqa: T201
    ended = [row for row in victim.records() if row["event"] == "neighbor-changed"]
    assert after[groups.transitions] == before[groups.transitions], ended[-3:]
    assert not any(name.startswith("dropped-") and "hello" in name for name in after["sockets"])
    wait_for(lambda: victim.full() == len(LINKS) == pair.right.full(), AFTER, "all neighbors full")
    pair.await_routes(AFTER)


def test_a_flood_of_updates_of_thirty_new_lsas_ends_no_adjacency(tmp_path: Path):
    shots = [update(at, A_PACKET) for at in range(0, 120_000, A_PACKET)]
    pair = Pair("fx", tmp_path)
    try:
        pair.start()
        outlived(pair, "ospf", shots)
        assert pair.left.counters()["sockets"]["hellos-apart"] >= 1
    finally:
        pair.close()


def test_a_flood_of_lsps_ends_no_adjacency(tmp_path: Path):
    shots = [lsp(number) for number in range(20_000)]
    pair = IsisPair("fy", tmp_path)
    try:
        pair.start()
        outlived(pair, "isis", shots)
    finally:
        pair.close()


OUT_OF_MEMORY = "fared: out of memory; our routes stay in the kernel, a restart adopts them"
SPARE = 24 << 20
"""Bytes of address space that the daemon may take beyond what it has when it is ready."""


def test_a_daemon_that_runs_out_of_memory_says_so_and_leaves_its_routes(tmp_path: Path):
    """Its limits are there so that this does not happen, but other programs take memory, too."""
    pair = Pair("fm", tmp_path)
    try:
        pair.start()
        victim = pair.left
        assert victim.process is not None
        storms.await_views(victim)
        status = Path(f"/proc/{victim.process.pid}/status").read_text()
        most = (int(status.split("VmSize:")[1].split()[0]) << 10) + SPARE
        resource.prlimit(victim.process.pid, resource.RLIMIT_AS, (most, most))
        numbers = itertools.count(0, A_PACKET)
        with sender(pair, "ospf") as send:

            def ended_by_more() -> bool:
                for number in itertools.islice(numbers, 100):
                    send(update(number, A_PACKET))
                return not victim.alive()

            wait_for(ended_by_more, AFTER, "the daemon has no memory left")
        *before, last = victim.complaints()
        assert last["raw"] == OUT_OF_MEMORY
        # of a C library that had no memory for its error
        assert all("SystemError" in record.get("exception", "") for record in before)
        assert victim.process.returncode == 1, "a failure, after which systemd restarts it"
        assert pair.used(RIGHT_STUB) == set(LINKS)
        victim.start()
        pair.await_routes()
    finally:
        pair.close()
