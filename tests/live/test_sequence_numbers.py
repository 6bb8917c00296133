"""Four routers in a ring with keys; two refuse equal sequence numbers, as current FRR does.

A has a link under MD5 and one under HMAC, C two with extended sequence numbers; B and D between
them are the strict ones.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fared.extensions.lab.namespaces import Netns
from tests.live.daemons import Live
from tests.waiting import wait_for

pytestmark = pytest.mark.netns

DEAD = 15
RETRANSMIT = 15.0
"""Seconds after which what was refused comes again."""
DAY = 86_400
LSAS = 50
MD5 = {"algorithm": "md5", "key-id": 1, "key": "one"}
HMAC = {"algorithm": "hmac-sha-256", "key-id": 2, "key": "two"}
EXTENDED = {"algorithm": "hmac-sha-512", "key-id": 3, "key": "three", "extended-sequence": True}
CABLES = {"ab": MD5, "ad": HMAC, "bc": EXTENDED, "cd": EXTENDED}
STRICT = "bd"


class Ring:
    """The routers by name, each with its links, which bear the names of both ends."""

    def __init__(self, directory: Path) -> None:
        self.routers: dict[str, Live] = {}
        for number, name in enumerate("abcd", start=1):
            netns = Netns.create(f"ring{os.getpid()}{name}")
            self.routers[name] = Live(netns, directory / name, _config(name, number))
            netns.ip("addr", "add", f"10.255.7.{number}/32", "dev", "lo")
        for index, cable in enumerate(CABLES):
            near, far = (self.routers[name].netns for name in cable)
            # of equal interface indexes at both ends the kernel tells up to a second late
            wire = f"link add name {cable} index {10 + index} type veth"
            wire += f" peer name {cable} index {110 + index} netns {far.name}"
            near.ip(*wire.split())
            for end, netns in enumerate((near, far)):
                netns.ip("addr", "add", f"10.129.{index}.{end}/31", "dev", cable)
        for name in STRICT:
            self.routers[name].altered = {"FARED_TEST_STRICT": "1"}

    def start(self) -> float:
        """Start all, then bring all links up; return seconds from there until all is Full."""
        for router in self.routers.values():
            router.start()
        for router in self.routers.values():
            wait_for(lambda r=router: _serves(r), 20, "all that it loads is loaded")
        begun = time.monotonic()
        for name, router in self.routers.items():
            router.netns.batch("ip", [f"link set dev {c} up" for c in CABLES if name in c])
        return self.full_after(begun)

    def full_after(self, begun: float) -> float:
        """Wait until all neighbors are Full; return seconds since ``begun``."""
        full = lambda: all(router.full() == 2 for router in self.routers.values())  # noqa: E731
        wait_for(full, 30, "all neighbors Full")
        return time.monotonic() - begun

    def equal_after(self, begun: float, external: int) -> float:
        """Wait until all hold one database with so many external LSAs; seconds since ``begun``."""
        wait_for(lambda: self._agreed(external), 30, "equal databases")
        return time.monotonic() - begun

    def _agreed(self, external: int) -> bool:
        documents = [router.show("lsdb") for router in self.routers.values()]
        if any(len(document["as"]) != external for document in documents):
            return False
        first, *others = (_contents(document) for document in documents)
        return all(other == first for other in others)

    def restart(self, name: str) -> float:
        """``kill -9`` and start at once; return seconds from the kill until all is Full again."""
        router = self.routers[name]
        begun = time.monotonic()
        router.kill()
        router.start()
        wait_for(lambda: router.full() == 2, 30, f"{name} has its neighbors again")
        return self.full_after(begun)

    def refused(self) -> dict[str, int]:
        """Packets that each router refused for their sequence number."""
        return {
            name: sum(group.get("auth-sequence", 0) for group in router.counters().values())
            for name, router in self.routers.items()
        }

    def close(self) -> None:
        for router in self.routers.values():
            router.kill()
            router.netns.delete()


def _serves(router: Live) -> bool:
    try:
        return router.get("/healthz")[0] == 200
    except OSError:
        return False


def _contents(document: dict[str, Any]) -> set[str]:
    """All LSAs without their ages."""
    rows = [row for area in document["areas"] for row in area["lsas"]] + document["as"]
    return {row["hex"][4:] for row in rows}


def _config(name: str, number: int) -> dict[str, Any]:
    links = {
        cable: {"hello-interval": 1, "dead-interval": DEAD, "retransmit-interval": RETRANSMIT}
        | {"authentication": key}
        for cable, key in CABLES.items()
        if name in cable
    }
    return {
        "router-id": f"10.255.7.{number}",
        "hostname": name,
        "ospf": {
            "areas": {"0.0.0.0": {"interfaces": {"lo": {"passive": True}, **links}}},
            "redistribute": {"static": {}} if name == "a" else {},
        },
    }


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[Ring]:
    made = Ring(tmp_path)
    try:
        yield made
    finally:
        made.close()


def tell(text: str) -> None:
    print(f"\n{text}", file=sys.stderr)  # noqa: T201 - the figures of the run


def announce(router: Live, count: int) -> float:
    """Give a router one static route after the other, evenly over a second; how long it took."""
    pace = threading.Event()
    begun = time.monotonic()
    for number in range(count):
        router.netns.ip("route", "add", "blackhole", f"203.0.113.{number}/32")
        pace.wait(max(0.0, begun + (number + 1) / count - time.monotonic()))
    return time.monotonic() - begun


def test_strict_receivers_accept_all_packets_after_restarts_and_with_a_clock_behind(ring: Ring):
    full = ring.start()
    tell(f"MD5, HMAC and extended beside strict receivers: all Full {full:.2f} s after link up")
    took = announce(ring.routers["a"], LSAS)
    equal = ring.equal_after(time.monotonic(), LSAS)
    refused = ring.refused()
    tell(f"{LSAS} LSAs in {took:.2f} s: databases equal {equal:.2f} s later; refused: {refused}")
    assert full < RETRANSMIT
    assert equal < RETRANSMIT
    assert set(refused.values()) == {0}

    again = ring.restart("a")
    equal = ring.equal_after(time.monotonic(), LSAS)
    tell(f"a (MD5, HMAC), kill -9: Full {again:.2f} s after, databases equal {equal:.2f} s later")
    assert again < DEAD + RETRANSMIT

    before = ring.refused()
    ring.routers["c"].altered = {"FARED_TEST_CLOCK_BEHIND": str(DAY)}
    again = ring.restart("c")
    refused = {name: count - before[name] for name, count in ring.refused().items() if name != "c"}
    tell(f"c (extended), kill -9, clock a day behind: Full {again:.2f} s after; refused: {refused}")
    assert again < DEAD, "it was heard before anybody gave it up"
    assert set(refused.values()) == {0}
