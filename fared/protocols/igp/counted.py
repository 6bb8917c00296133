"""What the counters of a protocol can count: its metrics begin at 0, not with the first event.

Prometheus sees no increase of a counter that appears with its first event. Only metrics and
documents read this.
"""

from __future__ import annotations

import msgspec

from fared.protocols.igp.counters import RECEIVED, SENT

MALFORMED = ("truncated", "length", "checksum", "version", "type", "tlv")
"""The codes of ``DecodeError``, without ``auth``, which is a cause of ``refusals``."""


class Countable(msgspec.Struct, frozen=True):
    """Keys of ``ProtocolCounters``: of state changes, types of packets, reasons of errors."""

    transitions: tuple[tuple[str, str], ...]
    types: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def packets(self) -> tuple[tuple[str, str], ...]:
        """Both ways of each type."""
        return tuple((way, kind) for way in (RECEIVED, SENT) for kind in self.types)
