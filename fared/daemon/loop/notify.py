"""Notifies systemd: start-up stage, READY after the FIB is in sync, watchdog."""

from __future__ import annotations

import os

from sdnotify import SystemdNotifier


class Notifier:
    """Writes to $NOTIFY_SOCKET if there is one."""

    def __init__(self) -> None:
        self._systemd = SystemdNotifier() if "NOTIFY_SOCKET" in os.environ else None

    @property
    def watchdog_interval(self) -> float | None:
        """Half of WatchdogSec in seconds, None without a watchdog."""
        usec = os.environ.get("WATCHDOG_USEC", "")
        owner = os.environ.get("WATCHDOG_PID", str(os.getpid()))
        if self._systemd is None or not usec.isdecimal() or owner != str(os.getpid()):
            return None
        return int(usec) / 2e6

    def status(self, text: str) -> None:
        """Show a line in ``systemctl status``."""
        self._say(f"STATUS={text}")

    def ready(self) -> None:
        """Report the end of start-up."""
        self._say("READY=1")

    def alive(self) -> None:
        """Feed the watchdog."""
        self._say("WATCHDOG=1")

    def reloading(self) -> None:
        """Report a reload; ``ready`` ends it."""
        self._say("RELOADING=1")

    def stopping(self) -> None:
        """Report a clean stop."""
        self._say("STOPPING=1")

    def _say(self, message: str) -> None:
        if self._systemd is not None:
            self._systemd.notify(message)
