"""Checks between entries of the file, and warnings about accepted entries.

The checks read the plain data, so that they also work on a file with other errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from fared.config import values
from fared.config.document import PathKey, Places
from fared.config.errors import (
    ConfigError,
    ConfigWarning,
    error_at,
    format_path,
    show_value,
)
from fared.config.filters import FILTER, FILTERS, names_in
from fared.config.globs import GlobIndex, TooManyGlobsError, is_glob
from fared.config.hints import nearest
from fared.config.model import Config
from fared.config.traps import Trap, traps
from fared.core.ids import BACKBONE, AreaId, dotted, parse_area
from fared.core.text import printable
from fared.router.protocols import BGP

_LOOPBACK = "lo"
_NAMES_SHOWN = 8
Compare = Callable[[Config, Places], Iterable[Trap]]


def cross_checks(file: str, data: object, places: Places) -> Iterator[ConfigError]:
    """Yield the errors between entries."""
    yield from _check_areas(file, data, places)
    yield from _check_interfaces(file, data, places)
    yield from _check_profiles(file, data, places)
    yield from _check_filters(file, data, places)


def warnings_of(
    file: str, config: Config, places: Places, exposed: Collection[str], compare: Compare
) -> Iterator[ConfigWarning]:
    """Yield the warnings about a valid file.

    ``exposed``: key files that others can write; ``compare`` yields more traps.
    """
    if exposed:
        for path, name in places.find("key-file"):
            if name in exposed:
                message = f"{name} is writable by its group or by everybody"
                yield _warning(file, path, places, message)
    for path, suppressed in places.find("prefix-suppression"):
        if suppressed is True and path[-2] == _LOOPBACK:
            yield _warning(file, path, places, "ignored: a loopback is always advertised")
    yield from _unannounced(file, config, places)
    for path, message in (*traps(config, places), *compare(config, places)):
        yield _warning(file, path, places, message)
    sections = list(config.protocols.items())
    for name, section in sections[1:]:
        first, counting = sections[0]
        message = f"ignored: if both protocols run, that of {first} is used"
        for key in ("max_paths", "spf") if name != BGP else ():  # it chooses paths by itself
            if getattr(section, key) != getattr(counting, key):
                yield _warning(file, (name, key.replace("_", "-")), places, message)


def _unannounced(file: str, config: Config, places: Places) -> Iterator[ConfigWarning]:
    """Warn of strict BFD where OSPF cannot announce it."""
    for path, _ in places.find("bfd"):
        if config.ospf is None or path[0] != "ospf":
            continue
        interface = config.ospf.areas[AreaId(parse_area(path[2]))].interfaces[path[4]]
        if interface.bfd_settings(config.bfd) != interface.bfd.settings(config.bfd):
            message = "not strict: not announced with extended-sequence"
            yield _warning(file, path, places, message)


def _warning(file: str, path: PathKey, places: Places, message: str) -> ConfigWarning:
    place = places.key(path)
    return ConfigWarning(file, place.line, place.column, format_path(path), message)


def _mapping(value: object) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _areas(data: object) -> Iterator[tuple[PathKey, int, dict[Any, Any]]]:
    """Yield path, id and content of each area with a valid id."""
    for key, area in _mapping(_mapping(_mapping(data).get("ospf")).get("areas")).items():
        if not isinstance(key, str | int) or isinstance(key, bool):
            continue
        try:
            yield ("ospf", "areas", key), parse_area(key), _mapping(area)
        except ValueError:
            continue  # reported by the schema


def _circuits(data: object) -> Iterator[tuple[PathKey, dict[Any, Any]]]:
    """Yield path and content of each interface of each protocol, and of each neighbor of BGP."""
    isis = _mapping(_mapping(data).get("isis"))
    owners = [(path, content) for path, _, content in _areas(data)] + [(("isis",), isis)]
    for path, content in owners:
        for key, interface in _mapping(content.get("interfaces")).items():
            yield (*path, "interfaces", key), _mapping(interface)
    for key, neighbor in _mapping(_mapping(_mapping(data).get("bgp")).get("neighbors")).items():
        yield ("bgp", "neighbors", key), _mapping(neighbor)


def _check_profiles(file: str, data: object, places: Places) -> Iterator[ConfigError]:
    """Refuse names of BFD profiles that do not exist."""
    profiles = _mapping(_mapping(_mapping(data).get("bfd")).get("profiles"))
    for path, interface in _circuits(data):
        name = _mapping(interface.get("bfd")).get("profile")
        if name is None or (isinstance(name, str) and name in profiles):
            continue
        if isinstance(name, str):  # else reported by the schema
            where = (*path, "bfd", "profile")
            expected = "the name of a profile in bfd: profiles"
            error = error_at(file, where, places.value(where), expected, show_value(name))
            yield _naming(error, name, profiles)


def _check_filters(file: str, data: object, places: Places) -> Iterator[ConfigError]:
    """Refuse names of filters that do not exist."""
    known = _mapping(_mapping(data).get(FILTERS))
    for path, given in places.find(FILTER):
        for below, name in names_in(given):
            if path[0] != FILTERS and name not in known:
                expected = f"the name of a filter in {FILTERS}:"
                where = (*path, *below)
                error = error_at(file, where, places.value(where), expected, show_value(name))
                yield _naming(error, name, known)


def _naming(error: ConfigError, name: str, known: Iterable[object]) -> ConfigError:
    """Return the error of an unknown name with some of those that are known."""
    words = tuple(sorted(word for word in known if isinstance(word, str)))
    more = ["..."] if len(words) > _NAMES_SHOWN else []
    listed = ", ".join([*map(printable, words[:_NAMES_SHOWN]), *more]) or "there is none"
    expected = f"{error.expected} ({listed})"
    return replace(error, expected=expected, nearest=nearest(name, words))


def _check_areas(file: str, data: object, places: Places) -> Iterator[ConfigError]:
    seen: dict[int, PathKey] = {}
    for path, area, content in _areas(data):
        if area in seen:
            got = f"area {dotted(area)} again (first as {show_value(seen[area][-1])})"
            yield error_at(file, path, places.key(path), "each area once", got)
        seen.setdefault(area, path)
        if area == BACKBONE and content.get("type") == "stub":
            where = (*path, "type")
            # RFC 2328 §3.6: the backbone cannot be a stub area
            hint = "the backbone cannot be a stub area"
            yield error_at(file, where, places.value(where), "normal", '"stub"', hint=hint)


def _check_interfaces(file: str, data: object, places: Places) -> Iterator[ConfigError]:
    """Refuse interfaces and overlapping globs in several areas."""
    entries = [
        ((*path, "interfaces", key), key, area)
        for path, area, content in _areas(data)
        for key in _mapping(content.get("interfaces"))
        if isinstance(key, str) and len(key) <= values.LONGEST_GLOB  # reported by the schema
    ]
    if len({area for _, _, area in entries}) < 2:
        return
    entries.sort(key=lambda entry: places.key(entry[0]))
    names: dict[str, int] = {}
    globs = GlobIndex()
    for path, key, area in entries:
        if not is_glob(key):
            owner = names.setdefault(key, area)
            if owner != area:
                got = f"{key} again (first in area {dotted(owner)})"
                yield error_at(file, path, places.key(path), "each interface in one area", got)
            continue
        try:
            other = globs.overlap(key, area)
        except TooManyGlobsError:
            expected = "globs that are easier to distinguish"
            yield error_at(file, path, places.key(path), expected, "too many similar ones")
            return
        if other is not None:
            got = f"{key}, which overlaps with {other[0]} in area {dotted(other[1])}"
            expected = "globs of different areas that match different interfaces"
            yield error_at(file, path, places.key(path), expected, got)
        globs.add(key, area)
