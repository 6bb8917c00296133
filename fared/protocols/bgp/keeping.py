"""The routes of neighbors that restart, kept until they are told again (RFC 4724 §4.2)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from fared.protocols.bgp.instance import BgpInstance
from fared.protocols.bgp.neighbor import BgpSpeaker
from fared.protocols.bgp.packet.capabilities import KeptFamily
from fared.protocols.bgp.packet.nlri import FAMILIES, UNICAST
from fared.protocols.bgp.session.events import Agreed


class RouteKeeper:
    """Keeps routes, and loses them if they are not told again in time."""

    def __init__(self, instance: BgpInstance) -> None:
        self._instance, self._process = instance, instance.process

    def keep(self, neighbor: BgpSpeaker, reason: str) -> None:
        """Keep the routes of a neighbor whose session is down, as far as it goes on forwarding."""
        restart = None if neighbor.agreed is None else neighbor.agreed.restart
        if restart is None or not self._instance.settings.graceful_restart.helper:
            return
        for family in _families(restart.families):
            rib = self._instance.ribs.get(family)
            if rib is not None and neighbor.number in rib.outs:
                rib.suspend(neighbor.number)
                self._arm(neighbor, family, restart.time)
        if neighbor.stale:
            self._process.log(
                "info",
                "bgp-routes-kept",
                neighbor=neighbor.name,
                reason=reason,
                seconds=restart.time,
            )

    def resume(self, neighbor: BgpSpeaker, agreed: Agreed) -> None:
        """Go on with kept routes when the session is up, if the neighbor has kept forwarding."""
        restart = agreed.restart
        told = () if restart is None else [one for one in restart.families if one.forwarding]
        forwarding = _families(told)
        for family in list(neighbor.stale):
            if family not in agreed.families:
                self.lose(neighbor, family)
            elif family in forwarding:
                self._arm(neighbor, family, self._instance.settings.graceful_restart.stale_time)
            else:
                self._process.timers.cancel(neighbor.stale.pop(family))
                self._forget(neighbor, family)

    def renewed(self, neighbor: BgpSpeaker, family: int) -> None:
        """All routes of a family have been told again."""
        self._process.timers.cancel(neighbor.stale.pop(family, None))

    def lose(self, neighbor: BgpSpeaker, family: int) -> None:
        """Forget the routes of a neighbor at once: its session, or the link to it, is lost."""
        instance = self._instance
        self._process.timers.cancel(neighbor.stale.pop(family, None))
        rib = instance.ribs.get(family)
        if rib is not None and rib.knows(neighbor.number):
            rib.lose(neighbor.number)
            instance.changed(f"session with {neighbor.name}")
            instance.urgent = True
            instance.wake()

    def _arm(self, neighbor: BgpSpeaker, family: int, seconds: float) -> None:
        timers = self._process.timers
        timers.cancel(neighbor.stale.get(family))
        at = self._process.now + seconds
        neighbor.stale[family] = timers.arm(at, partial(self._expired, neighbor, family))

    def _expired(self, neighbor: BgpSpeaker, family: int) -> None:
        """A neighbor has not come back in time, or has not told all of its routes again."""
        self._process.log("warning", "bgp-routes-not-renewed", neighbor=neighbor.name)
        if neighbor.agreed is None:
            self.lose(neighbor, family)
        else:
            del neighbor.stale[family]
            self._forget(neighbor, family)

    def _forget(self, neighbor: BgpSpeaker, family: int) -> None:
        """Forget what the neighbor has not told again."""
        self._instance.ribs[family].table.end_of_rib(neighbor.number)
        self._instance.changed(f"restart of {neighbor.name}")
        self._instance.wake()


def _families(kept: Iterable[KeptFamily]) -> list[int]:
    return [FAMILIES[one.afi] for one in kept if one.safi == UNICAST and one.afi in FAMILIES]
