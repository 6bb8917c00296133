"""The words by which rows of APPL_DB name a routing protocol."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

FILES: Final = ("/etc/iproute2/rt_protos", "/usr/share/iproute2/rt_protos")
"""Where ``fpmsyncd`` finds names, in the container that it shares with the router."""
_MOST_BYTES: Final = 1 << 16


def protocol_words(number: int, files: Iterable[str] = FILES) -> frozenset[str]:
    """Return the names that files have for a protocol, and what stands for one without a name."""
    found = {f"0x{number:x}"}
    for file in files:
        try:
            with Path(file).open("rb") as source:
                text = source.read(_MOST_BYTES).decode("ascii", "replace")
        except OSError:
            continue
        entries = (line.partition("#")[0].split() for line in text.splitlines())
        found |= {entry[1].lower() for entry in entries if _is_of(entry, number)}
    return frozenset(found)


def _is_of(entry: list[str], number: int) -> bool:
    try:
        return len(entry) == 2 and int(entry[0], 0) == number
    except ValueError:
        return False
