"""The pages of the five documents: every row has a verdict, and commands that are quick are run."""

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from bench.lab import seeds
from fared.extensions.lab import shipped, topology
from fared.extensions.lab.acts import cast
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.main import main

_ROW = re.compile(r"^\| (\d+) \| .+? \| (runs|partly|not|out) \| (.+) \|$", re.MULTILINE)
_QUICK = [one for one in seeds.commands() if one.line.startswith("fared-cli plan")]


def test_every_row_is_on_a_page_with_a_verdict_and_counted():
    texts = [page.read_text() for page in seeds.PAGES.glob("*.md")]
    rows = [found for text in texts for found in _ROW.findall(text)]
    assert sorted(int(number) for number, _, _ in rows) == list(range(1, 103))
    counted = Counter(verdict for _, verdict, _ in rows)
    told = " | ".join(str(counted[verdict]) for verdict in ("runs", "partly", "not", "out"))
    assert f"| all | {told} |" in (seeds.PAGES / "README.md").read_text()


def test_pictures_are_drawn_by_a_command_of_their_page():
    for page in seeds.PAGES.glob("*.md"):
        lines = " ".join(command.line for command in seeds.commands([page.stem]))
        for picture in re.findall(r"!\[[^]]*\]\(([\w./-]+)\)", page.read_text()):
            assert Path(picture).name in lines


def test_demos_of_the_pages_have_several_paths_to_weight():
    """Of direct links few topologies have: between neighbors there is one shortest path."""
    demos = [one.line for one in seeds.commands() if "fared-lab demo" in one.line]
    assert len(demos) >= 10
    for line in demos:
        *before, words = line.split("|")
        if before:
            made = CliRunner().invoke(main, shlex.split(before[0])[1:])
            source = topology.from_document(yaml.safe_load(made.stdout), Path("made.clab.yml"))
        else:
            name = next((word for word in words.split() if word in shipped.files()), "clos3")
            source = topology.load(shipped.files()[name])
        if not any(node.ina for node in source.nodes.values()):
            cast.choose(Fabric.from_topology(source))


@pytest.mark.parametrize("command", _QUICK, ids=lambda command: command.line)
def test_commands_of_the_pages_end_well(command: seeds.SeedCommand, tmp_path: Path):
    """Those that build no fabric; ``python -m bench seeds`` runs all."""
    done = seeds.execute(command.line, tmp_path)
    assert done.returncode == 0, done.stdout
    drawn = [word for word in shlex.split(command.line) if word.endswith(".svg")]
    assert all((tmp_path / name).stat().st_size for name in drawn)
