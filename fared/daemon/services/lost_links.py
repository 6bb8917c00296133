"""Lost links over restarts: ``STATE/lost-links.json`` holds them with Unix times.

The file is written at most every half minute, in a thread, and when the daemon stops. Without it a
new process knows of no former link; whoever looks loses no more than that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from fared.core.json_text import decode_json
from fared.daemon.loop.files import read_small, replace_file
from fared.router.changes import DatabaseChanges
from fared.router.lost import KEPT, LostLink

_NAME: Final = "lost-links.json"
_MOST_BYTES: Final = 1 << 21


class LostLinksFile:
    """Keeps the lost links of the running router. ``log`` is structlog's, without a public type."""

    def __init__(
        self,
        directory: Path | str,
        changes: Callable[[], DatabaseChanges],
        log: Any,  # noqa: ANN401
    ) -> None:
        self._file = Path(directory) / _NAME
        self._changes = changes
        self._log = log
        self._kept = 0
        self._writing: asyncio.Task[None] | None = None

    def read(self, now: float) -> tuple[LostLink, ...]:
        """Return what a former process knew; ``now`` is the time of the router's clock."""
        try:
            found = decode_json(read_small(self._file, _MOST_BYTES), list[LostLink])
        except FileNotFoundError:
            return ()
        except (OSError, ValueError) as error:
            effect = "which links were lost before this start is unknown"
            self._log.warning(
                "lost-links-unreadable", file=str(self._file), error=str(error), effect=effect
            )
            return ()
        # of a clock that was set back meanwhile: as if they were lost just now
        ages = ((link, max(time.time() - link.since, 0.0)) for link in found)
        return tuple([replace(link, since=now - age) for link, age in ages if age <= KEPT])

    def keep(self) -> None:
        """Write the file in the background if there is something else to know."""
        if self._writing is None and self._changes().lost.version != self._kept:
            text = self._text()
            self._writing = asyncio.create_task(self._write_beside(text))

    def close(self) -> None:
        """Write the file now: the process ends."""
        changes = self._changes()
        changes.settle()
        if changes.lost.version != self._kept:
            self._write(self._text())

    def _text(self) -> bytes:
        lost, now = self._changes().lost, asyncio.get_running_loop().time()
        found = lost.present(now)
        self._kept = lost.version
        shift = time.time() - now
        return msgspec.json.encode([replace(link, since=link.since + shift) for link in found])

    async def _write_beside(self, text: bytes) -> None:
        await asyncio.to_thread(self._write, text)
        self._writing = None

    def _write(self, text: bytes) -> None:
        try:
            replace_file(self._file, text)
        except OSError as error:
            effect = "a restart forgets which links were lost"
            self._log.warning(
                "lost-links-not-kept", file=str(self._file), error=str(error), effect=effect
            )
