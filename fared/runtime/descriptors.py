"""Which descriptors of the process are for its clients, and which are kept for the router."""

from __future__ import annotations

import resource

LEAST_RESERVED = 128
"""Descriptors for the router, if there are twice as many."""
_UNLIMITED = 1 << 20


def ceiling() -> int:
    """Return the lowest descriptor number that clients do not get.

    Above it is a quarter of the limit (RLIMIT_NOFILE), at least 128 but never more than half.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        limit = _UNLIMITED
    return limit - min(max(LEAST_RESERVED, limit // 4), limit // 2)
