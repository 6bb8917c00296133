"""Thousands of mutated packets on a neighbor's link: the daemon counts them, and continues."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import time
from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import NamedTuple

import pytest

from fared.core.checksum import internet_checksum
from tests.live import storms
from tests.live.daemons import LINKS, RIGHT, RIGHT_STUB, Pair, running_pair
from tests.live.storms import (
    COUNTS,
    IN_ITS_NAME,
    Storm,
    assert_weathered,
    report,
)
from tests.packets.forged import mutate
from tests.packets.forged_ospf import LSU, repair, sent_by
from tests.packets.recorded import OSPF, load
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]

ALL_ROUTERS, VICTIM, NEIGHBOUR = "224.0.0.5", "10.129.0.0", "10.129.0.1"
OTHERS = ("10.129.0.7", "192.0.2.1", "203.0.113.250", "0.0.0.0")
SEED = 20_240_601
_IP = struct.Struct("!BBHHHBBH4s4s")


class Shot(NamedTuple):
    """One packet to send."""

    source: str
    destination: str
    payload: bytes


LINES_A_MINUTE = 33
"""Of rejections: 32 sources and reasons, and one line to say that the rest is only counted."""


@pytest.fixture(scope="module")
def victim_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running_pair("w", tmp_path_factory.mktemp("storm")) as pair:
        yield pair


@pytest.fixture(scope="module")
def corpus(victim_pair: Pair) -> list[bytes]:
    """Recorded packets, and those of this very session: the victim's neighbour starts again."""
    heard = storms.heard_at_a_restart(victim_pair, 3, lambda p: p[20:] if p[9] == 89 else None)
    assert {payload[1] for payload in heard} >= {1, 2, 4, 5}, "hello, DD, update, ack were heard"
    return [recorded.payload for recorded in load(*OSPF)] + heard


def broken(rng: random.Random, corpus: list[bytes], count: int) -> Iterator[Shot]:
    """Mutations with the checksum as it comes, which a lucky mutation does not make right."""
    for _ in range(count):
        data = bytearray(mutate(rng, corpus).ljust(16, b"\0"))
        covered = bytes(data[: int.from_bytes(data[2:4], "big")])  # what follows is not OSPF's
        checksum = internet_checksum(covered[:12] + bytes(2) + covered[14:16] + covered[24:])
        if int.from_bytes(data[12:14], "big") == checksum:
            data[12] ^= 0x55
        yield Shot(_source(rng), _destination(rng), bytes(data))


def repaired(rng: random.Random, corpus: list[bytes], count: int) -> Iterator[Shot]:
    """Mutations that reach the parts behind the checksum, never with the neighbour's own id."""
    for _ in range(count):
        data = repair(rng, mutate(rng, corpus))
        yield Shot(_source(rng), _destination(rng), data)


def in_its_name(rng: random.Random, corpus: list[bytes], count: int) -> Iterator[Shot]:
    """Mutations that nothing tells from the neighbour's own packets: the worst there is."""
    for _ in range(count):
        data = repair(rng, mutate(rng, corpus))
        yield Shot(NEIGHBOUR, ALL_ROUTERS, sent_by(IPv4Address(RIGHT).packed, data))


def _source(rng: random.Random) -> str:
    """Mostly the neighbour's: what comes from elsewhere is refused before it is decoded."""
    kind = rng.random()
    if kind < 0.9:
        return NEIGHBOUR
    if kind < 0.95:
        return rng.choice(OTHERS)
    return str(IPv4Address(rng.randrange(0x0B000000, 0x7E000000)))


def _destination(rng: random.Random) -> str:
    """Mostly all routers: unicasts on a point-to-point link are refused before they are decoded."""
    return VICTIM if rng.random() < 0.05 else ALL_ROUTERS


def fire(pair: Pair, shots: Iterator[Shot]) -> Storm:
    """Send all over the first link."""
    with pair.right.netns.socket(socket.AF_INET, socket.SOCK_RAW, 89) as raw:
        raw.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, LINKS[0].encode())

        def send(shot: Shot) -> None:
            # of unicasts, the kernel lets only those with TTL 255 through to the daemon
            ttl = 1 if IPv4Address(shot.destination).is_multicast else 255
            header = _IP.pack(
                0x45, 0xC0, 20 + len(shot.payload), 0, 0, ttl, 89, 0,
                IPv4Address(shot.source).packed, IPv4Address(shot.destination).packed,
            )  # fmt: skip
            raw.sendto(header + shot.payload, (shot.destination, 0))

        return storms.fire(pair.left, storms.OSPF, shots, send)


def unharmed(pair: Pair, storm: Storm, routes: object) -> None:
    """What holds after any storm."""
    victim = pair.left
    assert_weathered(victim, storm, 16 << 20)
    pair.await_routes()
    wait_for(lambda: pair.view.routes() == routes, 20, "the routes are what they were")
    shown = victim.metrics()
    for reason, count in victim.counters()["packet-errors"].items():
        assert shown[f'fared_packet_errors_total{{proto="ospf",reason="{reason}"}}'] >= count


@pytest.mark.parametrize("count", COUNTS)
def test_packets_with_wrong_checksums_change_no_state(
    victim_pair: Pair, corpus: list[bytes], count: int
):
    """Every one is counted by its reason; the adjacency does not notice."""
    routes = victim_pair.view.routes()
    storm = fire(victim_pair, broken(random.Random(SEED), corpus, count))
    report("broken checksums", storm)
    unharmed(victim_pair, storm, routes)
    assert storm.transitions == 0
    assert storm.lines <= LINES_A_MINUTE * (2 + storm.seconds // 60), "of the minutes it touches"
    assert sum(storm.errors.values()) >= 0.95 * storm.received
    assert {"checksum", "length", "version"} <= set(storm.errors)


@pytest.mark.parametrize("count", COUNTS)
def test_mutated_packets_with_valid_checksums_leave_the_adjacency_full(
    victim_pair: Pair, corpus: list[bytes], count: int
):
    """They get past the checksum and are turned away by what stands behind it."""
    routes = victim_pair.view.routes()
    storm = fire(victim_pair, repaired(random.Random(SEED + 1), corpus, count))
    report("repaired checksums", storm)
    unharmed(victim_pair, storm, routes)
    assert {"unknown-neighbor", "area-mismatch", "second-neighbor"} & set(storm.errors)
    assert wait_for(lambda: victim_pair.view.hops(RIGHT_STUB), 20, "the route")


@pytest.mark.parametrize("count", IN_ITS_NAME)
def test_packets_forged_in_the_name_of_the_neighbor_do_no_lasting_harm(
    victim_pair: Pair, corpus: list[bytes], count: int
):
    """Without authentication nobody can tell; but neither daemon trips, and both recover."""
    routes = victim_pair.view.routes()
    storm = fire(victim_pair, in_its_name(random.Random(SEED + 2), corpus, count))
    report("in the neighbor's name", storm)
    unharmed(victim_pair, storm, routes)
    assert victim_pair.right.complaints() == []


def flood(pair: Pair, packet: bytes, seconds: float) -> int:
    """Send one packet again and again, faster than it can be processed; return how often."""
    sent, until = 0, time.monotonic() + seconds
    with pair.right.netns.socket(socket.AF_INET, socket.SOCK_RAW, 89) as raw:
        raw.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, IPv4Address(NEIGHBOUR).packed)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, LINKS[0].encode())
        while time.monotonic() < until:
            for _ in range(64):
                with contextlib.suppress(OSError):
                    raw.sendto(packet, (ALL_ROUTERS, 0))
            sent += 64
    return sent


@pytest.mark.soak
def test_a_flood_of_updates_for_more_than_the_dead_interval_delays_no_hello(
    victim_pair: Pair, corpus: list[bytes]
):
    """What is dropped is counted by type, and logged once; the adjacency stays."""
    victim = victim_pair.left
    victim_pair.await_routes()
    for daemon in (victim, victim_pair.right):
        daemon.prioritize()
    before, lines = victim.counters(), len(victim.records())
    update = next(p for p in corpus if p[1] == LSU)
    sent = flood(victim_pair, sent_by(IPv4Address(RIGHT).packed, update), 6.0)
    after = victim.counters()
    dropped = after["sockets"].get("dropped-ls-update", 0)
    print(f"\nflood: {sent} sent, {dropped} dropped by type")  # noqa: T201
    assert after["neighbor-transitions"] == before["neighbor-transitions"]
    assert not after["sockets"].get("dropped-hello")
    rows = [row for row in victim.records()[lines:] if row["event"] == "packets-dropped"]
    assert len(rows) == bool(dropped)
    victim_pair.await_routes()
