"""Rows of a document that are built when they are read.

Building a table of ten thousand routes takes longer than a neighbor may wait. So a view only takes
references to the objects, which is quick; the servers build and encode one slice of rows in each
turn of the event loop (``api.encode``), and no more than a slice exists at a time. Items must not
change meanwhile, so they are frozen values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")
S = TypeVar("S")


class Rows(Sequence[T]):
    """A sequence of ``build(item)`` for each of ``items``, built at each read."""

    __hash__ = None  # type: ignore[assignment] # equal to a list of the same rows

    def __init__(self, items: Sequence[S], build: Callable[[S], T]) -> None:
        self._items: Sequence[Any] = items
        self._build: Callable[[Any], T] = build

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return map(self._build, self._items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return list(map(self._build, self._items[index]))
        return self._build(self._items[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows | list) and list(self) == list(other)

    def __repr__(self) -> str:
        return repr(list(self))


class Shared(Rows[T]):
    """Rows that many rows of a document have in common: their JSON text is made once."""

    json: msgspec.Raw | None = None
