"""Reading YAML so that every value can be traced back to its line and column.

The file is composed into a node tree (which carries marks), then constructed into plain data;
``Places`` remembers for each path where its key and its value stand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

PathKey = tuple[Any, ...]

_MAX_DEPTH = 32
_MAX_NODES = 100_000
_MERGE = "tag:yaml.org,2002:merge"
_SEQUENCE = "tag:yaml.org,2002:seq"
_TAG = re.compile(r"(the tag|alias) '.*'", re.DOTALL)
"""What stands there may be a key that begins with ! or *."""
_EXPONENT = re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")


class Place(NamedTuple):
    """A position in the file, both counted from 1."""

    line: int
    column: int


class YamlError(Exception):
    """The text is not the YAML of a configuration file."""

    def __init__(self, place: Place, path: PathKey, what: str, got: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint
        self.place = place
        self.path = path
        self.what = what
        self.got = got


class _Loader(yaml.CSafeLoader):
    """YAML 1.1 as PyYAML reads it, plus the exponents that JSON writers produce."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789"))


class Places:
    """Where keys and values stand; unknown paths fall back to their nearest parent."""

    def __init__(self) -> None:
        self._keys: dict[PathKey, Place] = {}
        self._values: dict[PathKey, Place] = {(): Place(1, 1)}
        self.duplicates: list[tuple[PathKey, Place, Place]] = []

    def key(self, path: PathKey) -> Place:
        """Return where the key that ends ``path`` stands."""
        return self._keys.get(path) or self.value(path)

    def value(self, path: PathKey) -> Place:
        """Return where the value at ``path`` stands."""
        while path not in self._values:
            path = path[:-1]
        return self._values[path]

    def add(self, path: PathKey, key: Place, value: Place) -> None:
        """Remember an entry of a mapping, noting a key that was there before."""
        if path in self._keys:
            self.duplicates.append((path, key, self._keys[path]))
        self._keys[path] = key
        self._values[path] = value

    def add_item(self, path: PathKey, value: Place) -> None:
        """Remember an item of a sequence."""
        self._values[path] = value

    def inherit(self, path: PathKey, key: Place, value: Place) -> bool:
        """Remember an entry that a ``<<`` merge brings in, unless the mapping has its own."""
        if path in self._keys:
            return False
        self._keys[path] = key
        self._values[path] = value
        return True


def parse(text: str) -> tuple[object, Places]:
    """Read YAML (or JSON) text into plain data. Raises YamlError."""
    text = _without_tabs(text)
    try:
        _check_shape(text)
        loader = _Loader(text)
        node = loader.get_single_node()
        places = Places()
        if node is None:
            return None, places
        _walk(loader, node, places)
        return loader.construct_document(node), places
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
        why = _TAG.sub("a tag", error.problem or "")
        raise YamlError(place, (), "well-formed YAML", "broken YAML", why) from error
    except yaml.reader.ReaderError as error:
        where = text.count("\n", 0, error.position) + 1
        why = str(error.reason)
        raise YamlError(Place(where, 1), (), "printable text", "other characters", why) from error


def _without_tabs(text: str) -> str:
    """JSON may be indented by tabs, which YAML forbids; inside JSON strings there are none."""
    if "\t" not in text or not text.lstrip().startswith("{"):
        return text
    try:
        json.loads(text)
    except ValueError:
        return text
    return text.replace("\t", " ")


def _check_shape(text: str) -> None:
    """Refuse absurd nesting before the C composer, which recurses, runs out of stack."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise YamlError(_place(event), (), f"at most {_MAX_DEPTH} levels", "deeper nesting")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _place(node: Any) -> Place:  # noqa: ANN401 - nodes and events share only their marks
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)


def _walk(loader: _Loader, root: yaml.Node, places: Places) -> None:
    """Visit all nodes, anchors as often as they are used, within a bound."""
    visited = 0
    stack: list[tuple[yaml.Node, PathKey]] = [(root, ())]
    while stack:
        node, path = stack.pop()
        visited += 1
        if visited > _MAX_NODES or len(path) > _MAX_DEPTH:
            raise YamlError(_place(node), (), "a document that ends", "anchors that never do")
        if isinstance(node, yaml.MappingNode):
            stack.extend(_walk_mapping(loader, node, path, places))
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                places.add_item((*path, index), _place(item))
                stack.append((item, (*path, index)))


def _walk_mapping(
    loader: _Loader, node: yaml.MappingNode, path: PathKey, places: Places
) -> Iterator[tuple[yaml.Node, PathKey]]:
    merged: list[yaml.Node] = []
    for key_node, value_node in node.value:
        if key_node.tag == _MERGE:
            merged += value_node.value if value_node.tag == _SEQUENCE else [value_node]
        elif isinstance(key_node, yaml.ScalarNode):  # other keys fail in construction
            entry = (*path, loader.construct_object(key_node))
            places.add(entry, _place(key_node), _place(value_node))
            yield value_node, entry
    # The mapping's own keys win over those merged in, so these come last.
    for source in merged:
        for key_node, value_node in source.value if isinstance(source, yaml.MappingNode) else ():
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag != _MERGE:
                entry = (*path, loader.construct_object(key_node))
                if places.inherit(entry, _place(key_node), _place(value_node)):
                    yield value_node, entry
