"""Reading from non-blocking packet sockets, for both protocols."""

from __future__ import annotations

import errno
import mmap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections import Counter

RECEIVE_SIZE = 65536
WHOLE_QUEUE = 8192
"""More packets than fit into a socket's receive buffer."""


def receive_buffer() -> memoryview:
    """Make a buffer for any packet: its pages take memory once packets have been written there."""
    return memoryview(mmap.mmap(-1, RECEIVE_SIZE))


def arrived(
    sock: socket.socket, buffer: memoryview, counters: Counter[str], most: int, *, small: int = 0
) -> list[bytes]:
    """Read the packets queued in a socket, at most ``most``, or up to one of less than ``small``.

    They are read into ``buffer`` and copied. (``recv`` allocates the longest packet for each and
    gives the rest back: what is stored meanwhile is scattered over the heap, which then grows for
    as long as a flood lasts.)

    An error is counted as ``receive-error-<ERRNO>`` and ends reading. When an interface goes down
    the kernel reports ENETDOWN once, and the socket stays usable.
    """
    found: list[bytes] = []
    receive = sock.recv_into
    for _ in range(most):
        try:
            size = receive(buffer)
        except BlockingIOError:
            break
        except OSError as error:
            count_error(counters, "receive-error", error)
            break
        found.append(bytes(buffer[:size]))
        if size < small:
            break
    return found


def count_error(counters: Counter[str], what: str, error: OSError) -> None:
    """Count an error by operation and name."""
    counters[f"{what}-{errno.errorcode.get(error.errno or 0, str(error.errno))}"] += 1
