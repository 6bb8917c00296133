"""The topologies that come with fared, by name: ``fared-lab up clos3``.

They are the files of ``containerlab/``: an installation from the source tree reads them there, a
wheel and the Debian package have copies beside this module.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from fared.extensions.lab.topology import STDIN

DEFAULT = "clos3"
"""The fabric of the demo."""
SUFFIX = ".clab.yml"
_INSTALLED = Path(__file__).parent / "topologies"
_SOURCE = Path(__file__).parents[3] / "containerlab"


def directory() -> Path:
    """Return where the files are."""
    return _INSTALLED if _INSTALLED.is_dir() else _SOURCE


def files() -> dict[str, Path]:
    """Return the files by name, in the order of names."""
    found = {path.name.removesuffix(SUFFIX): path for path in directory().glob(f"*{SUFFIX}")}
    return dict(sorted(found.items()))


def title(path: Path) -> str:
    """Return the beginning of a file's comment: what the fabric is."""
    comment = path.read_text("utf-8").partition("\nname:")[0].partition("\n#\n")[0]
    text = " ".join(line.lstrip("# ") for line in comment.splitlines()).replace(SUFFIX, "")
    return re.split(r"[.:;(]", re.sub(r"^The \S+ Clos fabric of ", "", text))[0].strip()


def argument(*, default: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare the argument ``file``: a path, or the name of a topology that comes with fared."""
    optional: dict[str, Any] = {} if default is None else {"default": default}
    metavar = "[TOPOLOGY]" if optional else "TOPOLOGY"
    return click.argument(
        "file", metavar=metavar, callback=_file, shell_complete=_complete, **optional
    )


def _file(_context: click.Context, _parameter: click.Parameter, word: str) -> Path:
    """Return the file that is meant: a word with a dot or a slash is a path."""
    if word == str(STDIN):
        return STDIN
    known = files()
    if word in known:
        return known[word]
    if "." in word or "/" in word or Path(word).exists():
        return Path(word)
    close = difflib.get_close_matches(word, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "`fared-lab topologies` lists them"
    message = f"no topology {word!r} comes with fared; {hint}"
    raise click.BadParameter(message, param_hint="TOPOLOGY")


def _complete(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete names; the shell completes files."""
    names = [name for name in files() if name.startswith(begun)]
    return [CompletionItem(name) for name in names] or [CompletionItem(begun, type="file")]
