"""``fared-lab exec`` and ``cli``: the arguments that are passed to the program in the node."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from fared.extensions.lab import holder
from fared.extensions.lab.main import main


@pytest.fixture
def called(monkeypatch) -> list[tuple[str, ...]]:
    """What a lab of one node was told to run; the program ends with 3."""
    commands: list[tuple[str, ...]] = []

    def call(command: tuple[str, ...]) -> int:
        commands.append(tuple(command))
        return 3

    kind = SimpleNamespace(cli=lambda _directory, arguments: ("tool", *arguments))
    node = SimpleNamespace(call=call, kind=kind, directory=None)
    fabric = SimpleNamespace(node=lambda _name: node)
    lab = SimpleNamespace(run=lambda command: command(fabric))
    monkeypatch.setattr(holder, "choose", lambda _name: lab)
    return commands


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("ip", "-br", "addr"), ("ip", "-br", "addr")),
        (("--", "ip", "-br", "addr"), ("ip", "-br", "addr")),
        (("sh", "-c", "x", "--", "y"), ("sh", "-c", "x", "--", "y")),
        (("--", "--", "x"), ("--", "x")),
    ],
)
def test_exec_runs_the_command_with_or_without_two_dashes_before_it(called, words, command):
    assert CliRunner().invoke(main, ["exec", "L1", *words]).exit_code == 3
    assert called == [command]


def test_the_operators_tool_of_a_node_takes_two_dashes_too(called):
    CliRunner().invoke(main, ["cli", "L1", "--", "show", "routes", "--json"])
    assert called == [("tool", "show", "routes", "--json")]


@pytest.mark.parametrize("words", [(), ("--",)])
def test_exec_without_a_command_is_a_usage_error(called, words):
    result = CliRunner().invoke(main, ["exec", "L1", *words])
    assert result.exit_code == 2
    assert "Missing argument" in result.stderr
    assert called == []
