"""Changes of the configuration with a way back: apply, confirm, roll back, and their history.

``config apply`` validates a whole configuration, saves it as the file that the daemon starts with,
applies it, and keeps the former one in the history. With a time for the confirmation the file stays
as it is until somebody confirms: so if the operator has cut himself off, the former configuration
returns when the time is over, and also if the daemon ends before, however it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from fared.config import ConfigErrors, Loaded
from fared.daemon.change.config_file import EDITED, ConfigFile
from fared.daemon.change.history import Entry, History, How, State
from fared.daemon.change.reload import Plan, Reloader, changes_of, plan_of
from fared.daemon.loop.runtime import RunningConfig, Runtime
from fared.management.api.caller import CALLER
from fared.management.documents.config_changes import (
    ConfigChanged,
    ConfigEntry,
    ConfigHistory,
    date,
)
from fared.management.documents.errors import CommandError

if TYPE_CHECKING:
    from fared.management.api.requests import ConfigApplyRequest, ConfigRollbackRequest


class _Unconfirmed(msgspec.Struct, frozen=True):
    """A change that waits for its confirmation."""

    entry: Entry
    text: str
    former: Loaded
    timer: asyncio.TimerHandle


class ConfigChanges:
    """Applies configurations and keeps their history; one change at a time.

    ``loaded``: what the daemon has started with.
    """

    def __init__(
        self,
        running: RunningConfig,
        loaded: Loaded,
        make_reloader: Callable[..., Reloader],
        *,
        runtime: Runtime,
        stopping: Callable[[], bool],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
    ) -> None:
        """``make_reloader`` takes what is to be called after a reload."""
        self._running, self._runtime, self._stopping, self._log = running, runtime, stopping, log
        self.reloader = make_reloader(reloaded=self._reloaded)
        self._file = ConfigFile(running.path, loaded)
        self._history = History(running.config.state_directory, log)
        self._first: str | None = loaded.text
        """The text of the start, until it is in the history."""
        self._unconfirmed: _Unconfirmed | None = None
        self._task: asyncio.Task[None] | None = None

    # -- commands ---------------------------------------------------------------------------

    async def apply(self, asked: ConfigApplyRequest) -> ConfigChanged:
        """Answer ``config apply``: validate, save and apply. Raises CommandError."""
        async with self.reloader.turn:
            self._refuse_second()
            return await self._change(asked.text, asked.file, "apply", asked.comment, asked.confirm)

    async def confirm(self) -> ConfigChanged:
        """Answer ``config confirm``: save what runs. Raises CommandError."""
        async with self.reloader.turn:
            waiting = self._unconfirmed
            if waiting is None:
                raise CommandError("not-found", "no change waits for a confirmation")
            try:
                await asyncio.to_thread(self._file.save, waiting.text)
            except OSError as error:
                return self._cannot_save(error)
            self._settled()
            await asyncio.to_thread(self._history.settle, waiting.entry, "final")
            self._log.info("config-confirmed", number=waiting.entry.number, user=CALLER.get())
            return ConfigChanged(applied=True, confirmed=True)

    async def rollback(self, asked: ConfigRollbackRequest) -> ConfigChanged:
        """Answer ``config rollback [N]``: apply the Nth former configuration.

        Without N an unconfirmed change is undone, if there is one. Raises CommandError.
        """
        number = asked.back
        async with self.reloader.turn:
            if self._unconfirmed is not None and number is None:
                plan, warnings = await self._undo(CALLER.get())
                return _applied(plan, warnings)
            self._refuse_second()
            await self._begin_now()
            back = 1 if number is None else number
            text, entry = await asyncio.to_thread(self._former, back)
            name = f"configuration {back} of the history"
            comment = asked.comment or f"what had run since {date(entry.at)}"
            return await self._change(text, name, "rollback", comment, asked.confirm)

    async def history(self) -> ConfigHistory:
        """Answer ``config history``, newest first; entry 0 is what runs."""
        async with self.reloader.turn:
            await self._begin_now()
            found = await asyncio.to_thread(self._entries)
        return ConfigHistory(
            unconfirmed_until=self._runtime.unconfirmed_until,
            entries=[ConfigEntry.of(entry, back=back) for back, entry in enumerate(found)],
        )

    async def started(self) -> None:
        """Add the configuration of the start to the history.

        Raises OSError if descriptors are short: it can be tried again.
        """
        async with self.reloader.turn:
            await self._begin()

    # -- steps, with the turn held ----------------------------------------------------------

    async def _change(
        self, text: str, name: str, how: How, comment: str, within: float | None
    ) -> ConfigChanged:
        """Validate, save unless it must be confirmed, apply, and note."""
        try:
            plan = await self.reloader.planned(text, name)
        except ConfigErrors as errors:
            return ConfigChanged(applied=False, errors=str(errors).splitlines())
        await self._begin_now()
        try:
            await asyncio.to_thread(self._file.check if within else self._file.save, text)
        except OSError as error:
            return self._cannot_save(error)
        former = Loaded(self._running.config, (), await self._newest_text())
        await self.reloader.apply(plan)
        entry = await self._note(plan, how, CALLER.get(), comment, unconfirmed=within is not None)
        if within is not None:
            self._await_confirmation(entry, text, former, within)
        return _applied(plan, plan.warnings, within)

    def _cannot_save(self, error: OSError) -> ConfigChanged:
        reason = error.strerror or str(error)
        why = f"{reason}; nothing was changed (docs: operating, Changes)"
        return ConfigChanged(applied=False, errors=[f"cannot write {self._running.path}: {why}"])

    def _await_confirmation(self, entry: Entry, text: str, former: Loaded, within: float) -> None:
        timer = asyncio.get_running_loop().call_later(within, self._expire)
        self._unconfirmed = _Unconfirmed(entry, text, former, timer)
        self._runtime.unconfirmed_until = time.time() + within
        self._log.info("config-unconfirmed", number=entry.number, seconds=within)

    def _expire(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._expired())

    async def _expired(self) -> None:
        async with self.reloader.turn:
            if self._unconfirmed is not None and not self._stopping():
                await self._undo("fared")

    async def _undo(self, user: str) -> tuple[Plan, list[str]]:
        """Let the former configuration return; also return warnings, which are logged."""
        waiting = self._unconfirmed
        assert waiting is not None, "the caller has looked"
        self._settled()
        plan = await asyncio.to_thread(plan_of, self._running.config, waiting.former)
        await self.reloader.apply(plan)
        await asyncio.to_thread(self._history.settle, waiting.entry, "expired")
        reason = "not confirmed in time" if user == "fared" else "undone"
        await self._note(plan, "return", user, reason)
        warnings = await self._edits()
        for warning in warnings:
            self._log.warning("configuration", warning=warning)
        return plan, warnings

    async def _edits(self) -> list[str]:
        """Warn of edits of the file that do not run."""
        with contextlib.suppress(OSError):  # it cannot be read: reloads and starts say so
            if await asyncio.to_thread(self._file.edited):
                return [f"{self._running.path}: {EDITED}"]
        return []

    async def _reloaded(self, plan: Plan) -> None:
        """The file was read again: it is the configuration, whatever waited for a confirmation."""
        waiting = self._unconfirmed
        self._file.seen(plan.loaded.text)
        await self._begin_now()
        if waiting is not None:
            self._settled()
            await asyncio.to_thread(self._history.settle, waiting.entry, "expired")
        if plan.loaded.text != await self._newest_text():
            await self._note(plan, "reload", CALLER.get(), "")

    def _settled(self) -> None:
        """Nothing waits any longer."""
        if self._unconfirmed is not None:
            self._unconfirmed.timer.cancel()
        self._unconfirmed = self._runtime.unconfirmed_until = None

    def _refuse_second(self) -> None:
        if self._unconfirmed is not None:
            text = "a change waits for its confirmation (config confirm, or config rollback)"
            raise CommandError("busy", text)

    # -- the history ------------------------------------------------------------------------

    async def _begin(self) -> None:
        """Note what the daemon has started with. Raises OSError if descriptors are short."""
        if self._first is not None:
            await self._note_start(self._first)
            self._first = None

    async def _begin_now(self) -> None:
        """Begin before a change: if descriptors are short, the start is not in the history."""
        with contextlib.suppress(OSError):
            await self._begin()

    async def _note_start(self, text: str) -> None:
        newest = await asyncio.to_thread(self._history.newest)
        if newest is not None and newest.state == "unconfirmed":
            if text == await self._newest_text():  # it was confirmed, and the daemon then killed
                await asyncio.to_thread(self._history.settle, newest, "final", patient=True)
                return
            returned = await asyncio.to_thread(self._is_former, text)
            await asyncio.to_thread(self._history.settle, newest, "expired", patient=True)
            if returned:
                self._log.warning("config-returned", number=newest.number, reason="restart")
                await self._add(text, "return", "fared", "the daemon had restarted")
            else:  # somebody edited the file meanwhile
                await self._add(text, "start", "fared", "")
        elif newest is None or text != await self._newest_text():
            await self._add(text, "start", "fared", "")

    async def _note(
        self, plan: Plan, how: How, user: str, comment: str, *, unconfirmed: bool = False
    ) -> Entry:
        """Add a change that was applied, and log it. After it the start is not added any more."""
        self._first = None
        count = len(plan.changes)
        entry = await self._add(
            plan.loaded.text, how, user, comment, count, unconfirmed=unconfirmed
        )
        event = "config-returned" if how == "return" else "config-applied"
        facts = {"number": entry.number, "how": how, "user": user, "comment": comment}
        self._log.info(event, changes=count, **facts)
        return entry

    async def _add(
        self,
        text: str,
        how: How,
        user: str,
        comment: str,
        changes: int = 0,
        *,
        unconfirmed: bool = False,
    ) -> Entry:
        state: State = "unconfirmed" if unconfirmed else "final"
        entry = Entry(0, time.time(), how, user, comment, changes, state, 0)
        patient = self._first is not None
        return await asyncio.to_thread(self._history.add, entry, text, patient=patient)

    async def _newest_text(self) -> str:
        """Return the text of what ran last; empty if it is not known."""

        def read() -> str:
            try:
                newest = self._history.newest()
                return "" if newest is None else self._history.text(newest)
            except (OSError, ValueError):
                return ""

        return await asyncio.to_thread(read)

    def _entries(self) -> list[Entry]:
        """Return the history. Raises CommandError."""
        try:
            return self._history.entries()
        except OSError as error:
            raise CommandError("busy", f"cannot read the history: {error.strerror}") from None

    def _is_former(self, text: str) -> bool:
        """Whether this ran before the newest entry; also if that is not known."""
        try:
            return self._former(1)[0] == text
        except CommandError:
            return True

    def _former(self, back: int) -> tuple[str, Entry]:
        """Return the text of a former configuration. Raises CommandError."""
        entries = self._entries()
        if not 0 <= back < len(entries):
            known = f"the history goes back to {len(entries) - 1}" if entries else "it is empty"
            raise CommandError("not-found", f"no configuration {back}: {known} (config history)")
        try:
            return self._history.text(entries[back]), entries[back]
        except (OSError, ValueError) as error:
            raise CommandError("not-found", f"configuration {back}: {error}") from None


def _applied(plan: Plan, warnings: list[str], within: float | None = None) -> ConfigChanged:
    changes = changes_of(plan.changes)
    return ConfigChanged(applied=True, confirm_within=within, changes=changes, warnings=warnings)
