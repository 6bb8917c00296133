"""``fared-cli record ...`` and ``replay``: a router's inputs in files, and the router again."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from fared.management.api.requests import RecordStartRequest, RecordStatusRequest, RecordStopRequest
from fared.management.cli.request import request_command
from fared.management.cli.session import Failure, Json, Session, once_options, output_options
from fared.management.cli.words import Words

_VERSIONS = (
    "a recording that begins with the start of a daemon (fared --record) is read by later versions,"
    " one that begins with a state only by the version that wrote it"
)
_TESTS = "--write-test needs a new name such as test_fault.py"
_RECORDINGS = "'fared-cli record status' names the directory of the recording"
_TRUST = "--trust loads it: do that only if you know who wrote it"


@click.group(cls=Words)
@output_options
def record() -> None:
    """Record all inputs of the router, so that a fault can be replayed."""


record.add_command(
    request_command(
        RecordStartRequest,
        "Record from now on, in DIR (default: recording, below state-directory). It holds secrets.",
        "directory",
    ),
    "start",
)
record.add_command(request_command(RecordStopRequest, "End the recording."), "stop")
record.add_command(
    request_command(RecordStatusRequest, "Show the recording that runs, or the last one."), "status"
)


@click.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "--until",
    default="",
    metavar="EVENT",
    help="Stop there: a name of a log line, an input or an output; NAME:3 is the third; a number"
    " counts calls.",
)
@click.option(
    "--trust",
    is_flag=True,
    help="Load states that were not signed on this machine: that runs what they say.",
)
@click.option(
    "--write-test",
    "test",
    metavar="FILE",
    help="Write a test of what the replay comes to, and copy the recording beside it.",
)
@once_options
@click.pass_obj
def replay(session: Session, directory: str, until: str, test: str | None, *, trust: bool) -> None:
    """Run a router on the recording in DIR, without I/O. Exit 1 if it does not do the same."""
    from fared.management.documents.views.replay import replayed  # noqa: PLC0415 - the router: 100 ms
    from fared.management.recording.files import RecordingError  # noqa: PLC0415 - as above
    from fared.management.recording.written_test import write_test  # noqa: PLC0415 - as above

    source = Path(directory)
    try:
        played, document = replayed(source, until=until, trust=trust)
        if test is not None:
            document.test = write_test(Path(test), source, played)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--until") from None
    except RecordingError as error:
        raise Failure(str(error), _hint(str(error))) from None
    session.show(lambda: msgspec.to_builtins(document), bad=_bad)


def _hint(words: str) -> str:
    if "not signed" in words:
        return _TRUST
    if "version" in words or "no other can load" in words:
        return _VERSIONS
    return _TESTS if "test" in words or "exists" in words else _RECORDINGS


def _bad(document: Json) -> bool:
    """Whether the replay differs, or has not come to where it should stop."""
    return document["equal"] is False or document["reached"] is False
