"""``show config``: what runs, and the file as the next start would read it.

What a file decides the size of is made once, one at a time, and kept for all who ask: what runs
until it changes, in a thread; the file until it is written again, in a process of its own.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec

from fared.config import Config
from fared.daemon.loop.runtime import RunningConfig, Runtime
from fared.management.documents.config import ConfigDocument
from fared.management.documents.errors import CommandError
from fared.runtime import children

_TIME_LIMIT = 60.0
"""Seconds for reading the file."""


class _Saved(msgspec.Struct, frozen=True):
    """What the process said of the file that had this state."""

    state: tuple[int, ...]
    document: bytes
    errors: str


class ConfigDocuments:
    """Makes the documents of ``show config``."""

    def __init__(self, running: RunningConfig, runtime: Runtime) -> None:
        self._what, self._runtime = running, runtime
        self._turn = asyncio.Lock()
        self._saved: _Saved | None = None
        self._running: tuple[Config, bytes] | None = None

    async def answer(self, *, saved: bool) -> ConfigDocument:
        """Answer ``show config``. Raises CommandError."""
        return await (self.saved() if saved else self._shown())

    async def _shown(self) -> ConfigDocument:
        async with self._turn:
            config = self._what.config
            if self._running is None or self._running[0] is not config:
                self._running = config, await asyncio.to_thread(_encoded, config)
            return self._document(self._running[1], self._runtime.loaded_at, saved=False)

    async def saved(self) -> ConfigDocument:
        """Answer ``show config --saved``. Raises CommandError."""
        path = self._what.path
        async with self._turn:
            try:
                found = await asyncio.to_thread(os.stat, path)
            except OSError as error:
                raise CommandError("unsupported", str(error)) from None
            state = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
            if self._saved is None or self._saved.state != state:
                self._saved = _Saved(state, *await _read(path))
            if self._saved.errors:
                raise CommandError("unsupported", self._saved.errors)
            return self._document(self._saved.document, found.st_mtime, saved=True)

    def _document(self, config: bytes, loaded_at: float, *, saved: bool) -> ConfigDocument:
        return ConfigDocument(
            file=self._what.path, loaded_at=loaded_at, config=msgspec.Raw(config), saved=saved
        )


def _encoded(config: Config) -> bytes:
    return msgspec.json.encode(config.document())


async def _read(path: str) -> tuple[bytes, str]:
    """Have a process read the file; return the document or its errors. Raises CommandError."""
    command = children.python("fared.config.saved", str(Path.cwd() / path))
    try:
        document, errors, status = await children.ask(command, _TIME_LIMIT)
    except TimeoutError:
        raise CommandError("busy", f"the file is not read within {_TIME_LIMIT:g} s") from None
    if status and not errors:
        raise CommandError("busy", "the process that reads the file has ended")
    return document, errors if status else ""
