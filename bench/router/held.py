"""What each external takes: the bytes of all Python objects of a router that holds many of them.

Objects are counted once, by type, from the router on; those of a router with one external are
subtracted. Weights are those by capacity, the default of a daemon: if they follow load, each takes
60 bytes more. ``python -m bench held 25000 50000 100000`` prints them. Dictionaries take 30 to 52
bytes for an entry, by how well they are filled. The allocator adds to this: resident memory, of a
daemon with sockets and kernel, is measured by ``bench/beside/externals.py``.
"""

from __future__ import annotations

import argparse
import gc
import sys
import types
from collections import Counter
from typing import Any

import numpy as np

from bench.beside.externals import LSA_BYTES
from bench.router import changes
from bench.rows import compared
from fared.paths.weights.path_capacity import WeightMode

Row = dict[str, Any]
_CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType)


def objects_of(root: object) -> Counter[str]:
    """Bytes of all objects that are reached from one, by type; no code."""
    found: Counter[str] = Counter()
    seen, left = {id(root)}, [root]
    while left:
        item = left.pop()
        found[type(item).__name__] += _size(item)
        for each in _referents(item):
            if id(each) not in seen and not isinstance(each, _CODE):
                seen.add(id(each))
                left.append(each)
    return found


def _size(item: object) -> int:
    if isinstance(item, np.ndarray):
        return sys.getsizeof(item) if item.base is None else sys.getsizeof(item[:0])
    return sys.getsizeof(item)


def _referents(item: object) -> list[object]:
    # structs that the collector skips do not tell it what they refer to
    fields = [getattr(item, name) for name in getattr(type(item), "__struct_fields__", ())]
    base = [item.base] if isinstance(item, np.ndarray) and item.base is not None else []
    return [*gc.get_referents(item), *fields, *base]


def bytes_of_each(router: object, held: int) -> Counter[str]:
    """Bytes of each external, by type, of a router that holds so many."""
    gc.collect()
    least, _, _ = changes.learnt(1, WeightMode.CAPACITY)
    all_of_it, without = objects_of(router), objects_of(least.router)
    return Counter({name: (size - without[name]) / held for name, size in all_of_it.items()})  # type: ignore[misc]


def rows(held: int = changes.HELD[-1]) -> list[Row]:
    """The row of the report."""
    leaf, _, _ = changes.learnt(held, WeightMode.CAPACITY)
    ours = sum(bytes_of_each(leaf.router, held).values())
    name = f"OSPF: Python objects of one of {held:,} externals"
    goal = {"goal": f"<= {LSA_BYTES:g} bytes", "met": ours <= LSA_BYTES}
    return [compared(name, ours, None, "bytes") | goal]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("held", type=int, nargs="*", default=changes.HELD[1:], help="externals")
    for held in parser.parse_args().held:
        leaf, _, _ = changes.learnt(held, WeightMode.CAPACITY)
        found = bytes_of_each(leaf.router, held)
        parts = ", ".join(f"{name} {size:.0f}" for name, size in found.most_common(9))
        print(f"{held:,} externals: {sum(found.values()):.0f} bytes each ({parts})")
