"""False alarms of BFD while its router has no CPU time to spare.

fared is leaf 0 of a 64x512 fabric, as in ``beside``, with a BFD session of 300 ms x 3 to each of
its 64 spines; the other ends are one ``fared-bfd``. Two programs use all CPU time that they get,
while spine 0 floods the whole database, again and again, with other bandwidths and costs. A session
that goes down at either end is a false alarm: nothing has failed.

``python -m bench bfd [--minutes 30] [--fabric 64x512]``
"""

from __future__ import annotations

import argparse
import contextlib
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.beside.beside import Bench
from bench.lab.sandboxed import measured, possible
from bench.neighbors.devices import Device
from bench.neighbors.fabric import COST, RATE, Fabric
from bench.neighbors.lsas import MTU
from bench.neighbors.ospf import OspfSpeaker
from fared.core.bfd import SessionSettings
from fared.management.api.client import ControlClient, DaemonUnreachableError
from fared.protocols.bfd.messages import OpenSession, SessionKey, StateChange
from fared.protocols.bfd.packet import State
from fared.protocols.ospf.packet.lsa import Lsa
from tests.bfd.bfdd import Process

FABRIC = (64, 512)
MINUTES = 1.0
SESSION = SessionSettings(300_000, 300_000, 3)
HOGS = 2
_UP_WITHIN = 120.0
_ROOM = MTU - 100
_GAP = 0.01
"""Seconds between two updates of 9000 bytes: 9000 LSAs a second."""
_ATTEMPTS = 5
_HOG = "while True: pass"


class Watched(Device):
    """The device, with BFD on every link."""

    def configuration(self) -> dict[str, Any]:
        """Return the configuration of fared."""
        config = super().configuration()
        interfaces = config["ospf"]["areas"]["0.0.0.0"]["interfaces"]
        for name in interfaces:
            if name != "lo":
                interfaces[name] = {**interfaces[name], "bfd": {"enabled": True}}
        return config

    def far_end(self) -> Process:
        """Start the process of all spines, which runs their sessions with leaf 0."""
        process = Process(self.outside, "d0")
        with self.outside.entered():
            indexes = {name: index for index, name in socket.if_nameindex()}
        for spine in range(self.fabric.spines):
            theirs, mine = (n.to_bytes(4, "big") for n in self.fabric.addresses((spine, 0)))
            key = SessionKey(indexes[f"d{spine}"], mine)
            process.send(OpenSession(key, f"d{spine}", theirs, SESSION))
        return process

    def sessions(self) -> list[dict[str, Any]]:
        """Return the sessions as fared shows them."""
        client = ControlClient(str(self.directory / "fared.sock"))
        found: list[dict[str, Any]] = client.request("show", "bfd")["sessions"]
        return found


def updates(fabric: Fabric, rng: random.Random) -> Iterator[list[Lsa]]:
    """Originate all LSAs of the fabric again, other than before; yield those of each update."""
    links = [(spine, leaf) for spine in range(fabric.spines) for leaf in range(fabric.leaves)]
    fabric.rates = {link: RATE * rng.uniform(0.5, 1.0) for link in links}
    fabric.costs = dict.fromkeys(rng.sample(links, len(links) // 100), COST + 1)
    fabric.originate()
    batch: list[Lsa] = []
    used = 0
    for lsa in fabric.lsas.values():
        if batch and used + len(lsa.raw) > _ROOM:
            yield batch
            batch, used = [], 0
        batch.append(lsa)
        used += len(lsa.raw)
    yield batch


class Watch:
    """The device under load, and what its sessions do."""

    def __init__(self, device: Watched) -> None:
        self.device = device
        self.bench = Bench([device])
        self.far = device.far_end()
        self.rounds = 0
        self._up: set[SessionKey] = set()
        self._read = 0
        self.alarms: list[str] = []
        """Sessions that went down, at the far end."""

    def start(self) -> None:
        """Learn the database for the first time, until all sessions are up."""
        self.bench.synchronize(self.device)
        if not self.bench.serve(_UP_WITHIN, self._whole):
            raise RuntimeError(f"only {len(self._up)} sessions are up")

    def flood(self, until: float) -> None:
        """Flood the database again, and wait until the device has computed it, or time is over."""
        server = self.device.server
        assert isinstance(server, OspfSpeaker)
        waiting = updates(self.device.fabric, random.Random(self.rounds))
        for lsas in waiting:
            if time.monotonic() > until:
                break
            server.flood(lsas)()
            self.bench.serve(_GAP)
        else:
            self.rounds += 1
            left = until - time.monotonic()
            self.bench.serve(max(0.0, min(_UP_WITHIN, left)), self._idle())
        self._follow()

    def end(self) -> list[dict[str, Any]]:
        """Return the sessions as the device shows them, once it has the time to."""
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(DaemonUnreachableError):
                return self.device.sessions()
            self.bench.serve(1.0)
        raise RuntimeError("the device does not answer")

    def _idle(self) -> Any:  # noqa: ANN401
        """A condition: the device has used little CPU for half a second."""
        used, looked = self.device.cpu(), time.monotonic()

        def idle() -> bool:
            nonlocal used, looked
            now = time.monotonic()
            if now < looked + 0.5:
                return False
            before, used = used, self.device.cpu()
            elapsed, looked = now - looked, now
            return used - before < 0.1 * elapsed

        return idle

    def _whole(self) -> bool:
        self._follow()
        return len(self._up) == self.device.fabric.spines

    def _follow(self) -> None:
        """Read what the far end reports."""
        changes = self.far.got(StateChange)
        for change in changes[self._read :]:
            if change.state is State.UP:
                self._up.add(change.key)
            elif change.key in self._up:
                self._up.discard(change.key)
                # an adjacency that ends for another reason ends its session without an alarm
                if change.remote_state is not State.ADMIN_DOWN:
                    self.alarms.append(f"spine {change.key.ifindex}: {change.diagnostic}")
        self._read = len(changes)


def measure(minutes: float, size: tuple[int, int]) -> dict[str, Any]:
    """Watch for some minutes; raises RuntimeError if the sessions do not come up."""
    fabric = Fabric(*size, te=True)
    fabric.originate()
    hogs = [subprocess.Popen([sys.executable, "-c", _HOG]) for _ in range(HOGS)]
    with tempfile.TemporaryDirectory() as directory:
        device = Watched("fared", "ospf", fabric, Path(directory))
        watch = None
        try:
            watch = Watch(device)
            watch.start()
            until = time.monotonic() + 60 * minutes
            while time.monotonic() < until:
                watch.flood(until)
            for hog in hogs:
                hog.kill()
            sessions = watch.end()
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
            if watch is not None:
                watch.far.close()
            device.stop()
    return {
        "minutes": minutes,
        "sessions": len(sessions),
        "rounds": watch.rounds,
        "far": len(watch.alarms),
        "near": sum(session["downs"] for session in sessions),
        "up": sum(session["state"] == "Up" for session in sessions),
        "late": sum(session["late"] for session in sessions),
        "worst": max(session["worst_late"] for session in sessions),
        "sent": sum(session["sent"] for session in sessions),
    }


def sandboxed(minutes: float, size: tuple[int, int]) -> dict[str, Any] | None:
    """Measure in a sandbox; None if that failed."""
    return measured("bfd", lambda: measure(minutes, size))


def rows(minutes: float = MINUTES, size: tuple[int, int] = FABRIC) -> list[dict[str, Any]]:
    """The report's rows; none if no sandbox can be made."""
    if not possible():
        return []
    found = sandboxed(minutes, size)
    shape = f"{size[0]}x{size[1]}"
    what = f"{size[0]} sessions of 300 ms x 3, {HOGS} CPU hogs, {shape} being learnt"
    if found is None:
        return [_row(f"BFD: false alarms, {what}", None, "alarms", goal=True)]
    minutes = found["minutes"]
    print(
        f"{found['rounds']} times the database in {minutes:g} minutes, {found['up']} of"
        f" {found['sessions']} sessions up, {found['late']} of {found['sent']} packets or checks"
        f" were late, {1e3 * found['worst']:.0f} ms at most",
        flush=True,
    )
    alarms = found["near"] + found["far"]
    return [
        _row(f"BFD: false alarms in {minutes:g} min, {what}", alarms, "alarms", goal=True),
        _row("BFD: the latest packet or check meanwhile", 1e3 * found["worst"], "ms"),
    ]


def _row(name: str, ours: float | None, unit: str, *, goal: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "ours": ours,
        "other": None,
        "unit": unit,
        "ratio": None,
        "goal": "0" if goal else None,
        "met": ours == 0 if goal else None,
    }


def main() -> int:
    """Watch for as long as the arguments say; exit code 1 after a false alarm."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--fabric", default="x".join(map(str, FABRIC)))
    given = parser.parse_args()
    spines, leaves = map(int, given.fabric.split("x"))
    found = rows(given.minutes, (spines, leaves))
    for row in found:
        print(f"{row['name']}: {row['ours']} {row['unit']}")
    return 0 if found and found[0]["met"] else 1
