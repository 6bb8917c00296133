"""The configuration file that the daemon starts with, which operators edit as well."""

from __future__ import annotations

import contextlib
import errno
import zlib
from pathlib import Path
from typing import Final

from fared.config import Loaded
from fared.config.files import read_regular
from fared.daemon.loop.files import check_replaceable, replace_text

_MOST: Final = 1 << 23
"""Bytes that are compared: more than a configuration may have."""
EDITED: Final = (
    "it has been edited since the daemon read it"
    " ('config diff' shows what that changes, 'config reload' runs it)"
)


class ConfigFile:
    """Saves configurations, and writes over no edit that the daemon has not read.

    Its methods wait for a disk, so the event loop calls them in a thread.
    """

    def __init__(self, path: str | Path, loaded: Loaded) -> None:
        self._path = Path(path)
        self._known: int | None = None
        """CRC-32 of the text that was last read or saved."""
        if not loaded.refused:
            self.seen(loaded.text)
            return
        with contextlib.suppress(OSError):  # what was refused is in the log: it may be replaced
            self._known = zlib.crc32(self._content() or b"")

    def seen(self, text: str) -> None:
        """Note the text that was read from the file."""
        self._known = zlib.crc32(text.encode())

    def edited(self) -> bool:
        """Whether the file has another text than was last read or saved. Raises OSError."""
        return self._is_edit(self._content())

    def check(self, text: str) -> None:
        """Check that ``save`` would be permitted. Raises OSError."""
        self._check_edits(text)
        check_replaceable(self._path)

    def save(self, text: str) -> None:
        """Replace the file. Raises OSError: it cannot be written, or somebody has edited it."""
        self._check_edits(text)
        replace_text(self._path, text)
        self.seen(text)

    def _check_edits(self, text: str) -> None:
        content = self._content()
        if self._is_edit(content) and content != text.encode():
            raise OSError(errno.EEXIST, EDITED)

    def _is_edit(self, content: bytes | None) -> bool:
        return content is not None and zlib.crc32(content) != self._known

    def _content(self) -> bytes | None:
        """Return the present content; None: there is no file. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            return read_regular(self._path, _MOST)[0]
        return None
