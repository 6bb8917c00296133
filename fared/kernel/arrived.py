"""Reading from non-blocking packet sockets, for both protocols."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections import Counter
    from collections.abc import Iterator

RECEIVE_SIZE = 65536
WHOLE_QUEUE = 8192
"""More packets than fit into a socket's receive buffer."""


def arrived(sock: socket.socket, counters: Counter[str], most: int) -> Iterator[bytes]:
    """Read the packets queued in a socket, at most ``most``.

    An error is counted as ``receive-error-<ERRNO>`` and ends the iteration. When an interface goes
    down the kernel reports ENETDOWN once, and the socket stays usable. A caller that closed the
    socket must not continue.
    """
    for _ in range(most):
        try:
            data = sock.recv(RECEIVE_SIZE)
        except BlockingIOError:
            return
        except OSError as error:
            count_error(counters, "receive-error", error)
            return
        yield data


def count_error(counters: Counter[str], what: str, error: OSError) -> None:
    """Count an error by operation and name."""
    counters[f"{what}-{errno.errorcode.get(error.errno or 0, str(error.errno))}"] += 1
