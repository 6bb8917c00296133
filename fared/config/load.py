"""Loads a file: a ``Config``, or all errors in the file.

There are three passes, each of which reports all its errors: the YAML itself, the values
(``shapes``), and the checks between entries (``checks``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from fared.config.checks import Compare, cross_checks, warnings_of
from fared.config.document import PathKey, Place, Places, YamlError, parse
from fared.config.errors import (
    MOST_SHOWN,
    ConfigError,
    ConfigErrors,
    ConfigWarning,
    error_at,
    format_path,
    show_value,
)
from fared.config.files import NotRegularError, read_regular
from fared.config.hints import belongs, foreign, nearest
from fared.config.model import Config
from fared.config.reading import Problem, Reading
from fared.config.secrets import presentable, shown
from fared.config.section import S
from fared.config.shapes import shape_of
from fared.config.traps import Trap

_MAX_FILE: Final = 4 << 20
"""Bytes: enough for some 30,000 interfaces with a few settings each."""


class Loaded(msgspec.Struct, frozen=True):
    """A valid configuration, the warnings about it, and its text as given.

    ``refused``: the errors of the file in whose place it runs.
    """

    config: Config
    warnings: tuple[ConfigWarning, ...] = ()
    text: str = ""
    refused: str = ""


def _nothing(_config: Config, _places: Places) -> Iterable[Trap]:
    return ()


def load(source: str | Path) -> Config:
    """Load a configuration from a file (``Path``) or from text. Raises ConfigErrors."""
    if isinstance(source, str):
        return load_text(source)
    return _load(_read(source), str(source)).config


def load_runnable(source: Path, text: str | None = None, compare: Compare = _nothing) -> Loaded:
    """Like ``load``, for a daemon: a file without a routing protocol is an error too.

    With ``text`` nothing is read, and ``source`` names the text in errors. ``compare`` yields more
    warnings. Raises ConfigErrors.
    """
    if text is not None and len(text) > _MAX_FILE:
        raise _unreadable(source, f"at most {_MAX_FILE >> 20} MB", "more")
    loaded = _load(_read(source) if text is None else text, str(source), compare)
    if not loaded.config.protocols:
        raise _unreadable(source, "an ospf, isis or bgp section", "none")
    return loaded


def load_text(text: str, file: str = "<config>", most: int = MOST_SHOWN) -> Config:
    """Load a configuration from text; ``file`` names it in errors.

    Raises ConfigErrors, with the first ``most``.
    """
    return _load(text, file, most=most).config


def _read(source: Path) -> str:
    try:
        content, _ = read_regular(source, _MAX_FILE + 1)
        if len(content) > _MAX_FILE:
            raise _unreadable(source, f"a file of at most {_MAX_FILE >> 20} MB", "a larger one")
        return content.decode()
    except NotRegularError as error:
        raise _unreadable(source, "a regular file", str(error.strerror)) from error
    except OSError as error:
        raise _unreadable(source, "a readable file", str(error.strerror)) from error
    except UnicodeDecodeError as error:
        raise _unreadable(source, "a readable file", str(error)) from error


def _unreadable(source: Path, expected: str, got: str) -> ConfigErrors:
    return ConfigErrors((ConfigError(str(source), 1, 1, "", expected, got),))


def load_section(kind: type[S], source: Path) -> S:
    """Load a file of its own that is one section, by the same rules. Raises ConfigErrors."""
    file = str(source)
    data, places, found = _parsed(_read(source), file)
    section, _ = _sound(kind, data, found, lambda one: _placed(file, one, places, _nowhere))
    return section


def _load(text: str, file: str, compare: Compare = _nothing, most: int = MOST_SHOWN) -> Loaded:
    data, places, found = _parsed(text, file)
    if isinstance(data, str) and (other := foreign(text)):
        raise _not_ours(file, other)
    found += cross_checks(file, data, places)
    config, reading = _sound(
        Config, data, found, lambda one: _placed(file, one, places, belongs), most
    )
    warnings = warnings_of(file, config, places, reading.exposed, compare)
    return Loaded(config, tuple(sorted(warnings, key=lambda w: (w.line, w.column))), text)


def _parsed(text: str, file: str) -> tuple[object, Places, list[ConfigError]]:
    """Return what a file holds, and the keys that it has twice."""
    try:
        data, places = parse(text)
    except YamlError as error:
        problem = error_at(file, error.path, error.place, error.what, error.got, hint=error.hint)
        raise ConfigErrors((problem,)) from error
    found: list[ConfigError] = [
        error_at(
            file,
            path if presentable(path) else path[:-1],
            place,
            "a key only once",
            f"it again (first on line {first.line})",
        )
        for path, place, first in places.duplicates
    ]
    return data, places, found


def _sound(
    kind: type[S],
    data: object,
    found: list[ConfigError],
    placed: Callable[[Problem], _Placed],
    most: int = MOST_SHOWN,
) -> tuple[S, Reading]:
    """Return the section that a file is, or raise its errors, the first of them with texts."""
    reading = Reading()
    section: S = shape_of(kind).read(data, (), reading)
    problems = [_known(error) for error in found]
    problems += [placed(problem) for problem in reading.problems]
    if problems:
        problems.sort(key=lambda problem: problem.order)
        shown_ones = tuple(problem.error() for problem in problems[:most])
        raise ConfigErrors(shown_ones, len(problems))
    return section, reading


def _nowhere(_path: PathKey) -> str:
    return ""


def _not_ours(file: str, other: str) -> ConfigErrors:
    hint = "'fared-cli config template leaf' writes one for this machine"
    expected = "a configuration of fared, in YAML"
    return ConfigErrors((ConfigError(file, 1, 1, "", expected, f"one of {other}", hint),))


class _Placed(msgspec.Struct, frozen=True):
    """An error whose text is only made if it is among the first."""

    order: tuple[int, int, str]
    error: Callable[[], ConfigError]


def _known(error: ConfigError) -> _Placed:
    return _Placed((error.line, error.column, error.path), lambda: error)


def _placed(
    file: str, problem: Problem, places: Places, where: Callable[[PathKey], str]
) -> _Placed:
    """Find the place of a problem; ``where`` says where an unknown key is known."""
    field = problem.reason.field
    at = (*problem.path, field) if field else problem.path
    place = places.key(at) if problem.on_key else places.value(at)
    order = (place.line, place.column, format_path(at))
    return _Placed(order, lambda: _in_words(file, problem, place, where))


def _in_words(
    file: str, problem: Problem, place: Place, where: Callable[[PathKey], str]
) -> ConfigError:
    if problem.known:
        return _unknown_key(file, problem, place, where)
    path, reason = problem.path, problem.reason
    if problem.on_key:
        got = show_value(problem.given)
    elif reason.field:
        path = (*path, reason.field)
        got = shown(path, _as_given(problem.given, reason.field), show_value)
    else:
        got = shown(path, problem.given, show_value)
    given = problem.given
    meant = nearest(given, reason.words) if reason.words and isinstance(given, str) else None
    error = error_at(file, path, place, reason.expected, got, hint=reason.hint)
    return error if meant is None else replace(error, nearest=meant)


def _as_given(section: object, key: str) -> object:
    """Return the value of a key in a section as given in the file."""
    return section.get(key) if isinstance(section, dict) else section


def _unknown_key(
    file: str, problem: Problem, place: Place, where: Callable[[PathKey], str]
) -> ConfigError:
    path, known = problem.path, problem.known
    one_of = f"one of {', '.join(sorted(known))}"
    if not presentable(path):
        hint = "key: VALUE needs a space"
        return error_at(file, path[:-1], place, one_of, "another key", hint=hint)
    near = nearest(path[-1], known)
    known_at = "" if near else where(path)
    return ConfigError(
        file,
        place.line,
        place.column,
        format_path(path),
        one_of,
        f"the unknown key {show_value(path[-1])}",
        hint=f"it is a key of {known_at}" if known_at else "",
        nearest=near,
    )
