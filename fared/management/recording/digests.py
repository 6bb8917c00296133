"""Digests of what a router gives out and knows, equal if and only if it is the same.

They are taken over the text of values, which has all of their fields and does not depend on hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from fared.router import events
from fared.router.router import Router

_SIZE: Final = 12
"""Bytes."""


class StateDigests(NamedTuple):
    """Digests of all databases (LSAs or LSPs with their ages) and of all routes and next hops."""

    databases: bytes
    routes: bytes


def outputs_digest(outputs: Sequence[events.Output]) -> bytes:
    """Return the digest of the outputs of one ``take_outputs``."""
    return _digest(repr(outputs))


def state_digests(router: Router, now: float) -> StateDigests:
    """Return the digests of what a router knows at a time."""
    return StateDigests(_digest(databases_text(router, now)), _digest(routes_text(router)))


def databases_text(router: Router, now: float) -> str:
    """Return the databases of all protocols as text, one on each line."""
    return "\n".join(
        f"{name} {database}"
        for name, instance in router.instances.items()
        for database in instance.engine.databases_text(now)
    )


def routes_text(router: Router) -> str:
    """Return all routes, and what is wanted in the kernel and installed there, as text."""
    installed = router.planner.installed
    tables = (router.table.routes, installed.nexthops, installed.groups, installed.routes)
    return "\n".join(repr(item) for table in tables for item in sorted(table.items(), key=_key))


def _key(item: tuple[Any, Any]) -> Any:  # noqa: ANN401 - a prefix or an id
    return item[0]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=_SIZE).digest()
