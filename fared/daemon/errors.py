"""Why the daemon cannot run."""

from __future__ import annotations


class DaemonError(Exception):
    """The daemon cannot run; the message is for the operator."""
