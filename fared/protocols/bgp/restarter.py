"""Graceful restart of this router (RFC 4724 §4.1): routes stay until neighbors have told all.

A restart needs no announcement: the process ends without a NOTIFICATION, and its kernel forwards.
The next process tells that it has restarted, and tells neighbors nothing before it knows all.
"""

from __future__ import annotations

from msgspec.structs import replace

from fared.core.timers import Timer
from fared.protocols.bgp.instance import BgpInstance
from fared.protocols.bgp.neighbor import BgpSpeaker
from fared.protocols.bgp.packet.capabilities import RestartFlags
from fared.protocols.igp.events import GracefulRestartBegun
from fared.protocols.igp.restart import COMPLETED, RestartEnded, end_restart


class BgpRestarter:
    """Decides when a restart is over."""

    def __init__(self, instance: BgpInstance) -> None:
        self._instance = instance
        self.began = 0.0
        self.planned = False
        self._timer: Timer | None = None
        self.last: RestartEnded | None = None

    def begin(self, event: GracefulRestartBegun) -> None:
        """This router has restarted, and its routes are still in the kernel."""
        instance, process = self._instance, self._instance.process
        restart = instance.settings.graceful_restart
        if not restart.enabled:
            return
        self.began, self.planned = process.now, event.planned
        # RFC 4724 §4.1: the Selection_Deferral_Timer
        until = process.now + min(event.remaining, restart.restart_time)
        instance.restarting_until = until
        self._timer = process.timers.arm(until, self._expired)

    @property
    def until(self) -> float:
        """When it ends at the latest; in the past if this router does not restart."""
        return self._instance.restarting_until or 0.0

    def settle(self) -> None:
        """End the restart once every neighbor has told all its routes."""
        instance = self._instance
        if instance.restarting_until is None or not instance.neighbors:
            return
        expected = [one for one in instance.neighbors.values() if one.settings.enabled]
        if not any(map(_awaited, expected)):
            self._end(COMPLETED)

    def _expired(self) -> None:
        late = [one.name for one in self._instance.neighbors.values() if _awaited(one)]
        self._end(f"not all neighbors have told their routes: {', '.join(late)}")

    def _end(self, result: str) -> None:
        instance = self._instance
        instance.process.timers.cancel(self._timer)
        instance.restarting_until = None
        for neighbor in instance.neighbors.values():
            if neighbor.session is not None:
                settings = neighbor.session.settings
                neighbor.session.settings = replace(settings, restarting=False)
        self.last = end_restart(instance.process, self.began, result, planned=self.planned)
        instance.wake()


def _awaited(neighbor: BgpSpeaker) -> bool:
    """Whether a neighbor is to come, or to say that it has told all (RFC 4724 §4.1).

    One that restarts, too, waits for this router; one without graceful restart need not say it.
    """
    if neighbor.agreed is None:
        return True
    restart = neighbor.agreed.restart
    says = restart is not None and not restart.flags & RestartFlags.RESTARTED
    return says and bool(neighbor.unended)
