"""The pages name commands, options and metrics that the code has."""

from __future__ import annotations

import argparse
import functools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from fared.daemon.main import parser as fared
from fared.extensions.ina.inad.main import parser as fared_ina
from fared.extensions.lab import shipped
from fared.extensions.lab.main import main as fared_lab
from fared.management.cli.main import main as fared_cli
from tests.docs.test_links import _PAGES, _ROOT

FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`]+)`")
_PROGRAM = re.compile(r"(?:\S*/)?(fared|fared-ina|fared-cli|fared-lab|python3?|make)(?= |$)")
_SHELL = {"|", ">", ">>", "&&", ";", "#"}
_CLICK: dict[str, click.Command] = {"fared-cli": fared_cli, "fared-lab": fared_lab}
_ARGPARSE = {"fared": fared, "fared-ina": fared_ina}
PAGES_OF_NOW = [page for page in _PAGES if page.name not in {"CHANGELOG.md", "NOTICE.md"}]
_FOREIGN = {"--congestion-control", "--help"}
"""Of iperf3, and of every program."""
_BENCHMARKS = re.compile(r'"(--[a-z0-9-]+)"')


class Typed(NamedTuple):
    """A command of a page, with its words up to the first pipe."""

    page: str
    program: str
    words: list[str]


def commands() -> list[Typed]:
    return [typed for page in PAGES_OF_NOW for typed in _commands(page)]


def _commands(page: Path) -> Iterator[Typed]:
    text = page.read_text()
    blocks = (block for kind, block in FENCE.findall(text) if kind in {"", "sh", "bash"})
    typed = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    for command in [*typed, *INLINE.findall(FENCE.sub("", text))]:
        line = " ".join(command.split()).removeprefix("$ ")
        if (found := _PROGRAM.match(line)) is None:
            continue
        # optional parts are options too; alternatives follow each other in one word
        words = shlex.split(line[found.end() :].replace("[", " ").replace("]", " "))
        end = next((at for at, word in enumerate(words) if word in _SHELL), len(words))
        if words[:end]:
            yield Typed(page.name, found[1], words[:end])


def wrong(typed: Typed) -> str | None:
    """What the program does not have of this command."""
    program, words = typed.program, typed.words
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (_ROOT / "Makefile").read_text(), re.MULTILINE)
        return None if words[0] in targets else words[0]
    options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    if program.startswith("python"):
        return _wrong_of_python(words, options)
    if program in _ARGPARSE:
        return _first(options - _of_argparse(_ARGPARSE[program]()))
    return _wrong_of_click(_CLICK[program], words)


def _wrong_of_python(words: list[str], options: set[str]) -> str | None:
    """Of ``-m bench NAME``, or of a file."""
    name = words[0]
    if words[:2] == ["-m", "bench"]:
        name, options = words[2], options - {"-m"}
        file = next((_ROOT / "bench").rglob(f"{name}.py"), _ROOT / name)
    elif name.endswith(".py"):
        file = _ROOT / name
    else:
        return None
    known = set(_BENCHMARKS.findall(file.read_text())) if file.exists() else set()
    return name if not file.exists() else _first(options - known)


def _wrong_of_click(command: click.Command, words: list[str]) -> str | None:
    context, known = click.Context(command), _options(command)
    awaiting: tuple[str, click.Option] | None = None
    for word in words:
        if word in known:
            awaiting = None if known[word].is_flag else (word, known[word])
        elif word.startswith("--"):
            return None if _takes_anything(command) else word
        elif awaiting is not None:
            name, option = awaiting
            awaiting = None
            choices = option.type.choices if isinstance(option.type, click.Choice) else [word]
            if word.islower() and not set(word.split("|")) <= set(choices):
                return f"{name} {word}"
        elif isinstance(command, click.Group):
            if re.fullmatch(r"[A-Z]+|\.\.\.", word):  # any of them
                return None
            meant = command.get_command(context, word)
            if meant is None:
                return word
            command = meant
            known |= _options(command)
    return None


def _takes_anything(command: click.Command) -> bool:
    """Whether the rest is a command of another program, as behind ``fared-lab cli L1``."""
    return bool(command.context_settings.get("ignore_unknown_options"))


def _options(command: click.Command) -> dict[str, click.Option]:
    options = (each for each in command.params if isinstance(each, click.Option))
    return {name: each for each in options for name in (*each.opts, *each.secondary_opts)}


def _of_argparse(parser: argparse.ArgumentParser) -> set[str]:
    return {name for action in parser._actions for name in action.option_strings}


def _first(unknown: set[str]) -> str | None:
    return min(unknown, default=None)


def test_every_command_of_the_pages_is_one():
    found = commands()
    assert len(found) > 120
    assert {typed.program for typed in found} >= {*_CLICK, *_ARGPARSE, "python", "make"}
    assert [(typed, reason) for typed in found if (reason := wrong(typed))] == []


@pytest.mark.parametrize(
    ("program", "words", "reason"),
    [
        ("fared-cli", "show nonsense", "nonsense"),
        ("fared-cli", "show status --nonsense", "--nonsense"),
        ("fared-cli", "decode --proto rip", "--proto rip"),
        ("fared-lab", "generate clos9", "clos9"),
        ("fared", "--chek", "--chek"),
        ("make", "nonsense", "nonsense"),
        ("python", "bench/nonsense.py", "bench/nonsense.py"),
        ("python", "-m bench nonsense", "nonsense"),
        ("python", "-m bench chaos --hours 1", "--hours"),
    ],
)
def test_a_command_that_is_none_is_found(program, words, reason):
    assert wrong(Typed("page", program, words.split())) == reason


@functools.cache
def all_options() -> set[str]:
    """The options of all programs and benchmarks."""
    found = {name for parser in _ARGPARSE.values() for name in _of_argparse(parser())}
    below = list(_CLICK.values())
    while below:
        command = below.pop()
        found |= _options(command).keys()
        if isinstance(command, click.Group):
            context = click.Context(command)
            below += [
                each
                for name in command.list_commands(context)
                if (each := command.get_command(context, name)) is not None
            ]
    for file in _ROOT.glob("bench/**/*.py"):
        found |= set(_BENCHMARKS.findall(file.read_text()))
    return found


def test_every_topology_of_the_pages_comes_with_fared():
    """Or is a file, whose name has a dot."""
    named = [
        typed.words[1]
        for typed in commands()
        if typed.program == "fared-lab" and typed.words[0] in ("up", "demo") and typed.words[1:]
    ]
    names = {word for word in named if re.fullmatch(r"[a-z][a-z0-9-]*", word)}
    assert {"clos3", "clos5-isis", "ina"} <= names <= set(shipped.files())


def test_every_option_of_the_pages_belongs_to_a_program():
    named = {
        (page.name, option)
        for page in PAGES_OF_NOW
        for text in INLINE.findall(FENCE.sub("", page.read_text()))
        if text.startswith("--")
        for option in re.findall(r"(?:^| )(--[a-z0-9-]+)", text)
    }
    assert len(named) > 80
    assert [(page, it) for page, it in named if it not in all_options() | _FOREIGN] == []


def test_show_names_documents():
    """Without ``detail``, which FRR has, and a page that names commands of other programs."""
    show = fared_cli.get_command(click.Context(fared_cli), "show")
    assert show is not None
    named = [
        text.split()
        for page in PAGES_OF_NOW
        for text in INLINE.findall(FENCE.sub("", page.read_text()))
        if text.startswith("show ")
        and text != "show isis database detail"
        and page.name != "coming-from.md"
    ]
    assert len(named) > 60
    assert [words for words in named if _wrong_of_click(show, words[1:])] == []


def test_every_metric_of_the_pages_is_one():
    text = "".join(path.read_text() for path in (_ROOT / "fared").rglob("*.py"))
    known = {f"fared_{name}" for name in re.findall(r'"(?:fared_)?([a-z][a-z0-9_]+)"', text)}
    named = {
        (page.name, metric)
        for page in PAGES_OF_NOW
        for metric in re.findall(r"`(fared_[a-z0-9_]+)", page.read_text())
    }
    assert len(named) > 40
    assert [it for it in named if not {it[1], it[1].removesuffix("_total")} & known] == []
