"""Contents of LSAs and LSPs for which there are no words: nested JSON as indented lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fared.management.documents import human
from fared.management.documents.cells import plain


def nested(value: dict[str, Any], indent: str = "") -> Iterator[str]:
    """Format a nested document as indented lines, one record of a list per line.

    Nested values of a record follow below it.
    """
    for name, item in value.items():
        if item is None or item == []:
            continue
        if isinstance(item, dict):
            yield f"{indent}{name}:"
            yield from nested(item, indent + "  ")
        elif isinstance(item, list) and isinstance(item[0], dict):
            yield f"{indent}{name}:"
            for entry in item:
                flat = {k: v for k, v in entry.items() if v is not None and type(v) is not dict}
                yield indent + "  " + "  ".join(f"{k} {_value(k, v)}" for k, v in flat.items())
                for inner in (v for v in entry.values() if isinstance(v, dict)):
                    yield from nested(inner, indent + "    ")
        else:
            yield f"{indent}{name}: {_value(name, item)}"


def _value(name: str, value: object) -> str:
    """Format a value: bandwidths with units, eight equal ones (one for each priority) as one."""
    if not name.endswith(("bandwidth", "capacity")):
        return plain(value)
    if isinstance(value, list):
        return ", ".join(dict.fromkeys(_value(name, item) for item in value))
    return human.bandwidth(value) if isinstance(value, (int, float)) else plain(value)
