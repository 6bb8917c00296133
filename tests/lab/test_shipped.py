"""Topologies by name: those of ``containerlab/``, in every form in which fared is installed."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from deb import contents
from fared.extensions.lab import main as program
from fared.extensions.lab import sandbox, shipped, topology
from fared.extensions.lab.main import main

ROOT = Path(__file__).parents[2]
BESIDE = "fared/extensions/lab/topologies"
"""Where an installed package has the files."""


def test_the_names_are_those_of_the_files_of_containerlab():
    assert set(shipped.files().values()) == set((ROOT / "containerlab").glob("*.clab.yml"))
    assert shipped.DEFAULT in shipped.files()


@pytest.mark.parametrize("name", shipped.files())
def test_a_name_is_the_name_of_the_lab_too(name):
    assert topology.load(shipped.files()[name]).name == name


def test_wheel_and_debian_package_have_the_files_where_the_lab_looks():
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert "/containerlab/*.clab.yml" in wheel["targets"]["wheel"]["include"]
    assert wheel["targets"]["wheel"]["sources"] == {"containerlab": BESIDE}
    packed = contents.FILES["fared-tools"]["containerlab/*.clab.yml"]
    assert packed == f"{contents.PRIVATE}/{BESIDE}"
    assert shipped._INSTALLED == ROOT / BESIDE


def test_without_copies_beside_the_module_the_source_tree_is_read(monkeypatch, tmp_path):
    monkeypatch.setattr(shipped, "_INSTALLED", tmp_path)
    assert shipped.files() == {}
    shutil.copy(ROOT / "containerlab" / "clos3.clab.yml", tmp_path)
    assert shipped.files() == {"clos3": tmp_path / "clos3.clab.yml"}
    monkeypatch.undo()
    assert shipped.directory() == ROOT / "containerlab"


def test_topologies_lists_them_with_what_they_are_in_80_columns():
    told = CliRunner().invoke(main, ["topologies"]).stdout
    assert "clos3             A three-stage Clos fabric\n" in told
    assert "clos5-isis        A five-stage Clos fabric over IS-IS, IPv4 and IPv6\n" in told
    assert max(map(len, told.splitlines())) <= 80


@pytest.mark.parametrize("command", ["up", "demo"])
@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("clos33", "no topology 'clos33' comes with fared; did you mean 'clos3'?"),
        ("ring", "no topology 'ring' comes with fared; `fared-lab topologies` lists them"),
        ("./clos3", "./clos3: No such file or directory"),
        ("clos3.yml", "clos3.yml: No such file or directory"),
    ],
)
def test_a_word_with_a_dot_is_a_file_and_others_are_names(
    command, word, told, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, [command, word])
    assert result.exit_code == 2
    assert told.removeprefix("./") in result.stderr


def test_the_shell_completes_names():
    complete = ShellComplete(main, {}, "fared-lab", "_FARED_LAB_COMPLETE")
    assert [item.value for item in complete.get_completions(["up"], "clos5-i")] == [
        "clos5-isis",
        "clos5-isis-mixed",
    ]


def test_the_demo_of_no_fabric_is_that_of_clos3_and_ends_with_how_to_keep_it(monkeypatch):
    shown = []
    monkeypatch.setattr(sandbox, "problem", lambda: None)
    monkeypatch.setattr(sandbox, "run", lambda _: 0)
    load = topology.load
    monkeypatch.setattr(topology, "load", lambda path, *_, **__: shown.append(path) or load(path))
    monkeypatch.setattr(sys, "argv", ["fared-lab"])
    result = CliRunner().invoke(main, ["demo"])
    assert (result.exit_code, shown) == (0, [shipped.files()["clos3"]])
    assert result.stdout == "  keep it: fared-lab up clos3\n"
    typed = str(ROOT / "tests" / ".." / "containerlab" / "clos3.clab.yml")
    assert CliRunner().invoke(main, ["demo", typed]).stdout == f"  keep it: fared-lab up {typed}\n"


def test_commands_to_try_next_name_the_program_as_the_shell_finds_it(monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    own = tmp_path / "bin" / "fared-lab"
    own.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(own)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert program._program() == "bin/fared-lab"
    monkeypatch.setenv("PATH", str(own.parent))
    assert program._program() == "fared-lab"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    monkeypatch.setenv("PATH", "/nowhere")
    assert program._program() == str(own)
