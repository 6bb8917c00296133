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
from collections.abc import Iterator
from pathlib import Path

from tests.live.daemons import BIN, on_terminal

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^```(sh)?\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def typed(text: str, directory: Path) -> Iterator[tuple[re.Match[str], str]]:
    """Type the blocks of a page; yield each with what it becomes."""
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
            commands = re.findall(r"^\$ (.*)\n", content, re.MULTILINE)
            content = "".join(f"$ {each}\n{_told(each, directory)}" for each in commands)
        yield block, f"```{script or ''}\n{content}```\n"


def _told(command: str, directory: Path) -> str:
    """What a command prints on a terminal."""
    path = f"{BIN}:{os.environ['PATH']}"
    _, shown = on_terminal(("bash", "-c", command), directory, PATH=path)
    return "".join(f"{line.rstrip()}\n" for line in shown.strip().splitlines())


def filled(text: str, directory: Path) -> str:
    """Return a page with what its commands print."""
    for block, becomes in typed(text, directory):
        text = text.replace(block[0], becomes, 1)
    return text


def main() -> None:
    """Fill the pages that are named."""
    for name in sys.argv[1:]:
        page = DOCS / f"{name}.md"
        with tempfile.TemporaryDirectory() as directory:
            page.write_text(filled(page.read_text(), Path(directory)))


if __name__ == "__main__":
    main()
