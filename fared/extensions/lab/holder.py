"""A fabric that outlives its command: the process that holds it, and the access of later commands.

``up`` starts the holder in a sandbox; the other commands enter it by its process id, as seen from
outside, and by the state directory, which is private to the user.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fared.extensions.lab import sandbox
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import STATE_FILE, Fabric
from fared.extensions.lab.topology import LabTopology

_UP_DEADLINE = 120.0
_UP_DEADLINE_A_NODE = 1.0
_DOWN_DEADLINE = 15.0
_POLL = 0.02
_HOLDER_FILE = "keeper.json"
_LOG = "keeper.log"


@dataclass(frozen=True)
class Lab:
    """A running fabric: its state directory and the process that holds it."""

    name: str
    directory: Path
    pid: int
    started: str

    def alive(self) -> bool:
        """Whether the holder runs; a reused process id does not count."""
        return _start_time(self.pid) == self.started

    def run(self, command: Callable[[Fabric], int]) -> int:
        """Run ``command`` on the fabric, inside its sandbox."""
        if not self.alive():
            raise LabError(f"lab {self.name} has ended; `fared-lab down` removes its files")
        return sandbox.join(self.pid, lambda: command(Fabric.attach(self.directory)))


def base_directory() -> Path:
    """Return the user's directory of labs; create it. Raises LabError if it is not private."""
    named = os.environ.get("FARED_LAB_DIR")
    base = Path(named) if named else Path("/tmp") / f"fared-lab-{os.geteuid()}"  # noqa: S108
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = base.lstat()
    if base.is_symlink() or facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
        raise LabError(f"{base} is not a private directory of yours; set FARED_LAB_DIR")
    return base.resolve()


def labs() -> list[Lab]:
    """Return the labs of this user, stopped ones included."""
    found = []
    for file in sorted(base_directory().glob(f"*/{_HOLDER_FILE}")):
        with contextlib.suppress(OSError, ValueError, KeyError):
            facts = json.loads(file.read_text("utf-8"))
            found.append(Lab(file.parent.name, file.parent, facts["pid"], facts["started"]))
    return found


def choose(name: str | None) -> Lab:
    """Return the lab of that name, or the only one. Raises LabError."""
    known = labs()
    if name is not None:
        known = [lab for lab in known if lab.name == name]
    if not known:
        raise LabError(f"no lab {name!r} is up" if name else "no lab is up")
    if len(known) > 1:
        names = ", ".join(lab.name for lab in known)
        raise LabError(f"several labs are up ({names}): choose one with --lab")
    return known[0]


def up(topology: LabTopology, as_kind: str | None) -> Lab:
    """Build the topology in a persistent sandbox. Raises LabError, after cleaning up."""
    directory = base_directory() / topology.name
    if any(lab.name == topology.name and lab.alive() for lab in labs()):
        raise LabError(f"lab {topology.name} is up already")
    problem = sandbox.problem()
    if problem is not None:
        raise LabError(problem)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700)
    log = directory / _LOG
    sandbox.keep(
        lambda: _hold(topology, as_kind, directory), log, lambda pid: _note(directory, pid)
    )
    deadline = time.monotonic() + _UP_DEADLINE + _UP_DEADLINE_A_NODE * len(topology.nodes)
    while not (directory / STATE_FILE).exists():
        started = [lab for lab in labs() if lab.name == topology.name]
        if (started and not started[0].alive()) or time.monotonic() > deadline:
            said = log.read_text("utf-8", "replace").strip() if log.exists() else ""
            if started:
                down(started[0])
            shutil.rmtree(directory, ignore_errors=True)
            raise LabError(said.removeprefix("fared-lab: ") or "the lab did not come up")
        time.sleep(_POLL)
    return choose(topology.name)


def down(lab: Lab) -> None:
    """Stop a lab, by SIGTERM, then by SIGKILL; the kernel removes the content of its sandbox."""
    for number, patience in ((signal.SIGTERM, _DOWN_DEADLINE), (signal.SIGKILL, _DOWN_DEADLINE)):
        deadline = time.monotonic() + patience
        if lab.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(lab.pid, number)
        while lab.alive() and time.monotonic() < deadline:
            time.sleep(_POLL)
    if lab.alive():
        raise LabError(f"process {lab.pid} of lab {lab.name} does not end")
    shutil.rmtree(lab.directory, ignore_errors=True)


def _hold(topology: LabTopology, as_kind: str | None, directory: Path) -> int:
    with Fabric.from_topology(topology, as_kind=as_kind, directory=directory) as fabric:
        fabric.write_state(as_kind)
        while True:
            signal.pause()


def _note(directory: Path, pid: int) -> None:
    part = directory / f"{_HOLDER_FILE}.part"
    part.write_text(json.dumps({"pid": pid, "started": _start_time(pid)}), "utf-8")
    part.replace(directory / _HOLDER_FILE)


def _start_time(pid: int) -> str | None:
    """Return the start time of a process, in clock ticks since boot; None if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
