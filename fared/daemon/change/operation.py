"""The settings of router and links: those of the file, what is out of service, the wall clock.

Engines use the time of the event loop; key lifetimes and saved sequence numbers are of the wall
clock, which may be set. So the settings contain the wall clock's offset, and the boot count of the
router (RFC 7474 §3).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from fared.config import Config
from fared.core.ids import format_node
from fared.core.link_facts import LinkPlatform
from fared.core.links import Link
from fared.daemon.change.boot_count import BootCount
from fared.daemon.change.drains import Drain, Drains
from fared.daemon.change.machine import system_hostname
from fared.daemon.change.settings import counts_boots, link_events, router_settings
from fared.daemon.loop.runtime import RunningConfig
from fared.management.api.caller import CALLER
from fared.management.documents.errors import CommandError
from fared.management.documents.link import Derated, LinkHealthStatus
from fared.management.documents.operation import DrainDocument, LimitsDocument
from fared.protocols.igp import events as igp
from fared.router import events
from fared.router.router import Router
from fared.router.settings import RouterSettings

if TYPE_CHECKING:
    from fared.daemon.services.link_health import LinkWatch
    from fared.management.api.requests import DrainRequest

CLOCK_TOLERANCE = 1.0
"""Seconds of drift between wall clock and loop clock after which the engines get a new offset."""


class Operation:
    """Passes the router its settings after any change.

    ``router_id`` is the one that the daemon resolved, 0 if none is needed; ``router`` and ``feed``
    are used once it has its first settings.
    """

    def __init__(
        self,
        running: RunningConfig,
        router_id: int,
        links: Callable[[], Mapping[int, Link]],
        *,
        router: Callable[[], Router],
        feed: Callable[[Iterable[events.Input]], None],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        platform: LinkPlatform | None = None,
    ) -> None:
        self._platform = platform
        self.router_id = router_id
        self._running, self._links, self._log = running, links, log
        self._router, self._feed = router, feed
        self._boot_count = BootCount(running.config.state_directory, log)
        self.drains = Drains(running.config.state_directory, log)
        self.watch: LinkWatch | None = None
        """Judges links; None: none is watched."""
        self._epoch = 0.0
        """Unix time at the loop's time 0, as last passed to the engines."""

    @property
    def hostname(self) -> str:
        """The advertised hostname."""
        return self._running.config.hostname or system_hostname()

    def settings(self) -> RouterSettings:
        """The present settings."""
        config, wall_ns = self._running.config, time.time_ns()
        settings = router_settings(config, self.router_id, self.hostname)
        if self.drains.router is not None:
            settings = settings.drain()
        self._epoch = wall_ns / 1e9 - asyncio.get_running_loop().time()
        boots = self._boot_count.begin(wall_ns) if counts_boots(config) else 0
        return settings.with_clock(self._epoch, boots)

    def apply(self) -> None:
        """Pass the present settings to the router."""
        self._feed([events.RouterSettingsApplied(self.settings())])

    def share(self, name: str) -> float:
        """The part of a link's capacity that is advertised, 1 unless it is derated."""
        drain = self.drains.links.get(name)
        drained = 1.0 if drain is None else drain.share
        return drained if self.watch is None else min(drained, self.watch.share(name))

    def deratings(self, name: str) -> list[Derated]:
        """Why the advertised capacity of a link is less than it could be."""
        drain = self.drains.links.get(name)
        found = [] if drain is None else [_derating(drain)]
        sick = None if self.watch is None else self.watch.derating(name)
        return found if sick is None else [*found, sick]

    def link_health(self, name: str) -> LinkHealthStatus | None:
        """How a link is; None: it is not watched."""
        return None if self.watch is None else self.watch.facts(name)

    def watch_links(self) -> None:
        """Watch the links that ``link-health`` names, or end that."""
        section = self._running.config.link_health
        if self.watch is not None:
            self.watch.configure(section)
        elif section.interfaces:
            from fared.daemon.services.link_health import LinkWatch  # noqa: PLC0415 - most watch none

            clock = asyncio.get_running_loop().time
            self.watch = LinkWatch(
                section,
                self._links,
                self._treated,
                clock,
                self._log,
                platform=self._platform,
            )

    @property
    def watches_links(self) -> bool:
        """Whether any link is watched for errors and flaps."""
        return self.watch is not None

    def check_links(self) -> None:
        """Judge the links that are watched."""
        if self.watch is not None:
            self.watch.check()

    def _treated(self, link: Link) -> None:
        self._feed(self.link_events(link))

    def link_changed(self, link: Link, previous: Link | None) -> list[events.Input]:
        """A link changed in the kernel: return its events."""
        if self.watch is not None:
            self.watch.link_changed(link, previous)
        return self.link_events(link)

    @property
    def drained(self) -> Derated | None:
        """Who has drained this router, and why."""
        drain = self.drains.router
        return None if drain is None else _derating(drain)

    def link_events(self, link: Link, config: Config | None = None) -> list[events.Input]:
        """The events of a link, by default for the running configuration."""
        if self.watch is not None and link.up and self.watch.suppressed(link.name):
            link = replace(link, up=False)
        return link_events(config or self._running.config, link, self.share(link.name))

    def drain(self, asked: DrainRequest) -> DrainDocument:
        """Drain the router, or lower the capacity of a link. Raises CommandError.

        A drained router is a stub router (RFC 6987) and has the overload bit (ISO 10589 §7.2.8.1).
        """
        drain = Drain(CALLER.get(), time.time(), asked.reason, asked.share or 0.0)
        return self._set_drain(asked.interface, drain)

    def undrain(self, interface: str | None) -> DrainDocument:
        """Put the router, or a link, back into service. Raises CommandError."""
        return self._set_drain(interface, None)

    def _set_drain(self, interface: str | None, drain: Drain | None) -> DrainDocument:
        known = {link.name: link for link in self._links().values()}
        event = "undrain" if drain is None else "drain"
        what: dict[str, Any] = {} if drain is None else {"user": drain.user, "reason": drain.reason}
        if interface is None:
            lost = self.drains.set_router(drain)
            self._log.info(event, **what)
            self.apply()
            return _answer(None, drain, lost)
        if drain is not None:
            self._check_drainable(interface, known)
        elif interface not in known and interface not in self.drains.links:
            raise CommandError("not-found", f"no interface {interface}")
        try:
            lost = self.drains.set_link(interface, drain)
        except ValueError as error:
            raise CommandError("busy", str(error)) from None
        if drain is not None:
            what |= {"share": drain.share}
        self._log.info(event, interface=interface, **what)
        if interface in known:
            self._feed(self.link_events(known[interface]))
        return _answer(interface, drain, lost)

    def _check_drainable(self, name: str, known: Mapping[str, Link]) -> None:
        """Check that a link leads to routers, which may avoid it. Raises CommandError."""
        sections = self._running.config.protocols.values()
        links = sorted(n for n, link in known.items() if not link.loopback and self._carries(link))
        hint = f"; links to routers: {', '.join(links)}" if links else ""
        if name not in known:
            raise CommandError("not-found", f"no interface {name}{hint}")
        found = [entry[1] for section in sections if (entry := section.on(known[name]))]
        if not found or known[name].loopback:
            raise CommandError("unsupported", f"no protocol has neighbors on {name}{hint}")
        if not any(settings.expects_neighbors for settings in found):
            raise CommandError("unsupported", f"{name} is passive: it leads to no router{hint}")

    def _carries(self, link: Link) -> bool:
        sections = self._running.config.protocols.values()
        found = (section.on(link) for section in sections)
        return any(entry is not None and entry[1].expects_neighbors for entry in found)

    async def retire(self) -> None:
        """Before a shutdown: keep transit traffic away for the time that is configured."""
        times = {n: part.drained_on_shutdown for n, part in self._running.config.protocols.items()}
        waits = {name for name, seconds in times.items() if seconds > 0.0}
        if waits:
            settings = self._router().settings.drain_some(waits)
            self._log.info("drain", reason="shutdown", seconds=max(times.values()))
            self._feed([events.RouterSettingsApplied(settings)])
            await asyncio.sleep(max(times.values()))

    def clear_neighbor(self, proto: str, interface: str, cleared: igp.NeighborCleared) -> None:
        """End the adjacency with a neighbor, which forms again; or have its routes told again."""
        who = {"neighbor": format_node(cleared.node), "user": CALLER.get()}
        soft = {"soft": True} if cleared.soft else {}
        self._log.info("neighbor-cleared", proto=proto, interface=interface, **who, **soft)
        self._feed([events.To(proto, cleared)])

    def clear_limits(self) -> LimitsDocument:
        """Zero the counts of full databases, and ask neighbors again for what was ignored."""
        self._log.info("limits-cleared")
        self._feed([igp.LimitsReset()])
        return LimitsDocument(cleared=True)

    def check_clock(self) -> None:
        """Pass on a wall clock that was set, and store the boot count of the engines."""
        for instance in self._router().instances.values():
            self._boot_count.follow(instance.engine.boot_count)
        set_by = time.time() - asyncio.get_running_loop().time() - self._epoch
        if abs(set_by) > CLOCK_TOLERANCE:
            self._log.info("clock-was-set", seconds=round(set_by, 3))
            self.apply()


def _answer(interface: str | None, drain: Drain | None, lost: str | None) -> DrainDocument:
    """Answer of both commands; ``lost``: why a restart will undo it."""
    return DrainDocument(
        drained=drain is not None,
        interface=interface,
        share=None if drain is None or interface is None else drain.share,
        reason="" if drain is None else drain.reason,
        not_kept=lost,
    )


def _derating(drain: Drain) -> Derated:
    """Return a drain as views show it."""
    return Derated.of(drain, by=drain.user)
