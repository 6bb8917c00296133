"""Jobs whose workers are in several areas or levels: between what is flooded and ``JobManager``.

``areas`` has what is flooded where, and what border routers tell; ``border`` what this router
passes on. To the manager, heads, routers and links of other areas are as those of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fared.core.ids import NodeId
from fared.core.wire import DecodeError
from fared.extensions.ina.control.areas import Areas, JobArea
from fared.extensions.ina.control.border import JobBorder, JobsHere
from fared.extensions.ina.control.manager import JobManager
from fared.extensions.ina.control.network import JobNetwork

_MOST_HOSTS = 1 << 16


class WideJobs:
    """The jobs of several areas at one router. ``limit`` is the most bytes of an item."""

    def __init__(self, node: NodeId, limit: int, manager: JobManager) -> None:
        self._manager = manager
        self.areas = Areas(node)
        self.border = JobBorder(self.areas, limit)
        self.hostnames: dict[NodeId, str] = {}
        """Those that routers of our areas advertise."""
        self._hosts: dict[str, NodeId | None] = {}
        """Who has a worker in our areas, as far as that is known; None: nobody."""
        self._asked: set[str] = set()

    def learned(self, area: int, node: NodeId, key: int, value: bytes | None) -> None:
        """Take what a router floods in an area. Raises DecodeError."""
        self.areas.learned(area, node, key, value)

    def network_changed(self, areas: Iterable[JobArea], whole: JobNetwork) -> None:
        """Links of our areas may have changed; ``whole`` is the network of all of them."""
        self.areas.network_changed(areas, whole)

    def tell_manager(self, refused: Callable[[NodeId, DecodeError], None]) -> None:
        """Give the manager what has come since the last time."""
        for node, key, value in self.areas.take_changes():
            try:
                self._manager.learned(node, key, value)
            except DecodeError as error:
                refused(node, error)
        self._manager.told_of_beyond(self.areas.capabilities())
        whole = self.areas.whole()
        if whole is not self._manager.network:
            self._manager.network_changed(whole)

    def flooded(self) -> tuple[dict[int, bytes], dict[int, dict[int, bytes]]]:
        """Return what to flood in all areas, and in one each."""
        return self._manager.items() | self.border.wished(), self.border.passed(self._here())

    def _here(self) -> JobsHere | None:
        """Return what is known of jobs; None: nothing of jobs of several areas."""
        crossing = self._manager.crossing
        if self.areas.alone and not crossing:
            return None
        hosts = {address: leaf for address, leaf in self._hosts.items() if leaf is not None}
        return JobsHere(self._manager.offered, hosts, crossing, self.hostnames)

    # -- workers --------------------------------------------------------------------------------

    def to_find(self) -> list[str]:
        """Return workers whose routers the daemon is to find, once each."""
        here = self._here()
        wanted = set[str]() if here is None else self.border.addresses(here)
        fresh = sorted(wanted - self._hosts.keys() - self._asked)
        self._asked.update(fresh)
        if len(self._hosts) > _MOST_HOSTS:
            self._hosts = {at: leaf for at, leaf in self._hosts.items() if at in wanted}
        return fresh

    def found(self, hosts: Mapping[str, NodeId | None]) -> None:
        """Take the routers of workers in our areas."""
        self._asked -= hosts.keys()
        self._hosts |= hosts

    def forget_unknown(self) -> None:
        """Look again for workers that nobody had."""
        self._hosts = {at: leaf for at, leaf in self._hosts.items() if leaf is not None}

    def is_wide(self, leaves: Iterable[NodeId | None]) -> bool:
        """Whether one of some routers is in none of our areas."""
        return any(leaf not in self.areas.here for leaf in leaves)

    def router_of(self, address: str) -> NodeId | None:
        """Return the router of a worker in another area; None: nobody tells of it."""
        return self.areas.hosts().get(address)
