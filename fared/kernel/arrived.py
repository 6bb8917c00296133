"""Reading packet sockets that do not block: what both protocols do with theirs."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections import Counter
    from collections.abc import Iterator

RECEIVE_SIZE = 65536
_MOST = 64


def arrived(sock: socket.socket, counters: Counter[str]) -> Iterator[bytes]:
    """What waits in a socket, a number of packets at most so that others have their turn.

    An error is counted as ``receive-error-<ERRNO>`` and ends it: ENETDOWN is told once when an
    interface goes down, and clears. Whoever may have closed the socket must not ask for more.
    """
    for _ in range(_MOST):
        try:
            data = sock.recv(RECEIVE_SIZE)
        except BlockingIOError:
            return
        except OSError as error:
            count_error(counters, "receive-error", error)
            return
        yield data


def count_error(counters: Counter[str], what: str, error: OSError) -> None:
    """Count an error by what failed and its name."""
    counters[f"{what}-{errno.errorcode.get(error.errno or 0, str(error.errno))}"] += 1
