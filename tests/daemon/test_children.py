"""Child processes: what they import, and that none stands when its parent has ended."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fared.runtime import child, children
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


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "exit code 0"),
        (2, "exit code 2"),
        (-9, "killed by SIGKILL"),
        (-99, "killed by signal 99"),
    ],
)
def test_how_a_process_ended_is_told_in_words(status: int, words: str):
    assert children.reason(status) == words


async def test_a_program_answers_one_question():
    async def question(pipe: asyncio.StreamWriter) -> None:
        pipe.write(b"word")

    code = "import sys; print(sys.stdin.read().upper()); sys.exit('refused')"
    answered = await children.ask((sys.executable, "-c", code), 60, question)
    assert answered == (b"WORD\n", "refused\n", 1)


async def test_a_program_that_does_not_read_its_question_is_heard_all_the_same():
    async def question(pipe: asyncio.StreamWriter) -> None:
        while True:
            pipe.write(bytes(1 << 16))
            await pipe.drain()

    code = "import sys; sys.exit('I know enough')"
    answered = await children.ask((sys.executable, "-c", code), 60, question)
    assert (answered.errors, answered.status) == ("I know enough\n", 1)


async def test_a_program_that_takes_too_long_is_killed():
    code = "import signal, os; print(os.getpid(), flush=True); signal.pause()"
    with pytest.raises(TimeoutError):
        await children.ask((sys.executable, "-c", code), 0.05)


def fork_status(work: Callable[[], object]) -> int:
    fork, found = children.Fork(work, 60), list[int]()

    def ended() -> bool:
        status = fork.ended()
        found.extend([] if status is None else [status])
        return bool(found)

    wait_for(ended, 30, "the fork has ended")
    return found[0]


def test_a_fork_says_by_its_exit_code_whether_it_did_its_work(tmp_path: Path):
    assert fork_status((tmp_path / "done").touch) == 0
    assert (tmp_path / "done").exists()
    assert fork_status((tmp_path / "absent" / "done").touch) == 1


def test_a_fork_works_where_the_unit_of_systemd_forbids_a_nice_value(
    monkeypatch: pytest.MonkeyPatch,
):
    def forbidden(_by: int) -> int:
        raise PermissionError

    monkeypatch.setattr(child.os, "nice", forbidden)
    assert fork_status(lambda: None) == 0


async def test_a_fork_that_takes_too_long_is_killed():
    fork = children.Fork(signal.pause, 60)
    assert await fork.end(0.01) == -signal.SIGKILL
    fork = children.Fork(signal.pause, 60)
    assert fork.kill() == -signal.SIGKILL


def state(pid: int) -> str:
    """The state of a process as in ps(1); nothing: it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
