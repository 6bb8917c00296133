"""Loads and errors of ports and LAGs, from the counters that SONiC polls of its chip.

COUNTERS_DB is written about once a second, at times that nobody tells. A counter that has not moved
may not have been written yet, so it says nothing before it has stood for ``QUIET``; the next one is
then averaged over the whole time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from fared.core.link_errors import ErrorCounters
from fared.core.link_facts import PlatformLoad
from fared.sonic.values import Raw, Values

QUIET = 2.5
"""Seconds after which a counter that has not moved means that nothing was sent."""
_MOST_RATE = 1.25e12
"""10 Tbit/s in bytes/s: more means that a counter was set back."""
NO_COUNTERS = "no-counters"
"""Usual for a while: SONiC polls the counters of a new port later."""
_PREFIX = "SAI_PORT_STAT_IF_"
_PACKETS = ("IN_UCAST_PKTS", "IN_NON_UCAST_PKTS", "OUT_UCAST_PKTS", "OUT_NON_UCAST_PKTS")
_ERRORS = ("IN_ERRORS", "OUT_ERRORS")
FIELDS = tuple(
    _PREFIX + name
    for name in (
        "OUT_OCTETS",
        *_PACKETS,
        *_ERRORS,
        "OUT_DISCARDS",
        "IN_FEC_NOT_CORRECTABLE_FRAMES",
    )
)


class Errors(NamedTuple):
    """Counts since an arbitrary time."""

    packets: int = 0
    errors: int = 0
    drops: int = 0
    fec: int = 0

    def counters(self, *, drops: bool, fec: bool) -> ErrorCounters:
        """Return what counts as errors."""
        errors = self.errors + (self.drops if drops else 0) + (self.fec if fec else 0)
        return ErrorCounters(self.packets, errors)

    def since(self, before: Errors) -> Errors:
        """Return what was counted after ``before``; nothing where a counter was set back."""
        return Errors(*(max(0, a - b) for a, b in zip(self, before, strict=True)))

    def plus(self, more: Errors) -> Errors:
        """Add counts."""
        return Errors(*(a + b for a, b in zip(self, more, strict=True)))


class _PortCounters(msgspec.Struct):
    """What was read of a port last: octets, and when they had moved."""

    octets: int
    at: float
    errors: Errors
    load: PlatformLoad | None = None
    more: Errors | None = None
    """What was counted in this reading; None: nothing."""

    def counted(self, errors: Errors) -> None:
        if errors != self.errors:
            self.more = errors.since(self.errors)
            self.errors = errors

    def moved_to(self, octets: int, now: float) -> None:
        moved, interval = octets - self.octets, now - self.at
        if interval <= 0 or (moved == 0 and interval < QUIET):
            return
        rate = moved / interval
        self.load = PlatformLoad(rate, now) if 0 <= rate <= _MOST_RATE else None
        self.octets, self.at = octets, now


class PortTraffic:
    """The counters of all ports and LAGs: each reading is ``take`` in portions, then ``settle``."""

    def __init__(self) -> None:
        self._ports: dict[str, _PortCounters] = {}
        self._lags: Mapping[str, tuple[str, ...]] = {}
        self._sums: dict[str, Errors] = {}
        """Errors of LAGs: what their members counted while they were members."""

    def counts(self, name: str) -> bool:
        """Whether all packets of a link are counted here."""
        members = self._lags.get(name)
        if members is None:
            return name in self._ports
        return bool(members) and all(member in self._ports for member in members)

    def load(self, name: str) -> PlatformLoad | None:
        """Return the load of a port, or of all members of a LAG; None: it is not known."""
        members = self._lags.get(name, (name,))
        loads = [port.load for m in members if (port := self._ports.get(m)) is not None]
        known = [load for load in loads if load is not None]
        if not known or len(known) < len(members):
            return None
        return PlatformLoad(sum(load.rate for load in known), max(load.at for load in known))

    def errors(self, name: str) -> Errors | None:
        """Return the errors of a port or a LAG; None: they are not known."""
        if name in self._lags:
            return self._sums.get(name)
        port = self._ports.get(name)
        return None if port is None else port.errors

    def take(self, rows: Mapping[str, Sequence[Raw]], now: float, values: Values) -> None:
        """Take the values of ``FIELDS`` of some ports; of one without them nothing is known now."""
        for name, row in rows.items():
            counts = [values.number(raw) for raw in row]
            octets = counts[0] if len(counts) == len(FIELDS) else None
            if octets is None:
                values.wrong[NO_COUNTERS] += 1
                self._ports.pop(name, None)
                continue
            errors = _errors([count or 0 for count in counts])
            port = self._ports.get(name)
            if port is None:
                self._ports[name] = _PortCounters(octets, now, errors)
                continue
            port.counted(errors)
            port.moved_to(octets, now)

    def settle(self, ports: Collection[str], lags: Mapping[str, tuple[str, ...]]) -> None:
        """All ports of a reading were taken: forget others, and count for the LAGs."""
        for name in self._ports.keys() - ports:
            del self._ports[name]
        self._lags = lags
        self._sums = {lag: self._sum(lag, members) for lag, members in lags.items()}
        for port in self._ports.values():
            port.more = None

    def _sum(self, lag: str, members: Sequence[str]) -> Errors:
        total = self._sums.get(lag, Errors())
        for member in members:
            port = self._ports.get(member)
            if port is not None and port.more is not None:
                total = total.plus(port.more)
        return total


def _errors(counts: Sequence[int]) -> Errors:
    """Return the errors of a row of ``FIELDS``."""
    _, *rest = counts
    packets, (received, sent, drops, fec) = sum(rest[: len(_PACKETS)]), rest[len(_PACKETS) :]
    return Errors(packets, received + sent, drops, fec)
