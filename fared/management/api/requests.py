"""Requests: the commands that change the daemon, or need more of it than a view has.

A request is one class: its command on the control socket, and fields, each with what it must be
and how the command line gives it. ``read`` checks the arguments of a request, ``cli.request`` makes
commands of ``fared-cli``. Views and answers are in ``documents``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec

from fared.core.units import parse_duration, parse_percent
from fared.management.api.respond import Json
from fared.management.documents.errors import CommandError
from fared.management.documents.human import LOG_LEVELS, PROTOCOLS

_R = TypeVar("_R", bound="DaemonRequest")


class Value(NamedTuple):
    """What a field must be: "NAME must be EXPECTED".

    ``accepts`` checks a value of the field's type. The option or argument has ``metavar`` and
    ``help``; ``parse`` reads its text. Raises ValueError, with a message for people.
    """

    expected: str
    accepts: Callable[[Any], bool] = lambda _: True
    metavar: str = ""
    help: str = ""
    parse: Callable[[str], Any] = str


class DaemonRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A command and its arguments; one that ``reads`` changes nothing."""

    command: ClassVar[str]
    reads: ClassVar[bool] = False

    def check(self) -> None:
        """Check fields together. Raises CommandError."""


class RequestField(NamedTuple):
    """A field of a request; ``type`` without None."""

    name: str
    type: Any
    value: Value
    required: bool


@cache
def fields_of(cls: type[DaemonRequest]) -> tuple[RequestField, ...]:
    """Return the fields of a request in order."""
    return tuple(_fields(cls))


def _fields(cls: type[DaemonRequest]) -> Iterator[RequestField]:
    hints = get_type_hints(cls, include_extras=True)
    for known in msgspec.structs.fields(cls):
        kind, value = get_args(hints[known.name])
        yield RequestField(known.name, kind, value, known.required)


def read(cls: type[_R], args: Json) -> _R:
    """Return a request with these arguments; null is none. Raises CommandError."""
    given: Json = {}
    for name, kind, value, required in fields_of(cls):
        found = args.get(name)
        if found is None and not required:
            continue
        try:
            given[name] = msgspec.convert(found, kind)
            good = value.accepts(given[name])
        except msgspec.ValidationError:
            good = False
        if not good:
            raise CommandError("bad-argument", f"{name} must be {value.expected}")
    request = cls(**given)
    request.check()
    return request


# -- what fields must be ----------------------------------------------------------------------

_MOST_LINE: Final = 200
_MOST_NAME: Final = 15
_MOST_PATH: Final = 1024
_MEGABYTE: Final = 1 << 20
_MOST_MEGABYTES: Final = 1 << 20
_LEAST_CONFIRM, _MOST_CONFIRM = 1.0, 86_400.0


def _line(text: str) -> bool:
    return len(text) <= _MOST_LINE and text.isprintable()


def _is_share(value: float) -> bool:
    return 0 <= value < 1


def duration(text: str) -> float:
    """Read a duration. Raises ValueError."""
    try:
        return parse_duration(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a duration such as 90s or 5m") from None


def _megabytes(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_MEGABYTES:
        raise ValueError(f"{text!r} is not 1 to {_MOST_MEGABYTES}")
    return int(text) * _MEGABYTE


def _place(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a number of the history")
    return int(text)


_ONE_LINE: Final = f"one line of at most {_MOST_LINE} printable characters"
Reason = Annotated[
    str,
    Value(_ONE_LINE, _line, "TEXT", "Why: shown by show status and show interfaces."),
]
Interface = Annotated[
    str | None,
    Value("the name of an interface", lambda name: 0 < len(name) <= _MOST_NAME, "NAME"),
]
Comment = Annotated[
    str, Value(_ONE_LINE, _line, "TEXT", "For the history: why this change is made.")
]
Confirm = Annotated[
    float | None,
    Value(
        f"{_LEAST_CONFIRM:g} to {_MOST_CONFIRM:g} seconds",
        lambda seconds: _LEAST_CONFIRM <= seconds <= _MOST_CONFIRM,
        "TIME",
        "Return to the former configuration after TIME (5m) unless it is confirmed.",
        duration,
    ),
]
_TEXT: Final = Value("text")
_SHARE: Final = Value(
    "0 to less than 1",
    _is_share,
    "PERCENT",
    "What is left of its capacity; 0%, the default: used if there is no other path.",
    lambda text: parse_percent(text, _is_share, "0% to 99%"),
)
_DIRECTORY: Final = Value(
    "an absolute path",
    lambda path: path.startswith("/") and path.isprintable() and len(path) <= _MOST_PATH,
    "[DIR]",
    parse=lambda text: str(Path(text).absolute()),
)
_SIZE: Final = Value(
    "1 MiB to 1 TiB, in bytes",
    lambda size: _MEGABYTE <= size <= _MOST_MEGABYTES * _MEGABYTE,
    "MIB",
    "Bound of all files; the oldest are removed (default 64).",
    _megabytes,
)
_NEIGHBOR: Final = Value("the name of a neighbor", _line, "NEIGHBOR")
_PROTO: Final = Value(" or ".join(PROTOCOLS), lambda name: name in PROTOCOLS, "PROTOCOL")
_LEVEL: Final = Value(f"one of {', '.join(LOG_LEVELS)}", lambda name: name in LOG_LEVELS, "LEVEL")
_BACK: Final = Value("a number", metavar="[N]", parse=_place)


# -- the requests -----------------------------------------------------------------------------


class DrainRequest(DaemonRequest, frozen=True, kw_only=True):
    """Drain the router, or (``interface``) a link, of which ``share`` is left."""

    command: ClassVar[str] = "drain"
    interface: Interface = None
    share: Annotated[float | None, _SHARE] = None
    reason: Reason = ""

    def check(self) -> None:
        """See ``DaemonRequest``."""
        if self.share is not None and self.interface is None:
            raise CommandError("bad-argument", "share is for an interface")


class UndrainRequest(DaemonRequest, frozen=True, kw_only=True):
    """Put the router, or a link, back into service."""

    command: ClassVar[str] = "undrain"
    interface: Interface = None


class RestartRequest(DaemonRequest, frozen=True, kw_only=True):
    """Restart the daemon."""

    command: ClassVar[str] = "restart"
    graceful: Annotated[bool, Value("true or false")] = True


class ClearLimitsRequest(DaemonRequest, frozen=True, kw_only=True):
    """Count full databases anew."""

    command: ClassVar[str] = "clear-limits"


class ClearNeighborRequest(DaemonRequest, frozen=True, kw_only=True):
    """End the adjacencies with a neighbor, which form again.

    ``soft``: only BGP, its routes are asked for, and told, again (RFC 2918).
    """

    command: ClassVar[str] = "clear-neighbor"
    neighbor: Annotated[str, _NEIGHBOR]
    proto: Annotated[str | None, _PROTO] = None
    soft: Annotated[bool, Value("true or false")] = False


class ClearCountersRequest(DaemonRequest, frozen=True, kw_only=True):
    """Begin the counters of ``show counters`` anew."""

    command: ClassVar[str] = "clear-counters"


class LogLevelRequest(DaemonRequest, frozen=True, kw_only=True):
    """Change the level of the log until the next reload or restart."""

    command: ClassVar[str] = "log-level"
    level: Annotated[str, _LEVEL]


class ReloadRequest(DaemonRequest, frozen=True, kw_only=True):
    """Reload the configuration file."""

    command: ClassVar[str] = "reload"


class ConfigDiffRequest(DaemonRequest, frozen=True, kw_only=True):
    """Compare a text, or the file, with what runs."""

    command: ClassVar[str] = "config-diff"
    reads: ClassVar[bool] = True
    text: Annotated[str | None, _TEXT] = None
    file: Annotated[str, _TEXT] = "FILE"


class ConfigApplyRequest(DaemonRequest, frozen=True, kw_only=True):
    """Validate, save and apply a text."""

    command: ClassVar[str] = "config-apply"
    text: Annotated[str, _TEXT]
    file: Annotated[str, _TEXT] = "FILE"
    confirm: Confirm = None
    comment: Comment = ""


class ConfigConfirmRequest(DaemonRequest, frozen=True, kw_only=True):
    """Keep what was applied to be confirmed."""

    command: ClassVar[str] = "config-confirm"


class ConfigRollbackRequest(DaemonRequest, frozen=True, kw_only=True):
    """Apply a former configuration."""

    command: ClassVar[str] = "config-rollback"
    back: Annotated[int | None, _BACK] = None
    confirm: Confirm = None
    comment: Comment = ""


class ConfigHistoryRequest(DaemonRequest, frozen=True, kw_only=True):
    """List the last configurations."""

    command: ClassVar[str] = "config-history"
    reads: ClassVar[bool] = True


class RecordStartRequest(DaemonRequest, frozen=True, kw_only=True):
    """Record the router; ``size`` in bytes."""

    command: ClassVar[str] = "record-start"
    directory: Annotated[str | None, _DIRECTORY] = None
    size: Annotated[int | None, _SIZE] = None


class RecordStopRequest(DaemonRequest, frozen=True, kw_only=True):
    """End the recording."""

    command: ClassVar[str] = "record-stop"


class RecordStatusRequest(DaemonRequest, frozen=True, kw_only=True):
    """The recording that runs, or the last one."""

    command: ClassVar[str] = "record-status"
    reads: ClassVar[bool] = True


REQUESTS: Final[dict[str, type[DaemonRequest]]] = {
    cls.command: cls
    for cls in (
        *(DrainRequest, UndrainRequest, RestartRequest, ClearLimitsRequest, ReloadRequest),
        *(ClearNeighborRequest, ClearCountersRequest, LogLevelRequest),
        *(
            ConfigDiffRequest,
            ConfigApplyRequest,
            ConfigConfirmRequest,
            ConfigRollbackRequest,
            ConfigHistoryRequest,
        ),
        *(RecordStartRequest, RecordStopRequest, RecordStatusRequest),
    )
}
