"""Traffic counters of all interfaces in one cheap request, and the loads computed from them.

``RTM_GETSTATS`` with only the 64-bit link counters costs 25 microseconds for 65 interfaces, one
hundredth of reading whole links, so load can be sampled ten times a second. Only outbound traffic
is read: each end of a link measures and advertises its own direction.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Mapping

import msgspec

from fared.kernel.netlink import attributes
from fared.kernel.requests import RequestSocket

_RTM_NEWSTATS, _RTM_GETSTATS = 92, 94
_IFLA_STATS_LINK_64 = 1
_STATS_MSG = struct.Struct("=BBHII")
_COUNTERS = struct.Struct("=8xQ8xQ")
_REQUEST = _STATS_MSG.pack(0, 0, 0, 0, 1 << (_IFLA_STATS_LINK_64 - 1))
_WRAPS = (1 << 32, 1 << 64)
MAX_LOAD = 1.25e12
"""10 Tbit/s in bytes/s: a higher load means that a counter was reset."""


class Sent(msgspec.Struct, frozen=True, gc=False):
    """Packets and bytes sent on an interface since an arbitrary time."""

    packets: int
    octets: int


class CounterSample(msgspec.Struct, frozen=True):
    """All counters by ifindex, read at ``time`` (seconds, any monotonic clock)."""

    time: float
    counters: Mapping[int, Sent]


class LinkCounters:
    """Reads the counters of the namespace it was created in."""

    def __init__(self) -> None:
        self._netlink = RequestSocket()

    def close(self) -> None:
        """Close the socket."""
        self._netlink.close()

    def sample(self, now: float) -> CounterSample:
        """Read all interfaces at once. Raises OSError if the answer is incomplete."""
        counters: dict[int, Sent] = {}
        for kind, body in self._netlink.dump(_RTM_GETSTATS, _REQUEST):
            if kind == _RTM_NEWSTATS:
                _read(body, counters)
        return CounterSample(now, counters)


def _read(body: bytes, counters: dict[int, Sent]) -> None:
    """Read one answer."""
    stats = attributes(body, _STATS_MSG.size).get(_IFLA_STATS_LINK_64, b"")
    if len(stats) >= _COUNTERS.size:
        counters[_STATS_MSG.unpack_from(body)[3]] = Sent(*_COUNTERS.unpack_from(stats))


def load_between(previous: CounterSample, current: CounterSample) -> dict[int, float | None]:
    """Return the average outbound load (bytes/s) of every interface that is in both samples.

    None: unknown, because the counters were reset in between. A reset also decreases the packet
    counter; a byte counter that wraps at 32 or 64 bits decreases alone, from near its maximum.
    """
    interval = current.time - previous.time
    if interval <= 0:
        return {}
    before = previous.counters
    return {
        ifindex: _rate(before[ifindex], now, interval)
        for ifindex, now in current.counters.items()
        if ifindex in before
    }


def _rate(before: Sent, now: Sent, interval: float) -> float | None:
    moved = now.octets - before.octets
    if now.packets < before.packets:  # the counters were reset
        return None
    if moved < 0:
        # Drivers with 32-bit counters wrap at 4 GiB, although the field has 64 bits.
        wrap = _WRAPS[before.octets >= _WRAPS[0]]
        if before.octets < wrap - wrap // 4 or now.octets > wrap // 4:
            return None
        moved += wrap
    rate = moved / interval
    return rate if rate <= MAX_LOAD else None


class LoadMeter:
    """Computes loads from consecutive samples, and reports loads that are too old.

    A load is valid until the next one, but not longer than ``stale_after`` seconds.
    """

    def __init__(self) -> None:
        self._last: CounterSample | None = None
        self._standing: set[int] = set()
        self._unknown_since: dict[int, float] = {}

    def update(self, sample: CounterSample) -> dict[int, float]:
        """Return the loads since the previous sample, where known; empty at the first."""
        last, self._last = self._last, sample
        self._standing &= sample.counters.keys()
        if last is None:
            return {}
        found = load_between(last, sample)
        loads = {ifindex: load for ifindex, load in found.items() if load is not None}
        if len(loads) < len(found):
            for ifindex in found.keys() - loads.keys():
                self._unknown_since.setdefault(ifindex, last.time)
        if self._unknown_since:
            for ifindex in self._unknown_since.keys() & loads.keys():
                del self._unknown_since[ifindex]
            for ifindex in self._unknown_since.keys() - sample.counters.keys():
                del self._unknown_since[ifindex]
        self._standing |= loads.keys()
        return loads

    def expired(self, now: float, stale_after: float) -> list[int]:
        """Return interfaces whose load became too old, once each until it is known again."""
        if self._last is None:
            return []
        if now - self._last.time > stale_after:
            gone = set(self._standing)
        else:
            since = self._unknown_since
            gone = {i for i in self._standing & since.keys() if now - since[i] > stale_after}
        self._standing -= gone
        return sorted(gone)


class LoadSource:
    """Measures the loads of the namespace it was created in; replaces its socket after errors."""

    def __init__(self) -> None:
        self._counters: LinkCounters | None = LinkCounters()
        self._meter = LoadMeter()

    def close(self) -> None:
        """Close the socket."""
        if self._counters is not None:
            self._counters.close()
            self._counters = None

    def measure(self, now: float) -> dict[int, float]:
        """Return outbound loads (bytes/s) by ifindex since the previous call. Raises OSError.

        After a failure the next attempt uses a new socket; its loads are averages over the whole
        interval.
        """
        try:
            if self._counters is None:
                self._counters = LinkCounters()
            sample = self._counters.sample(now)
        except OSError:
            with contextlib.suppress(OSError):
                self.close()
            raise
        return self._meter.update(sample)

    def expired(self, now: float, stale_after: float) -> list[int]:
        """Return interfaces whose load became too old, once each."""
        return self._meter.expired(now, stale_after)
