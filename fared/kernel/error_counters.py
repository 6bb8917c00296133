"""Error counters of interfaces, as ``/proc/net/dev`` has them: all interfaces in one read.

A receiver counts a damaged frame among its errors (CRC, length, alignment). Of dropped packets only
transmitted ones may count: the kernel drops received frames of unknown ethertypes, which any host
on the link can send, and does not tell them from others. FEC counters are only in ethtool's
statistics (``fec_counters``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fared.core.link_errors import ErrorCounters

_MOST_BYTES = 4 << 20
_COLUMNS = 16
_RX_PACKETS, _RX_ERRORS, _TX_PACKETS, _TX_ERRORS, _TX_DROPS = 1, 2, 9, 10, 11


def read_error_counters(file: Path, *, drops: bool) -> dict[str, ErrorCounters]:
    """Return the counters by interface; with ``drops`` unsent packets are errors. Raises OSError.

    Lines that are not in the format of the kernel are left out.
    """
    with file.open("rb") as source:
        text = source.read(_MOST_BYTES).decode("utf-8", "replace")
    return dict(_parse(text.splitlines(), drops=drops))


def _parse(lines: list[str], *, drops: bool) -> Iterator[tuple[str, ErrorCounters]]:
    for line in lines:
        name, colon, rest = line.rpartition(":")
        values = rest.split()
        if not colon or len(values) < _COLUMNS or not all(map(str.isdecimal, values)):
            continue
        counts = list(map(int, values))
        errors = counts[_RX_ERRORS] + counts[_TX_ERRORS]
        if drops:
            errors += counts[_TX_DROPS]
        yield name.strip(), ErrorCounters(counts[_RX_PACKETS] + counts[_TX_PACKETS], errors)
