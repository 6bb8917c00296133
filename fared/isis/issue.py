"""Issuing our LSPs one by one: throttle, refresh, and answers to LSPs of a former life.

Nothing here knows what an LSP says: ``wanted`` is asked when its time has come. One that is not
wanted (any more) is purged. Whatever others claim in our name costs no more LSPs than a
flapping link does, since every answer waits for the throttle of its LSP. Sequence numbers are
the business of flooding, which hears what others have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fared.core.throttle import Throttle
from fared.core.timers import Timer
from fared.isis.flooding import Flooding
from fared.isis.ids import Level, LevelSet, LspId
from fared.isis.instance import Instance
from fared.isis.pdu.model import Lsp, Tlv

_LEVEL_1, _LEVEL_2 = 1, 3
"""What kind of router this is (ISO 10589 §9.8)."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one LSP is to say."""

    tlvs: tuple[Tlv, ...]
    overload: bool = False
    attached: bool = False


@dataclass(slots=True)
class _Own:
    """One LSP id of ours: what was issued last under it, and when the next may be."""

    throttle: Throttle
    issued: Wanted | None = None
    forced: bool = False
    requested_at: float | None = None
    timer: Timer | None = None


Key = tuple[Level, LspId]


class Issuer:
    """All LSP ids of this router that are, were, or are claimed to be in use."""

    def __init__(
        self,
        instance: Instance,
        flooding: Flooding,
        wanted: Callable[[Level, LspId], Wanted | None],
    ) -> None:
        self._instance = instance
        self._flooding = flooding
        self._wanted = wanted
        self._own: dict[Key, _Own] = {}
        self._pending: dict[Key, _Own] = {}

    def configure(self) -> None:
        """Go on under other settings: all LSPs are looked at again."""
        for own in self._own.values():
            own.throttle.configure(self._instance.settings.throttle)

    def request(self, level: Level, identifier: LspId, *, force: bool = False) -> None:
        """An LSP may read differently now; ``force``: it is to be issued even if it does not."""
        key = level, identifier
        own = self._own.get(key)
        if own is None:
            own = self._own[key] = _Own(Throttle(self._instance.settings.throttle))
        own.forced = own.forced or force
        if own.requested_at is None:
            own.requested_at = self._instance.now
        self._pending[key] = own

    def removed(self, level: Level, identifier: LspId) -> None:
        """The header of a purged LSP of ours is forgotten; so is what else we know of it."""
        own = self._own.get((level, identifier))
        if own is None or own.requested_at is not None:
            return
        if self._wanted(level, identifier) is None:
            del self._own[level, identifier]

    def purge_all(self) -> None:
        """Take all LSPs back, at once."""
        for (level, identifier), own in sorted(self._own.items(), key=lambda item: item[0]):
            self._instance.timers.cancel(own.timer)
            if self._alive(level, identifier):
                self._flooding.purge_own(level, identifier)
        self._own.clear()
        self._pending.clear()

    def settle(self) -> None:
        """Issue every requested LSP whose time has come; arm timers for the others."""
        now = self._instance.now
        for key, own in sorted(self._pending.items(), key=lambda item: item[0]):
            assert own.requested_at is not None
            due = own.throttle.due(own.requested_at)
            if due > now:
                if own.timer is None or not own.timer.active:
                    own.timer = self._instance.timers.arm(due, _wake)
                continue
            del self._pending[key]
            requested, own.requested_at = own.requested_at, None
            if self._issue(*key, own):
                own.throttle.sent(requested, now)
            own.forced = False

    def _alive(self, level: Level, identifier: LspId) -> bool:
        entry = self._instance.databases[level].entries.get(identifier)
        return entry is not None and entry.own and not entry.purged

    def _issue(self, level: Level, identifier: LspId, own: _Own) -> bool:
        """Issue unless nothing changed; return whether anything went out."""
        wanted, alive = self._wanted(level, identifier), self._alive(level, identifier)
        if wanted is None:
            own.issued = None
            return self._flooding.purge_own(level, identifier) is not None
        if alive and not own.forced and wanted == own.issued:
            return False
        sequence_number = self._flooding.next_sequence(level, identifier)
        if sequence_number is None:
            return False  # flooding asks for it again (§7.3.16.1)
        own.issued = wanted
        settings = self._instance.settings
        lsp = Lsp(
            level=int(level),
            lsp_id=identifier,
            sequence_number=sequence_number,
            remaining_lifetime=settings.lsp_lifetime,
            attached=wanted.attached,
            overload=wanted.overload,
            is_type=_LEVEL_1 if settings.levels is LevelSet.ONE else _LEVEL_2,
            tlvs=wanted.tlvs,
        )
        self._flooding.install_own(level, lsp)
        return True


def _wake() -> None:
    """Nothing to do but to wake the engine: ``settle`` looks at everything that is requested."""
