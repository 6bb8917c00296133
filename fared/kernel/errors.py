"""Exceptions of this package; other failures are results, counted and reported."""

from __future__ import annotations


class PrivilegeError(RuntimeError):
    """The process lacks a capability that it needs.

    ``missing`` names it (``CAP_NET_ADMIN``, ``CAP_NET_RAW``); the text states the purpose.
    """

    def __init__(self, missing: str, purpose: str) -> None:
        super().__init__(
            f"no permission to {purpose}: {missing} is missing"
            " (run as root, or give the service AmbientCapabilities)"
        )
        self.missing = missing


class NetlinkError(OSError):
    """The kernel refused a request: ``errno`` and its text (extended ack)."""


class InterruptedDumpError(OSError):
    """The table changed during each of several attempts to read it."""
