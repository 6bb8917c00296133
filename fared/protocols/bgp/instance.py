"""State shared by all parts of one BGP process: settings, links, neighbors, tables.

The parts (``peering``, ``exchange``, ``networks``) know this one; the engine connects them and
dispatches inputs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from fared.core.ids import NodeId
from fared.core.rng import Rng
from fared.core.streams import CloseStream, Connect, ReadStream, SendStream
from fared.core.timers import TimerQueue
from fared.paths.te.advertise import AdvertisedLink
from fared.protocols.bgp.neighbor import BgpSpeaker
from fared.protocols.bgp.rib.decision import DecisionSettings
from fared.protocols.bgp.rib.tables import BgpRib
from fared.protocols.bgp.session import events as session
from fared.protocols.bgp.settings import BgpLinkSettings, BgpSettings
from fared.protocols.igp.process import Process

_STREAMS = (Connect, SendStream, CloseStream, ReadStream)
BgpLink = AdvertisedLink[BgpLinkSettings]
Told = (
    session.SessionEstablished
    | session.SessionDown
    | session.UpdateReceived
    | session.RefreshRequested
    | session.RoomToSend
    | session.MessageRejected
)


class SessionSurroundings:
    """What sessions see of the process: streams are its outputs, all else is told in its turn."""

    def __init__(self, process: Process[Any]) -> None:
        self._process = process
        self.timers: TimerQueue = process.timers
        self.rng: Rng = process.rng
        self.told: deque[Told] = deque()

    @property
    def now(self) -> float:
        """The time."""
        return self._process.now

    def emit(self, output: session.Output) -> None:
        """Pass on what is for a stream, and keep the rest."""
        if isinstance(output, _STREAMS):
            self._process.emit(output)
        else:
            self.told.append(output)


class BgpInstance:
    """The state of one BGP speaker."""

    def __init__(self, settings: BgpSettings, rng: Rng) -> None:
        self.settings = settings
        self.process: Process[Any] = Process("bgp", settings.epoch, rng, self._show)
        self.surroundings = SessionSurroundings(self.process)
        self.links: dict[int, BgpLink] = {}
        """Those that are up, by ifindex."""
        self.neighbors: dict[int, BgpSpeaker] = {}
        """By number."""
        self.restarting_until: float | None = None
        """This router restarts: until neighbors have told all, or this time."""
        decision = decision_settings(settings)
        self.ribs = {
            family: BgpRib(self.root, settings.local_as, family, decision)
            for family in settings.families
        }
        self.since: float | None = None
        """When the first change came that is not in the graph yet."""
        self.cause = ""
        """Of that change, for people."""
        self.urgent = False
        """Whether a neighbor was lost: the graph is told at once."""
        self.wake: Callable[[], None] = _nothing
        """Has the engine work in its next turn."""

    @property
    def root(self) -> NodeId:
        """This router's node in the graph."""
        return NodeId(self.settings.router_id)

    def _show(self, number: int) -> str:
        found = self.neighbors.get(number)
        return "" if found is None else found.name

    def changed(self, cause: str) -> None:
        """Routes, or a link, are others."""
        if self.since is None:
            self.since, self.cause = self.process.now, cause

    def up(self) -> Iterator[BgpSpeaker]:
        """The neighbors whose sessions are established."""
        return (one for one in self.neighbors.values() if one.agreed is not None)


def decision_settings(settings: BgpSettings) -> DecisionSettings:
    """Return how the tables decide."""
    return DecisionSettings(settings.max_paths, settings.relax, settings.follows_load)


def _nothing() -> None:
    """Not connected yet."""
