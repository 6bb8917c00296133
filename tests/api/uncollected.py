"""Objects that only the collector would free."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_off() -> Iterator[None]:
    """Collect once, then not until the end of the block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def number_of(kind: str) -> int:
    """How many objects of a class are in memory, garbage included."""
    return sum(type(one).__name__ == kind for one in gc.get_objects())
