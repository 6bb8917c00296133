"""BIRD's file as statements: words up to a semicolon, and what stands between braces.

``define``, ``include`` and templates are resolved here; what statements mean is not known.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from fared.extensions.foreign.draft import SourceLine

_TOKEN: Final = re.compile(
    r"""(?x)
    (?P<space> \s+ | \#[^\n]* | //[^\n]* | /\*.*?\*/ )
    | "(?P<text> [^"\n]* )"
    | '(?P<symbol> [^'\n]* )'
    | (?P<word> [\w.:]+/\d+ (?: \{ \s* \d+ \s* , \s* \d+ \s* \} | [+-] )?
        | [\w.:/+-]*[\w/+] | [\w.:]+ )
    | (?P<sign> && | \|\| | [!<>=]= | !~ | .. (?<=\.\.) | . )
    """,
    re.DOTALL,
)
_MOST_INCLUDES: Final = 64
_DEEPEST: Final = 8
"""Levels of include, as in BIRD; blocks inside of blocks are limited by the same."""
_MOST_DEPTH: Final = 32


class Token(NamedTuple):
    """A word, a sign, or a text that was in quotes."""

    text: str
    quoted: bool
    line: int
    file: str


class BirdError(ValueError):
    """The file is not one of BIRD; the text has the place."""


class BirdStatement(msgspec.Struct):
    """What stands before a semicolon or a brace; ``inside`` is None without braces."""

    tokens: list[Token]
    inside: list[BirdStatement] | None

    @property
    def words(self) -> list[str]:
        """The words, without quotes."""
        return [token.text for token in self.tokens]

    @property
    def source(self) -> SourceLine:
        """The line for remarks."""
        first = self.tokens[0]
        written = [f'"{t.text}"' if t.quoted else t.text for t in self.tokens]
        return SourceLine(first.line, " ".join(written), first.file)

    @property
    def lines(self) -> int:
        """The number of statements inside, at any depth."""
        return sum(1 + each.lines for each in self.inside or ())


Files = Callable[[Path], str]
"""Reads a file that is included. Raises OSError."""


def read_statements(text: str, path: Path, read: Files) -> list[BirdStatement]:
    """Read a file and all that it includes. Raises BirdError."""
    reader = _Tokens(path, read)
    tokens = list(reader.tokens(text, path, "", 0))
    statements, rest = _statements(tokens, 0, 0)
    if rest < len(tokens):
        raise BirdError(f"{_place(tokens[rest])}: a }} without a {{")
    defined = _definitions(statements)
    return _with_templates([_defined(each, defined) for each in statements])


class _Tokens:
    """Reads tokens, also of included files."""

    def __init__(self, path: Path, read: Files) -> None:
        self._top = path
        self._read = read
        self._included = 0

    def tokens(self, text: str, path: Path, name: str, depth: int) -> Iterator[Token]:
        found = list(_split(text, name))
        at = 0
        while at < len(found):
            token = found[at]
            if not _is_include(found, at):
                yield token
                at += 1
                continue
            yield from self._include(found[at + 1], path, depth)
            at += 3

    def _include(self, token: Token, path: Path, depth: int) -> Iterator[Token]:
        place = f"{_place(token)}: include {token.text!r}"
        wanted = path.parent / token.text
        names = sorted(glob.glob(str(wanted)))  # noqa: PTH207 - patterns with a folder
        if not names:
            raise BirdError(f"{place}: no such file")
        for name in names:
            self._included += 1
            if depth >= _DEEPEST or self._included > _MOST_INCLUDES:
                raise BirdError(f"{place}: too many files include each other")
            try:
                text = self._read(Path(name))
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                raise BirdError(f"{place}: {reason}") from error
            yield from self.tokens(text, Path(name), token.text, depth + 1)


def _is_include(found: Sequence[Token], at: int) -> bool:
    begins = at == 0 or found[at - 1].text in ";}{"
    return (
        begins
        and found[at].text == "include"
        and at + 2 < len(found)
        and found[at + 1].quoted
        and found[at + 2].text == ";"
    )


def _split(text: str, name: str) -> Iterator[Token]:
    line, at = 1, 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None  # the last alternative takes any character
        kind = str(found.lastgroup)
        whole = found[0]
        if kind != "space":
            yield Token(found[kind], kind == "text", line, name)
        line += whole.count("\n")
        at = found.end()


def _place(token: Token) -> str:
    return SourceLine(token.line, "", token.file).place


def _statements(tokens: Sequence[Token], at: int, depth: int) -> tuple[list[BirdStatement], int]:
    """Return the statements up to a closing brace, and where it stands."""
    if depth > _MOST_DEPTH:
        raise BirdError(f"{_place(tokens[at - 1])}: too many braces inside each other")
    found: list[BirdStatement] = []
    begun: list[Token] = []
    while at < len(tokens):
        token = tokens[at]
        sign = "" if token.quoted else token.text
        if sign == "}":
            break
        at += 1
        if sign == "{":
            inside, end = _statements(tokens, at, depth + 1)
            if end >= len(tokens):
                raise BirdError(f"{_place(token)}: a {{ that is not closed")
            at = end + 1
            if begun:
                found.append(BirdStatement(begun, inside))
                begun = []
        elif sign != ";":
            begun.append(token)
        elif begun:
            found.append(BirdStatement(begun, None))
            begun = []
    if begun:
        found.append(BirdStatement(begun, None))
    return found, at


# define and template


def _definitions(statements: Sequence[BirdStatement]) -> dict[str, list[Token]]:
    """Return what ``define NAME = ...`` stands for; earlier ones may be used in later ones."""
    known: dict[str, list[Token]] = {}
    for each in statements:
        words = each.words
        if words[0] == "define" and words[2:3] == ["="]:
            known[words[1]] = _replaced(each.tokens[3:], known)
    return known


def _replaced(tokens: Sequence[Token], known: Mapping[str, list[Token]]) -> list[Token]:
    found: list[Token] = []
    for token in tokens:
        if token.quoted or token.text not in known:
            found.append(token)
            continue
        values = known[token.text]
        found += [value._replace(line=token.line, file=token.file) for value in values]
    return found


def _defined(statement: BirdStatement, known: Mapping[str, list[Token]]) -> BirdStatement:
    if statement.words[0] == "define":
        return statement
    inside = statement.inside
    return BirdStatement(
        _replaced(statement.tokens, known),
        None if inside is None else [_defined(each, known) for each in inside],
    )


def _with_templates(statements: Sequence[BirdStatement]) -> list[BirdStatement]:
    """Put what a template has before what a protocol has that is made from it."""
    templates: dict[str, list[BirdStatement]] = {}
    found: list[BirdStatement] = []
    for each in statements:
        words = each.words
        if "from" in words[1:-1] and words[0] in ("protocol", "template"):
            base = templates.get(words[words.index("from") + 1])
            if base is None:
                raise BirdError(f"{each.source.place}: no template {words[-1]!r} before it")
            each = BirdStatement(each.tokens[: words.index("from")], [*base, *(each.inside or ())])  # noqa: PLW2901
            words = each.words
        if words[0] == "template":
            templates[words[-1]] = each.inside or []
        else:
            found.append(each)
    return found
