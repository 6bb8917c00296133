"""The document of the daemon's resources and the sizes of its tables."""

from __future__ import annotations

from typing import TypedDict

from fared.management.documents.schema.common import JsonDocument, Seconds


class TableSize(TypedDict):
    """The number of ``entries`` of a ``table``: lsdb, ted, prefixes, rib, routes, groups and so on.

    ``area`` (of ``proto``) where there is one for each, else None. ``limit`` of ``entries``, and
    how full the table is: ``room``, ``warning`` (three quarters), ``full`` (it ignores what is
    new); None: unlimited. ``ignored`` LSAs, LSPs or prefixes, and how often it was full, since the
    start.
    """

    table: str
    proto: str | None
    area: str | None
    entries: int
    limit: int | None
    state: str | None
    ignored: int
    times_full: int


class Memory(JsonDocument):
    """``show memory``. Argument ``proto`` narrows ``tables`` to those of a protocol."""

    cpu: Seconds
    """User and system time since start."""
    resident: int
    """Bytes of memory now."""
    peak_resident: int
    descriptors: int
    """The number of open descriptors."""
    client_descriptors: int
    """Clients are refused from this number on: the rest is for the router's own sockets."""
    descriptor_limit: int | None
    """None: unlimited."""
    event_loop_lag: Seconds
    tables: list[TableSize]
