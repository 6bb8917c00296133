"""The log's way to stderr, which waits for no reader.

A pipe that nobody reads, a stalled log driver or a terminal that was stopped (Ctrl-S) would hold
up whoever writes. To write without waiting would take ``O_NONBLOCK``, which is not ours to set: the
file is that of the shell, and of others beside it. So a thread writes, and takes all that waits at
a time. What is too much is dropped and counted, which is said where it is missing. A regular
file has no reader, and is written at once.
"""

from __future__ import annotations

import atexit
import io
import os
import select
import signal
import stat
import threading
from collections.abc import Callable
from typing import Final, TextIO, cast

MOST: Final = 1 << 18
"""Characters that wait."""
FAREWELL: Final = 1.0
"""Seconds for what waits at the end."""


class LogOutput(io.TextIOBase):
    """Writes lines to ``stream``; ``lost`` makes the line that says how many are missing."""

    def __init__(self, stream: TextIO, lost: Callable[[int], str]) -> None:
        self._stream = stream
        self._lost = lost
        self._file = _read_by_somebody(stream)
        self._changed = threading.Condition()
        self._waiting: list[str] = []
        self._size = self._missing = 0
        self._writing = False
        self._thread: threading.Thread | None = None
        self.dropped = 0
        """Lines that were dropped since the start."""

    def write(self, text: str) -> int:
        """Write one line, or several; never wait."""
        if self._file is None:
            self._stream.write(text)
            self._stream.flush()
            return len(text)
        with self._changed:
            if self._size + len(text) > MOST:
                self._drop(1)
                return len(text)
            self._waiting.append(text)
            self._size += len(text)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log", daemon=True)
                self._thread.start()
                atexit.register(self.finish)
        return len(text)

    @property
    def file(self) -> TextIO:
        """This, as loggers take it."""
        return cast("TextIO", self)

    def isatty(self) -> bool:
        """Whether a terminal shows the lines."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor, for child processes."""
        return self._stream.fileno()

    def finish(self, seconds: float = FAREWELL) -> None:
        """Wait a bounded time until all is written: the process ends, or executes another."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._waiting or self._writing), seconds)

    def _drop(self, lines: int) -> None:
        self.dropped += lines
        self._missing += lines

    def _run(self) -> None:
        # else a signal that waits for its handler would come to this thread
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        assert self._file is not None
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting)
                lines, self._waiting, self._size = self._waiting, [], 0
                missing, self._missing = self._missing, 0
                self._writing = True
            text = "".join(lines) + (self._lost(missing) if missing else "")
            try:
                _write_all(self._file, text.encode(errors="backslashreplace"))
            except OSError:  # there is no reader any more
                with self._changed:
                    self.dropped += len(lines)
                    self._missing += len(lines) + missing


def _read_by_somebody(stream: TextIO) -> int | None:
    """Return the descriptor of a stream that may have to wait for a reader; None: it need not."""
    try:
        file = stream.fileno()
    except (OSError, ValueError):
        return None
    return None if stat.S_ISREG(os.fstat(file).st_mode) else file


def _write_all(file: int, text: bytes) -> None:
    """Write, however long it takes. Raises OSError."""
    while text:
        try:
            text = text[os.write(file, text) :]
        except BlockingIOError:  # somebody else made the file so
            poll = select.poll()
            poll.register(file, select.POLLOUT)
            poll.poll()
