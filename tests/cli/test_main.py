"""The operator's tool: words, options, exit codes, and what it costs to start."""

import asyncio
import contextlib
import json
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from fared.management.api.control import ControlServer
from fared.management.api.requests import REQUESTS
from fared.management.api.respond import Responder
from fared.management.cli.main import main
from fared.management.documents.declare import PROTOCOLS
from fared.management.documents.errors import CommandError
from fared.management.documents.registry import SHOWN, all_documents, document_of, narrowed, row_of
from tests.api.documents import ANSWERS
from tests.api.documents.databases import SPF_LOG
from tests.api.documents.router import STATUS
from tests.api.documents.routing import FIB_DIFF, ROUTES


class Daemon:
    """A control server in a thread that answers from the fixture documents."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked = []
        self._loop = asyncio.new_event_loop()
        self._server = ControlServer(str(path), Responder(self._answer))
        self._thread = threading.Thread(target=self._loop.run_forever)

    def _answer(self, command, args):
        self.asked.append((command, args))
        if command == "show fib" and args.get("diff"):
            return FIB_DIFF
        if command == "show spf" and args.get("log"):
            return SPF_LOG
        if args.get("prefix") == "nonsense":
            raise CommandError("bad-argument", "'nonsense' is not a prefix")
        return ANSWERS[command]

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    def __enter__(self):
        self._thread.start()
        self._run(self._server.start())
        return self

    def __exit__(self, *_):
        self._run(self._server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path / "fared.sock") as running:
        yield running


def run(daemon, *words, **kwargs):
    return CliRunner().invoke(main, ["-s", str(daemon.path), *words], **kwargs)


@pytest.mark.parametrize("what", SHOWN)
def test_every_document_has_its_show_command(daemon, what):
    """A table by default, the document itself with --json, before or after the command."""
    assert run(daemon, "show", what).exit_code == 0
    before, after = run(daemon, "--json", "show", what), run(daemon, "show", what, "--json")
    assert before.stdout == after.stdout
    assert json.loads(after.stdout)["format"] == document_of(what).format


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("clear neighbor spine1", ("clear-neighbor", {"neighbor": "spine1"})),
        ("clear nei swp1 --proto ospf", ("clear-neighbor", {"neighbor": "swp1", "proto": "ospf"})),
        ("clear counters", ("clear-counters", {})),
        ("log level debug", ("log-level", {"level": "debug"})),
        ("log lev warn", ("log-level", {"level": "warning"})),
        ("show log --level warning", ("show log", {"level": "warning"})),
    ],
)
def test_what_operators_change_for_a_while(daemon, words, asked):
    assert run(daemon, *words.split()).exit_code == 0
    assert daemon.asked == [asked]


@pytest.mark.parametrize("words", ["clear neighbor", "log level chatty", "clear neighbor a b"])
def test_changes_that_make_no_sense_are_usage_errors(daemon, words):
    assert run(daemon, *words.split()).exit_code == 2
    assert not daemon.asked


@pytest.mark.parametrize(
    ("words", "args"),
    [
        ("routes 10.0.0.0/8 --longer", {"prefix": "10.0.0.0/8", "longer": True}),
        ("routes summary", {"summary": True}),
        ("routes summ 10.0.0.0/8", {"summary": True, "prefix": "10.0.0.0/8"}),
        ("routes --via S1 --older 5m", {"via": "S1", "older": 300.0}),
        ("routes --type intra-area --newer 90s", {"type": "intra-area", "newer": 90.0}),
        ("fib 10.0.2.0/24", {"prefix": "10.0.2.0/24"}),
        ("neighbors S1", {"name": "S1"}),
        ("topology L2", {"node": "L2"}),
        ("spf L2", {"node": "L2"}),
        ("interfaces swp1", {"name": "swp1"}),
    ],
)
def test_documents_are_filtered_by_words_and_options(daemon, words, args):
    """A word that begins a flag is that flag, wherever it stands."""
    assert run(daemon, "show", *words.split()).exit_code == 0
    ((command, given),) = daemon.asked
    assert (command, given) == (f"show {words.split()[0]}", args)


@pytest.mark.parametrize(
    "words", ["routes --older soon", "routes --type rip", "routes 10.0.0.0/8 summary x", "fib a b"]
)
def test_what_no_filter_is_is_a_usage_error(daemon, words):
    assert run(daemon, "show", *words.split()).exit_code == 2
    assert not daemon.asked


@pytest.mark.parametrize("proto", PROTOCOLS)
@pytest.mark.parametrize("what", narrowed())
def test_documents_of_one_protocol_have_a_command_under_its_name(daemon, proto, what):
    """Show isis neighbors asks for the neighbors of IS-IS."""
    assert run(daemon, "show", proto, what).exit_code == 0
    if (proto, what) == ("bgp", "routes"):
        assert daemon.asked == [("show bgp-routes", {})], "of all neighbors, used or not"
    else:
        assert daemon.asked == [(f"show {what}", {"proto": proto})]


def test_every_other_command_has_its_document():
    """The fixtures name the same commands, and each answer has a table."""
    formats = {entry.command: entry.format for entry in all_documents()}
    assert {command: ANSWERS[command]["format"] for command in formats} == formats
    assert all(row_of(ANSWERS[command]["format"]) for command in REQUESTS)


def test_unique_beginnings_of_words_are_enough(daemon):
    """sh ro is show routes; log and diff may be shortened too."""
    assert json.loads(run(daemon, "sh", "ro", "--json").stdout) == ROUTES
    run(daemon, "sh", "sp", "l")
    run(daemon, "sh", "da", "router", "10.255.0.1")
    run(daemon, "sho", "we", "10.0.2.0/24")
    run(daemon, "exp", "10.0.2.0/24")
    run(daemon, "pa", "leaf1", "leaf2")
    run(daemon, "sh", "is", "ro", "--af", "ipv6")
    run(daemon, "sh", "isis", "da", "leaf1")
    run(daemon, "sh", "os", "sp", "l")
    run(daemon, "sh", "ls", "--proto", "isis")
    run(daemon, "exp", "10.0.2.0/24", "--proto", "isis")
    run(daemon, "pa", "leaf1", "leaf2", "--af", "ipv6")
    assert daemon.asked[1:] == [
        ("show spf", {"log": True}),
        ("show database", {"type": "router", "id": "10.255.0.1"}),
        ("show weights", {"prefix": "10.0.2.0/24"}),
        ("explain", {"prefix": "10.0.2.0/24"}),
        ("path", {"source": "leaf1", "destination": "leaf2"}),
        ("show routes", {"af": "ipv6", "proto": "isis"}),
        ("show database", {"type": "leaf1", "proto": "isis"}),
        ("show spf", {"log": True, "proto": "ospf"}),
        ("show lsdb", {"proto": "isis"}),
        ("explain", {"prefix": "10.0.2.0/24", "proto": "isis"}),
        ("path", {"source": "leaf1", "destination": "leaf2", "af": "ipv6"}),
    ]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["show", "rutes"], "did you mean 'routes'?"),
        (["shwo"], "did you mean 'show'?"),
        (["show", "s"], "ambiguous: status, spf"),
        (["show", "i"], "ambiguous: interfaces, ina, isis"),
        (["show", "isis", "neighbours"], "did you mean 'neighbors'?"),
        (["show", "routes", "--af", "ipx"], "'ipx' is not one of"),
        (["show", "bfd", "detial"], "did you mean 'detail'?"),
        (["show", "xyzzy"], "known: status,"),
        (["explain"], "Missing argument 'PREFIX'"),
        (["show", "status", "--jsn"], "No such option"),
        (["--watch", "0", "show", "status"], "not in the range"),
        (["undrain", "--watch", "1"], "No such option"),
        (["--watch", "1", "undrain"], "undrain takes no --watch: it is not repeated"),
        (["--watch", "1", "config", "apply", "x.yaml"], "apply takes no --watch"),
    ],
)
def test_usage_errors_hint_at_the_nearest_word(daemon, words, hint):
    """Exit 2, nothing on stdout, and the daemon is not asked."""
    result = run(daemon, *words)
    assert result.exit_code == 2
    assert hint in result.stderr
    assert not result.stdout
    assert not daemon.asked


def test_exit_codes_tell_results_apart(daemon, tmp_path):
    """0 ok, 1 negative or malformed, 3 nobody there."""
    assert run(daemon, "validate").exit_code == 1
    assert run(daemon, "show", "fib", "diff").exit_code == 1
    assert run(daemon, "show", "fib").exit_code == 0
    refused = run(daemon, "explain", "nonsense")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Error: 'nonsense' is not a prefix\nHint: write a prefix as")
    gone = CliRunner().invoke(main, ["-s", str(tmp_path / "no"), "show", "status"])
    assert gone.exit_code == 3
    assert "not running" in gone.stderr
    assert not gone.stdout


def test_supervisors_ask_by_an_exit_code_whether_a_router_is_ready(daemon, tmp_path, monkeypatch):
    """The health check of a container: 0 ready, 1 still starting, 3 no daemon."""
    assert (run(daemon, "health").stdout, run(daemon, "health").exit_code) == ("ready\n", 0)
    monkeypatch.setitem(ANSWERS, "show status", {**STATUS, "ready": False, "stage": "adjacencies"})
    starting = run(daemon, "health")
    assert (starting.stdout, starting.exit_code) == ("starting: adjacencies\n", 1)
    found = run(daemon, "--json", "health")
    assert json.loads(found.stdout) == {"ready": False, "stage": "adjacencies"}
    assert CliRunner().invoke(main, ["-s", str(tmp_path / "no"), "health"]).exit_code == 3


def test_the_socket_may_come_from_the_environment(daemon):
    """FARED_SOCKET saves typing in a lab."""
    result = CliRunner().invoke(main, ["drain"], env={"FARED_SOCKET": str(daemon.path)})
    assert result.exit_code == 0
    assert daemon.asked == [("drain", {})]


def test_drain_undrain_and_reload_are_confirmed(daemon):
    """Drain, undrain, reload."""
    assert "drained" in run(daemon, "drain").stdout
    assert "in service" in run(daemon, "undrain").stdout
    assert "applied" in run(daemon, "config", "reload").stdout


def test_config_check_needs_no_daemon(tmp_path):
    """Every error at once on stderr; a good file is ok."""
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("ospf: {}\n")
    bad.write_text("opsf: {}\nfib: {metric: x}\n")
    ok = CliRunner().invoke(main, ["config", "check", str(good)])
    assert (ok.exit_code, ok.stdout) == (0, f"{good}: ok\n")
    refused = CliRunner().invoke(main, ["config", "check", str(bad)])
    assert refused.exit_code == 1
    assert f"{bad}:1:1: opsf: " in refused.stderr
    assert "did you mean 'ospf'?" in refused.stderr
    assert f"{bad}:2:15: fib.metric: " in refused.stderr
    found = json.loads(CliRunner().invoke(main, ["config", "check", "--json", str(bad)]).stdout)
    assert [error["line"] for error in found["errors"]] == [1, 2]


def test_config_diff_sends_the_file_to_the_daemon(daemon, tmp_path):
    """What a reload would do, before it is done."""
    file = tmp_path / "new.yaml"
    file.write_text("ospf: {}\n")
    result = run(daemon, "config", "diff", str(file))
    assert result.exit_code == 0
    assert "10 -> 20  [update-in-place]" in result.stdout
    assert daemon.asked == [("config-diff", {"text": "ospf: {}\n", "file": str(file)})]
    file.write_text("nonsense: {}\n")
    assert run(daemon, "config", "diff", str(file)).exit_code == 1


def test_config_schema_is_a_json_schema():
    """For editors that check while one types."""
    schema = json.loads(CliRunner().invoke(main, ["config", "schema"]).stdout)
    assert "router-id" in schema["properties"]


def test_watch_shows_again_until_it_is_interrupted(daemon, monkeypatch):
    """One JSON document a line, or one table after the other; Ctrl-C is a normal end."""
    turns = iter(range(2))

    def sleep(seconds):
        assert seconds == 0.5
        if next(turns, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr("fared.management.cli.session.time.sleep", sleep)
    result = run(daemon, "--watch", "0.5", "show", "status", "--json")
    assert result.exit_code == 0
    assert [json.loads(line) for line in result.stdout.splitlines()] == [STATUS] * 3


def on_a_terminal(daemon, **env):
    """What the table of neighbors looks like on a pseudo-terminal."""
    leader, follower = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "fared.management.cli.main",
        "-s",
        str(daemon.path),
        "show",
        "neighbors",
    ]
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(command, stdout=follower, env={**clean, "TERM": "xterm", **env}):
        os.close(follower)
        output = b""
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while chunk := os.read(leader, 4096):
                output += chunk
    os.close(leader)
    return output.decode()


def test_colour_only_on_a_terminal_and_never_with_no_color(daemon):
    """Pipes get plain text, and so does whoever asks for it."""
    assert "\x1b[32mFull" in on_a_terminal(daemon)
    assert "\x1b" not in on_a_terminal(daemon, NO_COLOR="1")
    assert "\x1b" not in run(daemon, "show", "neighbors").stdout


def test_json_before_an_offline_command_reaches_it():
    """--json is taken before or after every command."""
    before = CliRunner().invoke(main, ["--json", "decode", "--proto", "ospf", "00"])
    after = CliRunner().invoke(main, ["decode", "--proto", "ospf", "00", "--json"])
    assert before.exit_code == after.exit_code == 1
    assert json.loads(before.stdout) == json.loads(after.stdout)


def imported_by(*words, env=None):
    code = (
        "import sys; from fared.management.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('\\n' + ' '.join(sys.modules), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *words]
    result = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **(env or {})}
    )
    return set(result.stderr.splitlines()[-1].split())


def test_the_client_imports_no_heavy_module_without_need(daemon):
    """The tool must answer at once: no NumPy, netlink, validation or tables without need."""
    heavy = {
        "numpy",
        "pyroute2",
        "pydantic",
        "networkx",
        "structlog",
        "prometheus_client",
        "asyncio",
    }
    assert not imported_by("--help") & (heavy | {"rich", "yaml"})
    assert not imported_by("-s", str(daemon.path), "show", "status", "--json") & (heavy | {"rich"})
    routes = imported_by("-s", str(daemon.path), "show", "routes")
    assert not routes & heavy
    assert "_pickle" not in routes, "rich needs it for links only"
    assert not imported_by("-s", str(daemon.path), "path", "leaf1", "leaf2") & heavy
