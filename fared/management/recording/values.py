"""Values of fared as plain lists, which msgpack writes: the inputs of a router in a recording.

A list begins with a number: negative for a kind of container, else for a class, which is named with
its fields where it is used first (``NamedClass``). So the file of a segment describes itself, is
read without running anything that it contains, and fits a later version as long as classes and
fields keep their names: fields that have been added since get their defaults.

Keys that only the kernel needs are hidden: a router treats another one in their place alike.
"""

from __future__ import annotations

import enum
import importlib
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from fared.core.streams import StreamKey

_TUPLE, _LIST, _DICT, _SET, _FROZENSET, _INTEGER, _PROXY = range(-1, -8, -1)
_PLAIN = (bool, float, str, bytes, type(None))
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
"""Integers that msgpack has; others, such as IPv6 addresses, are text."""
_SALT = os.urandom(32)
"""Nobody can try words until they give a hidden key."""


class UnreadableValueError(ValueError):
    """A value that this version cannot read; the message is for people."""


class NamedClass(msgspec.Struct, frozen=True, array_like=True, tag="c"):
    """The class of this number from here on: ``module:name``, and its fields in order."""

    number: int
    name: str
    fields: tuple[str, ...]


class ValueWriter:
    """Turns values into lists; classes that it has not met are passed to ``named`` first."""

    def __init__(self, named: Callable[[NamedClass], None]) -> None:
        self._named = named
        self._writers: dict[type, Callable[[Any], Any]] = {
            **dict.fromkeys(_PLAIN, _itself),
            int: _integer,
            tuple: lambda value: [_TUPLE, *map(self.write, value)],
            list: lambda value: [_LIST, *map(self.write, value)],
            set: lambda value: [_SET, *map(self.write, sorted(value))],
            frozenset: lambda value: [_FROZENSET, *map(self.write, sorted(value))],
            dict: lambda value: [_DICT, *self._pairs(value)],
            MappingProxyType: lambda value: [_PROXY, *self._pairs(value)],
        }
        self._classes = 0

    def write(self, value: Any) -> Any:  # noqa: ANN401 - any value of the events
        """Return a value as lists, numbers, text and bytes. Raises TypeError."""
        cls = type(value)
        writer = self._writers.get(cls)
        if writer is None:
            writer = self._writers[cls] = self._learn(cls)
        return writer(value)

    def _pairs(self, value: Mapping[Any, Any]) -> list[Any]:
        return [self.write(part) for pair in value.items() for part in pair]

    def _learn(self, cls: type) -> Callable[[Any], Any]:
        """Name a class, and return the writer of its values. Raises TypeError."""
        fields = _fields(cls)
        if fields is None:
            raise TypeError(f"{cls.__module__}.{cls.__qualname__} cannot be recorded")
        number, self._classes = self._classes, self._classes + 1
        self._named(NamedClass(number, f"{cls.__module__}:{cls.__qualname__}", fields))
        write = self.write
        if issubclass(cls, enum.Enum):
            return lambda value: [number, value.name]
        if issubclass(cls, tuple):
            return lambda value: [number, *map(write, value)]
        if issubclass(cls, StreamKey):
            return lambda value: [number, hidden(value).content]
        return lambda value: [number, *[write(getattr(value, name)) for name in fields]]


def hidden(key: StreamKey) -> StreamKey:
    """A key as it is recorded, the same one in all recordings of a process."""
    return key.hidden(_SALT)


def _itself(value: Any) -> Any:  # noqa: ANN401 - plain values
    return value


def _integer(value: int) -> Any:  # noqa: ANN401 - an integer or a list
    return value if _LEAST <= value <= _MOST else [_INTEGER, hex(value)]


def _fields(cls: type) -> tuple[str, ...] | None:
    """The fields of a struct or named tuple, none of an enumeration; None: another class."""
    if issubclass(cls, enum.Enum):
        return ()
    if issubclass(cls, msgspec.Struct):
        return cls.__struct_fields__
    return getattr(cls, "_fields", None) if issubclass(cls, tuple) else None


class ValueReader:
    """Turns lists into values again."""

    def __init__(self) -> None:
        self._makers: dict[int, Callable[[list[Any]], Any]] = {
            _TUPLE: tuple,
            _LIST: list,
            _DICT: _paired,
            _SET: set,
            _FROZENSET: frozenset,
            _INTEGER: lambda parts: int(parts[0], 16),
            _PROXY: lambda parts: MappingProxyType(_paired(parts)),
        }

    def name(self, named: NamedClass) -> None:
        """Take the class of a number. Raises UnreadableValueError."""
        self._makers[named.number] = _maker(_find(named.name), named)

    def read(self, written: Any) -> Any:  # noqa: ANN401 - any value of the events
        """Return the value. Raises UnreadableValueError."""
        if not isinstance(written, list):
            return written
        number = written[0] if written else None
        maker = self._makers.get(number) if isinstance(number, int) else None
        if maker is None:
            raise UnreadableValueError("a value of a class without a name")
        try:
            return maker([self.read(part) for part in written[1:]])
        except RecursionError:
            raise UnreadableValueError("a value that is nested too deep") from None
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise UnreadableValueError(str(error)) from None


def _paired(parts: list[Any]) -> dict[Any, Any]:
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _find(name: str) -> type:
    """Import a class of fared that holds values only. Raises UnreadableValueError."""
    module, _, qualified = name.partition(":")
    found: object = None
    if module.startswith("fared."):
        try:
            found = importlib.import_module(module)
            for part in qualified.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError):
            found = None
    if not isinstance(found, type) or _fields(found) is None or found.__module__ != module:
        raise UnreadableValueError(f"this version has no class {name}")
    return found


def _maker(cls: type, named: NamedClass) -> Callable[[list[Any]], Any]:
    """Return what makes a value of a class. Raises UnreadableValueError."""
    if issubclass(cls, enum.Enum):
        return lambda parts: cls[parts[0]]
    fields = _fields(cls) or ()
    unknown = [name for name in named.fields if name not in fields]
    if unknown:
        raise UnreadableValueError(f"{named.name} has no {', '.join(unknown)} in this version")
    return lambda parts: cls(**dict(zip(named.fields, parts, strict=True)))
