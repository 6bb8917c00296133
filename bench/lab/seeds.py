"""The commands of the five documents' pages, run one after the other as a reader would.

A row is a line of a block below *Run it* in a page of ``docs/seeds/``: the seconds that it takes,
and whether it ends with exit code 0, as it does if all its claims hold. Lines of a block share a
directory, in which pictures are drawn. ``python -m bench seeds fare`` runs those of one page.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench import ROOT

PAGES = ROOT / "docs" / "seeds"
LONG = 900.0
"""Seconds for a command: Figure 2 starts 80 daemons."""
_BLOCK = re.compile(r"^## Run it$.*?^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LAST = 400


class SeedCommand(NamedTuple):
    """A line of a page, without its comment."""

    page: str
    line: str


def commands(pages: Sequence[str] = ()) -> Iterator[SeedCommand]:
    """Yield the commands of the pages, or of those whose names are given."""
    for path in sorted(PAGES.glob("*.md")):
        found = _BLOCK.search(path.read_text("utf-8"))
        if found is None or (pages and path.stem not in pages):
            continue
        for line in found[1].splitlines():
            yield SeedCommand(path.stem, line.partition("  #")[0].strip())


def rows(pages: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Run all commands; return a row for each."""
    found = []
    with tempfile.TemporaryDirectory() as directory:
        for command in commands(pages):
            begun = time.monotonic()
            done = execute(command.line, Path(directory))
            seconds = time.monotonic() - begun
            good = done.returncode == 0
            one = {"name": command.line, "ours": seconds, "unit": "s", "goal": "exit code 0"}
            found.append({**one, "met": good, "note": None if good else done.stdout[-_LAST:]})
            told = "ok" if good else "FAILED"
            print(f"{seconds:7.1f} s  {told:<6}  {command.line}", file=sys.stderr, flush=True)
    return found


def main() -> int:
    """Run the commands of all pages, or of those that are named; return 1 if one failed."""
    return int(not all(one["met"] for one in rows(sys.argv[1:])))


def execute(line: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as typed in a shell that finds the programs of this environment."""
    programs = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "80"}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=directory,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONG,
        check=False,
    )
