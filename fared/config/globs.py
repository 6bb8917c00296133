"""Keys that are interface names or globs: the one that applies, and globs that overlap."""

from __future__ import annotations

import fnmatch
import re
import string
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from fared.core.links import Link

T = TypeVar("T")

_NAME_CHARS = frozenset(string.ascii_letters + string.digits + string.punctuation) - {"/"}
_TOKEN = re.compile(r"\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_MAX_STEPS = 1_000_000
_Token = frozenset[str] | None
"""The characters that one position may hold; None is ``*``."""


def is_glob(name: str) -> bool:
    """Whether an interface key is a pattern rather than one name."""
    return any(char in name for char in "*?[")


class MostExact(Generic[T]):
    """Finds the entry of an interface: its own name, else the longest glob that matches."""

    def __init__(self, entries: Mapping[str, T]) -> None:
        self._entries = entries
        self._globs = [
            (re.compile(fnmatch.translate(key)).match, value)
            for key, value in sorted(entries.items(), key=lambda entry: -len(entry[0]))
            if is_glob(key)
        ]

    def find(self, name: str) -> T | None:
        """Return the entry that applies to interface ``name``; None if there is none."""
        if name in self._entries:
            return self._entries[name]
        return next((value for matches, value in self._globs if matches(name)), None)

    def on(self, link: Link) -> T | None:
        """Return the entry that applies to a link: no glob takes in a management port."""
        return self._entries.get(link.name) if link.management else self.find(link.name)


class TooManyGlobsError(Exception):
    """The globs are too similar to be compared in a reasonable time."""


class GlobIndex:
    """Globs with their owners (areas), to find those of other owners that can match the same name.

    The patterns form two tries of tokens, one from the front and one from the back, so that one
    lookup of a common beginning or end covers all of them. Two globs without a common match differ
    at one of their ends, or else in length: a lookup costs about as much as there are tokens.
    """

    def __init__(self) -> None:
        self._front, self._back = _TrieNode(), _TrieNode()
        self._steps = 0

    def add(self, pattern: str, owner: int) -> None:
        """Add a pattern of an owner."""
        tokens = _tokens(pattern)
        self._front.add(tokens, pattern, owner)
        self._back.add(tokens[::-1], pattern, owner)

    def overlap(self, pattern: str, owner: int) -> tuple[str, int] | None:
        """Return an overlapping pattern of another owner, and that owner; None without one.

        Raises TooManyGlobsError.
        """
        tokens = _tokens(pattern)
        if _fixed(tokens) >= _fixed(tokens[::-1]):
            return self._search(self._front, tokens, owner)
        return self._search(self._back, tokens[::-1], owner)

    def _search(
        self, root: _TrieNode, tokens: tuple[_Token, ...], owner: int
    ) -> tuple[str, int] | None:
        """Walk a pattern down one of the tries; return as ``overlap`` does.

        Raises TooManyGlobsError.
        """
        seen: set[tuple[int, int, bool]] = set()
        waiting = [(0, root, False)]
        while waiting:
            at, node, in_star = waiting.pop()
            if (at, id(node), in_star) in seen or node.owners == {owner}:
                continue
            seen.add((at, id(node), in_star))
            self._steps += 1
            if self._steps > _MAX_STEPS:
                raise TooManyGlobsError
            if at == len(tokens) and (found := node.of_another(owner)):
                return found
            waiting += _steps(tokens, at, node, in_star=in_star)
        return None


def _fixed(tokens: tuple[_Token, ...]) -> int:
    """Return the number of characters before the first ``*``."""
    return next((at for at, token in enumerate(tokens) if token is None), len(tokens))


class _TrieNode:
    __slots__ = ("children", "owners", "patterns")

    def __init__(self) -> None:
        self.children: dict[_Token, _TrieNode] = {}
        self.owners: set[int] = set()
        """The owners of all patterns at and below this node."""
        self.patterns: dict[int, str] = {}
        """The patterns that end here, by owner."""

    def add(self, tokens: tuple[_Token, ...], pattern: str, owner: int) -> None:
        """Add a pattern below this node."""
        node = self
        node.owners.add(owner)
        for token in tokens:
            node = node.children.setdefault(token, _TrieNode())
            node.owners.add(owner)
        node.patterns.setdefault(owner, pattern)

    def of_another(self, owner: int) -> tuple[str, int] | None:
        """Return a pattern that ends here and belongs to another owner."""
        return next(((text, of) for of, text in self.patterns.items() if of != owner), None)


def _steps(
    tokens: tuple[_Token, ...], at: int, node: _TrieNode, *, in_star: bool
) -> Iterator[tuple[int, _TrieNode, bool]]:
    """Yield the next steps of two patterns; ``in_star``: ``node`` is within a ``*``."""
    if in_star and at < len(tokens):
        yield at + 1, node, True
    if at < len(tokens) and tokens[at] is None:
        yield at + 1, node, False
    token = tokens[at] if at < len(tokens) else frozenset[str]()
    for other, child in node.children.items():
        if other is None:
            yield at, child, False
            yield at, child, True
        elif token is None:
            yield at, child, False
        elif token & other:
            yield at + 1, child, False


def _tokens(pattern: str) -> tuple[_Token, ...]:
    return tuple(_token(text) for text in _TOKEN.findall(pattern))


def _token(text: str) -> _Token:
    if text == "*":
        return None
    if text == "?":
        return _NAME_CHARS
    if len(text) == 1:
        return frozenset(text)
    negated = text[1] == "!"
    chosen = _members(text[2:-1] if negated else text[1:-1])
    return _NAME_CHARS - chosen if negated else chosen


def _members(body: str) -> frozenset[str]:
    """Expand the inside of ``[a-c0]``."""
    ranges = re.findall(r"(.)-(.)|(.)", body, re.DOTALL)
    return frozenset(
        char
        for low, high, single in ranges
        for char in (single or map(chr, range(ord(low), ord(high) + 1)))
    )
