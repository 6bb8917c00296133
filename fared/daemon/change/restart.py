"""Graceful restarts: what the next process must know, in the file ``SOCKET.restart``.

While graceful restart is enabled the file exists from start to a clean stop. So a process that
finds it, and routes of its own in the kernel, takes the place of one that has crashed, or that has
announced its restart. The file is in the run directory, which does not survive the machine's boot.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fared.config import ConfigErrors, load_runnable
from fared.core.json_text import decode_json
from fared.daemon.loop.files import read_small, replace_file
from fared.daemon.loop.runner import Runner
from fared.daemon.loop.runtime import RunningConfig
from fared.management.documents.errors import CommandError
from fared.management.documents.operation import RestartDocument
from fared.protocols.igp.events import GracefulRestartBegun, GracefulRestartRequested

ANNOUNCED_WITHIN = 3.0
"""Seconds in which neighbors acknowledge the restart; FRR delays acknowledgments by 1 s."""
ANSWER_FOR = 0.1
"""Seconds in which the operator receives the answer to the command."""
_POLL = 0.02
_MOST_BYTES = 4096
_FORMAT = "fared-restart/1"


class GracefulRestart:
    """Reads and writes the file, and carries out a planned restart.

    ``leave`` ends this process and starts the next one in its place, while our routes stay; with
    ``farewell=True`` neighbors are told, and route around us until then.
    """

    def __init__(
        self,
        running: RunningConfig,
        runner: Runner,
        leave: Callable[..., None],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
    ) -> None:
        self._running, self._runner, self._leave, self._log = running, runner, leave, log
        self._file = Path(f"{running.config.api.socket}.restart")

    @property
    def period(self) -> float | None:
        """The longest grace period; None: graceful restart is not enabled in any protocol."""
        sections = self._running.config.protocols.values()
        enabled = [s.graceful_restart for s in sections if s.graceful_restart.enabled]
        return max((float(restart.grace_period) for restart in enabled), default=None)

    def begun(self, *, routes: bool) -> GracefulRestartBegun | None:
        """Return the restart that this process completes; ``routes``: the kernel has some of ours.

        None: it is no graceful one, and neighbors must form adjacencies anew.
        """
        found, period = self._read(), self.period
        self.running()
        if found is None or period is None or not routes:
            return None
        remaining = period
        if found["planned"]:
            remaining = float(found["until"]) - _boottime()
        return GracefulRestartBegun(remaining, bool(found["planned"])) if remaining > 0 else None

    def running(self) -> None:
        """This process runs: from now on its death is a crash."""
        if self.period is None:
            self.stopped()
        else:
            self._write({"planned": False, "until": 0.0})

    def stopped(self) -> None:
        """This process ends, and its neighbors know: the next one starts anew."""
        try:
            self._file.unlink(missing_ok=True)
        except OSError as error:
            self._not_kept(error)

    async def restart(self, *, graceful: bool = True) -> RestartDocument:
        """Announce a restart to the neighbors, then restart. Raises CommandError.

        Not ``graceful``: they are told that we leave, and form adjacencies anew.
        """
        period = self.period
        if graceful and period is None:
            text = "graceful restart is not enabled (graceful-restart: enabled)"
            raise CommandError("unsupported", text)
        if not self._runner.router.startup.ready:
            raise CommandError("busy", "the daemon is still starting")
        await asyncio.to_thread(self._check_file)
        if period is None or not graceful:
            self._log.info("restarting", grace_period=None)
            self._leave_soon(farewell=True)
            return RestartDocument(announced=True)
        self._log.info("restarting", grace_period=period)
        self._write({"planned": True, "until": _boottime() + period})
        self._runner.feed(GracefulRestartRequested(period))
        announced = await self._announced()
        self._leave_soon(farewell=False)
        return RestartDocument(announced=announced)

    def _leave_soon(self, *, farewell: bool) -> None:
        leave = partial(self._leave, farewell=farewell)
        asyncio.get_running_loop().call_later(ANSWER_FOR, leave)

    async def _announced(self) -> bool:
        """Wait until all neighbors know; False: some have not answered."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ANNOUNCED_WITHIN
        instances = self._runner.router.instances.values()
        while not all(instance.engine.restart_announced for instance in instances):
            if loop.time() > deadline:
                self._log.warning("restart-not-acknowledged", seconds=ANNOUNCED_WITHIN)
                return False
            await asyncio.sleep(_POLL)
        return True

    def _check_file(self) -> None:
        """Refuse to leave for a process that could not start."""
        try:
            load_runnable(Path(self._running.path))
        except (ConfigErrors, OSError) as error:
            raise CommandError("bad-argument", f"{self._running.path}: {error}") from None

    def _read(self) -> dict[str, Any] | None:
        try:
            found = decode_json(read_small(self._file, _MOST_BYTES), dict[str, Any])
            if found["format"] != _FORMAT or found["boot"] != _boot():
                return None
            return {"planned": bool(found["planned"]), "until": float(found["until"])}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            self._log.warning("restart-state-unreadable", file=str(self._file), error=str(error))
            return None

    def _write(self, state: dict[str, Any]) -> None:
        content = {"format": _FORMAT, "boot": _boot(), **state}
        try:
            replace_file(self._file, json.dumps(content).encode() + b"\n")
        except OSError as error:
            self._not_kept(error)

    def _not_kept(self, error: OSError) -> None:
        self._log.warning(
            "restart-state-not-kept",
            file=str(self._file),
            error=error.strerror or str(error),
            effect="neighbors will notice the next restart",
        )


def _boottime() -> float:
    """Seconds since the machine's boot, which no setting of a clock changes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _boot() -> str:
    """The id of this boot of the machine; empty where the kernel does not tell it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
