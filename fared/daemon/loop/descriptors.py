"""The limit of open files and sockets: raising it, and recognizing a shortage."""

from __future__ import annotations

import errno
import resource
from typing import Any

from fared.runtime.descriptors import LEAST_RESERVED

ENOUGH = 65536
"""More than any router needs, at two sockets for each interface; as in the service unit."""
LEAST = 2 * LEAST_RESERVED
"""With fewer, router and clients halve what there is, and clients may get no connection."""
_SHORT = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


def provide(log: Any) -> None:  # noqa: ANN401 - structlog's filtering logger has no public type
    """Raise the limit of open descriptors, and warn if it stays too low."""
    limit = raise_limit()
    if limit != resource.RLIM_INFINITY and limit < LEAST:
        effect = "clients may get no connection (LimitNOFILE=, ulimit -n)"
        log.warning("few-descriptors", limit=limit, least=LEAST, effect=effect)


def raise_limit() -> int:
    """Raise the soft limit of open descriptors toward the hard one; return the present limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # a sandbox forbids it: the limit stays
        return soft
    return wanted


def is_shortage(error: BaseException | None) -> bool:
    """Whether an error is due to a lack of descriptors or kernel memory."""
    return isinstance(error, OSError) and error.errno in _SHORT
