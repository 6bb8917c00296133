"""The sandbox: private namespaces for the tests and for the lab."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fared.extensions.lab import sandbox
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.namespaces import Netns

pytestmark = pytest.mark.netns


def test_a_socket_opened_inside_belongs_to_the_namespace(netns_factory: Callable[[str], Netns]):
    """The thread comes home, the socket stays."""
    home = Path("/proc/self/ns/net").readlink()
    namespace = netns_factory("x")
    namespace.ip("link", "add", "name", "only-here", "type", "veth", "peer", "name", "other")
    with namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with pytest.raises(OSError, match="No such device"):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"not-there\0")
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"only-here\0")
    assert Path("/proc/self/ns/net").readlink() == home


def test_veth_ends_have_distinct_indexes(veth: tuple[Netns, Netns]):
    """Equal indexes make the kernel report a dead link up to a second late."""
    left, right = veth
    assert left.ip("-o", "link", "show", "dev", "b").split(":")[0] == "10"
    assert right.ip("-o", "link", "show", "dev", "a").split(":")[0] == "110"


def test_a_namespace_name_in_use_is_refused(netns_factory: Callable[[str], Netns]):
    """Two fabrics in one sandbox must not share a namespace by accident."""
    namespace = netns_factory("x")
    with pytest.raises(LabError, match="exists already"):
        Netns.create(namespace.name)


def test_the_exit_code_of_the_payload_is_returned():
    """Whatever the payload says is what the caller sees."""
    assert sandbox.run(lambda: 7) == 7


def test_processes_left_behind_die_with_the_sandbox(tmp_path: Path):
    """A payload that forgets its children takes them along."""
    note = tmp_path / "note"

    def forgetful() -> int:
        subprocess.Popen(["sh", "-c", f"echo started > {note}; exec sleep 1000"])
        while not note.exists() or not note.read_text():
            pass
        return len(list(Path("/run/netns").iterdir()))

    assert sandbox.run(forgetful) == 0
    running = subprocess.run(
        ["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True
    )
    assert "sleep 1000" not in running.stdout.splitlines()


def test_termination_unwinds_the_payload(tmp_path: Path):
    """SIGTERM to the outermost process becomes SystemExit inside, so clean-up runs."""
    note = tmp_path / "note"

    def patient() -> int:
        try:
            note.write_text("up")
            for _ in range(1200):  # a signal just before pause() would be waited for in vain
                select.select([], [], [], 0.05)
        finally:
            note.write_text("cleaned up")
        return 0

    caller = os.fork()
    if caller == 0:
        os._exit(sandbox.run(patient))
    while not note.exists():
        os.sched_yield()
    os.kill(caller, signal.SIGTERM)
    _, status = os.waitpid(caller, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGTERM
    assert note.read_text() == "cleaned up"
