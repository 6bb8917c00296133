"""What systemd is told: the start-up stage, READY after the FIB is in sync, the watchdog."""

from __future__ import annotations

import os

from sdnotify import SystemdNotifier


class Notifier:
    """Speaks to $NOTIFY_SOCKET where there is one; silent elsewhere."""

    def __init__(self) -> None:
        self._systemd = SystemdNotifier() if "NOTIFY_SOCKET" in os.environ else None

    @property
    def watchdog_interval(self) -> float | None:
        """Half of WatchdogSec in seconds, None where systemd keeps no watchdog on us."""
        usec = os.environ.get("WATCHDOG_USEC", "")
        owner = os.environ.get("WATCHDOG_PID", str(os.getpid()))
        if self._systemd is None or not usec.isdecimal() or owner != str(os.getpid()):
            return None
        return int(usec) / 2e6

    def status(self, text: str) -> None:
        """Show a line in ``systemctl status``."""
        self._say(f"STATUS={text}")

    def ready(self) -> None:
        """Start-up is over."""
        self._say("READY=1")

    def alive(self) -> None:
        """Feed the watchdog."""
        self._say("WATCHDOG=1")

    def reloading(self) -> None:
        """A reload has begun; ``ready`` ends it."""
        self._say("RELOADING=1")

    def stopping(self) -> None:
        """A clean stop has begun."""
        self._say("STOPPING=1")

    def _say(self, message: str) -> None:
        if self._systemd is not None:
            self._systemd.notify(message)
