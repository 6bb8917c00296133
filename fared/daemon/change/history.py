"""The history of configurations on disk: what ran, since when, by whom, and how it was changed.

Each configuration is two files below ``STATE/config-history``: ``00000012.yaml``, the text as it
was given, and ``00000012.json``, the facts about it. They hold keys, so only the daemon may read
them; answers have the facts only. The newest entry is what runs. The daemon reads and writes them
in a thread, as every access waits for a disk.

While descriptors are short nothing is known of the files, so what reads them raises OSError.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from fared.core.json_text import decode_json
from fared.daemon.loop.descriptors import is_shortage
from fared.daemon.loop.files import read_small, replace_file

KEPT: Final = 50
_NAME: Final = "config-history"
_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700
_MOST_TEXT: Final = (4 << 20) + 1
_MOST_FACTS: Final = 4096

How = Literal["start", "reload", "apply", "rollback", "return"]
State = Literal["final", "unconfirmed", "expired"]


class Entry(msgspec.Struct, frozen=True):
    """One configuration that ran. ``at`` is Unix time, ``user`` the one who asked for it.

    ``state``: unconfirmed until somebody confirms it (final) or the former one has returned
    (expired). ``crc`` recognizes a text that was damaged.
    """

    number: int
    at: float
    how: How
    user: str
    comment: str
    changes: int
    state: State
    crc: int


class History:
    """The last ``KEPT`` configurations. ``log`` is structlog's, which has no public type."""

    def __init__(self, state_directory: Path | str, log: Any) -> None:  # noqa: ANN401
        self._directory = Path(state_directory) / _NAME
        self._log = log

    def entries(self) -> list[Entry]:
        """Return the entries, newest first; those that cannot be read are left out."""
        found = (self._read(number) for number in self._numbers())
        return [entry for entry in found if entry is not None]

    def newest(self) -> Entry | None:
        """Return what ran last."""
        return next((e for e in map(self._read, self._numbers()) if e is not None), None)

    def text(self, entry: Entry) -> str:
        """Return the text of a configuration. Raises OSError, or ValueError if it was damaged."""
        text = read_small(self._file(entry.number, "yaml"), _MOST_TEXT).decode()
        if crc_of(text) != entry.crc:
            raise ValueError("it is not the text that was kept")
        return text

    def add(self, entry: Entry, text: str, *, patient: bool = False) -> Entry:
        """Append a configuration under the next number, and forget the oldest.

        Its ``number`` and ``crc`` are set here. A disk that refuses is logged: routing goes on. If
        the caller is ``patient``, a shortage of descriptors is raised.
        """
        entry = msgspec.structs.replace(entry, number=0, crc=crc_of(text))
        try:
            numbers = self._numbers()
            entry = msgspec.structs.replace(entry, number=numbers[0] + 1 if numbers else 1)
            self._directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
            replace_file(self._file(entry.number, "yaml"), text.encode(), _MODE)
            self._write(entry)
            for number in numbers[KEPT - 1 :]:
                self._forget(number)
        except OSError as error:
            if patient and is_shortage(error):
                raise
            self._log.warning(
                "config-history-not-kept",
                directory=str(self._directory),
                error=error.strerror or str(error),
                effect="rollback does not know this configuration",
            )
        return entry

    def settle(self, entry: Entry, state: State, *, patient: bool = False) -> None:
        """Write another state of an entry, unless it was not kept; errors as in ``add``."""
        if not entry.number:
            return
        try:
            self._write(msgspec.structs.replace(entry, state=state))
        except OSError as error:
            if patient and is_shortage(error):
                raise
            text = error.strerror or str(error)
            self._log.warning("config-history-not-kept", number=entry.number, error=text)

    # -- files ------------------------------------------------------------------------------

    def _file(self, number: int, kind: str) -> Path:
        return self._directory / f"{number:08}.{kind}"

    def _numbers(self) -> list[int]:
        """The numbers that have facts, highest first."""
        try:
            files = list(self._directory.iterdir())
        except OSError as error:
            if is_shortage(error):
                raise
            return []
        names = [file.stem for file in files if file.suffix == ".json"]
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def _read(self, number: int) -> Entry | None:
        try:
            facts = read_small(self._file(number, "json"), _MOST_FACTS)
            entry = decode_json(facts, Entry)
        except (OSError, ValueError) as error:
            if is_shortage(error):
                raise
            self._log.warning("config-history-unreadable", number=number, error=str(error))
            return None
        return entry if entry.number == number else None

    def _write(self, entry: Entry) -> None:
        replace_file(self._file(entry.number, "json"), msgspec.json.encode(entry) + b"\n", _MODE)

    def _forget(self, number: int) -> None:
        for kind in ("json", "yaml"):
            self._file(number, kind).unlink(missing_ok=True)


def crc_of(text: str) -> int:
    """Return the CRC-32 of a text."""
    return zlib.crc32(text.encode())
