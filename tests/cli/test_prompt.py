"""The prompt of ``fared-cli``, on a pseudo-terminal: lines, ``?``, TAB, history, and its end."""

import stat
import subprocess
import sys

import pytest

from tests.api.documents import ANSWERS
from tests.api.documents.routing import ROUTES
from tests.cli.terminal import ESCAPE, Terminal
from tests.cli.test_main import Daemon, imported_by


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("daemon") / "fared.sock") as running:
        yield str(running.path)


_PATIENCE = 1.0
"""Seconds without output after which a key was missed."""


class Prompt(Terminal):
    """A prompt, which is waited for."""

    def __init__(self, path, home, name="leaf1", **env):
        super().__init__("-s", path, XDG_STATE_HOME=str(home), **env)
        self.prompt = f"{name}> "
        self._seen = 0
        self.answer()

    def answer(self):
        """Return what was printed before the next prompt."""
        self.until(lambda _: self.prompt in self.output[self._seen :], "a prompt")
        text, _, _ = self.output[self._seen :].rpartition(self.prompt)
        self._seen = len(self.output)
        return ESCAPE.sub("", text).replace("\r", "")

    def ask(self, line):
        self.type(f"{line}\n".encode())
        return self.answer()

    def interrupt(self):
        """Press Ctrl-C, again where readline missed it: just before it waits it does."""
        while self.prompt not in self.output[self._seen :]:
            self.type(b"\x03")
            while self.readable(_PATIENCE) and self.prompt not in self.output[self._seen :]:
                assert self._read(), self.output
        return self.answer()


@pytest.fixture
def prompt(path, tmp_path):
    with Prompt(path, tmp_path) as running:
        yield running


def words_of(listed):
    """The first words of a list, after the echo of what was typed."""
    return [line.split()[0] for line in listed.splitlines()[1:] if line[:1].strip()]


def test_it_has_the_name_of_the_router_and_runs_commands(prompt):
    assert "fared 0.2.0" in prompt.ask("show status")
    assert "spine1" in prompt.ask("sh ospf nei")
    assert "spine1" in prompt.ask("fared-cli show neighbors"), "as hints write it"
    assert prompt.ask("") == "\n"


def test_a_command_that_fails_does_not_end_it(prompt):
    assert "Error: 'nonsense' is not a prefix" in prompt.ask("explain nonsense")
    assert "Error: no command 'xyzzy'" in prompt.ask("xyzzy")
    assert "Error: No closing quotation" in prompt.ask("drain --reason 'x")
    assert "Usage: fared-cli show routes" in prompt.ask("show routes --help")
    assert "spine1" in prompt.ask("show neighbors")


def test_options_are_of_one_command_only(prompt):
    assert prompt.ask("show status --json").splitlines()[1] == "{"
    assert "Router" in prompt.ask("show status")


def test_commands_of_other_routers_are_known_here_too(prompt):
    assert "'show ip route' is 'show routes' here" in prompt.ask("show ip route")
    assert "Hint: the configuration is one file" in prompt.ask("configure terminal")


def test_a_question_mark_lists_what_may_follow_with_its_help(prompt):
    prompt.type(b"show ro?")
    listed = prompt.answer()
    assert listed.splitlines()[1].split(maxsplit=1)[0] == "routes"
    assert "Routes with their weighted next hops." in listed
    prompt.type(b"\x15explain ?")
    listed = prompt.answer()
    assert words_of(listed)[0] == "10.0.1.0/24"
    assert "via spine1, spine2" in listed
    assert "--proto" in words_of(listed)
    assert "Enter" not in words_of(listed), "a prefix is missing"


def test_a_long_list_asks_for_a_beginning(prompt, monkeypatch):
    routes = [{**ROUTES["routes"][0], "prefix": f"10.1.{n}.0/24"} for n in range(100)]
    monkeypatch.setitem(ANSWERS, "show routes", {**ROUTES, "routes": routes})
    prompt.type(b"explain ?")
    assert "60 more: type a beginning" in prompt.answer()
    prompt.type(b"10.1.9?")
    assert len(words_of(prompt.answer())) == 11


def test_after_the_list_the_line_goes_on(prompt):
    prompt.type(b"show ?")
    assert "neighbors" in words_of(prompt.answer())
    assert "spine1" in prompt.ask("neighbors")


def test_tab_completes_words_and_values(prompt):
    assert "10.0.2.0/24" in prompt.ask("expl\t10.0.2\t")
    prompt.type(b"drain interface \t")
    prompt.until(lambda _: "swp3" in prompt.output, "the interfaces")


def test_ctrl_c_gives_up_a_line_and_a_command(prompt):
    prompt.type(b"show rou")
    prompt.until(lambda _: "rou" in prompt.output, "an echo")
    prompt.interrupt()
    prompt.type(b"show status --watch 60\n")
    prompt.until(lambda _: "Configuration" in prompt.output, "a table")
    prompt.interrupt()
    assert "spine1" in prompt.ask("show neighbors")


@pytest.mark.parametrize("keys", [b"exit\n", b"quit\n", b"\x04"])
def test_it_ends_with_0(prompt, keys):
    prompt.type(keys)
    assert prompt.ended()[0] == 0
    assert "Traceback" not in prompt.output


def test_lines_are_kept_in_a_file_of_the_user(path, tmp_path):
    with Prompt(path, tmp_path) as first:
        first.ask("show neighbors")
        first.ask("show neighbors")
    file = tmp_path / "fared" / "cli-history"
    assert file.read_text() == "show neighbors\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with Prompt(path, tmp_path) as second:
        second.type(b"\x1b[A\n")
        assert "spine1" in second.answer()


def test_without_a_home_it_has_no_history(path, tmp_path):
    (tmp_path / "file").touch()
    with Prompt(path, tmp_path / "file") as prompt:
        assert "spine1" in prompt.ask("show neighbors")


def test_without_a_daemon_it_says_so_and_helps(tmp_path):
    with Prompt(str(tmp_path / "none"), tmp_path, name="fared") as prompt:
        assert "fared is not running" in prompt.output
        prompt.type(b"explain ?")
        assert words_of(prompt.answer())[0] == "PREFIX"
        prompt.type(b"\x15show sta?")
        assert words_of(prompt.answer()) == ["status"]


def test_a_plain_terminal_is_sufficient(path, tmp_path):
    with Prompt(path, tmp_path, TERM="dumb") as prompt:
        assert "spine1" in prompt.ask("show neighbors")


def test_without_a_terminal_it_prints_the_help(path):
    command = [sys.executable, "-m", "fared.management.cli.main", "-s", path]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: ")


def test_commands_do_not_load_it(path):
    loaded = imported_by("-s", path, "show", "status")
    assert not loaded & {"readline", "shlex", "glob", "click.shell_completion"}
    assert not {name for name in loaded if name.endswith((".prompt", ".habits"))}
