"""The configurations of ``docs/coming-from.md`` are accepted, and its settings exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from deb.sample import sections
from fared.config import load_text
from fared.config.shapes import fields_of
from tests.docs.transcript import DOCS

PAGE = (DOCS / "coming-from.md").read_text()


def block(kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_fared_accepts_its_file():
    ospf = load_text(block("yaml"), "page").ospf
    assert ospf is not None
    assert [name for area in ospf.areas.values() for name in area.interfaces] == [
        "lo",
        "swp1",
        "servers",
    ]


@pytest.mark.peers
@pytest.mark.parametrize(
    ("kind", "command"),
    [("frr", ["vtysh", "-C", "-f"]), ("bird", ["bird", "-p", "-c"])],
)
def test_the_peers_accept_theirs(kind: str, command: list[str], tmp_path: Path):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is missing")
    file = tmp_path / f"{kind}.conf"
    file.write_text(block(kind))
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_settings_of_the_first_column_exist():
    keys = {key for section in sections() for key in fields_of(section)}
    tables = PAGE.partition("## Settings of OSPF")[2].partition("## One link")[0]
    named = {
        name.partition(":")[0]
        for row in re.findall(r"^\| (.*?) \|", tables, re.MULTILINE)
        for name in re.findall(r"`([^`]+)`", row)
    }
    assert len(named) > 25
    assert named <= keys
