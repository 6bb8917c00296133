"""What the counters of a protocol can count: its metrics begin at 0, not with the first event.

Prometheus sees no increase of a counter that appears with its first event. Only metrics read this.
"""

from __future__ import annotations

import msgspec

MALFORMED = ("truncated", "length", "checksum", "version", "type", "tlv")
"""The codes of ``DecodeError``, without ``auth``, which is a cause of ``refusals``."""
WAYS = ("received", "sent")


class Countable(msgspec.Struct, frozen=True):
    """Keys of ``ProtocolCounters``: of state changes, of packets, and reasons of errors."""

    transitions: tuple[tuple[str, str], ...]
    packets: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]
