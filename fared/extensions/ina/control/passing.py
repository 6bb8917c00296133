"""What border routers tell one area or level of another, for jobs that cross both.

A head floods a *wish* with the addresses of a new job's workers. A border router answers *up*, in
the backbone (area 0, level 2), what it knows of workers in its other areas, and *down*, in such an
area, what it knows of all others: of the backbone itself, and what others have told up. Nothing
that came down is told further, so that nothing circles. Each of these carries the job's adverts,
and what routers report of its workers.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from fared.core.text import printable
from fared.core.wire import DecodeError
from fared.extensions.ina.control.advert import SumCapability
from fared.extensions.ina.control.membership import WORKERS_KEY
from fared.extensions.ina.fields import MOST_JOB_ID, MOST_WORKERS, Address, JobName, Router

PASSED_KEY: Final = WORKERS_KEY + MOST_JOB_ID + 1
"""The lowest key of what is passed on; those of adverts and reports are lower."""
MOST_PASSED: Final = 64
"""Jobs that a border router passes on in a direction."""
Way = Literal["wish", "up", "down"]
_VERSION: Final = 1
_MOST_RAW: Final = 1 << 20
_MOST_ROUTERS: Final = 8192
_MOST_LINKS: Final = 16384
_MOST_HEADS: Final = 16
_Name = Annotated[str, Meta(max_length=255)]
_Rate = Annotated[float, Meta(ge=0.0)]
_Key = Annotated[int, Meta(ge=1, lt=WORKERS_KEY)]
_ReportKey = Annotated[int, Meta(gt=WORKERS_KEY, lt=PASSED_KEY)]


class AreaView(msgspec.Struct, frozen=True, array_like=True):
    """What is known of other areas: routers of workers, who sums, links (bytes/s), hostnames.

    ``bfrs`` are the routers that run BIER; former versions tell none.
    """

    hosts: Annotated[dict[Address, Router], Meta(max_length=MOST_WORKERS)] = {}
    routers: Annotated[dict[Router, SumCapability], Meta(max_length=_MOST_ROUTERS)] = {}
    links: Annotated[list[tuple[Router, Router, _Rate]], Meta(max_length=_MOST_LINKS)] = []
    names: Annotated[dict[Router, _Name], Meta(max_length=_MOST_ROUTERS)] = {}
    bfrs: Annotated[list[Router], Meta(max_length=_MOST_ROUTERS)] = []


class PassedAdvert(msgspec.Struct, frozen=True, array_like=True):
    """An advert as its head floods it."""

    head: Router
    key: _Key
    value: bytes


class PassedReport(msgspec.Struct, frozen=True, array_like=True):
    """What a router floods of the workers of an elastic job."""

    router: Router
    key: _ReportKey
    value: bytes


class Passed(msgspec.Struct, frozen=True, array_like=True):
    """All that one router passes on of a job in one way.

    ``asked``: the job is led, or wanted, on the side of which this tells; else it only answers.
    Former versions pass no ``reports`` on.
    """

    way: Way
    job: JobName
    version: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    asked: bool
    addresses: Annotated[tuple[Address, ...], Meta(max_length=MOST_WORKERS)]
    view: AreaView = AreaView()
    adverts: Annotated[tuple[PassedAdvert, ...], Meta(max_length=_MOST_HEADS)] = ()
    reports: Annotated[tuple[PassedReport, ...], Meta(max_length=_MOST_ROUTERS)] = ()


def encode_passed(passed: Passed) -> bytes:
    """Encode what is passed on."""
    return bytes((_VERSION,)) + zlib.compress(msgspec.msgpack.encode(passed), 9)


def decode_passed(value: bytes) -> Passed:
    """Decode what is passed on. Raises DecodeError."""
    if value[:1] != bytes((_VERSION,)):
        raise DecodeError("version", 0, value[:1].hex())
    try:
        raw = zlib.decompressobj().decompress(value[1:], _MOST_RAW)
        passed = msgspec.msgpack.decode(raw, type=Passed)
    except (zlib.error, msgspec.MsgspecError, RecursionError) as error:
        raise DecodeError("tlv", 1, f"job of other areas: {error}") from error
    names = {router: printable(name) for router, name in passed.view.names.items()}
    return replace(passed, view=replace(passed.view, names=names))


class PassedItems:
    """The keys of what one router floods in one area.

    Two keys for each job, in turn: OSPF and IS-IS limit how often one LSA or LSP changes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        """Bytes of a value."""
        self._places: dict[tuple[Way, str], int] = {}
        self._told: dict[tuple[Way, str], Passed] = {}

    def items(self, wanted: Mapping[tuple[Way, str], Passed]) -> dict[int, bytes]:
        """Return what to flood; versions of what is ``wanted`` are set here."""
        found: dict[int, bytes] = {}
        for gone in self._told.keys() - wanted.keys():
            del self._told[gone], self._places[gone]
        for what, passed in wanted.items():
            before = self._told.get(what)
            version = 0 if before is None else before.version
            now = replace(passed, version=version)
            if before is not None and now != before:
                now = replace(passed, version=version + 1)
            value = encode_passed(now)
            if len(value) > self._limit:
                continue
            if what not in self._places:
                used = set(self._places.values())
                self._places[what] = next(at for at in range(len(used) + 1) if at not in used)
            self._told[what] = now
            found[PASSED_KEY + 2 * self._places[what] + now.version % 2] = value
        return found
