"""``fared-cli config import``: what it writes where, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fared.config import load_runnable
from fared.management.cli.main import main

FRR = """frr version 8.4.4
interface no-such-port
 ip ospf area 0
 ip ospf cost 10
 ip ospf authentication
 ip ospf authentication-key s3cret
router ospf
 frobnicate
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["config", "import", *map(str, arguments)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "frr.conf"
    found.write_text(FRR)
    return found


def test_the_result_is_valid_and_what_is_not_taken_is_in_it_and_on_stderr(file: Path):
    done = run(file)
    assert done.exit_code == 0
    load_runnable(Path("out"), done.stdout)
    line = "line 8: frobnicate: fared has no such setting"
    assert f"#   {line}\n" in done.stdout
    assert f"not taken: {line}\n" in done.stderr
    assert "s3cret" in done.stdout
    assert "s3cret" not in done.stderr


def test_a_file_with_keys_is_for_its_owner_and_nothing_is_overwritten(file: Path, tmp_path: Path):
    output = tmp_path / "fared.yaml"
    assert run(file, "--output", output).exit_code == 0
    assert load_runnable(output).config.ospf is not None
    assert output.stat().st_mode & 0o777 == 0o600
    again = run(file, "--output", output)
    assert again.exit_code == 1
    assert "File exists" in again.stderr


def test_as_json(file: Path):
    document = json.loads(run(file, "--json").stdout)
    assert (document["format"], document["make"]) == ("fared-config-import/1", "FRR")
    assert [each["line"] for each in document["not_taken"]] == [1, 8]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ospf:\n  areas: {}\n", "neither FRR nor BIRD"),
        ("set protocols ospf area 0\n", "a configuration of Junos"),
        ("hello\n", "neither FRR nor BIRD"),
        ('router id 10.0.0.1;\ninclude "gone";\n', "line 2: include 'gone': no such file"),
    ],
)
def test_another_file_is_refused_with_what_it_is(text: str, words: str, tmp_path: Path):
    file = tmp_path / "some.conf"
    file.write_text(text)
    done = run(file)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Hint:" in done.stderr


def test_a_file_without_a_protocol_is_no_result(tmp_path: Path):
    file = tmp_path / "frr.conf"
    file.write_text("frr version 8.4\nrouter rip\n")
    done = run(file)
    assert done.exit_code == 1
    assert "nothing in it runs OSPF, IS-IS or BGP" in done.stderr


def test_a_missing_file_is_named(tmp_path: Path):
    assert "No such file" in run(tmp_path / "none").stderr
