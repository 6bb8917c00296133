"""A recorded fault as a test: a file for pytest, and the recording beside it.

The test says what the replay has come to, fault included, and passes as it is written. Whoever
mends the fault corrects in it what was wrong, and sees it fail first.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fared.management.recording import calls, files
from fared.management.recording.files import RecordingError
from fared.management.recording.player import Played
from fared.paths.rib.model import Route
from fared.router.router import Router

MOST_ROUTES: Final = 500
"""Routes that a test lists; of a larger router it has the number."""
_NAME = re.compile(r"test_\w+\.py")
_TEST: Final = '''"""{subject}: a recording of fared {version}.

It was written by ``fared-cli replay --write-test``, as it was. Correct what is wrong in it: then it
fails until the router is corrected too.
"""

from pathlib import Path

from fared.management.recording.player import play
from fared.management.recording.written_test import route_lines

RECORDING = Path(__file__).with_suffix(".recording")
RAISED: list[str] = {raised}
ROUTES = {routes}


def test_the_recorded_router_comes_to_these_routes():
    played = play(RECORDING)
    assert played.raised == RAISED
    assert {found} == ROUTES
'''


def route_lines(router: Router) -> list[str]:
    """Return the routes as ``PREFIX METRIC: INTERFACE WEIGHT, ...``."""
    return [
        f"{prefix} {route.metric}: {_ways(route)}"
        for prefix, route in sorted(router.table.routes.items())
    ]


def _ways(route: Route) -> str:
    if route.nexthops is None or route.discard:
        return "discard" if route.discard else "connected"
    return ", ".join(f"{hop.interface} {hop.weight}" for hop in route.nexthops.hops)


def write_test(file: Path, directory: Path, played: Played) -> str:
    """Write the test of a replay; return the path of its recording. Raises RecordingError."""
    if _NAME.fullmatch(file.name) is None:
        raise RecordingError(f"{file.name} is no name of a test: test_NAME.py")
    if not played.new_router:
        raise RecordingError(
            "a test begins with the start of a daemon (fared --record): to load a state, as this"
            " recording begins with, runs what its writer wrote"
        )
    copy = file.with_suffix(".recording")
    if file.exists() or copy.exists():
        raise RecordingError(f"{file if file.exists() else copy} exists")
    router = played.router
    lines = route_lines(router)
    listed = len(lines) <= MOST_ROUTES
    end = f"after {played.call} calls"
    text = _TEST.format(
        subject=f"Router {router.settings.hostname or ''} {end}".replace("  ", " "),
        version=played.began.version,
        raised=_python(played.raised),
        routes=_python(lines) if listed else len(lines),
        found="route_lines(played.router)" if listed else "len(played.router.table.routes)",
    )
    try:
        _copy(directory, copy, played)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{error.filename}: {error.strerror}") from None
    return str(copy)


def _python(lines: list[str]) -> str:
    listed = "".join(f"    {json.dumps(line, ensure_ascii=False)},\n" for line in lines)
    return f"[\n{listed}]" if lines else "[]"


def _copy(directory: Path, copy: Path, played: Played) -> None:
    """Copy the calls that were played: whole segments, and of the last one up to the end.

    States stay behind. Nothing but plain values is read by a test.
    """
    copy.mkdir(mode=0o700)
    for segment in files.segments(directory):
        if segment.number > played.segment:
            continue
        target = copy / segment.file.name
        if segment.number < played.segment:
            shutil.copy(segment.file, target)
        else:
            target.write_bytes(calls.encoded(_first_calls(segment, played.offset)))
            target.chmod(0o600)


def _first_calls(segment: files.Segment, count: int) -> Iterator[calls.Line]:
    """Yield the lines of so many calls, and what describes the last one."""
    made = 0
    for line in segment.lines():
        made += isinstance(line, calls.CALLS)
        if made > count:
            return
        yield line
