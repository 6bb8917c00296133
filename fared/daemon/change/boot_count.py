"""The boot count of RFC 7474 §3 on disk: OSPF's 64-bit sequence numbers grow across restarts.

Neighbors keep the last 64-bit number they accepted: they would refuse a router whose clock was set
back while it was down. So each run's count is one more than the last, or the clock's where that is
higher. The clock replaces a lost file, and takes a router past the numbers of a release without a
file. The file holds one decimal number.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from fared.daemon.loop.files import read_small, replace_file

_NAME: Final = "ospf-boot-count"
_LARGEST: Final = 0xFFFFFFFE
_MOST_BYTES: Final = 32
_HALF: Final = 32
_UNIT_OF_CLOCK: Final = 1 << _HALF
"""Nanoseconds of the clock for each count: 4.3 s."""


class BootCount:
    """The boot count of this run. ``log`` is structlog's, which has no public type."""

    def __init__(self, directory: Path | str, log: Any) -> None:  # noqa: ANN401
        self._file = Path(directory) / _NAME
        self._log = log
        self._count: int | None = None

    def begin(self, wall_ns: int) -> int:
        """Return the count of this run; the first call writes it to disk.

        ``wall_ns``: nanoseconds since 1970. If the file cannot be read the count is that of the
        clock; if it cannot be written the count is lost with this process.
        """
        if self._count is None:
            self._count = max(self._read() + 1, min(wall_ns // _UNIT_OF_CLOCK, _LARGEST))
            self._write(self._count)
        return self._count

    def follow(self, count: int) -> None:
        """Store the count that the numbers have reached: the lower half has wrapped (§3.1)."""
        if self._count is not None and count > self._count:
            self._count = count
            self._write(count)

    def _read(self) -> int:
        """Return the count of the last run; 0 if there was none, or it is unknown."""
        try:
            return _parse(self._file)
        except FileNotFoundError:
            return 0
        except (OSError, ValueError) as error:
            self._log.warning(
                "boot-count-unreadable",
                file=str(self._file),
                error=_text(error),
                effect="64-bit sequence numbers start from the clock",
            )
            return 0

    def _write(self, count: int) -> None:
        try:
            replace_file(self._file, f"{count}\n".encode())
        except OSError as error:
            self._log.warning(
                "boot-count-not-kept",
                file=str(self._file),
                error=_text(error),
                effect="if the clock is set back, neighbors may refuse the next start",
            )
        else:
            self._log.info("boot-count", count=count, file=str(self._file))


def _text(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _parse(file: Path) -> int:
    """Read a count. Raises OSError, or ValueError for other content."""
    text = read_small(file, _MOST_BYTES).strip()
    if not text.isdigit() or not int(text) <= _LARGEST:
        raise ValueError(f"not a number up to {_LARGEST}")
    return int(text)
