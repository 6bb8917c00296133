"""When Python looks for garbage: rarely, and never through the link state database.

What the engines let go of is freed at once, by counting references; the collector is there for
cycles, which few things make. A large database is a million objects, and a look at all of them
costs a tenth of a second: while one is learnt Python's own thresholds would have it looked
through again and again, and later in the middle of a reaction to a failure.
"""

from __future__ import annotations

import gc

_YOUNG, _MIDDLE, _OLD = 50_000, 20, 50
"""Net allocations before the youngest generation is looked at, and rounds before the others."""


def relax() -> None:
    """Look rarely, from before the rest of the program is loaded: it leaves no garbage."""
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)


def set_aside() -> None:
    """Collect once, and leave what there is now out of every later look."""
    gc.collect()
    gc.freeze()
