"""Statements as tables: what a line looks like, and what becomes of it.

A pattern is the words of a line. Words in capitals stand for one word each, which the action gets;
``a|b`` is one of these words, which it gets too; ``...`` at the end takes all further words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol


class AnyStatement(Protocol):
    """A statement of either reader."""

    @property
    def words(self) -> list[str]:
        """Its words."""

    @property
    def lines(self) -> int:
        """The number of lines inside of it."""


Action = Callable[..., str | None]
"""Gets the context, the statement and the words that stand for capitals; returns why not taken."""


class Rule(NamedTuple):
    """A statement and what is done with it."""

    pattern: str
    action: Action

    def match(self, words: Sequence[str]) -> list[str] | None:
        """Return the words that the action gets; None: it is another statement."""
        wanted = self.pattern.split()
        rest = wanted[-1] == "..."
        if rest:
            wanted.pop()
        if len(words) < len(wanted) or (len(words) > len(wanted) and not rest):
            return None
        found: list[str] = []
        for want, word in zip(wanted, words, strict=False):
            if want.isupper() and want.isalpha():
                found.append(word)
            elif "|" in want:
                if word not in want.split("|"):
                    return None
                found.append(word)
            elif want != word:
                return None
        return [*found, *words[len(wanted) :]] if rest else found


NO_SETTING: Final = "fared has no such setting"
TAKES_BACK: Final = "it takes something back: nothing to set"


def apply_rules(rules: Sequence[Rule], context: Any, statement: AnyStatement) -> str | None:  # noqa: ANN401
    """Do what the first rule says that matches; return why the line is not taken, if it is not."""
    words = statement.words
    for rule in rules:
        found = rule.match(words)
        if found is None:
            continue
        try:
            return rule.action(context, statement, *found)
        except ValueError as error:
            return str(error) or "a value that cannot be read"
    return TAKES_BACK if words[0] == "no" else NO_SETTING


def why(reason: str) -> Action:
    """Return an action that only says why a line is not taken."""
    return lambda _context, _statement, *_words: reason


def block(statement: AnyStatement, reason: str) -> str:
    """Return a reason for a whole block."""
    lines = statement.lines
    inside = f" (and the {lines} lines inside)" if lines > 1 else " (and the line inside)"
    return f"{reason}{inside}" if lines else reason


def number(text: str) -> int:
    """Read a number. Raises ValueError."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError("expected a number")
    return int(text)
