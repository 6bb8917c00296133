"""Watches links for errors and flaps, and derates or damps those that are sick.

Created only if ``link-health`` names interfaces. In mode monitor nothing follows but a log line and
what ``show interfaces`` tells. FEC counters are read beside the event loop: a driver may ask its
firmware.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from fared.config.link_health import HealthOptions, LinkHealth
from fared.core.damping import Damping
from fared.core.link_errors import ErrorCounters, LinkErrors
from fared.core.link_facts import KERNEL_PLATFORM, LinkPlatform
from fared.core.links import Link
from fared.daemon.loop.rate_limited import RateLimitedLog
from fared.kernel.error_counters import read_error_counters
from fared.kernel.fec_counters import FecCounters
from fared.management.documents.link import Derated, LinkHealthStatus

BY = "link-health"


class _WatchedLink(msgspec.Struct, eq=False):
    """One link: its options, judgments, and when its share last changed (Unix time)."""

    options: HealthOptions
    errors: LinkErrors
    damping: Damping
    since: float = 0.0

    @property
    def acts(self) -> bool:
        return self.options.mode == "act"


class FecSource(Protocol):
    """What ``FecCounters`` does, for tests also from elsewhere."""

    def may_have(self, ifindex: int) -> bool:
        """Whether an interface has FEC counters, as far as is known."""

    def forget(self, ifindex: int) -> None:
        """Ask an interface again."""

    def read(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """Return the counters by interface. Raises OSError."""


class FecReader:
    """Uncorrectable blocks by link, since the first reading of the link.

    ``look`` begins a reading, unless one is in progress or no link has counters; the next ``look``
    finds its result. ``failed`` is called with an error.
    """

    def __init__(self, failed: Callable[[OSError], None], source: FecSource | None = None) -> None:
        self._failed = failed
        self._source: FecSource = FecCounters() if source is None else source
        self._last: dict[str, int] = {}
        self._counted: dict[str, int] = {}
        self._reading: asyncio.Task[None] | None = None

    def errors(self, name: str) -> int:
        """Blocks of a link that could not be corrected; 0 where there are no counters."""
        return self._counted.get(name, 0)

    def forget(self, ifindex: int) -> None:
        """Ask an interface again, since it came up."""
        self._source.forget(ifindex)

    def look(self, wanted: Mapping[str, int]) -> None:
        """Begin a reading of these links: ifindex by name."""
        asked = {name: index for name, index in wanted.items() if self._source.may_have(index)}
        for name in self._last.keys() - asked.keys():
            del self._last[name]
        if asked and (self._reading is None or self._reading.done()):
            self._reading = asyncio.get_running_loop().create_task(self._read(asked))

    async def _read(self, asked: Mapping[str, int]) -> None:
        try:
            found = await asyncio.to_thread(self._source.read, asked)
        except OSError as error:
            self._failed(error)
            return
        for name, count in found.items():
            # less than before: the driver has begun anew
            more = max(0, count - self._last.get(name, count))
            self._counted[name] = self._counted.get(name, 0) + more
        self._last = found


class LinkWatch:
    """All links that are watched. ``changed`` is called with links whose treatment changed.

    ``clock``: seconds of the loop. ``log`` is structlog's, which has no public type. ``fec``:
    another reader of FEC counters than the kernel's. ``platform``: what counts errors beside it.
    """

    def __init__(
        self,
        section: LinkHealth,
        links: Callable[[], Mapping[int, Link]],
        changed: Callable[[Link], None],
        clock: Callable[[], float],
        log: Any,  # noqa: ANN401
        *,
        fec: FecReader | None = None,
        platform: LinkPlatform | None = None,
    ) -> None:
        self._platform = KERNEL_PLATFORM if platform is None else platform
        self._section = section
        self._links = links
        self._changed = changed
        self._clock = clock
        self._log = log
        self._not_read = RateLimitedLog(log.warning, "error-counters-not-read")
        self._watched: dict[str, _WatchedLink] = {}
        self._fec = FecReader(self._fec_failed) if fec is None else fec

    def configure(self, section: LinkHealth) -> None:
        """Apply other settings; links whose options are the same keep their history."""
        before, self._section = self._watched, section
        self._watched = {
            name: watched
            for name, watched in before.items()
            if section.options(name) == watched.options
        }
        for link in list(self._links().values()):
            if link.name in before and link.name not in self._watched:
                self._changed(link)

    # -- what follows -----------------------------------------------------------------------

    def share(self, name: str) -> float:
        """The part of a link's capacity that may be used."""
        watched = self._watched.get(name)
        return watched.errors.share if watched is not None and watched.acts else 1.0

    def suppressed(self, name: str) -> bool:
        """Whether a link stays down although it has a carrier."""
        watched = self._watched.get(name)
        return watched is not None and watched.acts and watched.damping.suppressed

    def derating(self, name: str) -> Derated | None:
        """Why less than the capacity of a link is advertised; None: it is not."""
        watched = self._watched.get(name)
        if watched is None or not watched.acts or watched.errors.share >= 1.0:
            return None
        return Derated(
            by=BY,
            share=watched.errors.share,
            at=watched.since,
            reason=watched.errors.reason,
        )

    def facts(self, name: str) -> LinkHealthStatus | None:
        """The judgment of a link for views; None: it is not watched."""
        watched, now = self._watched.get(name), self._clock()
        if watched is None:
            return None
        errors = watched.errors.errors
        return LinkHealthStatus(
            mode=watched.options.mode,
            errors=errors.errors,
            packets=errors.packets,
            share=watched.errors.share,
            reason=watched.errors.reason,
            recovers_in=round(watched.errors.recovers_in(now), 3),
            penalty=round(watched.damping.penalty(now), 1),
            suppressed=watched.damping.suppressed,
            reuse_in=round(watched.damping.reuse_in(now), 3),
        )

    # -- what happens -----------------------------------------------------------------------

    def link_changed(self, link: Link, previous: Link | None) -> None:
        """Count losses of the carrier. They are not delayed: only coming up may be."""
        watched = self._watch(link.name)
        if watched is None or previous is None:
            return
        if link.up and not previous.up:
            self._fec.forget(link.ifindex)
        losses = _losses(link, previous)
        if not losses:
            return
        now, before = self._clock(), watched.damping.suppressed
        watched.damping.flapped(now, losses)
        if watched.damping.suppressed and not before:
            seconds = round(watched.damping.reuse_in(now), 1)
            self._log.warning(
                "link-suppressed", interface=link.name, mode=watched.options.mode, seconds=seconds
            )

    def check(self) -> None:
        """Read the counters, judge, and release links whose penalty has decayed."""
        now, links = self._clock(), {link.name: link for link in self._links().values()}
        found = {name: watched for name in links if (watched := self._watch(name)) is not None}
        self._watched = found
        self._fec.look({name: links[name].ifindex for name, w in found.items() if w.options.fec})
        counters = self._counters()
        for name, watched in found.items():
            released = watched.damping.released(now)
            if released:
                self._log.info("link-released", interface=name, mode=watched.options.mode)
            judged = name in counters and watched.errors.sample(counters[name], now)
            if judged:
                self._tell(name, watched)
            if watched.acts and (released or judged):
                self._changed(links[name])

    def _counters(self) -> Mapping[str, ErrorCounters]:
        """Counters by interface. If they cannot be read, judgments stay as they are."""
        file = Path(self._section.counters)
        drops = {watched.options.drops for watched in self._watched.values()}
        try:
            found = {kind: read_error_counters(file, drops=kind) for kind in drops}
        except OSError as error:
            self._not_read(file=str(file), error=error.strerror or str(error))
            return {}
        counters = {
            name: self._with_fec(name, found[watched.options.drops][name])
            for name, watched in self._watched.items()
            if name in found[watched.options.drops]
        }
        return self._with_platform(counters)

    def _with_platform(self, counters: Mapping[str, ErrorCounters]) -> Mapping[str, ErrorCounters]:
        """Take the platform's counters of links whose packets the kernel does not see."""
        found, platform = dict(counters), self._platform
        for name, watched in self._watched.items():
            if platform.counts(name):
                options = watched.options
                known = platform.errors(name, drops=options.drops, fec=options.fec)
                found.pop(name, None)
                if known is not None:
                    found[name] = known
        return found

    def _with_fec(self, name: str, counters: ErrorCounters) -> ErrorCounters:
        """Add the blocks that FEC could not correct: each of them damaged a frame, or several."""
        return counters._replace(errors=counters.errors + self._fec.errors(name))

    def _fec_failed(self, error: OSError) -> None:
        self._not_read(file="ethtool", error=error.strerror or str(error))

    def _watch(self, name: str) -> _WatchedLink | None:
        watched = self._watched.get(name)
        if watched is None and (options := self._section.options(name)) is not None:
            judge = LinkErrors(options.error_settings())
            watched = _WatchedLink(options, judge, Damping(options.damping.settings()))
            self._watched[name] = watched
        return watched

    def _tell(self, name: str, watched: _WatchedLink) -> None:
        watched.since = time.time()
        errors, mode = watched.errors, watched.options.mode
        if errors.share < 1.0:
            self._log.warning(
                "link-sick", interface=name, mode=mode, share=errors.share, reason=errors.reason
            )
        else:
            self._log.info("link-well", interface=name, mode=mode)


def _losses(link: Link, previous: Link) -> int:
    """How often the link was lost: by the kernel's count, which has those nobody was told of too.

    A link that is set down need not lose its carrier.
    """
    return max(link.carrier_losses - previous.carrier_losses, previous.up and not link.up)
