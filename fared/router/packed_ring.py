"""The last records of a kind, each as a few bytes: many are kept, and few are ever read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar, overload

import msgspec

Record = TypeVar("Record", bound=msgspec.Struct)


class PackedRing(Sequence[Record], Generic[Record]):
    """At most so many records, the oldest first; a struct of numbers takes a third as bytes."""

    def __init__(self, kind: type[Record], most: int) -> None:
        self._kind = kind
        self._packed: deque[bytes] = deque(maxlen=most)

    def append(self, record: Record) -> None:
        """Add a record; the oldest makes room."""
        self._packed.append(msgspec.msgpack.encode(record))

    def _decode(self, packed: bytes) -> Record:
        return msgspec.msgpack.decode(packed, type=self._kind)

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[Record]:
        return map(self._decode, self._packed)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        """Decode one record, or several."""
        if isinstance(index, slice):
            return [*map(self._decode, [*self._packed][index])]
        return self._decode(self._packed[index])
