"""The text of a topology file: variables of the environment, YAML, and the lines of its parts."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from fared.extensions.lab.clab import others
from fared.extensions.lab.errors import TopologyError

STDIN = Path("-")
"""Names standard input."""

_LARGEST = 16 << 20
_VARIABLE = re.compile(
    r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<how>:?[-=+])(?P<word>[^{}]*))?\}"
    r"|\$(?P<bare>[A-Za-z_][A-Za-z0-9_]*)"
)
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class FileLines:
    """The line of each part of a file, by its path: keys of mappings, and numbers in lists."""

    def __init__(self, root: yaml.Node | None = None) -> None:
        """Take the root of a YAML document; without one, no line is known."""
        self._root = root

    def of(self, *path: str | int) -> int | None:
        """Return the line of a part, or of the innermost part around it; it counts from 1."""
        node, line = self._root, None
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            line, node = found
        return line


def _child(node: yaml.Node | None, step: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in reversed(node.value):  # the last of equal keys counts
            if key.value == str(step):
                return key.start_mark.line + 1, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        found = node.value[step]
        return found.start_mark.line + 1, found
    return None


def read(path: Path, environment: Mapping[str, str]) -> tuple[object, FileLines]:
    """Return the document of a file, or of standard input, and its lines. Raises TopologyError."""
    text = substituted(_text(path), environment)
    others.refuse_text(path, text)
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        document = None if root is None else loader.construct_document(root)
    except (yaml.YAMLError, RecursionError) as error:
        others.refuse_template(path, text)
        raise TopologyError(f"{path}: not YAML: {error}") from error
    if document is None:
        raise TopologyError(f"{path}: is empty")
    others.refuse_document(path, document)
    return document, FileLines(root)


def _text(path: Path) -> str:
    others.refuse_path(path)
    try:
        with sys.stdin.buffer if path == STDIN else path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise TopologyError(f"{path}: larger than {_LARGEST >> 20} MiB")
        return content.decode("utf-8")
    except OSError as error:
        raise TopologyError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TopologyError(f"{path}: not YAML: {error}") from error


def substituted(text: str, environment: Mapping[str, str]) -> str:
    """Replace ``${NAME}``, ``$NAME``, and ``${NAME:=word}`` with its kin, as containerlab does.

    A variable that is not set stays as it is written, unless the file has a default for it.
    """

    def value(found: re.Match[str]) -> str:
        name, how = found["name"] or found["bare"], found["how"] or ""
        known = environment.get(name)
        present = bool(known) if how.startswith(":") else known is not None
        if how.endswith("+"):
            return found["word"] if present else ""
        if present and known is not None:
            return known
        return found["word"] if how else found[0]

    return _VARIABLE.sub(value, text)
