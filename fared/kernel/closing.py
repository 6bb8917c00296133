"""Closes many sockets at once.

To close a packet socket the kernel waits for a grace period of RCU, 14 ms. A router with 256
circuits of IS-IS has a thousand, which took it 15 s one after another. Those that are closed at the
same time wait for the same grace period.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

_AT_ONCE = 64


def close_together(sockets: Iterable[socket.socket]) -> None:
    """Close sockets, many at a time, each in a thread; return when all are closed."""
    left = list(sockets)

    def close_some() -> None:
        with contextlib.suppress(IndexError):
            while True:
                sock = left.pop()
                with contextlib.suppress(OSError):  # it is closed all the same
                    sock.close()

    others = [threading.Thread(target=close_some) for _ in range(min(len(left), _AT_ONCE) - 1)]
    for thread in others:
        thread.start()
    close_some()
    for thread in others:
        thread.join()
