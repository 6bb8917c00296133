"""Generates our LSPs (ISO 10589 §7.3.5, §7.3.6): throttle, refresh, LSPs of earlier runs.

``content`` returns the contents when an LSP is due; an LSP without contents is purged. The throttle
of each LSP takes the place of minimumLSPGenerationInterval (§7.3.6), also for LSPs that are
generated again because others hold a newer instance: one forged in our name costs no more than a
flapping link. ``Flooding`` assigns sequence numbers, since it receives the instances that others
hold.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fared.core.timers import Timer
from fared.protocols.igp.throttle import Throttle
from fared.protocols.isis.ids import Level, LevelSet, LspId
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import Tlv
from fared.protocols.isis.update.flooding import Flooding

_LEVEL_1, _LEVEL_2 = 1, 3
"""What kind of router this is (ISO 10589 §9.8)."""


class LspContent(msgspec.Struct, frozen=True):
    """The contents of one LSP."""

    tlvs: tuple[Tlv, ...]
    overload: bool = False
    attached: bool = False


class _Own(msgspec.Struct):
    """One LSP id of ours: the contents generated last, and when the next may be generated."""

    throttle: Throttle
    generated: LspContent | None = None
    forced: bool = False
    requested_at: float | None = None
    timer: Timer | None = None


Key = tuple[Level, LspId]


class LspGenerator:
    """All LSP ids of this router in use, now or before a restart."""

    def __init__(
        self,
        instance: Instance,
        flooding: Flooding,
        content: Callable[[Level, LspId], LspContent | None],
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._flooding = flooding
        self._content = content
        self._own: dict[Key, _Own] = {}
        self._pending: dict[Key, _Own] = {}

    def configure(self) -> None:
        """Apply new throttle settings."""
        for own in self._own.values():
            own.throttle.configure(self._instance.settings.throttle)

    def request(self, level: Level, identifier: LspId, *, force: bool = False) -> None:
        """The contents of an LSP may have changed (§7.3.6); ``force``: generate it in any case."""
        key = level, identifier
        own = self._own.get(key)
        if own is None:
            own = self._own[key] = _Own(Throttle(self._instance.settings.throttle))
        own.forced = own.forced or force
        if own.requested_at is None:
            own.requested_at = self._process.now
        self._pending[key] = own

    def removed(self, level: Level, identifier: LspId) -> None:
        """The header of a purged LSP of ours left the database: forget its id."""
        own = self._own.get((level, identifier))
        if own is None or own.requested_at is not None:
            return
        if self._content(level, identifier) is None:
            del self._own[level, identifier]

    def purge_all(self) -> None:
        """Purge all LSPs at once."""
        for (level, identifier), own in sorted(self._own.items(), key=lambda item: item[0]):
            self._process.timers.cancel(own.timer)
            if self._alive(level, identifier):
                self._flooding.purge_own(level, identifier)
        self._own.clear()
        self._pending.clear()

    def settle(self) -> None:
        """Generate every requested LSP that is due; arm timers for the others."""
        if not self._pending:
            return
        now = self._process.now
        for key, own in sorted(self._pending.items(), key=lambda item: item[0]):
            assert own.requested_at is not None
            due = own.throttle.due(own.requested_at)
            if due > now:
                if own.timer is None or not own.timer.active:
                    own.timer = self._process.timers.arm(due, _wake)
                continue
            del self._pending[key]
            requested, own.requested_at = own.requested_at, None
            if self._generate(*key, own):
                own.throttle.sent(requested, now)
            own.forced = False

    def _alive(self, level: Level, identifier: LspId) -> bool:
        entry = self._instance.databases[level].entries.get(identifier)
        return entry is not None and entry.own and not entry.purged

    def _generate(self, level: Level, identifier: LspId, own: _Own) -> bool:
        """Generate an LSP or a purge unless unchanged; return whether one was flooded."""
        content, alive = self._content(level, identifier), self._alive(level, identifier)
        if content is None:
            own.generated = None
            return self._flooding.purge_own(level, identifier) is not None
        if alive and not own.forced and content == own.generated:
            return False
        sequence_number = self._flooding.next_sequence(level, identifier)
        # §7.3.16.1: exhausted; flooding requests the LSP again when the sequence may begin anew
        if sequence_number is None:
            return False
        own.generated = content
        settings = self._instance.settings
        lsp = Lsp(
            level=int(level),
            lsp_id=identifier,
            sequence_number=sequence_number,
            remaining_lifetime=settings.lsp_lifetime,
            attached=content.attached,
            overload=content.overload,
            is_type=_LEVEL_1 if settings.levels is LevelSet.ONE else _LEVEL_2,
            tlvs=content.tlvs,
        )
        self._flooding.install_own(level, lsp)
        return True


def _wake() -> None:
    """Wake the engine: ``settle`` considers all requested LSPs."""
