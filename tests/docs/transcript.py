"""Types a page: ``python -m tests.docs.transcript first-fabric`` fills in what its commands print.

A block marked ``sh`` is run as it stands; in other blocks lines that begin with ``$`` are commands,
and what follows them is what they print. All is typed in a new directory, with our programs in the
``PATH``, on 80 columns.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.live.daemons import BIN, on_terminal

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^```(sh)?\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z]{3,}")
_LAST_CHANGE = re.compile(r"last changed(?:.|\n(?!\$ |```))*")
"""It may name several, on more than one line."""
_PAUSE = 0.5


def words(told: str) -> list[str]:
    """What a block says, without figures, and without which adjacency was the last to form."""
    return _WORD.findall(_LAST_CHANGE.sub("", told))


def typed(text: str, directory: Path, patience: float = 0.0) -> Iterator[tuple[str, str]]:
    """Type the blocks of a page; yield each with what it becomes.

    A command is typed again for so many seconds, while it prints other words than the page has: a
    busy machine needs longer than the pauses of the page.
    """
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    for block in _BLOCK.finditer(text):
        script, content = block.groups()
        if script:
            with (directory / "told").open("w") as told:  # daemons that are started may keep it
                command = ("bash", "-e", "-c", content)
                subprocess.run(
                    command, cwd=directory, env=environment, stdout=told, stderr=told, check=True
                )
        elif content.startswith("$ "):
            content = "".join(
                f"$ {command}\n{_told(command, directory, before, patience)}"
                for command, before in _COMMAND.findall(content)
            )
        yield block[0], f"```{script or ''}\n{content}```\n"


def _told(command: str, directory: Path, before: str, patience: float) -> str:
    """What a command prints on a terminal."""
    path, end = f"{BIN}:{os.environ['PATH']}", time.monotonic() + patience
    while True:
        _, shown = on_terminal(("bash", "-c", command), directory, PATH=path)
        if words(shown) == words(before) or time.monotonic() >= end:
            return "".join(f"{line.rstrip()}\n" for line in shown.strip().splitlines())
        time.sleep(_PAUSE)


def filled(text: str, directory: Path) -> str:
    """Return a page with what its commands print."""
    for block, becomes in typed(text, directory):
        text = text.replace(block, becomes, 1)
    return text


def main() -> None:
    """Fill the pages that are named."""
    for name in sys.argv[1:]:
        page = DOCS / f"{name}.md"
        with tempfile.TemporaryDirectory() as directory:
            page.write_text(filled(page.read_text(), Path(directory)))


if __name__ == "__main__":
    main()
