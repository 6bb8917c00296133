"""Answers about recordings: that of a router, and its replay."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from fared.management.documents import cells, human
from fared.management.documents.cells import Cell, Columns, Fields, Styled, judged, red, yellow
from fared.management.documents.declare import Answer
from fared.management.documents.facts import Facts, Seconds, UnixTime

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

_MOST_OUTPUTS = 10
_MOST_RAISED = 5


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"


def _thousands(number: int) -> str:
    return f"{number:,}"


Bytes = Annotated[int, _mebibytes]
Number = Annotated[int, _thousands]


class RecordDocument(Answer, tag="fared-record/1"):
    """``record start``, ``stop`` and ``status``: the recording that runs, or the last one.

    ``since``: seconds since 1970; ``size`` and ``limit``: bytes; ``failure``: why it ended.
    """

    recording: bool
    directory: str | None = None
    since: UnixTime | None = None
    limit: Bytes | None = None
    failure: str | None = None
    segments: int = 0
    calls: Number = 0
    size: Bytes = 0

    def show(self, paper: Paper) -> None:
        """Print the state and the files."""
        paper.pairs(_files(self, paper.now))


class FirstDifference(Facts):
    """The call after which a replay first differs, and what the router gave out then."""

    segment: int
    call: Number
    now: float
    what: str
    outputs: list[str]


class Replay(Answer, tag="fared-replay/1"):
    """``replay DIR``. ``begins``: with the ``router``, or a ``state`` of it.

    ``calls``, ``seconds``: how far it came. ``reached``: whether the event ``until`` came, None
    without one. ``equal`` None: another version recorded it, so nothing was compared;
    ``confirmed``: databases and routes were equal at the end, too. ``raised``: exceptions;
    ``test``: the copy of the recording beside a test that was written.
    """

    directory: str
    version: str
    python: str
    recorded_at: UnixTime
    begins: str
    segment: int
    calls: Number
    seconds: Seconds
    until: str | None
    reached: bool | None
    equal: bool | None
    confirmed: bool
    difference: FirstDifference | None
    raised: list[str]
    events: dict[str, int]
    router_id: str
    hostname: str | None
    neighbors: int
    routes: Number
    databases_digest: str
    routes_digest: str
    test: str | None

    def show(self, paper: Paper) -> None:
        """Print what the replay came to, and the first difference."""
        paper.pairs(
            [
                *cells.facts(self, _REPLAY),
                *(("Raised", red(text)) for text in self.raised[:_MOST_RAISED]),
                *cells.facts(self, {"Events": _events}),
            ]
        )
        if self.difference is not None:
            _show_difference(self.difference, paper)


def _files(record: RecordDocument, now: float) -> Iterator[tuple[str, Cell]]:
    state = judged(
        "recording" if record.recording else "not recording", good=record.recording, bad=""
    )
    yield "State", (state, red(f", failed: {record.failure}" if record.failure else ""))
    if record.directory is not None and record.since is not None:
        text = Fields(record)
        yield "Directory", record.directory
        yield "Begun", f"{human.duration(now - record.since)} ago"
        yield "Calls", text["calls"]
        yield "Files", f"{text['size']} in {record.segments} segments, at most {text['limit']}"


def _recorded(replay: Replay) -> str:
    begun = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(replay.recorded_at))
    begins = "its first call" if replay.begins == "router" else "a state"
    return f"{begun} by fared {replay.version}, from {begins} on"


def _result(replay: Replay) -> Styled:
    if replay.equal is None:
        return yellow("not compared: another version wrote it")
    if not replay.equal:
        return red("differs")
    end = ", databases and routes at the end too" if replay.confirmed else ""
    return judged(f"all outputs are equal{end}", good=True)


def _until(replay: Replay) -> Styled | None:
    if replay.until is None:
        return None
    word = "reached" if replay.reached else "did not come"
    return judged(f"{replay.until}: {word}", good=bool(replay.reached))


def _events(replay: Replay) -> str:
    events = sorted(replay.events.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {_thousands(number)}" for name, number in events)


def _show_difference(found: FirstDifference, paper: Paper) -> None:
    """Print the first difference, with the outputs of this router."""
    where = f"segment {found.segment}, call {_thousands(found.call)}, at {found.now:.6f} s"
    paper.line()
    paper.line(red(f"{where}: {found.what}"))
    for output in found.outputs[:_MOST_OUTPUTS]:
        paper.line(f"  {output}")
    left = len(found.outputs) - _MOST_OUTPUTS
    if left > 0:
        paper.line(f"  and {left} more")


_REPLAY: Columns = {
    "Router": lambda replay: human.router(replay.router_id, replay.hostname),
    "Recorded": _recorded,
    "Replayed": "{calls} calls, {seconds}",
    "Result": _result,
    "Until": _until,
    "Now": "{neighbors} links in use, {routes} routes",
    "Digests": "databases {databases_digest}, routes {routes_digest}",
    "Test": lambda replay: None if replay.test is None else f"written, with {replay.test}",
}
