"""Programs of nodes: started in turn, awaited, ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.kinds.base import Command
from fared.extensions.lab.namespaces import Netns

_STOP_DEADLINE = 5.0
_POLL = 0.005
_AT_ONCE_A_CORE = 3
"""So that cores are not idle, and other programs do not get most of a busy machine."""


@dataclass
class NodeProcess:
    """A program the lab started in a node."""

    name: str
    pid: int
    log: Path
    handle: subprocess.Popen[bytes] | None = None

    def alive(self) -> bool:
        """Whether it still runs."""
        if self.handle is not None:
            return self.handle.poll() is None
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z"

    def resident_bytes(self) -> int:
        """Its resident memory, bytes; 0 when it has ended."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[1])
        except OSError:
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def last_words(self, lines: int = 8) -> str:
        """The end of its output, for error messages."""
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:])
        return ""


class ProcessOwner(Protocol):
    """A node, as far as its processes need it."""

    netns: Netns
    directory: Path
    processes: list[NodeProcess]

    @property
    def name(self) -> str:
        """The node's name."""


def _start(node: ProcessOwner, command: Command) -> NodeProcess:
    if command.ready is not None:
        command.ready.unlink(missing_ok=True)
    log = node.directory / f"{command.name}.log"
    try:
        handle = node.netns.start(command.arguments, log)
    except OSError as error:
        raise LabError(f"{node.name}: cannot start {command.arguments[0]}: {error}") from error
    process = NodeProcess(command.name, handle.pid, log, handle)
    node.processes.append(process)
    return process


def start_in_turn(step: Sequence[tuple[ProcessOwner, Command]], deadline: float) -> None:
    """Start programs, at any time a few for each core. Raises LabError.

    If all started at once, each would take as long as all of them, and those that are ready would
    be kept from the CPU, and lose neighbors: 80 daemons on two cores, with a dead interval of
    4 s, lost 112 times a neighbor.
    """
    most = _AT_ONCE_A_CORE * len(os.sched_getaffinity(0))
    starting: list[tuple[ProcessOwner, Command, NodeProcess]] = []
    for node, command in step:
        starting.append((node, command, _start(node, command)))
        _await_ready(starting, most - 1, deadline)
    _await_ready(starting, 0, deadline)


def _await_ready(
    starting: list[tuple[ProcessOwner, Command, NodeProcess]], most: int, deadline: float
) -> None:
    """Wait until all but ``most`` are ready, and remove these from the list."""
    while True:
        starting[:] = [item for item in starting if not _is_ready(*item)]
        if len(starting) <= most:
            return
        if time.monotonic() > deadline:
            node, command, process = starting[0]
            raise LabError(
                f"{node.name}: {command.name} is not ready in time:\n{process.last_words()}"
            )
        time.sleep(_POLL)


def _is_ready(node: ProcessOwner, command: Command, process: NodeProcess) -> bool:
    ended = None if process.handle is None else process.handle.poll()
    if not command.lasting and ended == 0:
        node.processes.remove(process)
        return True
    if ended is not None:
        raise LabError(
            f"{node.name}: {command.name} ended with code {ended}:\n{process.last_words()}"
        )
    return command.lasting and (command.ready is None or command.ready.exists())


def end(processes: Sequence[NodeProcess]) -> None:
    """End processes, first by SIGTERM, then by SIGKILL."""
    for process in processes:
        send_signal(process, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_DEADLINE
    while any(process.alive() for process in processes) and time.monotonic() < deadline:
        time.sleep(_POLL)
    for process in processes:
        if process.alive():
            send_signal(process, signal.SIGKILL)
        if process.handle is not None:
            process.handle.wait()


def send_signal(process: NodeProcess, number: signal.Signals) -> None:
    """Send a signal to a process, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        if process.alive():
            os.kill(process.pid, number)
