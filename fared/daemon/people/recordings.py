"""What ``record start``, ``stop`` and ``status`` do, and their answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from fared.daemon.services.running import Services
from fared.management.documents.errors import CommandError
from fared.management.documents.recordings import RecordDocument

if TYPE_CHECKING:
    from fared.management.api.requests import RecordStartRequest

_DIRECTORY: Final = "recording"
"""Below ``state-directory``, where no other is given."""


def begin_recording(
    services: Services, state_directory: str, asked: RecordStartRequest
) -> RecordDocument:
    """Record from now on, by default below ``state_directory``. Raises CommandError."""
    recorder = services.make_recorder()
    if recorder.running and recorder.last is not None:
        raise CommandError("busy", f"a recording runs: {recorder.last.directory}")
    from fared.management.recording.files import RecordingError  # noqa: PLC0415 - loaded by the recorder

    directory = Path(asked.directory or Path(state_directory) / _DIRECTORY)
    try:
        recorder.begin(directory, asked.size)
    except RecordingError as error:
        raise CommandError("unsupported", str(error)) from None
    return recording_status(services)


async def end_recording(services: Services) -> RecordDocument:
    """End the recording. Raises CommandError."""
    if services.recorder is None or not services.recorder.running:
        raise CommandError("not-found", "no recording runs")
    await services.recorder.end()
    return recording_status(services)


def recording_status(services: Services) -> RecordDocument:
    """Return the document: the present recording, or the last one."""
    recorder = services.recorder
    found = None if recorder is None else recorder.look()
    if recorder is None or found is None:
        return RecordDocument(recording=False)
    return RecordDocument.of(
        found,
        recording=recorder.running,
        directory=str(found.directory),
        failure=found.failure or None,
    )
