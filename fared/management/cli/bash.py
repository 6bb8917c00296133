"""Completion in bash, for which a colon ends a word: prefixes of IPv6 are put together again."""

from __future__ import annotations

import re
from typing import Any, Final

from click.shell_completion import BashComplete, CompletionItem, add_completion_class

_PART: Final = re.compile(r"[0-9A-Fa-f:./]*")


def use() -> None:
    """Complete for bash so."""
    add_completion_class(ColonComplete)


class ColonComplete(BashComplete):
    """As click's own; bash replaces what is after the last colon, and is told no more than that."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before, and the whole of the last one."""
        args, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in (*args, incomplete):
            goes_on = words and _PART.fullmatch(words[-1]) and _PART.fullmatch(word)
            if goes_on and (word.startswith(":") or words[-1].endswith(":")):
                words[-1] += word
            else:
                words.append(word)
        return words[:-1], words[-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        """Leave out what bash has already."""
        known = len(incomplete) - len(incomplete.rpartition(":")[2])
        items = super().get_completions(args, incomplete)
        for item in items:
            item.value = item.value[known:]
        return items
