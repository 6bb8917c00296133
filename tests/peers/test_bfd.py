"""BFD beside FRR and BIRD: failures of one direction of a link, which no carrier shows."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from fared.extensions.lab.kinds.base import Command
from fared.management.api.client import DaemonUnreachableError
from tests.packets.wireshark import assert_sound
from tests.peers.isis_lan import IsisMember
from tests.peers.lan import PORT, Member
from tests.peers.peers import fared, tell
from tests.peers.recordings import (
    WIRESHARK,
    Recordings,
    complaints,
    dissected,
    recorded_packets,
)
from tests.peers.silence import Silence
from tests.peers.test_unnumbered import IsisStar, Star
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.netns,
    pytest.mark.peers,
    pytest.mark.slow,
    WIRESHARK,
]

MULTIPLIER = 3
FAST = 50
BOUNDS = {FAST: 0.8, 300: 2.5}
"""By the interval of packets in milliseconds: seconds within which a failure has its effect.

It is there after three intervals; a session that ran at 300 ms instead of 50, or a neighbor that
was left for want of hellos, takes longer than the bound.
"""
BUSY = 0.3
"""Seconds more on a busy machine for fared's log."""
_AT_ONCE, _ATTEMPTS = 0.05, 20
"""Seconds within which packets must be dropped, for a time since then to count."""
BFD = "udp port 3784"
ONE_END_LEFT = "ADJCHANGE|Link State Update: Unknown Neighbor"
"""What FRR logs when it has left us, and we, who receive nothing, still flood for a moment."""
_LEFT = {
    "fared": r'"previous": "(Full|Up)"',
    "frr": r"Full -> |from Up to ",
    "bird": r"changed state from Full to ",
}
"""What each implementation logs when it leaves a neighbor.

The reason is its session, or that the neighbor, whose session went down first, lists it no more.
"""
_JOINED = {
    "fared": r'"previous": "[^"]*", "state": "(Full|Up)"',
    "frr": r" -> Full |to Up,",
    "bird": r"changed state from \w+ to Full",
}
"""What each implementation logs when it is adjacent to a neighbor."""


class BfdMember(Member):
    """A router with BFD on all of its links."""

    interval = 0

    def files(self) -> dict[str, str]:
        """The configuration of its make."""
        found = super().files()
        if self.kind == "fared":
            document = yaml.safe_load(found["fared.yaml"])
            area = document["isis"] if self.isis else document["ospf"]["areas"]["0.0.0.0"]
            times = {"min-tx": f"{self.interval}ms", "min-rx": f"{self.interval}ms"}
            for port in self.ports:
                area["interfaces"][port]["bfd"] = {"enabled": True, **times}
            return {"fared.yaml": yaml.safe_dump(document, sort_keys=False)}
        if self.kind == "bird":
            text = found["bird.conf"].replace("type ptp;", "type ptp; bfd yes;")
            text = text.replace("tick 1;", "tick 1; debug { events };")
            session = f"interval {self.interval} ms; multiplier {MULTIPLIER};"
            bfd = f'protocol bfd {{ interface "{PORT}" {{ {session} }}; }}\n'
            return {"bird.conf": text + bfd}
        name, words = ("isisd.conf", "isis bfd") if self.isis else ("ospfd.conf", "ip ospf bfd")
        router = "router isis lan" if self.isis else "router ospf"
        more = f"interface {PORT}\n {words}\n {words} profile fast\n"
        more += f"{router}\n log-adjacency-changes\n"
        bfdd = (
            f"bfd\n profile fast\n  detect-multiplier {MULTIPLIER}\n"
            f"  receive-interval {self.interval}\n  transmit-interval {self.interval}\n"
        )
        return {**found, name: found[name] + more, "bfdd.conf": bfdd}

    def commands(self) -> list[Command]:
        """FRR runs bfdd too, from before the protocol."""
        found = super().commands()
        if self.kind != "frr":
            return found
        zebra, protocol = found
        arguments = [word.replace(protocol.name, "bfdd") for word in protocol.arguments]
        arguments += ["--bfdctl", str(self.directory / "bfdd.sock")]
        return [zebra, Command("bfdd", tuple(arguments), self.directory / "bfdd.vty"), protocol]

    def left(self) -> int:
        """The number of times that it left a neighbor, in each level."""
        return len(re.findall(_LEFT[self.kind], self._log()))

    def adjacent(self) -> bool:
        """Whether it has a neighbor: it came to be adjacent more often than it left."""
        return len(re.findall(_JOINED[self.kind], self._log())) > self.left()

    def _log(self) -> str:
        logs = {"bird": "bird", "frr": "isisd" if self.isis else "ospfd", "fared": "fared"}
        return (self.directory / f"{logs[self.kind]}.log").read_text("utf-8", "replace")


class BfdIsisMember(BfdMember, IsisMember):
    """The same over IS-IS."""


@dataclass
class Case:
    """A star whose sessions are up."""

    star: Any
    interval: int

    @property
    def peers(self) -> list[Any]:
        """The neighbors of fared."""
        return [self.star.node(name) for name in self.star.peers]

    def sessions(self) -> list[dict[str, Any]]:
        """The sessions of fared that are up, at both ends."""
        rows: list[dict[str, Any]] = fared(self.star.node("F")).request("show", "bfd")["sessions"]
        return [row for row in rows if row["state"] == row["neighbor_state"] == "Up"]

    def whole(self) -> bool:
        """Whether there is a session with each neighbor, with the intervals that were asked for.

        FRR's IS-IS runs one session, over IPv6.
        """
        try:
            found = self.sessions()
        except DaemonUnreachableError:
            return False
        fast = [row for row in found if row["transmit_interval"] == self.interval / 1000]
        return sorted(row["interface"] for row in fast) == sorted(self.star.peers)

    def neighbors(self) -> list[str]:
        """The links over which fared has a neighbor."""
        rows = fared(self.star.node("F")).request("show", "neighbors")["neighbors"]
        return sorted(row["interface"] for row in rows if row["state"] in ("Full", "Up"))

    def await_whole(self) -> None:
        """Wait until there are sessions and adjacencies with all neighbors, by both ends' account.

        A session comes up before its adjacency, and who is not adjacent yet cannot leave.
        """
        wait_for(self.whole, 20.0, lambda: f"sessions, but {self.sessions()}")
        for peer in self.peers:
            wait_for(peer.adjacent, 20.0, f"{peer.name} is adjacent")
        wait_for(
            lambda: self.neighbors() == sorted(self.star.peers),
            20.0,
            lambda: f"adjacencies, but {self.neighbors()}",
        )

    def silenced(self, name: str, *ports: str, leave: list[Any]) -> dict[str, float]:
        """Drop what a member receives; return the seconds until each of some members left.

        The rules took effect between two moments. Where the kernel let these lie apart, nothing
        was measured: it is tried again.
        """
        for _ in range(_ATTEMPTS):
            began, passed = self._silenced(name, *ports, leave=leave)
            if began < _AT_ONCE:
                break
            tell(f"dropping began within {began:.3f} s: again")
        assert began < _AT_ONCE
        return passed

    def _silenced(self, name: str, *ports: str, leave: list[Any]) -> tuple[float, dict[str, float]]:
        """The seconds within which dropping began, and those until each had left."""
        before = {member.name: member.left() for member in leave}
        passed: dict[str, float] = {}

        def noted() -> bool:
            for member in leave:
                if member.left() > before[member.name]:
                    passed.setdefault(member.name, time.monotonic() - begun)
            return len(passed) == len(leave)

        with Silence(self.star.node(name).netns, *ports) as silence:
            begun = time.monotonic()
            silence.begin()
            dropping = time.monotonic() - begun
            wait_for(noted, 10.0, lambda: f"leaves neighbors: {passed}", pause=0.002)
            silence.end()
        self.await_whole()
        return dropping, passed


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            (base, member, interval),
            id=f"{name}-{interval}ms",
            marks=pytest.mark.alone if interval == FAST else (),
        )
        for name, base, member in (("ospf", Star, BfdMember), ("isis", IsisStar, BfdIsisMember))
        for interval in BOUNDS
    ],
)
def case(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    """Start a star, and wait until all sessions are up."""
    base, member, interval = request.param
    directory = tmp_path_factory.mktemp("star")
    for parent in (directory, directory.parent):
        parent.chmod(0o755)
    timed = type("Timed", (member,), {"interval": interval})
    star = type("TimedStar", (base,), {"member": timed})(directory)
    recordings = Recordings(star, directory / "sent", BFD)
    try:
        for router in star.members.values():
            router.start()
        made = Case(star, interval)
        made.await_whole()
        yield made
        recordings.stop()
        check(recordings.path("F"), len(star.peers))
        assert complaints(star, ONE_END_LEFT) == {}
    finally:
        recordings.stop()
        star.close()


def check(recording: Path, links: int) -> None:
    """Check every packet that fared sent, with Wireshark's dissector."""
    text = dissected(recording, "bfd,ip,ipv6")
    assert_sound(text)
    sent = list(recorded_packets(recording))
    assert text.count("BFD Control message") == len(sent)
    assert len({ifindex for ifindex, _ in sent}) == links
    for state in ("Down", "Up"):
        assert f"Session State: {state} (" in text


def test_neighbors_leave_when_fared_receives_nothing_any_more(case: Case):
    bound = BOUNDS[case.interval]
    passed = case.silenced("F", *case.star.peers, leave=case.peers)
    tell(f"fared receives nothing: neighbors left after {passed}")
    assert max(passed.values()) < bound, fared(case.star.node("F")).request("show", "bfd")


def test_fared_leaves_a_neighbor_that_receives_nothing_any_more(case: Case):
    for peer in case.peers:
        passed = case.silenced(peer.name, PORT, leave=[case.star.node("F")])
        tell(f"{peer.kind} {peer.name} receives nothing: fared left after {passed}")
        assert passed["F"] < BOUNDS[case.interval] + BUSY
