"""Who may give jobs to ``fared-ina``: members of its group, by the mode of its unix socket."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.extensions.ina.inad.listening import listen_unix

NOBODY = 65534
GROUP, OTHER = 4242, 4243


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that everybody may enter, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(prefix="fared-ina"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def test_the_socket_of_jobs_is_for_owner_and_group(directory: Path):
    with listen_unix(directory / "ina.sock"):
        assert stat.S_IMODE((directory / "ina.sock").stat().st_mode) == 0o660


def connects(path: Path, group: int) -> bool:
    """Whether a user of one group can connect; a child finds out, and changes nothing here."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setgroups([])
            os.setgid(group)
            os.setuid(NOBODY)
            socket.socket(socket.AF_UNIX).connect(str(path))
            code = 0
        except PermissionError:
            code = 1
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1)
    return code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_user_outside_the_group_cannot_reach_it(directory: Path):
    path = directory / "ina.sock"

    with listen_unix(path):
        os.chown(path, 0, GROUP)
        assert connects(path, GROUP)
        assert not connects(path, OTHER)
