"""Arguments and answers of ``record start``, ``stop`` and ``status``."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Final

from fared.daemon.services.running import Services
from fared.management.api.errors import CommandError
from fared.management.api.respond import Json

LEAST, MOST = 1 << 20, 1 << 40
"""Bytes of a recording."""
_DIRECTORY: Final = "recording"
"""Below ``state-directory``, where no other is given."""
_MOST_PATH: Final = 1024


def recording(
    services: Services, state_directory: str, command: str, args: Json
) -> Json | Awaitable[Json]:
    """Answer a command; recordings are below ``state_directory`` by default.

    Raises CommandError.
    """
    match command:
        case "record-start":
            return _start(services, state_directory, args)
        case "record-stop":
            return _stop(services)
        case "record-status":
            return _status(services)
    raise CommandError("unknown-command", f"no such command: {command}")


def _start(services: Services, state_directory: str, args: Json) -> Json:
    directory, limit = _asked(args, state_directory)
    recorder = services.make_recorder()
    if recorder.running and recorder.last is not None:
        raise CommandError("busy", f"a recording runs: {recorder.last.directory}")
    from fared.management.recording.files import RecordingError  # noqa: PLC0415 - loaded by the recorder

    try:
        recorder.begin(directory, limit)
    except RecordingError as error:
        raise CommandError("unsupported", str(error)) from None
    return _status(services)


async def _stop(services: Services) -> Json:
    if services.recorder is None or not services.recorder.running:
        raise CommandError("not-found", "no recording runs")
    await services.recorder.end()
    return _status(services)


def _status(services: Services) -> Json:
    """Return the document: the present recording, or the last one."""
    recorder = services.recorder
    found = None if recorder is None else recorder.look()
    if recorder is None or found is None:
        return _document(running=False)
    return _document(
        running=recorder.running,
        directory=str(found.directory),
        since=found.since,
        segments=found.segments,
        calls=found.calls,
        size=found.size,
        limit=found.limit,
        failure=found.failure or None,
    )


def _document(*, running: bool, **known: Any) -> Json:  # noqa: ANN401 - fields of the document
    empty: Json = dict.fromkeys(("directory", "since", "limit", "failure"))
    zero: Json = dict.fromkeys(("segments", "calls", "size"), 0)
    return {"format": "fared-record/1", "recording": running, **empty, **zero, **known}


def _asked(args: Json, state_directory: str) -> tuple[Path, int | None]:
    """Return the directory and the size in bytes. Raises CommandError."""
    given, size = args.get("directory"), args.get("size")
    directory = str(Path(state_directory) / _DIRECTORY) if given is None else given
    if (
        not isinstance(directory, str)
        or not directory.startswith("/")
        or not directory.isprintable()
        or len(directory) > _MOST_PATH
    ):
        raise CommandError("bad-argument", "directory must be an absolute path")
    if size is not None and (
        isinstance(size, bool) or not isinstance(size, int) or not LEAST <= size <= MOST
    ):
        raise CommandError("bad-argument", "size must be 1 MiB to 1 TiB, in bytes")
    return Path(directory), size
