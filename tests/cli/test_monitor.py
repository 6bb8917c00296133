"""``fared-cli monitor``: what it refuses without following, and how it prints events."""

import contextlib
import json
import os
import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

from fared.management.cli.main import main
from tests.cli.terminal import ESCAPE, Terminal
from tests.cli.test_main import Daemon


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path / "fared.sock") as running:
        yield running


def monitor(path, *words):
    return CliRunner().invoke(main, ["-s", str(path), "monitor", *words])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--watch", "1"], "No such option"),
        (["--level", "loud"], "'loud' is not one of"),
        (["--since", "soon"], "'soon' is not a duration such as 90s or 5m"),
    ],
)
def test_wrong_options_are_a_matter_of_usage(daemon, words, said):
    result = monitor(daemon.path, *words)
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_without_a_daemon_it_says_what_to_do(tmp_path):
    result = monitor(tmp_path / "none.sock")
    assert result.exit_code == 3
    assert "Hint: 'systemctl start fared'" in result.stderr


def test_an_older_daemon_is_recognized(daemon):
    """It knows no such command."""
    result = monitor(daemon.path)
    assert result.exit_code == 1
    assert "monitor" in daemon.asked[0][0]


EVENTS = [
    {"time": 1.5, "level": "info", "event": "neighbor-changed",
     "fields": {"interface": "swp1", "previous": "Full", "state": "Down"}},
    {"time": 2.5, "level": "warning", "event": "link-sick", "fields": {"interface": "swp2"}},
]  # fmt: skip
LINES = b"".join(json.dumps(event).encode() + b"\n" for event in EVENTS)


@contextlib.contextmanager
def following(silent):
    """A daemon's end of a stream, at which a reader has asked."""
    silent.settimeout(30)
    with silent.accept()[0] as connection:
        assert b"monitor" in connection.recv(4096)
        connection.sendall(b'{"ok":true,"stream":"events"}\n')
        yield connection


@pytest.fixture
def silent(tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "fared.sock"))
        listening.listen()
        yield listening


def test_on_a_terminal_events_are_lines_for_people(silent):
    """In local time, however the stream is cut."""
    with (
        Terminal("-s", silent.getsockname(), "monitor", TZ="UTC") as terminal,
        following(silent) as connection,
    ):
        connection.sendall(LINES[:70])
        connection.sendall(LINES[70:])
        terminal.until(lambda _: "swp2" in terminal.output, "both events")
        terminal.type(b"\x03")
        assert terminal.ended()[0] == 0
    first, second = ESCAPE.sub("", terminal.output).replace("\r", "").splitlines()[:2]
    assert first == (
        "Jan 01 00:00:01 info    neighbor-changed interface=swp1 previous=Full state=Down"
    )
    assert second == "Jan 01 00:00:02 warning link-sick interface=swp2"


def test_long_events_go_on_below_and_end_without_blanks(silent):
    event = {"time": 1.5, "level": "info", "event": "converged", "fields": {"causes": "word " * 40}}
    with (
        Terminal("-s", silent.getsockname(), "monitor", width=60) as terminal,
        following(silent) as connection,
    ):
        connection.sendall(json.dumps(event).encode() + b"\n" + LINES)
        terminal.until(lambda _: "swp2" in terminal.output, "all events")
    lines = ESCAPE.sub("", terminal.output).replace("\r", "").splitlines()
    long = lines[: next(n for n, line in enumerate(lines) if "neighbor-changed" in line)]
    assert len(long) > 3
    assert all(line.startswith("    word") and len(line) <= 60 for line in long[1:])
    assert not any(line.endswith(" ") for line in long[1:])


def test_with_json_a_terminal_gets_json_too(silent):
    with (
        Terminal("-s", silent.getsockname(), "monitor", "--json", width=200) as terminal,
        following(silent) as connection,
    ):
        connection.sendall(LINES)
        terminal.until(lambda _: "swp2" in terminal.output, "both events")
    assert [json.loads(line) for line in terminal.output.splitlines()] == EVENTS


def test_it_ends_with_0_when_its_reader_has_read_enough(silent):
    """``monitor | head -1``: while nothing happens, too."""
    command = [sys.executable, "-m", "fared.management.cli.main", "-s", silent.getsockname()]
    head = f"{' '.join(command)} monitor | head -1; echo ${{PIPESTATUS[0]}}"
    with (
        subprocess.Popen(["bash", "-c", head], stdout=-1, stderr=-1, env=os.environ) as shell,
        following(silent) as connection,
    ):
        connection.sendall(LINES)
        shown, told = shell.communicate(timeout=30)
    assert (shown, told) == (LINES.splitlines()[0] + b"\n0\n", b"")
