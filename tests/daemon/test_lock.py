"""The lock beside the control socket: one daemon holds it; the file of an ended one is reused."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fared.daemon.lock import InstanceLock, LockError

HOLDER = """
import signal, sys
from fared.daemon.lock import InstanceLock
lock = InstanceLock(sys.argv[1])
lock.take()
print("held", flush=True)
signal.pause()
"""


@pytest.fixture
def socket_path(tmp_path: Path) -> str:
    return str(tmp_path / "run" / "fared.sock")


@pytest.fixture
def holder(socket_path: str):
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLDER, socket_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_second_daemon_is_refused_and_told_the_pid_of_the_first(socket_path, holder):
    with pytest.raises(LockError, match=f"pid {holder.pid} holds {socket_path}.lock"):
        InstanceLock(socket_path).take()


def test_a_stopped_holder_still_holds_and_a_killed_one_does_not(socket_path, holder):
    holder.send_signal(signal.SIGSTOP)
    lock = InstanceLock(socket_path)
    with pytest.raises(LockError, match="another daemon is running"):
        lock.take()
    holder.kill()
    holder.wait()
    assert Path(f"{socket_path}.lock").read_text() == f"{holder.pid}\n", "kill -9 leaves the file"
    lock.take()
    assert lock.path.read_text() == f"{os.getpid()}\n"
    lock.release()


def test_the_file_is_for_the_daemon_alone(socket_path):
    """Whoever may open it could hold the lock, and no daemon would start."""
    lock = InstanceLock(socket_path)
    lock.path.parent.mkdir()
    lock.path.touch(0o644)
    lock.take()
    assert stat.S_IMODE(lock.path.stat().st_mode) == 0o600
    lock.release()


def test_a_pid_that_has_ended_is_not_called_another_daemon(socket_path, holder):
    lock = InstanceLock(socket_path)
    with lock.path.open() as reader:
        holder.kill()
        holder.wait()
        fcntl.flock(reader, fcntl.LOCK_EX)
        with pytest.raises(LockError, match=f"pid {holder.pid}, which took .*, has ended"):
            lock.take()


def test_a_released_lock_leaves_no_file_and_can_be_taken_again(socket_path):
    first, second = InstanceLock(socket_path), InstanceLock(socket_path)
    first.take()
    with pytest.raises(LockError, match=f"pid {os.getpid()}"):
        second.take()
    first.release()
    assert not first.path.exists()
    second.take()
    first.release()
    assert second.path.exists(), "who holds nothing removes nothing"
    second.release()


def test_a_removed_lock_file_of_another_daemon_is_not_removed_again(socket_path):
    """After `rm`, two daemons may hold locks on two files; each removes only its own."""
    first, second = InstanceLock(socket_path), InstanceLock(socket_path)
    first.take()
    first.path.unlink()
    second.take()
    first.release()
    assert second.path.exists()
    second.release()


def test_daemons_with_different_control_sockets_run_side_by_side(tmp_path: Path):
    locks = [InstanceLock(str(tmp_path / name)) for name in ("leaf1.sock", "leaf2.sock", "leaf1")]
    for lock in locks:
        lock.take()
    for lock in locks:
        lock.release()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("file", "File exists|Not a directory"),
        ("directory", "Is a directory"),
        ("link", "symbolic"),
    ],
)
def test_a_path_where_no_lock_can_be_created_is_named_with_the_reason(tmp_path: Path, kind, reason):
    run = tmp_path / "run"
    if kind == "file":
        run.touch()
    elif kind == "directory":
        (run / "fared.sock.lock").mkdir(parents=True)
    else:
        run.mkdir()
        (run / "fared.sock.lock").symlink_to("/etc/passwd")
    with pytest.raises(LockError, match=f"cannot lock {run}/fared.sock.lock: .*({reason})"):
        InstanceLock(str(run / "fared.sock")).take()


def test_a_run_directory_that_is_not_writable_is_named(tmp_path: Path, monkeypatch):
    def refused(path: Path, *_: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(LockError, match=r"cannot lock .*fared.sock.lock: Permission denied \(api"):
        InstanceLock(str(tmp_path / "fared.sock")).take()
