"""The topologies and models that come with fared, by name: ``fared-lab up clos3``.

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
from click.decorators import FC
from click.shell_completion import CompletionItem

from fared.extensions.lab.topology import STDIN

DEFAULT = "clos3"
"""The fabric of the demo."""
SUFFIX = ".clab.yml"
MODEL_SUFFIX = ".model.yml"
"""Of models for ``fared-lab traffic step``."""
_INSTALLED = Path(__file__).parent / "topologies"
_SOURCE = Path(__file__).parents[3] / "containerlab"


def directory() -> Path:
    """Return where the files are."""
    return _INSTALLED if _INSTALLED.is_dir() else _SOURCE


def files(suffix: str = SUFFIX) -> dict[str, Path]:
    """Return the files by name, in the order of names."""
    found = {path.name.removesuffix(suffix): path for path in directory().glob(f"*{suffix}")}
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


def model_option() -> Callable[[FC], FC]:
    """Declare the option ``--model``: a path, or the name of a model that comes with fared."""
    return click.option(
        "--model",
        required=True,
        metavar="MODEL",
        callback=_model,
        help=f"A file, or one of {', '.join(files(MODEL_SUFFIX))}.",
    )


def _model(_context: click.Context, _parameter: click.Parameter, word: str) -> Path:
    known = files(MODEL_SUFFIX)
    if word in known or "." in word or "/" in word or Path(word).exists():
        return known.get(word, Path(word))
    raise click.BadParameter(f"no model {word!r} comes with fared; there is {', '.join(known)}")


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
