"""Traffic counters of all interfaces in one cheap question, and the rates they mean.

``RTM_GETSTATS`` with only the 64-bit link counters costs 25 microseconds for 65 interfaces, a
hundredth of reading whole links, so load can be sampled ten times a second.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fared.kernel.netlink import RequestSocket, attributes

_RTM_NEWSTATS, _RTM_GETSTATS = 92, 94
_IFLA_STATS_LINK_64 = 1
_STATS_MSG = struct.Struct("=BBHII")
_COUNTERS = struct.Struct("=QQQQ")
_REQUEST = _STATS_MSG.pack(0, 0, 0, 0, 1 << (_IFLA_STATS_LINK_64 - 1))
_WRAPS = (1 << 32, 1 << 64)
DEFAULT_LIMIT = 1.25e12
"""10 Tbit/s in bytes/s: what claims to be faster is no load but a counter that was reset."""


class Bytes(NamedTuple):
    """Bytes received and sent by an interface since some time in the past."""

    received: int
    sent: int


@dataclass(frozen=True, slots=True)
class Sample:
    """All byte counters by ifindex, read at ``time`` (seconds, any monotonic clock)."""

    time: float
    counters: Mapping[int, Bytes]


class Load(NamedTuple):
    """Bytes/s received and sent; None where the counters gave no sense."""

    received: float | None
    sent: float | None


class LinkCounters:
    """Reads the counters of the namespace it was made in."""

    def __init__(self) -> None:
        self._netlink = RequestSocket()

    def close(self) -> None:
        """Close the socket."""
        self._netlink.close()

    def sample(self, now: float) -> Sample:
        """Read all interfaces at once."""
        counters: dict[int, Bytes] = {}
        for kind, body in self._netlink.dump(_RTM_GETSTATS, _REQUEST):
            stats = attributes(body, _STATS_MSG.size).get(_IFLA_STATS_LINK_64, b"")
            if kind == _RTM_NEWSTATS and len(stats) >= _COUNTERS.size:
                _, _, received, sent = _COUNTERS.unpack_from(stats)
                counters[_STATS_MSG.unpack_from(body)[3]] = Bytes(received, sent)
        return Sample(now, counters)


def load_between(
    previous: Sample, current: Sample, limits: Mapping[int, float] | None = None
) -> dict[int, Load]:
    """Average load of every interface that is in both samples.

    A counter that went backwards wrapped at 32 or 64 bits if it was near the top before, is near
    the bottom now, and the rate that this makes is below the link's limit (bytes/s); else it
    was reset, and the load of this interval is unknown. So is one above the limit by half.
    """
    interval = current.time - previous.time
    if interval <= 0:
        return {}
    loads: dict[int, Load] = {}
    for ifindex, now in current.counters.items():
        before = previous.counters.get(ifindex)
        if before is not None:
            limit = (limits or {}).get(ifindex, DEFAULT_LIMIT) * 1.5
            loads[ifindex] = Load(
                _rate(before.received, now.received, interval, limit),
                _rate(before.sent, now.sent, interval, limit),
            )
    return loads


def _rate(before: int, now: int, interval: float, limit: float) -> float | None:
    moved = now - before
    if moved < 0:
        wrap = _WRAPS[before >= _WRAPS[0]]
        if before < wrap - wrap // 4 or now > wrap // 4:
            return None
        moved += wrap
    rate = moved / interval
    return rate if rate <= limit else None


class LoadMeter:
    """Keeps the last sample and turns each new one into loads."""

    def __init__(self) -> None:
        self._last: Sample | None = None

    def update(self, sample: Sample, limits: Mapping[int, float] | None = None) -> dict[int, Load]:
        """Loads since the sample before; empty at the first."""
        last, self._last = self._last, sample
        return load_between(last, sample, limits) if last is not None else {}
