"""Tables that once had far more entries than they have now.

Python gives a dictionary or a set less room only when it is cleared, or grows again.
"""

from __future__ import annotations

import sys
from typing import Any, Final

_SMALL: Final = 256 << 10
"""Bytes of a table that is left as it is."""
_SPARSE: Final = 400
"""Bytes for an entry, from which on a table is sparse: one that grows takes 30 to 120."""


def shrink(table: dict[Any, Any] | set[Any]) -> None:
    """Give back the room of a sparse table, in place; its entries keep their order."""
    if sys.getsizeof(table) <= _SMALL + _SPARSE * len(table):
        return
    entries = table.copy()
    table.clear()
    table.update(entries)
