"""Errors of a configuration file and warnings about it, with file, line, column and path."""

from __future__ import annotations

import json
from typing import Final

import msgspec

from fared.config.document import PathKey, Place
from fared.core.text import printable

MOST_SHOWN: Final = 20
"""The most errors of one file that are shown; the rest are counted."""


_UNKNOWN: Final = "the unknown key"
_ELSEWHERE: Final = "it is a key of"
_LONG: Final = 60


class ConfigError(msgspec.Struct, frozen=True):
    """One error in a file: its place, what is expected there, and what is given.

    ``path`` names the place in the document (``ospf.areas[0.0.0.0].type``), ``nearest`` is the
    known key closest to an unknown one, ``hint`` an explanation.
    """

    file: str
    line: int
    column: int
    path: str
    expected: str
    got: str
    hint: str = ""
    nearest: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.text}"

    @property
    def text(self) -> str:
        """The error without the place in a file."""
        subject = f"{self.path}: " if self.path else ""
        meant = self.nearest or self.hint.startswith(_ELSEWHERE)
        known_better = meant and len(self.expected) > _LONG
        if known_better and self.got.startswith(_UNKNOWN):  # a long list would hide it
            text = f"{subject}{self.got.removeprefix('the ')}"
        else:
            text = f"{subject}expected {self.expected}, got {self.got}"
        if self.hint:
            text += f" ({self.hint})"
        if self.nearest:
            text += f"; did you mean {self.nearest!r}?"
        return text


class ConfigErrors(Exception):  # noqa: N818 - it is all the errors of one file
    """A file that cannot be used; ``errors`` are the first ones in the order of the file.

    ``total`` is the number of all.
    """

    def __init__(self, errors: tuple[ConfigError, ...], total: int | None = None) -> None:
        self.errors = errors
        self.total = len(errors) if total is None else total
        lines = [str(error) for error in errors]
        if self.total > len(errors):
            lines.append(f"and {self.total - len(errors):,} more")
        super().__init__("\n".join(lines))


class ConfigWarning(msgspec.Struct, frozen=True):
    """An accepted entry that is probably not intended."""

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.path}: {self.message}"


def error_at(
    file: str, path: PathKey, place: Place, expected: str, got: str, *, hint: str = ""
) -> ConfigError:
    """Return the error of the value at ``path``."""
    return ConfigError(file, place.line, place.column, format_path(path), expected, got, hint)


def format_path(path: PathKey) -> str:
    """Format a path for a terminal: plain keys joined by dots, all others in brackets."""
    text = ""
    for key in path:
        plain = isinstance(key, str) and key.replace("-", "").isalnum() and not key[0].isdigit()
        text += (f".{key}" if text else str(key)) if plain else f"[{key}]"
    return printable(text)


def show_value(value: object) -> str:
    """Format a given value for a terminal, briefly."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, str | int | float | bool):
        text = printable(json.dumps(value, ensure_ascii=False))
        return text if len(text) <= 60 else text[:57] + "..."
    return f"a {type(value).__name__}"
