"""Child processes: what they import, and that none stands when its parent has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fared.runtime import children
from tests.waiting import wait_for

PARENT = """
import socket, subprocess, sys
import msgspec
from fared.runtime import children
from fared.protocols.bfd.messages import Greeting
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
command = children.python("fared.kernel.bfdd", str(theirs.fileno()))
child = subprocess.Popen(command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL)
ours.send(msgspec.msgpack.encode(Greeting()))
ours.recv(1 << 16)
print(child.pid, flush=True)
ours.recv(1 << 16)
"""


@pytest.mark.parametrize("module", ["fared.kernel.bfdd", "fared.extensions.offline.cli.what_if"])
def test_a_child_imports_nothing_from_the_directory_in_which_the_daemon_was_started(
    module: str, tmp_path: Path
):
    (tmp_path / "msgspec.py").write_text("open('ran', 'w')")
    command = children.python(module)
    subprocess.run(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert not (tmp_path / "ran").exists()


def test_a_child_that_is_stopped_ends_with_its_parent_all_the_same():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            os.kill(child, signal.SIGSTOP)
            wait_for(lambda: state(child) == "T", 30, "a stopped child")
            parent.kill()
            wait_for(lambda: state(child) in ("", "Z"), 30, lambda: f"its end: {state(child)}")
        finally:
            parent.kill()
            os.kill(child, signal.SIGCONT) if state(child) == "T" else None


def state(pid: int) -> str:
    """The state of a process as in ps(1); nothing: it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
