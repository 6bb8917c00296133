"""The files of a recording: segments, in a ring that is bounded in size and number.

``000007.calls`` has the calls of segment 7, ``000007.state`` the router at its begin, unless the
segment begins with a new router or goes on where the one before ended. All are of mode 0600: they
contain the keys of authentication.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from fared.management.recording import calls, signature
from fared.management.recording.values import NamedClass

CALLS, STATE = ".calls", ".state"
_NEW: Final = ".new"
_NAME = re.compile(r"(\d{6})\.calls")
_OWN_NAME = re.compile(r"\d{6}\.(calls|state|new)")
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_HEAD: Final = 1 << 20
"""Bytes in which the first lines of a segment are, the settings of a new router among them."""
_OPENING: Final = (calls.SegmentBegun, NamedClass)


class RecordingError(Exception):
    """A recording that cannot be written or read; the message is for people."""


class Segment(NamedTuple):
    """One segment on disk. ``state`` None: there is no such file."""

    number: int
    file: Path
    state: Path | None

    def lines(self) -> Iterator[calls.Line]:
        """Yield its lines. Raises RecordingError."""
        try:
            yield from calls.decoded(self.file.read_bytes())
        except OSError as error:
            raise RecordingError(f"{self.file}: {error.strerror}") from None
        except calls.DamagedLineError as error:
            raise RecordingError(f"{self.file}: {error}") from None

    @property
    def starts(self) -> bool:
        """Whether a replay can begin here."""
        if self.state is not None:
            return True
        with self.file.open("rb") as source:
            head = calls.decoded(source.read(_HEAD))
            try:
                first = next((line for line in head if not isinstance(line, _OPENING)), None)
            except calls.DamagedLineError:
                return False
        return isinstance(first, calls.NewRouter)

    @property
    def size(self) -> int:
        """Bytes."""
        files = [self.file, *([] if self.state is None else [self.state])]
        return sum(file.stat().st_size for file in files)


def segments(directory: Path) -> list[Segment]:
    """Return the segments of a recording in order. Raises RecordingError."""
    try:
        names = sorted(file.name for file in directory.iterdir())
    except OSError as error:
        raise RecordingError(f"{directory}: {error.strerror}") from None
    found = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is not None:
            state = (directory / name).with_suffix(STATE)
            known = state if state.name in names else None
            found.append(Segment(int(match[1]), directory / name, known))
    return found


def _remove_leftovers(directory: Path) -> None:
    """Remove states that were not written whole; in a directory with other files, nothing.

    Raises RecordingError, OSError.
    """
    names = [file.name for file in directory.iterdir()]
    strangers = [name for name in names if _OWN_NAME.fullmatch(name) is None]
    if strangers:
        raise RecordingError(f"{directory} has other files, such as {min(strangers)}")
    for name in names:
        if name.endswith(_NEW):
            (directory / name).unlink()


class SegmentRing:
    """Writes segments into a directory, and removes the oldest ones.

    ``limit``: bytes of all files, ``most``: segments; the newest segment that a replay can begin
    with stays, and all after it.
    """

    def __init__(self, directory: Path, limit: int, most: int, keys: Path) -> None:
        """Create the directory, or go on in it; ``keys``: where the key is that signs states.

        Raises RecordingError.
        """
        self.directory = directory
        self._keys = keys
        self.limit = limit
        self._most = most
        try:
            if directory.is_symlink():
                raise RecordingError(f"{directory} is a symbolic link")
            directory.mkdir(mode=0o700, exist_ok=True)
            _remove_leftovers(directory)
        except OSError as error:
            raise RecordingError(f"{error.filename or directory}: {error.strerror}") from None
        known = segments(directory)
        self.number = known[-1].number if known else 0
        """The present segment; 0: none yet."""
        self._descriptor = -1
        self.written = 0
        """Bytes of calls in the present segment."""

    def next_segment(self) -> int:
        """Begin a segment; return its number. Raises OSError."""
        descriptor = _create(self.path(self.number + 1, CALLS))
        self.close()
        self.number, self._descriptor, self.written = self.number + 1, descriptor, 0
        return self.number

    def path(self, number: int, suffix: str) -> Path:
        """Return the file of a segment."""
        return self.directory / f"{number:06}{suffix}"

    def write(self, content: bytes) -> None:
        """Add to the present segment. Raises OSError."""
        self.written += len(content)
        while content:
            content = content[os.write(self._descriptor, content) :]

    def keep_state(self, number: int, state: bytes) -> None:
        """Write the state at the begin of a segment. Raises OSError."""
        final = self.path(number, STATE)
        fresh = final.with_suffix(_NEW)
        with os.fdopen(_create(fresh), "wb") as sink:
            sink.write(signature.signed(state, signature.made_key(self._keys)))
        fresh.rename(final)

    def prune(self) -> None:
        """Remove the oldest segments beyond the bounds. Raises OSError."""
        known = segments(self.directory)
        starts = [place for place, segment in enumerate(known) if segment.starts]
        last = starts[-1] if starts else 0
        total, first = sum(segment.size for segment in known), 0
        while first < last and (total > self.limit or len(known) - first > self._most):
            total -= known[first].size
            first += 1
        while first < last and not known[first].starts:  # nothing to begin with
            first += 1
        for segment in known[:first]:
            segment.file.unlink()
            if segment.state is not None:
                segment.state.unlink()

    def close(self) -> None:
        """Close the present segment."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _create(file: Path) -> int:
    descriptor = os.open(file, _CREATE, 0o600)
    os.fchmod(descriptor, 0o600)  # whatever the umask
    return descriptor
