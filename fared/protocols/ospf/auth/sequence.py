"""The cryptographic sequence numbers this router sends (RFC 2328 §D.3, RFC 7474 §2).

Numbers increase with every packet out of an interface. §D.4.3 (5) allows equal ones, but FRR
rejects them. They must also exceed those of earlier runs of this router. For 64-bit numbers the
boot count is stored. 32-bit numbers follow the wall clock, at a higher rate than hellos, so that
the clock soon exceeds the numbers of a burst of packets. If the router restarts before, neighbors
accept it only after RouterDeadInterval, when they reset its number to zero (§D.3).
"""

from __future__ import annotations

from typing import Final

_WORD: Final = 0xFFFFFFFF
_LONG: Final = 0xFFFFFFFFFFFFFFFF
_HALF: Final = 32
_RATE: Final = 5
"""Numbers for each second of the wall clock: for one hello a second, and a few other packets."""
_EPOCH: Final = 1_400_000_000
"""Where the clock of the numbers begins, seconds since 1970.

Since 2025 it exceeds the seconds since 1970, which other routers and earlier versions send; it
wraps in August 2041.
"""


def clock_number(wall: float) -> int:
    """The 32-bit number of a time in seconds since 1970; 0 before ``_EPOCH``."""
    return int(max(0.0, wall - _EPOCH) * _RATE) & _WORD


class AuthSequences:
    """The numbers of one router: 32-bit ones by interface, 64-bit ones for all interfaces."""

    __slots__ = ("_by_ifindex", "_floor", "_long")

    def __init__(self) -> None:
        self._by_ifindex: dict[int, int] = {}
        self._floor = 0
        """No removed interface has sent a greater number."""
        self._long = 0

    def next_32(self, ifindex: int, wall: float) -> int:
        """The next 32-bit number of an interface, at the time ``wall``: higher than its last one.

        After 32 bits it begins again at the clock (§D.3: neighbors then reject packets for
        RouterDeadInterval).
        """
        clock = clock_number(wall)
        number = max(self._by_ifindex.get(ifindex, self._floor) + 1, clock)
        if number > _WORD:
            number = clock
        self._by_ifindex[ifindex] = number
        return number

    def next_64(self, boot_count: int) -> int:
        """The next 64-bit number (RFC 7474 §2); its upper half is ``boot_count`` or more."""
        self._long = max(self._long, boot_count << _HALF) + 1 & _LONG
        return self._long

    @property
    def boot_count(self) -> int:
        """The upper half of the last 64-bit number; the lower half may wrap into it (§2)."""
        return self._long >> _HALF

    def closed(self, ifindex: int) -> None:
        """Remove an interface; if it returns, its numbers are higher than before."""
        self._floor = max(self._floor, self._by_ifindex.pop(ifindex, 0))
