"""The errors that are found while a document is read, each with its place and reason.

A parser raises ``Refused``; the reader of the section notes it in ``Reading`` and continues.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fared.config.document import PathKey


class Refused(Exception):  # noqa: N818 - it is an answer, and becomes one error of many
    """A value that is not as ``expected``.

    ``hint`` explains why; ``field`` names the key to report if a whole section is refused;
    ``words`` are those among which it must be.
    """

    def __init__(
        self, expected: str, hint: str = "", field: str = "", words: tuple[str, ...] = ()
    ) -> None:
        super().__init__(expected)
        self.words = words
        self.expected = expected
        self.hint = hint
        self.field = field


class Problem(msgspec.Struct, frozen=True):
    """One error: its place, reason, and the given value.

    ``on_key``: the key is wrong. ``known``: the keys that are valid in place of an unknown one.
    """

    path: PathKey
    reason: Refused
    given: object
    on_key: bool = False
    known: tuple[str, ...] = ()


class Reading:
    """One pass over a document: its problems, and the key files that others can write."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.exposed: set[str] = set()

    def refuse(self, path: PathKey, reason: Refused, given: object) -> None:
        """Note a refused value."""
        self.problems.append(Problem(path, reason, given))

    def refuse_key(self, path: PathKey, reason: Refused) -> None:
        """Note a refused key; it ends the path."""
        self.problems.append(Problem(path, reason, path[-1], on_key=True))

    def unknown_key(self, path: PathKey, known: Iterable[str]) -> None:
        """Note an unknown key of a section."""
        reason = Refused("a known key")
        self.problems.append(Problem(path, reason, path[-1], on_key=True, known=tuple(known)))
