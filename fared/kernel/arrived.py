"""Reading from non-blocking packet sockets, for both protocols."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections import Counter

RECEIVE_SIZE = 65536
WHOLE_QUEUE = 8192
"""More packets than fit into a socket's receive buffer."""


def arrived(
    sock: socket.socket, counters: Counter[str], most: int, *, small: int = 0
) -> list[bytes]:
    """Read the packets queued in a socket, at most ``most``, or up to one of less than ``small``.

    An error is counted as ``receive-error-<ERRNO>`` and ends reading. When an interface goes down
    the kernel reports ENETDOWN once, and the socket stays usable.
    """
    found: list[bytes] = []
    receive = sock.recv
    for _ in range(most):
        try:
            data = receive(RECEIVE_SIZE)
        except BlockingIOError:
            break
        except OSError as error:
            count_error(counters, "receive-error", error)
            break
        found.append(data)
        if len(data) < small:
            break
    return found


def count_error(counters: Counter[str], what: str, error: OSError) -> None:
    """Count an error by operation and name."""
    counters[f"{what}-{errno.errorcode.get(error.errno or 0, str(error.errno))}"] += 1
