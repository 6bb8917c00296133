"""Random changes of fared's configuration beside FRR and BIRD, applied and left unconfirmed.

Whatever is applied, only what differs moves; and when the former configuration returns, kernel and
database are as they were; also if the daemon is killed at any moment before.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from fared.management.api.client import DaemonRefusedError, DaemonUnreachableError
from tests.peers.peers import MAX_AGE, await_equal_databases, fared, tell
from tests.peers.test_unnumbered import PEERS, Star
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]
SOAK = bool(os.environ.get("FARED_TEST_SOAK"))
PAIRS = 300 if SOAK else 4
KILLS = 60 if SOAK else 2
CONFIRM = 1.0
"""Seconds for the confirmation."""
SEED = 20261124
BACK = 20.0
"""Seconds: an LSA that changes twice waits for MinLSInterval."""
AREA = ("ospf", "areas", "0.0.0.0", "interfaces")
LOADS = re.compile(rb"\x00[\x20\x21]\x00\x04.{4}", re.DOTALL)
"""The sub-TLVs of available and utilized bandwidth (RFC 7471 §4.6, §4.7)."""
CHOICES: dict[tuple[str, ...], tuple[Any, ...]] = {
    (*AREA, "R", "cost"): (5, 20, 77),
    (*AREA, "B", "cost"): (5, 20, 77),
    (*AREA, "R", "retransmit-interval"): ("2s", "3s"),
    (*AREA, "lo", "cost"): (1, 3),
    ("ospf", "spf", "initial-delay"): ("5ms", "20ms"),
    ("ospf", "spf", "short-delay"): ("60ms", "90ms"),
    ("ospf", "max-paths"): (8, 2),
    ("ospf", "stub-router"): (True,),
    ("ospf", "preference"): (99,),
    ("ospf", "adjacency-stagger"): (2,),
    ("ospf", "redistribute", "connected"): ({"metric": 7}, {"metric": 9, "metric-type": 1}),
    ("ospf", "max-lsas"): (5000,),
    ("adaptive", "flows"): (64, 256),
    ("adaptive", "metric"): ("available",),
    ("adaptive", "enabled"): (False,),
    ("adaptive", "measure-period"): ("200ms",),
    ("interfaces", "R", "bandwidth"): ("10G", "1G"),
    ("link-health", "interfaces", "R", "mode"): ("monitor",),
    ("log", "level"): ("debug", "warning"),
    ("hostname",): ("other",),
    (*AREA, "R", "hello-interval"): (2,),
}
"""Settings of F, and other values for them; the last one may end an adjacency."""


@pytest.fixture(scope="module")
def star(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Star]:
    directory = tmp_path_factory.mktemp("star")
    for parent in (directory, directory.parent):
        parent.chmod(0o755)
    made = Star(directory)
    try:
        for member in made.members.values():
            member.start()
        wait_for(lambda: adjacent(made), 20.0, "both neighbors are Full")
        await_equal_databases(made, 30.0)
        for peer in PEERS:
            wait_for(lambda peer=peer: made.hops("F", made.node(peer)), 20.0, f"a route to {peer}")
        yield made
    finally:
        made.close()


def ask(star: Star, command: str, **arguments: Any) -> dict[str, Any]:
    return fared(star.node("F")).request(command, args=arguments)


def adjacent(star: Star) -> bool:
    try:
        rows = ask(star, "show neighbors")["neighbors"]
    except DaemonUnreachableError:
        return False
    return len(rows) == len(PEERS) and all(row["state"] == "Full" for row in rows)


def transitions(star: Star) -> dict[str, int]:
    """How often each adjacency was lost."""
    return {e["interface"]: e["flaps"] for e in ask(star, "show interfaces")["interfaces"]}


def kernel(star: Star) -> list[str]:
    """All routes with their next hops, as ``ip`` prints them, without the ids of next hops."""
    netns = star.node("F").netns
    routes = json.loads(netns.ip("-j", "-d", "route", "show", "table", "all"))
    for route in routes:
        route.pop("nhid", None)
        route.get("nh_info", {}).pop("id", None)
    return sorted(json.dumps(route, sort_keys=True) for route in routes)


def database(star: Star) -> set[tuple[str, bytes]]:
    """All LSAs that are in use, without age, sequence number, checksum and measured loads."""
    found = ask(star, "show lsdb")
    lsas = [("as", lsa) for lsa in found["as"]]
    lsas += [(area["area"], lsa) for area in found["areas"] for lsa in area["lsas"]]
    raw = [(area, bytes.fromhex(lsa["hex"])) for area, lsa in lsas if lsa["age"] < MAX_AGE]
    return {(area, LOADS.sub(b"", text[2:12] + text[18:])) for area, text in raw}


def changed(config: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    other = copy.deepcopy(config)
    for path in dice.sample(list(CHOICES), dice.randint(1, 5)):
        section = other
        for key in path[:-1]:
            section = section.setdefault(key, {})
        section[path[-1]] = dice.choice(CHOICES[path])
    return other


@pytest.mark.timeout(3600 if SOAK else 240)
def test_an_unconfirmed_configuration_leaves_no_trace(star: Star, tmp_path: Path):
    node, dice = star.node("F"), random.Random(SEED)
    file, other = node.directory / "fared.yaml", tmp_path / "other.yaml"
    config, text = yaml.safe_load(file.read_text()), file.read_text()
    for number in range(PAIRS):
        before = transitions(star), kernel(star), database(star)
        wanted = changed(config, dice)
        other.write_text(yaml.safe_dump(wanted, sort_keys=False))
        answer = ask(star, "config-apply", text=other.read_text(), file=str(other), confirm=1.0)
        what = f"pair {number}: {[change['path'] for change in answer['changes']]}"
        assert answer["applied"], (what, answer["errors"])
        bounced = {
            change["path"].split(".")[-2]
            for change in answer["changes"]
            if change["action"] == "bounce-adjacency"
        }
        wait_for(
            lambda: ask(star, "show status")["config"]["unconfirmed_until"] is None, BACK, what
        )
        wait_for(lambda: adjacent(star), 3 * BACK, f"{what}: adjacent again")
        _await(lambda: kernel(star), before[1], f"{what}: the kernel is as before")
        _await(lambda: database(star), before[2], f"{what}: the database is as before")
        tell(what)
        moved = {name for name, count in transitions(star).items() if count != before[0][name]}
        assert moved <= bounced, what
        assert file.read_text() == text


class Killed(NamedTuple):
    """When a daemon is killed, in seconds after a configuration is applied; when it is confirmed,
    if it is."""

    at: float
    confirmed_at: float | None

    @classmethod
    def by(cls, dice: random.Random) -> Killed:
        """Before the change is applied, while it waits, while it returns, after that."""
        at = dice.uniform(0.0, 1.5 * CONFIRM)
        return cls(at, at - dice.uniform(0.0, 0.05) if dice.random() < 0.3 else None)


def apply_and_kill(star: Star, file: Path, killed: Killed) -> None:
    """Apply a configuration, confirm it if that is meant to be, and kill the daemon."""

    def request(command: str, **arguments: Any) -> None:
        with contextlib.suppress(DaemonUnreachableError, DaemonRefusedError):
            ask(star, command, **arguments)

    words = {"text": file.read_text(), "file": str(file), "confirm": CONFIRM}
    timers = [
        threading.Timer(0.0, request, ("config-apply",), words),
        threading.Timer(killed.at, star.node("F").kill),
    ]
    if killed.confirmed_at is not None:
        timers.append(threading.Timer(killed.confirmed_at, request, ("config-confirm",)))
    for timer in timers:
        timer.start()
    for timer in timers:
        timer.join()


def start_again(star: Star) -> None:
    """Start the daemon with the file as it is."""
    node = star.node("F")
    for command in node.commands():
        node.processes.append(
            node.netns.start(command.arguments, node.directory / f"{command.name}.log")
        )
    wait_for(lambda: adjacent(star), 3 * BACK, "adjacent after the crash")


@pytest.mark.timeout(3600 if SOAK else 240)
def test_a_daemon_killed_at_any_moment_starts_with_the_former_configuration(
    star: Star, tmp_path: Path
):
    """Or with the new one, whole, if that was being confirmed; and the kernel follows."""
    node, dice = star.node("F"), random.Random(SEED + 1)
    file, other = node.directory / "fared.yaml", tmp_path / "other.yaml"
    config, text = yaml.safe_load(file.read_text()), file.read_text()
    found = Counter[str]()
    for number in range(KILLS):
        before = kernel(star), database(star)
        other.write_text(yaml.safe_dump(changed(config, dice), sort_keys=False))
        killed = Killed.by(dice)
        what = f"kill {number}: {killed}"
        apply_and_kill(star, other, killed)
        saved = file.read_text()
        assert saved == text or (killed.confirmed_at is not None and saved == other.read_text())
        start_again(star)
        documents = [ask(star, "show config", saved=one)["config"] for one in (True, False)]
        assert documents[0] == documents[1], what
        entries = ask(star, "config-history")["entries"]
        found["new" if saved != text else "former"] += 1
        if saved != text:
            assert ask(star, "config-apply", text=text, file=str(file))["applied"], what
            wait_for(lambda: adjacent(star), 3 * BACK, f"{what}: adjacent again")
        _await(lambda: kernel(star), before[0], f"{what}: the kernel is as before")
        _await(lambda: database(star), before[1], f"{what}: the database is as before")
        tell(f"{what}: {entries[0]['how']} {entries[0]['state']}")
        assert entries[0]["state"] == "final", what
        assert saved == text or entries[0]["how"] == "apply", what
    tell(f"{dict(found)}")


def _await(now: Any, wanted: Any, what: str) -> None:
    def differences() -> str:
        found, expected = set(map(str, now())), set(map(str, wanted))
        return f"{what}: missing {expected - found}, more {found - expected}"

    wait_for(lambda: now() == wanted, BACK, differences)
