"""The lines of a recording: each call into the router, with what it needs to be made again.

Times are those of the router's clock, seconds. A line is a msgpack array behind its length; the
file of a killed process may end inside one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from fared.management.recording.values import NamedClass

FORMAT: Final = "fared-record/1"
_LENGTH: Final = 4
MOST_LINE: Final = 1 << 28
"""Bytes of a line; a longer one is damage."""


class SegmentBegun(msgspec.Struct, frozen=True, array_like=True, tag="b"):
    """The first line. ``version`` is that of fared, ``python`` such as ``3.11``.

    ``wall``: seconds since 1970 of the router's ``now``. ``continues``: no call is missing between
    the segment before and this one.
    """

    format: str
    version: str
    python: str
    number: int
    now: float
    wall: float
    continues: bool = False


class NewRouter(msgspec.Struct, frozen=True, array_like=True, tag="n"):
    """The segment begins with a new router, of these settings (a written value)."""

    settings: Any
    seed: int | str
    now: float


class InputHandled(msgspec.Struct, frozen=True, array_like=True, tag="h"):
    """``Router.handle`` of an event (a written value)."""

    now: float
    event: Any


class RefusedOperation(msgspec.Struct, frozen=True, array_like=True):
    """An operation that failed: its place in the request, errno, message, and what it was to write.

    ``subject`` finds the operation where another version writes in another order; empty: written
    by a version that knew the place only.
    """

    place: int
    error: int
    message: str
    subject: str = ""


class FibAnswered(msgspec.Struct, frozen=True, array_like=True, tag="a"):
    """``Router.handle`` of the answer to an ``ApplyFib``, the one of this ``place`` of those open.

    ``errors``: the operations that failed.
    """

    now: float
    place: int
    errors: tuple[RefusedOperation, ...]
    seconds: float


class AgeDetected(msgspec.Struct, frozen=True, array_like=True, tag="s"):
    """``Router.detected``."""

    seconds: float


class ClockTicked(msgspec.Struct, frozen=True, array_like=True, tag="t"):
    """``Router.tick``."""

    now: float


class OutputsTaken(msgspec.Struct, frozen=True, array_like=True, tag="o"):
    """``Router.take_outputs`` begins."""


class StopwatchRead(msgspec.Struct, frozen=True, array_like=True, tag="w"):
    """What the stopwatch showed during the call before, seconds."""

    readings: tuple[float, ...]


class OutputsGiven(msgspec.Struct, frozen=True, array_like=True, tag="g"):
    """The outputs of the ``take_outputs`` before: their number and a digest of all of them."""

    count: int
    digest: bytes


class CallRaised(msgspec.Struct, frozen=True, array_like=True, tag="r"):
    """The call before raised an exception of this class, with these words."""

    error: str
    words: str


class StateSeen(msgspec.Struct, frozen=True, array_like=True, tag="e"):
    """Digests of databases and routes at this time; the last line of a recording that ended."""

    now: float
    databases: bytes
    routes: bytes


Line = (
    SegmentBegun
    | NewRouter
    | NamedClass
    | InputHandled
    | FibAnswered
    | AgeDetected
    | ClockTicked
    | OutputsTaken
    | StopwatchRead
    | OutputsGiven
    | CallRaised
    | StateSeen
)
CALLS = (InputHandled, FibAnswered, AgeDetected, ClockTicked, OutputsTaken)
"""The lines that are calls; those between describe the call before."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Line)


class DamagedLineError(ValueError):
    """A line that is complete, and no line of a recording."""


def encoded(lines: Iterable[Line]) -> bytes:
    """Return lines as they stand in a file."""
    written = map(_ENCODER.encode, lines)
    return b"".join(len(line).to_bytes(_LENGTH, "big") + line for line in written)


def decoded(content: bytes) -> Iterator[Line]:
    """Yield the lines of a file, without one that is cut off. Raises DamagedLineError."""
    at = 0
    while at + _LENGTH <= len(content):
        size = int.from_bytes(content[at : at + _LENGTH], "big")
        if size > MOST_LINE:
            raise DamagedLineError(f"a line of {size} bytes at byte {at}")
        at += _LENGTH
        if at + size > len(content):
            return
        try:
            yield _DECODER.decode(memoryview(content)[at : at + size])
        except (msgspec.DecodeError, RecursionError) as error:
            raise DamagedLineError(f"at byte {at}: {error}") from None
        at += size
