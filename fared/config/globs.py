"""Whether two interface globs can match the same name."""

from __future__ import annotations

import functools
import re
import string

_NAME_CHARS = frozenset(string.ascii_letters + string.digits + string.punctuation) - {"/"}
_TOKEN = re.compile(r"\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_Token = frozenset[str] | None
"""The characters that one position may hold; None is ``*``."""


def overlap(first: str, second: str) -> bool:
    """Tell whether some interface name matches both patterns (names are patterns too)."""
    one, two = _tokens(first), _tokens(second)

    @functools.cache
    def meet(i: int, j: int) -> bool:
        if i == len(one) and j == len(two):
            return True
        left = one[i] if i < len(one) else frozenset[str]()
        right = two[j] if j < len(two) else frozenset[str]()
        if left is None:
            return meet(i + 1, j) or (j < len(two) and meet(i, j + 1))
        if right is None:
            return meet(i, j + 1) or (i < len(one) and meet(i + 1, j))
        return bool(left & right) and meet(i + 1, j + 1)

    return meet(0, 0)


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
