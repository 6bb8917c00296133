"""How ``fared-cli`` writes, and ends when it cannot: as other Unix programs do."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.cli.terminal import ESCAPE, Terminal
from tests.cli.test_main import Daemon

COMMAND = [sys.executable, "-m", "fared.management.cli.main"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("daemon") / "fared.sock") as running:
        yield str(running.path)


def shell(line, path):
    """Run a line of bash in which $CLI is the tool; return its status, stdout and stderr."""
    cli = f"{' '.join(COMMAND)} -s {path}"
    command = ["bash", "-c", f"set -o pipefail; {line}"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "CLI": cli}
    )
    return done.returncode, done.stdout, done.stderr


def screen(path, *words, width):
    """What a command prints on a terminal, without colours."""
    with Terminal("-s", path, *words, width=width) as terminal:
        terminal.ended()
        return [ESCAPE.sub("", line).strip("\r") for line in terminal.output.split("\n")]


@pytest.mark.parametrize("words", ["show routes", "show routes --json", "--help", "config schema"])
def test_a_full_disk_is_an_error(path, words):
    status, _, told = shell(f"$CLI {words} > /dev/full", path)
    assert (status, told) == (1, "Error: cannot write: No space left on device\n")


@pytest.mark.parametrize("words", ["show routes", "show routes --json", "--help"])
def test_a_closed_stdout_is_an_error(path, words):
    """And never the number of the next socket."""
    status, _, told = shell(f"$CLI {words} >&-", path)
    assert (status, told) == (1, "Error: cannot write: Bad file descriptor\n")


def test_a_closed_stdin_is_not_missed(path):
    status, shown, told = shell("$CLI show status <&-", path)
    assert (status, told) == (0, "")
    assert shown


def test_all_descriptors_may_be_closed(path):
    assert shell("$CLI show status <&- >&- 2>&-", path) == (1, "", "")


@pytest.mark.parametrize("words", ["show routes", "show routes --json", "config schema"])
def test_it_ends_by_sigpipe_when_its_reader_has_gone(path, words):
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [*COMMAND, "-s", path, *words.split()], stdout=writing, stderr=subprocess.PIPE
    ) as command:
        os.close(writing)
        told = command.stderr.read()
    assert (command.returncode, told) == (-signal.SIGPIPE, b"")


def test_ctrl_c_ends_it_by_sigint(tmp_path):
    """A shell sees 130, and stops its script too. The daemon here never answers."""
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "fared.sock"))
        silent.listen()
        with Terminal("-s", str(tmp_path / "fared.sock"), "show", "status") as terminal:
            silent.settimeout(30)
            with silent.accept()[0] as connection:
                assert connection.recv(4096)
                terminal.type(b"\x03")
                assert terminal.ended()[0] == -signal.SIGINT
    assert "Traceback" not in terminal.output


@pytest.mark.parametrize("what", ["neighbors", "interfaces", "routes", "log", "weights", "bfd"])
@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_broken(path, what, width):
    """Each word of the widest page is a word of the narrow one."""
    lines = screen(path, "show", what, width=width)
    assert max(map(len, lines)) <= width
    words = set(" ".join(lines).split())
    assert set(" ".join(screen(path, "show", what, width=500)).split()) == words


def test_a_terminal_that_cannot_draw_gets_plain_text(path):
    with Terminal("-s", path, "show", "neighbors", TERM="dumb") as terminal:
        assert terminal.ended()[0] == 0
    assert "\x1b" not in terminal.output
    with Terminal("-s", path, "top", TERM="dumb") as terminal:
        assert terminal.ended()[0] == 1
    assert "needs a terminal that it can draw on" in terminal.output


def test_a_list_of_words_breaks_between_them(path):
    lines = screen(path, "show", "xyzzy", width=60)
    assert max(map(len, lines)) <= 60
    assert " ".join(line.strip() for line in lines).startswith("Error: no command 'xyzzy'; known:")
