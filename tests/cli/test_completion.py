"""TAB in the shells: words, and values that the daemon knows; commands of other routers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fared.extensions.lab.main import main as fared_lab
from fared.management.cli import habits
from fared.management.cli.main import main
from tests.api.documents import ANSWERS
from tests.api.documents.routing import ROUTES
from tests.cli.test_main import Daemon, imported_by

PREFIXES = ["10.0.1.0/24", "10.0.0.0/16", "10.0.2.0/24", "10.0.3.0/24", "0.0.0.0/0"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("daemon") / "fared.sock") as running:
        yield str(running.path)


def completed(path, words, text="", shell="bash"):
    """What TAB offers after ``words`` for the beginning ``text``."""
    line = ["fared-cli", "-s", path, *words.split()]
    env = {
        "_FARED_CLI_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join([*line, text]),
        "COMP_CWORD": text if shell == "fish" else str(len(line)),
    }
    return CliRunner().invoke(main, prog_name="fared-cli", env=env).stdout


def values(path, words, text=""):
    return [line.partition(",")[2] for line in completed(path, words, text).split()]


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        ("", "sh", ["show"]),
        ("sh", "ro", ["routes"]),
        ("show isis", "nei", ["neighbors"]),
        ("explain", "", PREFIXES),
        ("explain", "10.0.2", ["10.0.2.0/24"]),
        ("sh ro", "", ["summary", *PREFIXES]),
        ("show routes summary", "0", ["0.0.0.0/0"]),
        ("show routes --type", "ex", ["external-1", "external-2"]),
        ("show routes --via", "spine", ["spine1", "spine2", "spine4", "spine5"]),
        ("path", "", ["spine1", "spine2", "leaf1", "10.255.0.6"]),
        ("path leaf1", "10.0.3", ["10.0.3.0/24"]),
        ("drain interface", "sw", ["swp1", "swp2", "swp3"]),
        ("show interfaces", "l", ["lo"]),
        ("show neighbors", "swp", ["swp1", "swp2", "swp3", "swp4", "swp5"]),
        ("show database", "", ["router", "te-link", "self", "spine1", "leaf1"]),
        ("show database router", "", ["10.255.0.1", "10.255.0.5"]),
        ("clear neighbor", "spine1", ["spine1"]),
        ("log level", "w", ["warning"]),
        ("show fib", "d", ["diff"]),
        ("show changed", "", ["1", "2"]),
        ("config rollback", "", ["0", "1", "2"]),
        ("config template", "s", ["spine", "superspine"]),
        ("monitor", "n", ["neighbor-changed"]),
        ("show xyzzy", "", []),
        ("restart", "--gr", ["--graceful"]),
    ],
)
def test_words_and_values_are_completed(path, words, text, expected):
    assert values(path, words, text) == expected


def test_names_of_files_are_left_to_the_shell(path):
    assert completed(path, "config check").startswith("file,")


def test_zsh_and_fish_have_the_help_beside_each_value(path):
    assert completed(path, "explain", "0.", "fish") == "plain,0.0.0.0/0\tvia spine1\n"
    assert completed(path, "explain", "0.", "zsh") == "plain\n0.0.0.0/0\nvia spine1\n"


def test_without_a_daemon_there_are_words_and_no_values(tmp_path):
    assert values(str(tmp_path / "none"), "explain") == []
    assert values(str(tmp_path / "none"), "show", "sta") == ["status"]


def test_the_list_of_commands_is_completed_without_importing_them(path):
    env = {"_FARED_CLI_COMPLETE": "bash_complete", "COMP_WORDS": "fared-cli ", "COMP_CWORD": "1"}
    assert not imported_by(env=env) & {"rich", "numpy", "yaml", "readline", "fared.config"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_with_the_printed_script(path):
    script = CliRunner().invoke(main, ["completion", "bash"]).stdout
    typed = f"COMP_WORDS=(fared-cli -s {path} explain 10.0.2); COMP_CWORD=4"
    asked = f'{script}\n{typed}\n_fared_cli_completion fared-cli; echo "${{COMPREPLY[@]}}"'
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["bash", "--norc", "-c", asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert done.stdout == "10.0.2.0/24\n"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("explain 2001", ["2001:db8:1::/64", "2001:db8:2::/64"]),
        ("explain 2001 : db8 :", ["1::/64", "2::/64"]),
        ("explain 2001 : db8 : 2", ["2::/64"]),
        ("explain ::", ["/0"]),
    ],
)
def test_bash_may_split_a_prefix_of_ipv6(path, monkeypatch, typed, expected):
    """A colon ends a word there; what is offered follows the last one."""
    prefixes = ["2001:db8:1::/64", "2001:db8:2::/64", "::/0"]
    routes = [{**ROUTES["routes"][0], "prefix": prefix} for prefix in prefixes]
    monkeypatch.setitem(ANSWERS, "show routes", {**ROUTES, "routes": routes})
    *words, text = typed.split()
    assert values(path, " ".join(words), text) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_for_both_programs(shell):
    assert "_FARED_CLI_COMPLETE" in CliRunner().invoke(main, ["completion", shell]).stdout
    assert "_FARED_LAB_COMPLETE" in CliRunner().invoke(fared_lab, ["completion", shell]).stdout


def run(path, words):
    return CliRunner().invoke(main, ["-s", path, *words.split()])


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        ("show ip route", "show routes"),
        ("show ip route 10.0.2.0/24", "show routes 10.0.2.0/24"),
        ("sh ip ospf nei", "show ospf neighbors"),
        ("show ip ospf database", "show ospf database"),
        ("show isis adjacency", "show isis neighbors"),
        ("show run", "show config"),
        ("show configuration", "show config"),
        ("show version", "show status"),
        ("sh prot", "show status"),
        ("show bfd peers", "show bfd"),
    ],
)
def test_commands_of_other_routers_that_look_are_answered(path, words, ours):
    """What was typed is named once, on stderr."""
    result = run(path, words)
    assert (result.exit_code, result.stdout) == (0, run(path, ours).stdout)
    assert result.stderr.startswith("Hint: '")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("configure terminal", "'config apply FILE'"),
        ("conf t", "'config apply FILE'"),
        ("write", "'config confirm'"),
        ("wr mem", "'config confirm'"),
        ("ping 10.0.0.1", "'path SRC DST'"),
        ("commit", "--confirm 5m"),
        ("clear ip ospf process", "'restart --graceful'"),
        ("no shutdown", "'config apply FILE'"),
    ],
)
def test_commands_of_other_routers_that_change_are_only_named(path, words, hint):
    result = run(path, words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert hint in result.stderr


@pytest.mark.parametrize(
    ("words", "ours"),
    [("help", "--help"), ("help show routes", "show routes --help"), ("version", "--version")],
)
def test_help_and_version_are_words_too(path, words, ours):
    result = run(path, words)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == run(path, ours).stdout


def test_our_own_words_come_first(path):
    """An error of a command of ours is its own."""
    assert "Missing argument 'FILE'" in run(path, "config check").stderr
    assert "did you mean 'check'?" in run(path, "config chek").stderr
    assert "did you mean" not in run(path, "xyzzy").stderr


@pytest.mark.parametrize("known", [*habits._LOOKS, *habits._TOLD])
def test_every_command_of_the_table_is_found_and_ours_exists(path, known):
    habit = habits.of(known.split(), whole=True)
    assert habit.known == known
    assert run(path, f"{' '.join(habit.ours)} --help").exit_code == 0
