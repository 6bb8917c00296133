"""Worked examples of the pages about plans give what the pages say, when they are typed."""

import json
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from fared.extensions.sim.fabric import FabricBuilder, clos3
from fared.extensions.sim.network import Network
from fared.management.cli.main import main
from tests.offline.fabrics import saved, started

DOCS = Path(__file__).resolve().parents[2] / "docs"
RATE = 100e6 / 8
"""Of the links of ``containerlab/clos3.clab.yml``, bytes/s."""


class Example(NamedTuple):
    """A line behind ``$``, and what follows it up to the next one."""

    command: str
    told: list[str]


class _Lab(FabricBuilder):
    """Links as in the lab."""

    def link(self, a, b, capacity=RATE):
        super().link(a, b, capacity)


@pytest.fixture(scope="module")
def database():
    fabric = started(clos3(4, 8, builder=_Lab(Network(seed=1))))
    return json.dumps(saved(fabric))


def examples(page):
    """All commands of a page, in their order."""
    found = []
    for block in re.findall(
        r"^```\n(.*?)^```$", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE
    ):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *told = part.replace("\\\n", "").splitlines()
            found.append(Example(command.partition("  #")[0].strip(), told))
    return found


def offline(command):
    """Whether ``fared-cli`` needs no daemon and no cluster for it."""
    return command.startswith("fared-cli plan ") and "--scheduler" not in command


@pytest.mark.parametrize("page", ["plan.md", "plan-jobs.md"])
def test_a_page_says_what_its_commands_print(page, database, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("db.json").write_text(database)
    typed = 0
    for example in examples(page):
        if example.command.startswith("cat "):
            Path(example.command.split()[1]).write_text("\n".join(example.told) + "\n")
        elif offline(example.command) and "--from-load" not in example.command:
            typed += 1
            command, _, target = example.command.partition(" > ")
            result = CliRunner().invoke(main, shlex.split(command)[1:])
            assert result.exit_code == 0, (example, result.output)
            if target:
                Path(target).write_text(result.stdout)
            assert_told(example, result.stdout)
    assert typed


def assert_told(example, printed):
    """The lines of the page are those that were printed, without those that ``...`` stands for."""
    rest = [line.rstrip() for line in printed.splitlines()]
    skipping = False
    for line in example.told:
        if line == "...":
            skipping = True
            continue
        assert line in rest if skipping else rest[:1] == [line], (example.command, line, rest)
        rest = rest[rest.index(line) + 1 :]
        skipping = False
    assert skipping or not rest or not example.told, (example.command, rest)
