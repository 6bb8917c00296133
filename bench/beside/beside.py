"""FRR, BIRD and fared with the same database of a large fabric, and the same events.

Each daemon is leaf 0 of a 64x512 fabric in its own namespace, with a real adjacency to each spine;
``neighbors`` emulates the spines. Spine 0 floods the LSAs (LSPs) of all other routers: to FRR
and BIRD without TE, to fared with TE on every link. Then updates from spine 0 cut and restore
distant links, and change metrics and capacities, for one daemon after another.

Measured per event: the time from sending the update to the kernel's notification of the last
changed route or next hop; the CPU time of all threads of the daemon until it is idle again,
including flooding to the other 63 neighbors; and the SPF duration that the daemon reports.

``python -m bench beside [--fabric 128x1024] [--only fared-ospf,frr-ospf] [--events 7] [--frr-te]``
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import select
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.beside.report import missing_row, report, rows_of
from bench.lab.sandboxed import measured, possible
from bench.neighbors.devices import Device
from bench.neighbors.fabric import COST, RATE, Fabric, Link
from bench.neighbors.isis import IsisSpeaker
from bench.neighbors.ospf import OspfSpeaker
from fared.extensions.lab.errors import LabError

DEVICES = ("frr-ospf", "bird-ospf", "fared-ospf", "frr-isis", "fared-isis")
FABRIC = (64, 512)
EVENTS = 4
KINDS = ("cut", "restore", "metric", "metric back", "capacity", "capacity back")
_SYNC = 600.0
_LOOK = 0.25
_IDLE = 0.1
"""CPU use, as a part of a core, below which a daemon only sends hellos."""
_REOFFER = 2.0
_REACTION = 60.0
_SLOW = 2000.0
"""A device whose reaction takes this long, ms, gets no further turns."""
_QUIET = 0.12
_SETTLE = 0.25
_SPACING = 2.2
"""Longer than the hold-down of the SPF back-off (RFC 8405): at most two seconds here."""
_HELLOS = 8.0
_PUSH_GAP = 0.002


@dataclass
class Event:
    """One event: ms to the first and to the last change in the kernel, CPU ms, SPF ms.

    ``reaction`` is the CPU time until the last change in the kernel, ``cpu`` the total.
    """

    first: float
    last: float
    reaction: float
    cpu: float
    spf: float | None
    detail: dict[str, Any] | None = None


@dataclass
class Results:
    """The measurements of one device."""

    sync: float = 0.0
    sync_cpu: float = 0.0
    all_cpu: float = 0.0
    resident: float = 0.0
    events: dict[str, list[Event]] = field(default_factory=dict)

    def median(self, kind: str, what: str = "last") -> float | None:
        """The median of a figure over the events of a kind."""
        values = [getattr(event, what) for event in self.events.get(kind, ())]
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None


class Bench:
    """All devices and the event loop of their emulated neighbors."""

    def __init__(self, devices: list[Device]) -> None:
        self.devices = devices
        self.results = {device.name: Results() for device in devices}
        self._poll = select.poll()
        self._owner: dict[int, Device] = {}
        for device in devices:
            for descriptor in device.speakers:
                self._owner[descriptor] = device
                self._poll.register(descriptor, select.POLLIN)
        self._hellos = 0.0
        self._pushed = 0.0
        self._next: dict[str, float] = {}

    # The loop

    def serve(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Run the speakers for ``seconds`` or until the condition holds; return if it holds."""
        deadline = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            if now >= self._hellos:
                self._hellos = now + _HELLOS
                for device in self.devices:
                    for speaker in device.speakers.values():
                        speaker.hello()
            pushing = self._push(now)
            if until is not None and until():
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            wait = min(left, _PUSH_GAP if pushing else 0.02)
            for descriptor, _ in self._poll.poll(wait * 1e3):
                self._owner[descriptor].receive(descriptor)

    def _push(self, now: float) -> bool:
        """Send a portion of the requested LSAs or LSPs every few milliseconds."""
        busy = [device.server for device in self.devices if device.server.pending]
        if busy and now >= self._pushed + _PUSH_GAP:
            self._pushed = now
            for server in busy:
                server.push()
        return bool(busy)

    # Start

    def synchronize(self, device: Device) -> None:
        """Bring up the adjacency with the spine that has the database, then the others."""
        result = self.results[device.name]
        if not device.processes:
            device.start()
        speakers = list(device.speakers.values())
        self.serve(15.0, lambda: all(speaker.heard_at for speaker in speakers))
        self.serve(0.5)
        device.changes()
        cpu = device.cpu()
        result.sync = self._learn(device)
        result.sync_cpu = device.cpu() - cpu
        for speaker in speakers:
            speaker.silent = False
            if speaker is not device.server:
                speaker.hello()
        self._widen(device)
        result.all_cpu = device.cpu() - cpu
        self._quiet(device, 1.5)
        result.resident = device.resident()
        print(
            f"{device.name}: sync {result.sync:.2f} s, CPU {result.sync_cpu:.2f} s,"
            f" with all neighbors {result.all_cpu:.2f} s, {result.resident:.0f} MiB",
            flush=True,
        )

    def _learn(self, device: Device) -> float:
        """Bring up the first adjacency; return the seconds until the last route appeared."""
        began = offered = last = time.perf_counter()
        seen, wanted = 0, 2 * (device.fabric.leaves - 1)
        server = device.server
        server.silent = False
        server.hello()

        def complete() -> bool:
            nonlocal last, seen, offered
            found, now = device.changes(), time.perf_counter()
            if found:
                last, seen = now, seen + found
            if isinstance(server, IsisSpeaker) and server.full and now > offered + _REOFFER:
                offered = now
                if not server.pending:
                    server.offer()
            return seen >= wanted and now > last + 1.5

        if not self.serve(_SYNC, complete):
            raise RuntimeError(f"{device.name}: {seen} changes in {_SYNC} s")
        return last - began

    def _widen(self, device: Device) -> None:
        """Wait until routes use all neighbors."""
        fabric, checked = device.fabric, 0.0
        width = min(fabric.spines, 64 if device.kind == "frr" else fabric.spines)

        def wide() -> bool:
            nonlocal checked
            if time.perf_counter() < checked + 0.5:
                return False
            full = all(speaker.full for speaker in device.speakers.values())
            ends = (1, fabric.leaves - 1)
            done = full and all(len(device.width(leaf)) == width for leaf in ends)
            checked = time.perf_counter()
            return done

        if not self.serve(_SYNC, wide):
            found = len(device.width(fabric.leaves - 1))
            raise RuntimeError(f"{device.name}: {found} paths after {_SYNC} s")

    def _quiet(self, device: Device, seconds: float) -> None:
        """Wait until the kernel is unchanged and the daemon idle for ``seconds``."""
        last = looked = time.monotonic()
        used = device.cpu()

        def still() -> bool:
            nonlocal last, looked, used
            now = time.monotonic()
            if now > looked + _LOOK:
                before, used = used, device.cpu()
                if used - before > _IDLE * (now - looked):
                    last = now
                looked = now
            if device.changes():
                last = now
            return now > last + seconds

        self.serve(_SYNC, still)

    # Events

    def turn(self, turn: int) -> None:
        """Run each kind of event for all devices, on a link that no other turn uses."""
        for kind in KINDS:
            for device in self.devices:
                if kind.startswith("capacity") and device.kind != "fared":
                    continue
                before = self.results[device.name].events.get("cut", ())
                if turn and max((event.last for event in before), default=0.0) > _SLOW:
                    continue
                spines, leaves = device.fabric.spines, device.fabric.leaves
                link = (1 + turn * 5 % (spines - 1), 1 + turn * 37 % (leaves - 1))
                with self.excused(device):
                    self.event(device, kind, link)

    @contextlib.contextmanager
    def excused(self, device: Device) -> Iterator[None]:
        """Drop a device that fails, print the reason, and continue with the others."""
        try:
            yield
        except (RuntimeError, OSError, LabError) as error:
            print(f"dropped: {error}", flush=True)
            self.devices = [other for other in self.devices if other is not device]
            for descriptor in device.speakers:
                self._poll.unregister(descriptor)

    def event(self, device: Device, kind: str, link: Link) -> None:
        """Send one event and measure the reaction of the daemon."""
        send = _prepare(device, kind, link)
        paths = not kind.startswith("capacity")  # only these trigger an SPF back-off
        if paths:
            self.serve(max(0.0, self._next.get(device.name, 0.0) - time.monotonic()))
        self.serve(0.01)
        device.changes()
        poll = select.poll()
        poll.register(device.monitor.fileno(), select.POLLIN)
        cpu = device.cpu()
        began = time.perf_counter()
        send()
        first = last = None
        reaction = 0.0
        deadline = began + _REACTION
        while True:
            # Only the monitor is read meanwhile: the speakers can send later.
            ready = poll.poll(_QUIET * 1e3 if first is not None else 50)
            now = time.perf_counter()
            if ready and device.changes():
                first, last = first or now, now
                reaction = device.cpu() - cpu
            elif first is not None and now > (last or 0.0) + _QUIET:
                break
            elif now > deadline:
                raise RuntimeError(
                    f"{device.name}: no reaction to {kind} {link}\n{device.diagnosis()}"
                )
        assert last is not None
        self.serve(_SETTLE)
        used = device.cpu() - cpu
        self._check(device, kind, link)
        event = Event(
            first=(first - began) * 1e3,
            last=(last - began) * 1e3,
            reaction=reaction * 1e3,
            cpu=used * 1e3,
            spf=device.spf() if kind in KINDS[:4] or device.kind == "fared" else None,
            detail=device.last_change() if device.kind == "fared" else None,
        )
        self.results[device.name].events.setdefault(kind, []).append(event)
        if paths:
            self._next[device.name] = time.monotonic() + _SPACING

    def _check(self, device: Device, kind: str, link: Link) -> None:
        """Check that the kernel matches the event. Raises RuntimeError."""
        spine, leaf = link
        width = device.width(leaf)
        name = f"s{spine}"
        if kind in ("cut", "metric"):
            right = name not in width
        elif kind == "capacity":
            right = width[name] < max(width.values())
        else:
            right = name in width and len(set(width.values())) == 1
        # FRR uses at most 64 paths: a restored path need not be among them.
        capped = device.kind == "frr" and device.fabric.spines > 64
        if not right and not (capped and kind in ("restore", "metric back")):
            raise RuntimeError(f"{device.name}: after {kind} of {link}: {width}")


def _prepare(device: Device, kind: str, link: Link) -> Callable[[], None]:
    """Change the fabric; return a function that sends the update."""
    fabric = device.fabric
    match kind:
        case "cut":
            fabric.cut.add(link)
        case "restore":
            fabric.cut.discard(link)
        case "metric":
            fabric.costs[link] = 2 * COST
        case "metric back":
            del fabric.costs[link]
        case "capacity":
            fabric.rates[link] = RATE / 2
        case "capacity back":
            del fabric.rates[link]
    ends = fabric.leaf(link[1]), fabric.spine(link[0])
    server = device.server
    if isinstance(server, OspfSpeaker):
        if kind.startswith("capacity"):
            return server.flood([fabric.te_lsa(end, link) for end in ends])
        return server.flood([fabric.router_lsa(end) for end in ends])
    return server.flood([raw for end in ends for raw in fabric.issue_lsps(end)])


def measure(names: list[str], size: tuple[int, int], events: int) -> dict[str, dict[str, Any]]:
    """Run all; results by device name."""
    devices: list[Device] = []
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o777)
        try:
            for name in names:
                kind, protocol, *rest = name.split("-")
                fabric = Fabric(*size, te=kind == "fared" or bool(rest))
                if protocol == "ospf":
                    fabric.originate()
                else:
                    fabric.describe()
                devices.append(Device(kind, protocol, fabric, Path(directory)))
            gc.collect()
            gc.freeze()
            gc.disable()
            bench = Bench(devices)
            for device in devices:
                if device.kind == "bird":  # BIRD sends its first hello late: measure others first
                    device.start()
            for device in devices:
                with bench.excused(device):
                    bench.synchronize(device)
            for turn in range(events):
                bench.turn(turn)
            for device in bench.devices:
                result = bench.results[device.name]
                result.resident = max(result.resident, device.resident())
        finally:
            for device in devices:
                device.stop()
    return {name: asdict(result) for name, result in bench.results.items()}


def sandboxed(names: list[str], size: tuple[int, int], events: int) -> dict[str, dict[str, Any]]:
    """Run in a sandbox, which removes all namespaces and processes at its end."""
    return measured("beside", lambda: measure(names, size, events)) or {}


def rows() -> list[dict[str, Any]]:
    """The report's rows; none if no sandbox can be made or a peer is not installed."""
    if not possible():
        return []
    found = sandboxed([name for name in DEVICES if _installed(name)], FABRIC, EVENTS)
    report(found)
    if not found:
        return [missing_row()]
    return rows_of(found, FABRIC)


def _installed(name: str) -> bool:
    program = {"frr": "/usr/lib/frr/zebra", "bird": "bird"}.get(name.partition("-")[0])
    return program is None or shutil.which(program) is not None


def main() -> int:
    """Run the comparison that the arguments select."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fabric", default="x".join(map(str, FABRIC)))
    parser.add_argument("--only", default=",".join(DEVICES))
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--frr-te", action="store_true")
    given = parser.parse_args()
    spines, leaves = map(int, given.fabric.split("x"))
    names = given.only.split(",") + (["frr-ospf-te"] if given.frr_te else [])
    found = sandboxed(names, (spines, leaves), given.events)
    report(found)
    for row in rows_of(found, (spines, leaves)):
        figures = [row.get("ours"), row.get("other"), row.get("ratio")]
        shown = " ".join("-" if value is None else f"{value:.4g}" for value in figures)
        mark = {True: "met", False: "MISSED", None: ""}[row.get("met")]
        print(f"{row['name']}: {shown} {row['unit']} {row.get('goal') or ''} {mark}")
    return 0 if found else 1
