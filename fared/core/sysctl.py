"""A kernel setting that weighted forwarding depends on, as the daemon reports it."""

from __future__ import annotations

import msgspec


class SysctlRow(msgspec.Struct, frozen=True):
    """One line of the report.

    ``found``: the value before any change, None where the kernel has no such setting. ``action``:
    ``none`` (correct), ``set``, ``left`` (mode check, or another program keeps writing another
    value), ``failed``, ``missing``, ``unread``. ``error``: why it could not be set or read.
    """

    name: str
    wanted: str
    found: str | None
    action: str
    ok: bool
    why: str
    error: str | None = None
