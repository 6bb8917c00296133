"""From the text of a file to a ``Config``, or to every error in it at once.

Three passes, each of which reports all it finds: the YAML itself, the schema (pydantic), and
what holds between entries (``_cross_checks``), which looks at the plain data so that it also
works on a file with other errors.
"""

from __future__ import annotations

import difflib
import itertools
import json
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from fared.config import values
from fared.config.document import PathKey, Place, Places, YamlError, parse
from fared.config.globs import overlap
from fared.config.model import Config
from fared.config.secrets import presentable, shown
from fared.core.ids import BACKBONE, dotted, parse_area

_EXPECTED = {
    "bool_type": "true or false",
    "string_type": "text",
    "model_type": "a mapping of keys to values",
    "dict_type": "a mapping of keys to values",
    "tuple_type": "a list",
    "list_type": "a list",
    "string_too_short": "text that is not empty",
    "string_too_long": "a shorter text",
}


@dataclass(frozen=True, slots=True)
class ConfigError:
    """One thing wrong in a file: where, what belongs there, and what is there instead.

    ``path`` names the place in the document (``ospf.areas[0.0.0.0].type``), ``nearest`` is the
    key most like an unknown one, ``hint`` a few words more.
    """

    file: str
    line: int
    column: int
    path: str
    expected: str
    got: str
    hint: str = ""
    nearest: str | None = None

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}: "
        subject = f"{self.path}: " if self.path else ""
        text = f"{where}{subject}expected {self.expected}, got {self.got}"
        if self.hint:
            text += f" ({self.hint})"
        if self.nearest:
            text += f"; did you mean {self.nearest!r}?"
        return text


class ConfigErrors(Exception):  # noqa: N818 - it is all the errors of one file
    """A file that cannot be used; ``errors`` are in the order of the file."""

    def __init__(self, errors: tuple[ConfigError, ...]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = errors


def load(source: str | Path) -> Config:
    """Read a configuration from a file (``Path``) or from text. Raises ConfigErrors."""
    if isinstance(source, str):
        return load_text(source)
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigErrors(
            (ConfigError(str(source), 1, 1, "", "a readable file", str(reason)),)
        ) from error
    return load_text(text, file=str(source))


def load_runnable(source: Path) -> Config:
    """Like ``load``, for a daemon: a file without a routing protocol is an error too."""
    config = load(source)
    if config.ospf is None and config.isis is None:
        wanted = "an ospf or an isis section"
        raise ConfigErrors((ConfigError(str(source), 1, 1, "", wanted, "none"),))
    return config


def load_text(text: str, file: str = "<config>") -> Config:
    """Read a configuration from text; ``file`` names it in errors. Raises ConfigErrors."""
    try:
        data, places = parse(text)
    except YamlError as error:
        problem = _error(file, error.path, error.place, error.what, error.got, hint=error.hint)
        raise ConfigErrors((problem,)) from error
    errors = [
        _error(
            file,
            path if presentable(path) else path[:-1],
            place,
            "a key given once",
            f"it again (first on line {first.line})",
        )
        for path, place, first in places.duplicates
    ]
    errors += _cross_checks(file, data, places)
    config = None
    try:
        config = Config.model_validate(data)
    except ValidationError as failure:
        errors += [_translate(file, dict(item), places) for item in failure.errors()]
    if errors or config is None:
        raise ConfigErrors(tuple(sorted(errors, key=lambda e: (e.line, e.column, e.path))))
    return config


def _error(
    file: str, path: PathKey, place: Place, expected: str, got: str, *, hint: str = ""
) -> ConfigError:
    return ConfigError(file, place.line, place.column, format_path(path), expected, got, hint)


def format_path(path: PathKey) -> str:
    """Write a path: plain keys joined by dots, all others in brackets."""
    text = ""
    for key in path:
        plain = isinstance(key, str) and key.replace("-", "").isalnum() and not key[0].isdigit()
        text += (f".{key}" if text else str(key)) if plain else f"[{key}]"
    return text


def show_value(value: object) -> str:
    """Show what was given, briefly."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, str | int | float | bool):
        text = json.dumps(value, ensure_ascii=False)
        return text if len(text) <= 60 else text[:57] + "..."
    return f"a {type(value).__name__}"


# -- schema errors ---------------------------------------------------------------------------


def _translate(file: str, item: dict[str, Any], places: Places) -> ConfigError:
    """Put one pydantic error into words and places."""
    path, context, kind = tuple(item["loc"]), item.get("ctx", {}), item["type"]
    on_key = bool(path) and path[-1] == "[key]"
    if on_key:
        path = path[:-1]
    if kind == "extra_forbidden":
        return _unknown_key(file, path, places)
    hint = context.get("hint", "")
    got = show_value(path[-1]) if on_key else shown(path, item["input"], show_value)
    if context.get("field"):
        path = (*path, context["field"])
        got = shown(path, _as_given(item["input"], context["field"]), show_value)
    expected = context.get("expected") or _EXPECTED.get(kind, item["msg"])
    place = places.key(path) if on_key else places.value(path)
    return _error(file, path, place, expected, got, hint=hint)


def _as_given(section: object, key: str) -> object:
    """The value of a key in a section as it reached a validator: raw data."""
    return section.get(key) if isinstance(section, dict) else section


def _unknown_key(file: str, path: PathKey, places: Places) -> ConfigError:
    known = _keys_of(path[:-1])
    place = places.key(path)
    key = str(path[-1])
    if not presentable(path):
        what = f"one of {', '.join(sorted(known))}"
        return _error(file, path[:-1], place, what, "another key", hint="key: VALUE needs a space")
    near = difflib.get_close_matches(key.replace("_", "-").lower(), known, n=1, cutoff=0.6)
    return ConfigError(
        file,
        place.line,
        place.column,
        format_path(path),
        f"one of {', '.join(sorted(known))}",
        f"the unknown key {show_value(path[-1])}",
        nearest=near[0] if near else None,
    )


def _keys_of(path: PathKey) -> list[str]:
    """List the keys that the section at ``path`` knows."""
    kind: Any = Config
    for key in path:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            fields = {field.alias: field.annotation for field in kind.model_fields.values()}
            kind = fields.get(key)
        else:
            arguments = typing.get_args(kind)
            kind = arguments[1] if typing.get_origin(kind) is dict else arguments[0]
        members = [arg for arg in typing.get_args(kind) if arg is not type(None)]
        if typing.get_origin(kind) is types.UnionType:
            kind = members[0]
    return [str(field.alias) for field in kind.model_fields.values()]


# -- what holds between entries --------------------------------------------------------------


def _mapping(value: object) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _areas(data: object) -> Iterator[tuple[PathKey, int, dict[Any, Any]]]:
    """Yield path, id and content of each area whose id can be read."""
    for key, area in _mapping(_mapping(_mapping(data).get("ospf")).get("areas")).items():
        if not isinstance(key, str | int) or isinstance(key, bool):
            continue
        try:
            yield ("ospf", "areas", key), parse_area(key), _mapping(area)
        except ValueError:
            continue  # reported by the schema


def _cross_checks(file: str, data: object, places: Places) -> list[ConfigError]:
    return [
        *_check_areas(file, data, places),
        *_check_interfaces(file, data, places),
    ]


def _check_areas(file: str, data: object, places: Places) -> Iterator[ConfigError]:
    seen: dict[int, PathKey] = {}
    for path, area, content in _areas(data):
        if area in seen:
            got = f"area {dotted(area)} again (first as {show_value(seen[area][-1])})"
            yield _error(file, path, places.key(path), "each area once", got)
        seen.setdefault(area, path)
        if area == BACKBONE and content.get("type") == "stub":
            where = (*path, "type")
            # RFC 2328 §3.6: the backbone cannot be a stub area
            yield _error(
                file,
                where,
                places.value(where),
                "normal",
                '"stub"',
                hint="the backbone is no stub area",
            )


def _check_interfaces(file: str, data: object, places: Places) -> Iterator[ConfigError]:
    """Refuse what would make the area of an interface depend on fine print."""
    entries = [
        (area, key, (*path, "interfaces", key))
        for path, area, content in _areas(data)
        for key in _mapping(content.get("interfaces"))
        if isinstance(key, str)
    ]
    for (area, key, path), (other_area, other, other_path) in itertools.combinations(entries, 2):
        if area == other_area:
            continue
        later = max(path, other_path, key=places.key)
        earlier, owner = (key, area) if later is other_path else (other, other_area)
        twice = key == other and not values.is_glob(key)
        globs = values.is_glob(key) and values.is_glob(other)
        if twice:
            got = f"{later[-1]} again (first in area {dotted(owner)})"
            yield _error(file, later, places.key(later), "each interface in one area", got)
        elif globs and overlap(key, other):
            got = f"{later[-1]}, which overlaps with {earlier} in area {dotted(owner)}"
            expected = "globs of different areas that match different interfaces"
            yield _error(file, later, places.key(later), expected, got)
