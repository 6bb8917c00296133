"""The whole router as bytes, and back: the start of a segment of a recording.

Everything is kept, caches and timers included, since a router that lost a cache could take another
turn. cloudpickle does it, for engines hold closures; some objects need help:

- structs refer to each other in circles, and pickle creates a struct only once its fields are
  known: here it is created blank, and filled later;
- weak dictionaries, whose entries live as long as something else in the router holds them;
- caches of functions that a router made, which begin empty: what is cached follows from arguments;
- constants of modules, such as the next hops of a discard route, which are recognized by identity.

A state is code: it fits one version of fared and of Python, and loading that of a stranger runs
what the stranger wrote (``signature``).
"""

from __future__ import annotations

import functools
import importlib
import io
import pickle
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import cloudpickle
import msgspec
from msgspec.structs import force_setattr

from fared.core.streams import StreamKey
from fared.management.recording.values import hidden
from fared.router.router import Router

_STACK = 1 << 29
"""Bytes of the stack on which objects are followed: a database is deeper than the main one's."""
_DEPTH = 1_000_000
_ATOMS = frozenset({int, float, str, bytes, bool, type(None)})
_CACHE = type(functools.lru_cache(repr))

ResultT = TypeVar("ResultT")


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc] # cloudpickle has no types
    """Knows structs, weak dictionaries and constants."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._constants = _constants()

    def reducer_override(self, obj: Any) -> Any:  # noqa: ANN401 - any object of a router
        """Say how to restore an object, as ``copyreg`` does."""
        constant = self._constants.get(id(obj))
        if constant is not None:
            return _constant, constant
        if isinstance(obj, msgspec.Struct):
            return _reduce_struct(obj)
        if isinstance(obj, struct.Struct):
            return struct.Struct, (obj.format,)
        if type(obj) is weakref.WeakValueDictionary:
            return weakref.WeakValueDictionary, (), None, None, iter(list(obj.items()))
        if type(obj) is _CACHE and not hasattr(obj, "__qualname__"):
            return _cached, (obj.cache_parameters(), obj.__wrapped__)
        return super().reducer_override(obj)


def _constants() -> dict[int, tuple[str, str]]:
    """Return module and name of each value of a class that a module of fared has created."""
    return {
        id(value): (module, name)
        for module, found in sorted(sys.modules.items())
        if module.startswith("fared.")
        for name, value in list(vars(found).items())
        if not isinstance(value, type | FunctionType | ModuleType | Enum)
        and type(value).__module__.startswith("fared.")
    }


def _cached(parameters: Mapping[str, Any], function: Callable[..., Any]) -> Any:  # noqa: ANN401
    return functools.lru_cache(**parameters)(function)


def _constant(module: str, name: str) -> Any:  # noqa: ANN401 - whatever it is
    return getattr(importlib.import_module(module), name)


def _reduce_struct(value: msgspec.Struct) -> Any:  # noqa: ANN401 - a tuple of one of two shapes
    if isinstance(value, StreamKey):
        value = hidden(value)
    cls = type(value)
    fields = tuple(getattr(value, name) for name in cls.__struct_fields__)
    more = getattr(value, "__dict__", None)
    simple = cls.__struct_config__.frozen and not more and all(type(f) in _ATOMS for f in fields)
    if simple or hasattr(cls, "__post_init__"):  # which may refuse a blank one
        return _whole, (cls, fields)
    return _blank, (cls,), (fields, more or None), None, None, _fill


def _whole(cls: type[msgspec.Struct], fields: tuple[Any, ...]) -> msgspec.Struct:
    """Create a struct whose fields do not refer back to it."""
    return cls(**dict(zip(cls.__struct_fields__, fields, strict=True)))


def _blank(cls: type[msgspec.Struct]) -> msgspec.Struct:
    """Create a struct whose fields follow."""
    return cls(**dict.fromkeys(cls.__struct_fields__))


def _fill(blank: msgspec.Struct, state: tuple[tuple[Any, ...], dict[str, Any] | None]) -> None:
    fields, more = state
    for name, field in zip(blank.__struct_fields__, fields, strict=True):
        force_setattr(blank, name, field)
    if more:
        vars(blank).update(more)


def dump(router: Router) -> bytes:
    """Return a router as bytes. It must hold no stopwatch (``Router.measure_with``).

    Raises pickle.PicklingError or TypeError: something in it cannot be kept.
    """
    return _deeply(lambda: _dump(router))


def _dump(router: Router) -> bytes:
    written = io.BytesIO()
    _Pickler(written).dump(router)
    return written.getvalue()


def load(state: bytes) -> Router:
    """Return the router that ``dump`` wrote: it runs code, so know where it comes from.

    Raises whatever pickle does on bytes that are not such a router.
    """
    return _deeply(lambda: _router(pickle.loads(state)))  # noqa: S301 - ``signature`` says whose


def _router(found: object) -> Router:
    if not isinstance(found, Router):
        raise pickle.UnpicklingError("this is no router")
    return found


def _deeply(work: Callable[[], ResultT]) -> ResultT:
    """Run something that follows long chains of objects on a stack that is deep enough."""
    done: list[ResultT] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            failed.append(error)

    size, depth = threading.stack_size(_STACK), sys.getrecursionlimit()
    sys.setrecursionlimit(_DEPTH)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(depth)
    if failed:
        raise failed[0]
    return done[0]
