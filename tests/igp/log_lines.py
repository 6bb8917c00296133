"""A check of log records: ids and addresses are in dotted or textual form, never integers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fared.protocols.igp.events import LogRecord

_SMALLEST_ID = 1 << 24
"""1.0.0.0: no id of a test is smaller; no MTU, key id or count of a test is as large."""
_NAMES = re.compile(r"(?<!key_)(id|router|neighbor|source|address|area|dis|previous|lsa|lsp)$")
_COUNTED = re.compile(r"(sequence number|expected) \d+|\d+ (LSAs|bytes)")


def bare_ids(records: Iterable[LogRecord]) -> list[LogRecord]:
    """Return records with an id or an address as an integer, in a field or in the message."""
    return [
        record
        for record in records
        if any(
            _bare(value) or (isinstance(value, int) and _NAMES.search(name))
            for name, value in record.fields.items()
        )
    ]


def _bare(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_bare, value))
    if isinstance(value, bool | float):
        return False
    if isinstance(value, int):
        return value >= _SMALLEST_ID
    numbers = re.findall(r"(?<![\w.:])\d+(?![\w.:])", _COUNTED.sub("", str(value)))
    return any(int(number) >= _SMALLEST_ID for number in numbers)
