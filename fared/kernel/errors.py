"""What the kernel room raises; everything else is an answer, counted and reported."""

from __future__ import annotations


class PrivilegeError(RuntimeError):
    """The process lacks a capability it cannot work without.

    ``missing`` names it (``CAP_NET_ADMIN``, ``CAP_NET_RAW``); the text says what it was for.
    """

    def __init__(self, missing: str, purpose: str) -> None:
        super().__init__(
            f"no permission to {purpose}: {missing} is missing"
            " (run as root, or give the service AmbientCapabilities)"
        )
        self.missing = missing


class NetlinkError(OSError):
    """The kernel refused a request: ``errno`` and the text it gave (extended ack)."""


class InterruptedDumpError(OSError):
    """The table changed during every one of several attempts to read it."""
