"""BFD in the daemon: it asks ``fared-bfd`` for the sessions that protocols want.

The module is imported with the first session. Each protocol learns the status of its sessions; of
two protocols with the same neighbor, both share a session with the shorter times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fared.core.bfd import BfdChanged, BfdStatus, BfdWanted, SessionSettings
from fared.daemon.services.bfd_process import BfdSupervisor
from fared.protocols.bfd.messages import (
    Answer,
    CloseSession,
    OpenSession,
    Report,
    SessionKey,
    SessionReport,
    StateChange,
    Trouble,
)
from fared.protocols.bfd.packet import State, diagnostic_label
from fared.router import events

Feed = Callable[..., None]


class BfdClient:
    """The sessions wanted, by key and protocol, and their present status."""

    def __init__(
        self,
        feed: Feed,
        soon: Callable[..., object],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
    ) -> None:
        """``soon`` calls a function in the next turn of the loop."""
        self.supervisor = BfdSupervisor(self._answered, self._everything, self._request, log)
        self.reports: dict[SessionKey, SessionReport] = {}
        self.discarded: dict[str, int] = {}
        self._feed, self._soon, self._log = feed, soon, log
        self._wanted: dict[SessionKey, dict[str, BfdWanted]] = {}
        self._last: dict[SessionKey, StateChange] = {}
        self._status: dict[SessionKey, BfdStatus] = {}
        self._collected: dict[SessionKey, SessionReport] = {}

    def want(self, proto: str, wanted: BfdWanted) -> None:
        """Process the wish of a protocol."""
        key = SessionKey(wanted.ifindex, wanted.remote)
        users = self._wanted.setdefault(key, {})
        if wanted.settings is None:
            users.pop(proto, None)
        else:
            users[proto] = wanted
            # it may be up already, for the other protocol
            status = self._status.get(key)
            if status is not None:
                changed = BfdChanged(key.ifindex, key.remote, status)
                self._soon(self._feed, events.To(proto, changed))
        if not users:
            del self._wanted[key]
            for table in (self._last, self._status, self.reports):
                table.pop(key, None)
        self.supervisor.sync(key)

    def sessions(self) -> dict[SessionKey, dict[str, BfdWanted]]:
        """Return the sessions that protocols want."""
        return self._wanted

    def last(self, key: SessionKey) -> StateChange | None:
        """Return the last change of a session."""
        return self._last.get(key)

    def stop(self) -> None:
        """End the process, which tells the neighbors that this is no failure."""
        self.supervisor.stop()

    # -- the supervisor's view --------------------------------------------------------------

    def _everything(self) -> list[SessionKey]:
        return list(self._wanted)

    def _request(self, key: SessionKey) -> OpenSession | CloseSession:
        """Return the request that brings a session to what is wanted."""
        users = self._wanted.get(key)
        if not users:
            return CloseSession(key)
        first = next(iter(users.values()))
        last = self._last.get(key)
        resume = None
        if last is not None and last.state is last.remote_state is State.UP:
            resume = (last.local_discr, last.remote_discr)
        return OpenSession(key, first.interface, first.local, shortest(users), resume)

    def _answered(self, answer: Answer) -> None:
        match answer:
            case StateChange():
                self._changed(answer)
            case Report(sessions, discarded, last):
                self._collected.update((report.key, report) for report in sessions)
                if last:
                    self.reports, self._collected = self._collected, {}
                    self.discarded = discarded
            case Trouble(level, event, fields):
                getattr(self._log, level if level == "warning" else "error")(event, **fields)

    def _changed(self, change: StateChange) -> None:
        """Report another state of a session to the log and to all protocols that want it."""
        users = self._wanted.get(change.key)
        if users is None:  # no longer wanted
            return
        self._last[change.key] = change
        status = status_of(change)
        before = self._status.get(change.key)
        if status is before or (before is None and status is BfdStatus.DOWN):
            return
        self._status[change.key] = status
        reason = _reason(change)
        interface = next(iter(users.values())).interface
        write = self._log.warning if status is BfdStatus.DOWN else self._log.info
        fields = {"reason": reason} if reason else {}
        write("bfd-session", interface=interface, state=status.value, **fields)
        key = change.key
        changed = BfdChanged(key.ifindex, key.remote, status, reason, change.independent)
        for proto in list(users):
            self._feed(events.To(proto, changed))


def status_of(change: StateChange) -> BfdStatus:
    """Return the status for protocols: only Up, Down, and AdminDown of the neighbor count."""
    if change.state is State.UP:
        return BfdStatus.UP
    # RFC 5882 §4.2: Down, and the neighbor is in AdminDown
    if change.remote_state is State.ADMIN_DOWN:
        return BfdStatus.ADMIN_DOWN
    return BfdStatus.DOWN


def _reason(change: StateChange) -> str:
    if change.state is State.UP:
        return ""
    return diagnostic_label(change.diagnostic)


def shortest(users: dict[str, BfdWanted]) -> SessionSettings:
    """Return the settings of a session for all its users: the shortest times."""
    found = [wanted.settings for wanted in users.values() if wanted.settings is not None]
    return SessionSettings(
        min_tx=min(settings.min_tx for settings in found),
        min_rx=min(settings.min_rx for settings in found),
        multiplier=min(settings.multiplier for settings in found),
        key=next((settings.key for settings in found if settings.key is not None), None),
    )
