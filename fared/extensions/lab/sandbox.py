"""A sandbox of namespaces for labs, for root and ordinary users alike.

Everything the lab builds is in its own mount, network and process-id namespaces, and in a
user namespace if the caller is not root. The process tree is

    caller ── supervisor ── payload (process 1 of its own pid namespace) ── daemons, tools

Each ends with the one before it, and the kernel ends a pid namespace together with its process
1. So no process, interface or namespace remains after any end, kill -9 included.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

from fared.extensions.lab import syscalls
from fared.extensions.lab.errors import LabError

Payload = Callable[[], int]

_MARK = "FARED_LAB_SANDBOX"
_DAEMON_ACCOUNTS = ("frr", "frrvty")


class SandboxError(LabError):
    """The kernel or its policy does not permit this user to create namespaces."""


def inside() -> bool:
    """Whether this process already runs in a sandbox."""
    return _MARK in os.environ


def problem() -> str | None:
    """Return why no sandbox can be created here, None if it can; found by an attempt."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _try_and_exit(_new_namespaces, writer, then=lambda: _try_in_child(writer))
    os.close(writer)
    with os.fdopen(reader) as answer:
        reason = answer.read()
    os.waitpid(child, 0)
    return _explain(reason) if reason else None


def _try_in_child(writer: int) -> None:
    probe = os.fork()
    if probe == 0:
        _try_and_exit(_furnish, writer)
    os.waitpid(probe, 0)


def _try_and_exit(
    attempt: Callable[[], None], writer: int, then: Callable[[], None] | None = None
) -> NoReturn:
    """Make the attempt in a forked child; errors go to the pipe, nothing else."""
    try:
        attempt()
        if then is not None:
            then()
    except (OSError, subprocess.SubprocessError) as error:
        os.write(writer, str(error).encode())
    finally:
        os._exit(0)


def run(payload: Payload) -> int:
    """Run ``payload`` as process 1 of a new sandbox; return its exit code.

    The caller's SIGTERM and SIGHUP reach the payload as SystemExit; the terminal's Ctrl-C
    reaches it directly as KeyboardInterrupt.
    """
    _flush()
    parent = os.getpid()
    supervisor = os.fork()
    if supervisor == 0:
        syscalls.die_with_parent()
        if os.getppid() != parent:
            os._exit(1)
        _supervise(payload)
    return _wait_forwarding(supervisor)


def part() -> None:
    """Give this process, already in a sandbox, namespaces and a ``/run`` of its own.

    Several of them can build labs with nodes of equal names side by side. Raises OSError.
    """
    syscalls.unshare(syscalls.CLONE_NEWNET)
    _furnish()


def keep(payload: Payload, log: Path, started: Callable[[int], None]) -> None:
    """Start ``payload`` in a sandbox that outlives the caller; its output goes to ``log``.

    ``started`` is called, in the supervisor, with the payload's process id as seen from outside.
    """
    _flush()
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        null = os.open(os.devnull, os.O_RDONLY)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for target, source in ((0, null), (1, output), (2, output)):
            os.dup2(source, target)
        _supervise(payload, started)
    os.waitpid(child, 0)


def join(pid: int, payload: Payload) -> int:
    """Run ``payload`` in the sandbox of process ``pid``; return its exit code."""
    _flush()
    child = os.fork()
    if child == 0:
        syscalls.die_with_parent()
        _join_and_exit(pid, payload)
    return _wait_forwarding(child)


def _join_and_exit(pid: int, payload: Payload) -> NoReturn:
    """Run the payload in the namespaces of a process, and exit with its code."""
    here = Path.cwd()
    try:
        descriptor = os.pidfd_open(pid)
        flags = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET | syscalls.CLONE_NEWPID
        mine, theirs = (Path(f"/proc/{who}/ns/user").readlink() for who in ("self", pid))
        if mine != theirs:
            flags |= syscalls.CLONE_NEWUSER
        syscalls.setns(descriptor, flags)
        os.close(descriptor)
    except OSError as error:
        print(f"fared-lab: cannot enter the lab of process {pid}: {error}", file=sys.stderr)
        os._exit(1)
    with contextlib.suppress(OSError):
        os.chdir(here)
    os.environ[_MARK] = "1"
    worker = os.fork()  # only children enter the pid namespace
    if worker == 0:
        syscalls.die_with_parent()
        _run_and_exit(payload)
    os._exit(_wait_forwarding(worker))


def _supervise(payload: Payload, started: Callable[[int], None] | None = None) -> NoReturn:
    try:
        _new_namespaces()
    except OSError as error:
        print(f"fared-lab: {_explain(str(error))}", file=sys.stderr)
        _flush()
        os._exit(1)
    os.environ[_MARK] = "1"
    child = os.fork()
    if child == 0:
        syscalls.die_with_parent()
        _run_and_exit(lambda: _furnished(payload))
    if started is not None:
        started(child)
    os._exit(_wait_forwarding(child))


def _furnished(payload: Payload) -> int:
    try:
        _furnish()
    except OSError as error:
        raise SandboxError(_explain(str(error))) from error
    return payload()


def _new_namespaces() -> None:
    flags = syscalls.CLONE_NEWNET | syscalls.CLONE_NEWPID
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        syscalls.unshare(flags)
        return
    syscalls.unshare(flags | syscalls.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny", "ascii")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1", "ascii")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1", "ascii")


def _furnish() -> None:
    """Set up /proc, /run, accounts and the loopback in the new namespaces.

    The mount namespace is created here, in process 1, so that the supervisor keeps the caller's
    files and process ids.
    """
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
    with contextlib.suppress(OSError):  # EPERM in containers that mask parts of /proc
        syscalls.mount("proc", "/proc", "proc")
    syscalls.mount("tmpfs", "/run", "tmpfs", options="mode=0755")
    Path("/run/netns").mkdir()
    for file in ("/etc/passwd", "/etc/group"):
        _map_accounts(Path(file))
    # Captured: the exit code reports errors, and stderr may be a user's screen.
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, capture_output=True)


def _map_accounts(file: Path) -> None:
    """Map FRR's accounts to root, the only user of the sandbox.

    FRR always changes to its own user and group, which an unprivileged user namespace does not
    have; and its state directories here belong to the user of the lab.
    """
    lines = []
    for line in file.read_text("utf-8").splitlines():
        fields = line.split(":")
        if fields[0] in _DAEMON_ACCOUNTS:
            fields[2] = "0"
            if file.name == "passwd":
                fields[3] = "0"
            elif fields[0] == "frrvty":
                fields[3] = "root"
        lines.append(":".join(fields))
    with tempfile.NamedTemporaryFile("w", dir="/run", delete=False, encoding="utf-8") as copy:
        copy.write("\n".join(lines) + "\n")
    Path(copy.name).chmod(0o644)
    syscalls.mount(copy.name, str(file), "", syscalls.MS_BIND)


def _run_and_exit(payload: Payload) -> NoReturn:
    """Run the payload in a forked child; never return into the parent's code."""
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGHUP, _terminate)
    code = 1
    try:
        code = payload()
    except LabError as error:
        print(f"fared-lab: {error}", file=sys.stderr)
        code = error.exit_code
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:  # noqa: BLE001 - printed; the child may only leave through _exit
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code)


def _terminate(number: int, _frame: FrameType | None) -> NoReturn:
    """Raise SystemExit once; a repeated signal must not interrupt the clean-up."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _wait_forwarding(pid: int) -> int:
    """Wait for a child and forward termination signals; Ctrl-C reaches it directly."""

    def forward(number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    previous = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, forward),
        signal.SIGHUP: signal.signal(signal.SIGHUP, forward),
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
    }
    try:
        _, status = os.waitpid(pid, 0)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _explain(reason: str) -> str:
    if os.geteuid() == 0:
        return f"cannot create namespaces: {reason}; a container requires --privileged for this"
    return (
        f"this system does not permit ordinary users to create namespaces ({reason}); "
        f"run it with sudo: sudo {' '.join(sys.argv)}"
    )


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
