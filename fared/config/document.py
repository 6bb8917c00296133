"""Reads YAML and keeps the line and column of every value.

One pass over the parser's events makes plain data and, beside it, a tree of ``YamlNode`` with the
places. An alias refers to the node of its anchor, so that neither data nor places are copied. The
content of a node is counted, aliases and merges included, and a document with too much is refused
before it is processed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from yaml._yaml import CParser
from yaml.constructor import SafeConstructor
from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)
from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

PathKey = tuple[Any, ...]

_MAX_DEPTH: Final = 32
_MAX_ENTRIES: Final = 500_000
_MERGE: Final = "tag:yaml.org,2002:merge"
_PLAIN_TAGS: Final = (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_TAG: Final = re.compile(r"the tag '.*'", re.DOTALL)
"""The quoted text may be a key that begins with an exclamation mark, so it is not shown."""
_EXPONENT: Final = re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")


class Place(msgspec.Struct, frozen=True, order=True):
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


class _Loader(CParser, SafeConstructor, Resolver):
    """YAML 1.1 as ``CSafeLoader`` of PyYAML reads it, plus the exponents that JSON writers produce.

    The module of ``CSafeLoader`` also has all that writes YAML.
    """

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789"))


class YamlNode:
    """One value of the document: its place, its data, and the nodes inside it.

    ``children`` of a mapping are by key, of a sequence by index. ``size`` counts the node and its
    content, aliases as often as they are used; ``depth`` is 1 for a scalar.
    """

    __slots__ = ("children", "data", "depth", "keys", "place", "size")

    def __init__(self, place: Place, data: Any) -> None:  # noqa: ANN401 - what YAML holds
        self.place = place
        self.data = data
        self.children: dict[Any, YamlNode] = _NO_CHILDREN
        self.keys: dict[Any, Place] = _NO_KEYS
        self.size = self.depth = 1

    @classmethod
    def collection(cls, place: Place) -> YamlNode:
        """Return an empty mapping or sequence."""
        node = cls(place, None)
        node.children, node.keys = {}, {}
        return node

    def add(self, key: Any, child: YamlNode) -> None:  # noqa: ANN401 - any scalar is a key
        """Add a child."""
        self.children[key] = child
        self.size += child.size
        self.depth = max(self.depth, child.depth + 1)


_NO_CHILDREN: Final[dict[Any, YamlNode]] = {}
_NO_KEYS: Final[dict[Any, Place]] = {}
"""The keys of all scalars, shared since most nodes are scalars."""


class Places:
    """The places of keys and values; an unknown path has that of its nearest parent."""

    def __init__(self, root: YamlNode) -> None:
        self._root = root
        self.duplicates: list[tuple[PathKey, Place, Place]] = []
        """Keys given more than once: path, place, and first place."""

    def key(self, path: PathKey) -> Place:
        """Return the place of the key that ends ``path``."""
        known = self._nearest(path[:-1]).keys.get(path[-1]) if path else None
        return known or self.value(path)

    def value(self, path: PathKey) -> Place:
        """Return the place of the value at ``path``."""
        return self._nearest(path).place

    def find(self, key: str) -> Iterator[tuple[PathKey, Any]]:
        """Yield path and data of every entry with that key."""
        waiting: list[tuple[PathKey, YamlNode]] = [((), self._root)]
        while waiting:
            path, node = waiting.pop()
            for name, child in node.children.items():
                if name == key:
                    yield (*path, name), child.data
                waiting.append(((*path, name), child))

    def _nearest(self, path: PathKey) -> YamlNode:
        """Return the node at ``path``, or its nearest parent."""
        node = self._root
        for key in path:
            child = node.children.get(key)
            if child is None:
                break
            node = child
        return node


def parse(text: str) -> tuple[object, Places]:
    """Read YAML (or JSON) text into plain data. Raises YamlError."""
    text = _without_tabs(text)
    try:
        composer = _Composer(_Loader(text))
        root = composer.document() or YamlNode(Place(1, 1), None)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
        why = _why_broken(text, error.problem or "", place)
        if "nesting depth" in why:  # libyaml has a limit of its own, and reads ahead of us
            raise YamlError(place, (), f"at most {_MAX_DEPTH} levels", "deeper nesting") from error
        raise _broken(place, why) from error
    except YAMLError as error:
        unreadable: Any = error  # a ``ReaderError``, whose module is loaded when it is raised
        where = text.count("\n", 0, unreadable.position) + 1
        why = str(unreadable.reason)
        raise YamlError(Place(where, 1), (), "printable text", "other characters", why) from error
    except UnicodeEncodeError as error:  # half of a surrogate pair, in JSON of a client
        where = text.count("\n", 0, error.start) + 1
        raise YamlError(Place(where, 1), (), "printable text", "other characters") from error
    places = Places(root)
    places.duplicates = composer.duplicates
    return root.data, places


def _why_broken(text: str, problem: str, place: Place) -> str:
    """Say what is wrong in the words of a person who edits the file."""
    lines = text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    before, at = line[: place.column - 1], line[place.column - 1 : place.column]
    if at == "\t":
        return "a tab: indent with spaces"
    if before.endswith("*"):
        return 'a pattern needs quotes: "*"'
    return _TAG.sub("a tag", problem)


def _broken(place: Place, why: str) -> YamlError:
    return YamlError(place, (), "well-formed YAML", "broken YAML", why)


def _without_tabs(text: str) -> str:
    """Replace tabs: JSON may be indented by them, YAML may not; JSON strings contain none."""
    if "\t" not in text or not text.lstrip().startswith("{"):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text.replace("\t", " ")


def _place(event: Any) -> Place:  # noqa: ANN401 - events without marks do not come here
    return Place(event.start_mark.line + 1, event.start_mark.column + 1)


class _Open(msgspec.Struct, frozen=True):
    """A collection that is being read. ``waiting`` is a mapping's key without its value yet."""

    node: YamlNode
    anchor: str | None
    is_mapping: bool
    merged: list[YamlNode]
    waiting: list[tuple[Any, Place]]


class _Composer:
    """Makes nodes from events, without recursion."""

    def __init__(self, loader: _Loader) -> None:
        self.duplicates: list[tuple[PathKey, Place, Place]] = []
        self._loader = loader
        self._next_event: Callable[[], Any] = loader.get_event
        self._stack: list[_Open] = []
        self._anchors: dict[str, YamlNode | None] = {}
        """Nodes by anchor; None while the node is incomplete."""
        self._entries = 0
        self._plain: dict[str, Any] = {}
        """Values of plain scalars: a file has few different ones."""

    def document(self) -> YamlNode | None:
        """Return the only document; None if the text has none."""
        root = None
        complete: dict[type, Callable[[Any], YamlNode]] = {
            ScalarEvent: self._scalar,
            AliasEvent: self._alias,
            MappingEndEvent: self._end,
            SequenceEndEvent: self._end,
        }
        while not isinstance(event := self._next_event(), StreamEndEvent):
            if finish := complete.get(type(event)):
                node = finish(event)
                if self._stack:
                    self._take(node, event)
                else:
                    root = node
            elif isinstance(event, CollectionStartEvent):
                self._begin(event)
            elif root is not None and isinstance(event, DocumentStartEvent):
                raise _broken(_place(event), "another document begins")
        return root

    def _count(self, entries: int, event: Event) -> None:
        self._entries += entries
        if self._entries > _MAX_ENTRIES:
            what = f"at most {_MAX_ENTRIES:,} entries"
            hint = "each use of an alias or merge counts its whole content"
            raise YamlError(_place(event), self._path(), what, "more", hint)

    def _path(self) -> PathKey:
        """The path of the collection that is being read."""
        return tuple(
            opened.waiting[0][0] if opened.waiting else len(opened.node.children)
            for opened in self._stack[:-1]
        )

    def _begin(self, event: CollectionStartEvent) -> None:
        place, is_mapping = _place(event), isinstance(event, MappingStartEvent)
        if len(self._stack) >= _MAX_DEPTH:
            raise YamlError(place, (), f"at most {_MAX_DEPTH} levels", "deeper nesting")
        if event.tag not in _PLAIN_TAGS:
            raise _broken(place, "an unknown tag")
        self._count(1, event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        node = YamlNode.collection(place)
        self._stack.append(_Open(node, event.anchor, is_mapping, [], []))

    def _alias(self, event: AliasEvent) -> YamlNode:
        if event.anchor not in self._anchors:
            raise _broken(_place(event), "an alias without its anchor before it")
        node = self._anchors[event.anchor]
        if node is None:
            what, got = "a finite document", "an alias inside its own anchor"
            raise YamlError(_place(event), self._path(), what, got)
        if len(self._stack) + node.depth > _MAX_DEPTH + 1:
            raise YamlError(_place(event), (), f"at most {_MAX_DEPTH} levels", "deeper nesting")
        self._count(node.size, event)
        return node

    def _scalar(self, event: Any) -> YamlNode:  # noqa: ANN401 - types-PyYAML knows no marks
        self._count(1, event)
        if event.tag is None and event.value in self._plain and event.implicit[0]:
            value = self._plain[event.value]
        else:
            value = self._meaning(event)
        node = YamlNode(_place(event), value)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _meaning(self, event: Any) -> Any:  # noqa: ANN401 - what YAML holds
        """Return the value of a scalar by its tag, or by its form."""
        tag, plain = event.tag, event.tag is None and event.implicit[0]
        if tag is None and not plain:
            return event.value
        if tag in (None, "!"):
            resolve: Any = self._loader.resolve
            tag = resolve(ScalarNode, event.value, event.implicit)
        if tag == _MERGE:
            return _Merge
        node = ScalarNode(tag, event.value, event.start_mark, event.end_mark)
        value = self._loader.construct_object(node)
        if plain:
            self._plain[event.value] = value
        return value

    def _end(self, _: Event) -> YamlNode:
        """Finish the innermost collection."""
        opened = self._stack.pop()
        node = opened.node
        # A mapping's own keys override merged ones.
        for source in reversed(opened.merged):
            for key, child in source.children.items():
                if key not in node.children:
                    node.keys[key] = source.keys[key]
                    node.add(key, child)
        if opened.is_mapping:
            node.data = {key: child.data for key, child in node.children.items()}
        else:
            node.data = [child.data for child in node.children.values()]
        if opened.anchor is not None:
            self._anchors[opened.anchor] = node
        return node

    def _take(self, node: YamlNode, event: Event) -> None:
        """Add a complete node as a key, a value, or an item."""
        opened = self._stack[-1]
        if not opened.is_mapping:
            opened.node.add(len(opened.node.children), self._no_merge(node))
        elif not opened.waiting:
            if node.children or isinstance(node.data, dict | list):
                raise _broken(_place(event), "a key that is no scalar")
            opened.waiting.append((node.data, node.place))
        else:
            key, place = opened.waiting.pop()
            if key is _Merge:
                opened.merged.extend(self._sources(node, event))
                return
            if key in opened.node.keys:
                path = (*self._path(), key)
                self.duplicates.append((path, place, opened.node.keys[key]))
            opened.node.keys[key] = place
            opened.node.add(key, self._no_merge(node))

    def _no_merge(self, node: YamlNode) -> YamlNode:
        """Return a node; ``<<`` that is no key is text."""
        if node.data is _Merge:
            node.data = "<<"
        return node

    def _sources(self, node: YamlNode, event: Event) -> list[YamlNode]:
        """Return the mappings of a merge key, those of lower precedence first."""
        sources = list(node.children.values()) if isinstance(node.data, list) else [node]
        if not all(isinstance(source.data, dict) for source in sources):
            raise _broken(_place(event), "a merge (<<) of what is no mapping")
        return sources[::-1]


class _Merge:
    """The key ``<<``."""
