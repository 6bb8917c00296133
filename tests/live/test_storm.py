"""100,000 mutated packets from a neighbour's wire: the daemon counts them, and goes on."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple

import pytest

from fared.core.checksum import fletcher16, internet_checksum
from tests.live.daemons import LINKS, RIGHT, RIGHT_STUB, Pair, running_pair, wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]

BROKEN = REPAIRED = 50_000
IN_ITS_NAME = 10_000
_WINDOW = 256
"""Packets on their way at once: fewer than the receive buffer of the daemon's socket holds."""
ALL_ROUTERS, VICTIM, NEIGHBOUR = "224.0.0.5", "10.129.0.0", "10.129.0.1"
OTHERS = ("10.129.0.7", "192.0.2.1", "203.0.113.250", "0.0.0.0")
SEED = 20_240_601
_DATA = Path(__file__).parent.parent / "data" / "ospf"
_LSU, _HEADER, _LSA_HEADER = 4, 24, 20
_IP = struct.Struct("!BBHHHBBH4s4s")


class Shot(NamedTuple):
    """One packet to send."""

    source: str
    destination: str
    payload: bytes


@dataclass
class Storm:
    """What one storm did."""

    sent: int
    received: int
    seconds: float
    grown: int
    errors: Counter[str]
    lines: int
    transitions: int


@pytest.fixture(scope="module")
def victim_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running_pair("w", tmp_path_factory.mktemp("storm")) as pair:
        yield pair


@pytest.fixture(scope="module")
def corpus(victim_pair: Pair) -> list[bytes]:
    """Recorded packets, and those of this very session: the victim's neighbour starts again."""
    found = [
        bytes.fromhex(line)
        for file in sorted(_DATA.glob("*.hex"))
        for line in file.read_text().splitlines()
        if not line.startswith("#")
    ]
    heard: set[bytes] = set()
    netns = victim_pair.right.netns
    with netns.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)) as ear:
        ear.bind((LINKS[0], 3))
        victim_pair.right.terminate()
        victim_pair.right.start()
        victim_pair.await_routes()
        ear.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = ear.recv(65536)
                if packet[9] == 89:
                    heard.add(packet[20:])
    assert {payload[1] for payload in heard} >= {1, 2, 4, 5}, "hello, DD, update, ack were heard"
    return found + sorted(heard)


def mutate(rng: random.Random, corpus: list[bytes]) -> bytes:
    """Change bytes, cut, extend, splice, or several of these."""
    data = bytearray(rng.choice(corpus))
    for _ in range(rng.choice((1, 1, 2, 3))):
        match rng.randrange(5):
            case 0:
                for _ in range(rng.choice((1, 2, 8))):
                    data[rng.randrange(len(data))] = rng.randrange(256)
            case 1:
                del data[rng.randrange(1, len(data) + 1) :]
            case 2:
                data += rng.randbytes(rng.choice((1, 4, 20, 200)))
            case 3:
                other = rng.choice(corpus)
                at = rng.randrange(len(data) + 1)
                data[at:] = other[rng.randrange(len(other)) :]
            case _:
                offset = rng.randrange(0, len(data), 4)
                data[offset : offset + 4] = rng.choice((bytes(4), b"\xff\xff\xff\xff", b"\0\0\0\1"))
        data = data or bytearray(1)
    return bytes(data[:1400])


def repair(rng: random.Random, packet: bytes) -> bytes:
    """Make the checksums right again, of LSAs and of the packet, from another router's id."""
    data = bytearray(packet.ljust(_HEADER, b"\0"))
    if rng.random() < 0.9:
        data[0] = 2
        data[1] = data[1] if 1 <= data[1] <= 5 else rng.randrange(1, 6)
        data[2:4] = len(data).to_bytes(2, "big")
        data[8:12] = bytes(4)
        data[14:16] = bytes(2)
    if data[1] == _LSU:
        _repair_lsas(data)
    return _from(bytes((10, 254)) + rng.randbytes(2), data)


def _from(router_id: bytes, packet: bytes) -> bytes:
    """Put a router id into a packet and the checksum that goes with it."""
    data = bytearray(packet)
    data[4:8] = router_id
    data[12:14] = bytes(2)
    checksum = internet_checksum(bytes(data[:16] + data[24:]))
    data[12:14] = checksum.to_bytes(2, "big")
    return bytes(data)


def _repair_lsas(data: bytearray) -> None:
    offset = _HEADER + 4
    while offset + _LSA_HEADER <= len(data):
        length = int.from_bytes(data[offset + 18 : offset + 20], "big")
        if length < _LSA_HEADER or offset + length > len(data):
            return
        checksum = fletcher16(bytes(data[offset + 2 : offset + length]), 14)
        data[offset + 16 : offset + 18] = checksum.to_bytes(2, "big")
        offset += length


def broken(rng: random.Random, corpus: list[bytes]) -> Iterator[Shot]:
    """Mutations with the checksum as it comes, which a lucky mutation does not make right."""
    for _ in range(BROKEN):
        data = bytearray(mutate(rng, corpus).ljust(16, b"\0"))
        covered = bytes(data[: int.from_bytes(data[2:4], "big")])  # what follows is not OSPF's
        checksum = internet_checksum(covered[:12] + bytes(2) + covered[14:16] + covered[24:])
        if int.from_bytes(data[12:14], "big") == checksum:
            data[12] ^= 0x55
        yield Shot(_source(rng), rng.choice((ALL_ROUTERS, VICTIM)), bytes(data))


def repaired(rng: random.Random, corpus: list[bytes]) -> Iterator[Shot]:
    """Mutations that reach the parts behind the checksum, never with the neighbour's own id."""
    for _ in range(REPAIRED):
        data = repair(rng, mutate(rng, corpus))
        yield Shot(_source(rng), rng.choice((ALL_ROUTERS, VICTIM)), data)


def in_its_name(rng: random.Random, corpus: list[bytes]) -> Iterator[Shot]:
    """Mutations that nothing tells from the neighbour's own packets: the worst there is."""
    for _ in range(IN_ITS_NAME):
        data = repair(rng, mutate(rng, corpus))
        destination = rng.choice((ALL_ROUTERS, VICTIM))
        yield Shot(NEIGHBOUR, destination, _from(IPv4Address(RIGHT).packed, data))


def _source(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.5:
        return NEIGHBOUR
    if kind < 0.75:
        return rng.choice(OTHERS)
    return str(IPv4Address(rng.randrange(0x0B000000, 0x7E000000)))


def fire(pair: Pair, shots: Iterator[Shot]) -> Storm:
    """Send all, never more ahead of the daemon than its socket holds."""
    victim = pair.left
    before = victim.counters()
    memory, lines = victim.resident(), len(victim.records())
    received = before["sockets"]["received"]
    sent, begun = 0, time.monotonic()
    with pair.right.netns.socket(socket.AF_INET, socket.SOCK_RAW, 89) as raw:
        raw.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, LINKS[0].encode())
        for source, destination, payload in shots:
            header = _IP.pack(
                0x45, 0xC0, 20 + len(payload), 0, 0, 1, 89, 0,
                IPv4Address(source).packed, IPv4Address(destination).packed,
            )  # fmt: skip
            raw.sendto(header + payload, (destination, 0))
            sent += 1
            if sent % _WINDOW == 0:
                _await_taken(victim, received + sent - _WINDOW)
    _await_taken(victim, received + sent - sent // 1000)
    after = victim.counters()
    return Storm(
        sent,
        after["sockets"]["received"] - received,
        time.monotonic() - begun,
        victim.resident() - memory,
        Counter(after["packet-errors"]) - Counter(before.get("packet-errors", {})),
        len(victim.records()) - lines,
        sum(after["neighbor-transitions"].values()) - sum(before["neighbor-transitions"].values()),
    )


def _await_taken(victim, count: int) -> None:
    """Wait a moment for the daemon to have taken so many; the kernel may have refused some."""
    deadline = time.monotonic() + 0.1
    while victim.counters()["sockets"]["received"] < count and time.monotonic() < deadline:
        assert victim.alive()


def report(name: str, storm: Storm) -> None:
    rate = storm.received / storm.seconds
    print(  # noqa: T201 - the figures of the run
        f"\n{name}: {storm.received} of {storm.sent} received in {storm.seconds:.1f} s"
        f" ({rate:.0f}/s), {storm.lines} log lines, {storm.transitions} transitions,"
        f" memory {storm.grown / 1e6:+.1f} MB\n  {dict(storm.errors.most_common())}",
        file=sys.stderr,
    )


def unharmed(pair: Pair, storm: Storm, routes: object) -> None:
    """What holds after any storm."""
    victim = pair.left
    assert victim.alive()
    assert victim.complaints() == []
    assert storm.received >= 0.95 * storm.sent, "the daemon really got them"
    assert storm.lines < storm.sent / 100
    assert storm.grown < 16 << 20
    pair.await_routes()
    wait_for(lambda: pair.view.routes() == routes, 5, "the routes are what they were")
    shown = victim.metrics()
    for reason, count in victim.counters()["packet-errors"].items():
        assert shown[f'fared_packet_errors_total{{proto="ospf",reason="{reason}"}}'] >= count


def test_packets_with_wrong_checksums_do_not_move_anything(victim_pair: Pair, corpus: list[bytes]):
    """Every one is counted by its reason; the adjacency does not notice."""
    routes = victim_pair.view.routes()
    storm = fire(victim_pair, broken(random.Random(SEED), corpus))
    report("broken checksums", storm)
    unharmed(victim_pair, storm, routes)
    assert storm.transitions == 0
    assert storm.lines < storm.sent / 1000
    assert sum(storm.errors.values()) >= 0.95 * storm.received
    assert {"checksum", "length", "version"} <= set(storm.errors)


def test_packets_with_right_checksums_of_strangers_leave_the_adjacency_full(
    victim_pair: Pair, corpus: list[bytes]
):
    """They get past the checksum and are turned away by what stands behind it."""
    routes = victim_pair.view.routes()
    storm = fire(victim_pair, repaired(random.Random(SEED + 1), corpus))
    report("repaired checksums", storm)
    unharmed(victim_pair, storm, routes)
    assert {"unknown-neighbor", "area-mismatch", "second-neighbor"} & set(storm.errors)
    assert wait_for(lambda: victim_pair.view.hops(RIGHT_STUB), 5, "the route")


def test_what_looks_like_the_neighbor_costs_the_adjacency_at_most(
    victim_pair: Pair, corpus: list[bytes]
):
    """Without authentication nobody can tell; but neither daemon trips, and both recover."""
    routes = victim_pair.view.routes()
    storm = fire(victim_pair, in_its_name(random.Random(SEED + 2), corpus))
    report("in the neighbor's name", storm)
    unharmed(victim_pair, storm, routes)
    assert victim_pair.right.complaints() == []
