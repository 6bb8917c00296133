"""Errors of ``fared-cli`` say what to do next."""

import os
import socket

import pytest
from click.testing import CliRunner

from fared.management.api.client import DaemonRefusedError
from fared.management.api.requests import REQUESTS
from fared.management.cli.hints import of_refusal
from fared.management.cli.main import main
from fared.management.documents.errors import ERROR_CODES, CommandError
from fared.management.documents.registry import all_documents
from tests.api.documents import ANSWERS
from tests.cli.terminal import Terminal
from tests.cli.test_main import Daemon


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path / "fared.sock") as running:
        yield running


def run(path, *words):
    return CliRunner().invoke(main, ["-s", str(path), *words])


def hint(result):
    """The last line of an error, which is its only hint, after the message."""
    lines = result.stderr.splitlines()
    assert [line for line in lines if line.startswith("Hint: ")] == lines[-1:]
    assert lines[0].startswith("Error: ")
    return lines[-1].removeprefix("Hint: ")


class Refusing(Daemon):
    """A daemon that refuses everything with one error."""

    error = CommandError("internal", "")

    def _answer(self, command, args):
        raise self.error


@pytest.fixture
def refusing(tmp_path):
    with Refusing(tmp_path / "fared.sock") as running:
        yield running


@pytest.mark.parametrize("code", ERROR_CODES)
def test_every_refusal_of_every_command_has_a_hint(code):
    commands = [
        *(entry.command for entry in all_documents()),
        *REQUESTS,
        "ina-create",
        "a later command",
    ]
    hints = [of_refusal(DaemonRefusedError(code, "why"), command) for command in commands]
    assert all(hints)


@pytest.mark.parametrize(
    ("words", "code", "message", "expected"),
    [
        (["explain", "10.9.0.0/24"], "not-found", "no route to 10.9.0.0/24", "show routes"),
        (["show", "routes", "x"], "bad-argument", "'x' is not a prefix: y", "10.0.2.0/24"),
        (["show", "routes", "10.0.0.0/8"], "not-found", "no route to 10.0.0.0/8", "--longer"),
        (["clear", "neighbor", "x"], "not-found", "no neighbor x; known: S1", "show neighbors"),
        (["path", "a", "b"], "not-found", "no router 'a' in the database", "show topology"),
        (["path", "a", "b"], "not-found", "no router 'b' among the neighbors of BGP",
         "name a prefix"),
        (["show", "database"], "unsupported", "BGP has no database of links", "show topology"),
        (["show", "isis", "routes"], "unsupported", "this router does not run IS-IS",
         "show status"),
        (["show", "database", "router", "x"], "not-found", "no LSA matches x", "show database"),
        (["drain", "interface", "x"], "not-found", "no interface x", "show interfaces"),
        (["config", "confirm"], "not-found", "no change waits for a confirmation",
         "config history"),
        (["config", "rollback", "60"], "not-found", "no configuration 60", "config history"),
        (["config", "rollback"], "busy", "a change waits for its confirmation",
         "config confirm"),
        (["restart", "--graceful"], "unsupported", "graceful restart is not enabled",
         "without --graceful"),
        (["monitor"], "busy", "8 readers follow the events already", "end another"),
        (["show", "bier"], "unknown-command", "no such command: show bier", "--version"),
        (["show", "fib"], "busy", "the kernel cannot be read now", "try again"),
        (["show", "fib"], "internal", "see the log", "show log"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_do_about_it(refusing, words, code, message, expected):
    refusing.error = CommandError(code, message)
    result = run(refusing.path, *words)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {message}\n")
    assert expected in hint(result)
    assert not result.stdout


def test_json_to_a_pipe_keeps_stdout_empty_and_has_the_hint(refusing):
    refusing.error = CommandError("not-found", "no route to 10.9.0.0/24")
    result = run(refusing.path, "show", "routes", "10.9.0.0/24", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "show routes" in hint(result)


def test_without_a_daemon_it_says_how_to_start_one(tmp_path):
    result = run(tmp_path / "no.sock", "show", "status")
    assert result.exit_code == 3
    assert "systemctl start fared" in hint(result)


def test_with_the_wrong_socket_it_names_the_others(daemon):
    result = run(daemon.path.with_name("other.sock"), "show", "status")
    assert result.exit_code == 3
    assert f"-s {daemon.path}" in hint(result)


def test_without_permission_it_names_the_group_of_the_socket(monkeypatch, daemon):
    def connect(self, address):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("fared.management.api.client.socket.socket", type("S", (socket.socket,), {
        "connect": connect}))  # fmt: skip
    group = "operators"
    monkeypatch.setattr("fared.management.cli.hints.Path.group", lambda path: group)
    result = run(daemon.path, "show", "status")
    assert result.exit_code == 3
    assert f"usermod -aG {group}" in hint(result)
    group = "root"
    assert hint(run(daemon.path, "show", "status")) == "use sudo"


def test_a_daemon_that_stands_still_is_not_waited_for_without_a_hint(tmp_path):
    path = tmp_path / "still.sock"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(os.fspath(path))
        silent.listen()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fared.management.cli.session.ControlClient.__init__", _impatient)
            result = run(path, "show", "status")
    assert result.exit_code == 3
    assert "journalctl" in hint(result)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["plan", "jobs", "no.yaml"], "form of FILE"),
        (["plan", "jobs", "broken"], "form of FILE"),
        (["plan", "failures", "--lsdb", "no.json"], "show lsdb --json"),
        (["plan", "failures", "--lsdb", "no.json", "--groups", "no.yaml"], "name: [pattern"),
        (["plan", "failures", "--lsdb", "no.json", "--compare", "no.json"], "--json > FILE"),
        (["spf", "--lsdb", "broken"], "show lsdb --json"),
        (["lsdb", "from-pcap", "no.pcap"], "tcpdump"),
        (["decode", "--proto", "ospf", "broken.pcap"], "--help"),
        (["replay", "no-such-directory"], "record status"),
    ],
    ids=" ".join,
)
def test_mistakes_offline_have_a_hint_too(tmp_path, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    for name in ("broken", "broken.pcap"):
        (tmp_path / name).write_text("]")
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1
    assert expected in hint(result)


def test_errors_break_at_words_on_a_terminal(tmp_path):
    with Terminal("-s", str(tmp_path / "x.sock"), "show", "status", width=80) as terminal:
        assert terminal.ended()[0] == 3
        lines = [line.strip() for line in terminal.screen()]
    assert max(map(len, lines)) <= 80
    assert "'systemctl start fared' starts it; 'journalctl -u fared -n 20' tells" in " ".join(lines)


@pytest.mark.parametrize("words", [[], ["show"], ["config"], ["drain"], ["record"], ["plan"]])
def test_the_lists_of_commands_have_whole_sentences_in_80_columns(words):
    result = CliRunner().invoke(main, [*words, "--help"], terminal_width=80)
    assert result.exit_code == 0
    assert "..." not in result.output.partition("Commands:")[2]
    assert all(len(line) <= 80 for line in result.output.splitlines())


def _impatient(client, path, timeout):
    client.path, client.timeout = path, 0.1


@pytest.mark.parametrize("command", ["reload", "rollback"])
def test_a_refused_configuration_has_changed_nothing(monkeypatch, daemon, command):
    """The errors are on stdout, as those of any reload; the way on is on stderr."""
    key = "reload" if command == "reload" else "config-rollback"
    refused = {**ANSWERS[key], "applied": False, "errors": ["/etc/fared/fared.yaml:3:1: x"]}
    monkeypatch.setitem(ANSWERS, key, refused)
    result = run(daemon.path, "config", command)
    assert result.exit_code == 1
    assert "fared.yaml:3:1" in result.stdout
    assert result.stderr.startswith("Hint: nothing has changed")


def test_a_file_with_errors_and_a_missing_file_have_hints(daemon, tmp_path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("opsf: {}\n")
    assert "config/fared.yaml" in hint(run(daemon.path, "config", "check", str(wrong)))
    assert "config/fared.yaml" in hint(run(daemon.path, "config", "diff", str(wrong)))
    missing = str(tmp_path / "missing.yaml")
    assert "config template" in hint(run(daemon.path, "config", "apply", missing))


def test_a_database_that_cannot_be_read_says_how_to_write_one(tmp_path):
    missing = run("unused", "spf", "--lsdb", str(tmp_path / "missing.json"))
    assert missing.exit_code == 1
    assert "show lsdb --json > FILE" in hint(missing)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["shwo"], "did you mean 'show'?"),
        (["show", "xyzzy"], "known: status,"),
        (["show", "routes", "--protocol", "ospf"], "--proto"),
        (["show", "routes", "--proto", "rip"], "'ospf', 'isis'"),
        (["explain"], "Missing argument 'PREFIX'"),
        (["drain", "interface", "x", "--share", "150%"], "not 0% to 99%"),
        (["config", "apply", "f", "--confirm", "soon"], "such as 90s or 5m"),
        (["show", "routes", "a", "b"], "show routes --help'"),
    ],
)
def test_wrong_words_get_the_right_ones(daemon, words, said):
    result = run(daemon.path, *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not daemon.asked
