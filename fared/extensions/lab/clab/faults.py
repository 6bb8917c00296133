"""Faults of a file: all are collected, each with its line, and reported together."""

from __future__ import annotations

from pathlib import Path

from fared.extensions.lab.clab.text import FileLines
from fared.extensions.lab.errors import TopologyError


class Faults:
    """The faults found so far in one file."""

    def __init__(self, origin: Path, lines: FileLines | None = None) -> None:
        """Begin without any; without ``lines`` none is reported with its line."""
        self._origin, self._lines = origin, lines or FileLines()
        self._found: list[tuple[int | None, str]] = []

    def add(self, text: str, *path: str | int) -> None:
        """Note a fault of the part at this path of the document."""
        self._found.append((self._lines.of(*path), text))

    def report(self) -> None:
        """Raise TopologyError if there are any."""
        if not self._found:
            return
        if len(self._found) == 1:
            line, text = self._found[0]
            raise TopologyError(f"{self._origin}{'' if line is None else f':{line}'}: {text}")
        head = f"{self._origin}: {len(self._found)} faults"
        told = (f"  {'' if line is None else f'line {line}: '}{text}" for line, text in self._found)
        raise TopologyError("\n".join([head, *told]))
