"""Packets of a flood gather in their sockets for some milliseconds, so that a wakeup reads many.

A neighbor sends LSPs one after another, and all neighbors send the same. A loop that is faster than
they are would read each packet as it comes, and find the next socket, and pass packets on, ten
times as often: that takes more time than the packets do. Where there is no flood, or few neighbors,
nothing waits.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable

from fared.kernel.readers import Readers

GATHERED = 0.005
"""Seconds in which the packets of a flood gather."""
_FLOOD = 10_000
"""Packets a second: 64 neighbors that pass on 150 LSPs a second."""
_SOCKETS = 16
"""Sockets that are watched: with fewer the next one is found at once, and there are few copies."""
_WINDOW = 0.1
"""Seconds over which packets are counted: a flood is one that lasts."""
_IDLE = 0.0005
"""Seconds after which the loop had nothing to do, or something else than packets."""
_FEW = 8
"""Sockets that become readable before a loop that has nothing to do reads one."""


class Gathering:
    """Decides how long packets gather, by their number so far (``taken``)."""

    def __init__(self) -> None:
        self.flood = False
        """Whether so many packets come that they gather."""
        self._counted_at, self._counted = 0.0, 0
        self._began = self._ended = -math.inf
        """When sockets were read last, and when what they held had been processed."""

    def wait(self, now: float, taken: int, sockets: int, readable: Callable[[], int]) -> float:
        """How long packets gather, in sockets that are readable now, until these are read.

        ``sockets`` are watched; ``readable`` returns how many of them are.
        """
        passed = now - self._counted_at
        if passed >= _WINDOW:
            self.flood = sockets >= _SOCKETS and taken - self._counted >= _FLOOD * passed
            self._counted_at, self._counted = now, taken
        if not self.flood:
            return 0.0
        # what came while the last packets were processed has gathered since these were read
        if now - self._ended < _IDLE:
            return max(0.0, GATHERED - (now - self._began))
        return GATHERED if readable() <= _FEW else 0.0

    def began(self, now: float) -> None:
        """Sockets are read now."""
        self._began = now

    def ended(self, now: float) -> None:
        """What they held has been processed."""
        self._ended = now


class Prompt:
    """Readers whose sockets end the wait for more packets: a lost link must not wait for any."""

    def __init__(self, readers: Readers, hasten: Callable[[], object]) -> None:
        self._readers, self._hasten = readers, hasten

    def add_reader(
        self, sock: socket.socket, callback: Callable[..., object], *args: object
    ) -> None:
        """Call ``callback`` with ``args`` whenever a socket is readable, together with others."""
        self._readers.add_reader(sock, callback, *args)
        asyncio.get_running_loop().add_reader(sock, self._hasten)

    def remove_reader(self, sock: socket.socket) -> None:
        """Stop watching a socket, before it is closed."""
        asyncio.get_running_loop().remove_reader(sock)
        self._readers.remove_reader(sock)
