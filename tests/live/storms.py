"""Storms of bad packets for a live daemon, no faster than it reads them, and their checks."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import pytest

from fared.daemon.loop.after_flood import LOOK_INTERVAL
from tests.live.daemons import LINKS, Live, Pair
from tests.waiting import wait_for

_SOAK = (pytest.mark.soak, pytest.mark.timeout(3600))
COUNTS = [20_000, pytest.param(1_000_000, marks=_SOAK)]
IN_ITS_NAME = [10_000, pytest.param(1_000_000, marks=_SOAK)]
"""Packets of each storm."""
STAYS = 0.05
"""The part of a daemon's memory by which it may be larger some seconds after a storm."""
AT_ONCE_LONG = 0.12
"""The same at the moment when the last packet of a million is read, of which thousands waited at
a time."""
LONG = 100_000
CALM = 10 * LOOK_INTERVAL
"""Seconds after the last packet within which a daemon is as large as before, on a busy machine."""
_REACTIONS = ("neighbor-changed", "converged")
Shot = TypeVar("Shot")
_WINDOW = 256
"""Packets on their way at once: fewer than the receive buffer of the daemon's socket holds."""
_IDLE_ANSWERS, _IDLE_SECONDS = 20, 0.1
"""A daemon that reads no packet for so many answers, and so long, has none to read."""


class Groups(NamedTuple):
    """The names of a protocol's counter groups."""

    sockets: str
    errors: str
    transitions: str


OSPF = Groups("sockets", "packet-errors", "neighbor-transitions")
ISIS = Groups("sockets", "pdu-errors", "adjacency-transitions")


@dataclass
class Storm:
    """The figures of one storm.

    ``resident`` and ``grown`` are bytes of memory; ``kept``: of ``grown``, some seconds later.
    ``lines`` are of the log (``lines_of_packets``).
    """

    sent: int
    received: int
    seconds: float
    resident: int
    grown: int
    kept: int
    errors: Counter[str]
    lines: int
    transitions: int


def heard_at_a_restart(
    pair: Pair, ethertype: int, payload: Callable[[bytes], bytes | None]
) -> list[bytes]:
    """Packets on the first link while its right end restarts, but for None of ``payload``."""
    netns = pair.right.netns
    heard: set[bytes] = set()
    with netns.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ethertype)) as ear:
        ear.bind((LINKS[0], ethertype))
        pair.right.terminate()
        pair.right.start()
        pair.await_routes()
        ear.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                found = payload(ear.recv(65536))
                if found is not None:
                    heard.add(found)
    return sorted(heard)


def fire(
    victim: Live,
    groups: Groups,
    shots: Iterable[Shot],
    send: Callable[[Shot], object],
    *,
    calm: float = CALM,
) -> Storm:
    """Send all packets, with no more unread than the daemon's socket holds.

    ``calm``: seconds that it has afterwards to become smaller again, if it should.
    """
    # what the daemon loads for those who look at it, some MB, is no effect of the storm
    await_views(victim)
    victim.metrics()
    before = victim.counters()
    memory, lines = victim.resident(), lines_of_packets(victim)
    received = before[groups.sockets]["received"]
    sent, dropped, begun = 0, 0, time.monotonic()
    for shot in shots:
        send(shot)
        sent += 1
        if sent % _WINDOW == 0:
            dropped += _await_taken(victim, groups, received + sent - dropped - _WINDOW)
    _await_taken(victim, groups, received + sent - dropped - sent // 1000)
    after, seconds = victim.counters(), time.monotonic() - begun
    grown = victim.resident() - memory
    return Storm(
        sent,
        after[groups.sockets]["received"] - received,
        seconds,
        memory,
        grown,
        kept(victim, memory, calm),
        Counter(after.get(groups.errors, {})) - Counter(before.get(groups.errors, {})),
        lines_of_packets(victim) - lines,
        sum(after[groups.transitions].values()) - sum(before[groups.transitions].values()),
    )


def lines_of_packets(victim: Live) -> int:
    """How many lines its log has, but for those of neighbors and computed routes.

    A packet in the neighbor's name may end the adjacency: each time the daemon forms it again, and
    says so. How often depends on the speed of the machine.
    """
    return sum(record["event"] not in _REACTIONS for record in victim.records())


def kept(victim: Live, memory: int, calm: float) -> int:
    """By how many bytes a daemon is larger than it was, when it has had the time to be smaller."""
    with contextlib.suppress(AssertionError):
        wait_for(lambda: victim.resident() - memory < STAYS * memory, calm, "memory is returned")
    return victim.resident() - memory


def await_views(victim: Live) -> None:
    """Wait until a daemon that has started has loaded all that it ever loads."""
    begun = [n for n, row in enumerate(victim.records()) if row["event"] == "starting"][-1]
    wait_for(
        lambda: any(row["event"] == "views-loaded" for row in victim.records()[begun:]),
        60,
        "the views are loaded",
    )


def _await_taken(victim: Live, groups: Groups, count: int) -> int:
    """Wait until the daemon has read this many; return how many the kernel must have dropped.

    These it will never read: it has answered again and again, and had time, but read nothing more.
    """
    seen, answers, since = -1, 0, 0.0
    while (now := victim.counters()[groups.sockets]["received"]) < count:
        assert victim.alive()
        if now != seen:
            seen, answers, since = now, 0, time.monotonic()
        answers += 1
        if answers > _IDLE_ANSWERS and time.monotonic() - since > _IDLE_SECONDS:
            return count - now
    return 0


def report(name: str, storm: Storm) -> None:
    """Print the figures of the storm."""
    grown, stayed = storm.grown / storm.resident, storm.kept / storm.resident
    print(  # noqa: T201
        f"\n{name}: {storm.received} of {storm.sent} received in {storm.seconds:.1f} s"
        f" ({storm.received / storm.seconds:.0f}/s), {storm.lines} log lines,"
        f" {storm.transitions} transitions, memory {storm.grown / 1e6:+.1f} MB ({grown:+.1%}),"
        f" later {storm.kept / 1e6:+.1f} MB ({stayed:+.1%})\n"
        f"  {dict(storm.errors.most_common())}",
        file=sys.stderr,
    )


def assert_weathered(
    victim: Live,
    storm: Storm,
    memory: int,
    *,
    at_once: float | None = None,
    stays: float = STAYS,
) -> None:
    """Assert that the daemon survived the storm; ``memory`` limits its growth in bytes.

    ``stays`` is the part of its memory by which it may be larger when calm has returned;
    ``at_once`` the same when it has just read the last packet, if no adjacency has ended.
    """
    assert victim.alive()
    assert victim.complaints() == []
    assert storm.received >= 0.95 * storm.sent, "the daemon really got them"
    assert storm.lines < storm.sent / 100
    assert storm.grown < memory
    if not storm.transitions:
        if at_once is None:
            at_once = AT_ONCE_LONG if storm.sent >= LONG else stays
        assert storm.grown < at_once * storm.resident
    assert storm.kept < stays * storm.resident
