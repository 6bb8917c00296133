"""Authentication keys of the configuration file: secrets that are never shown.

A ``Secret`` or ``KeyFile`` is compared by its key, and shown without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from fared.config.document import PathKey
from fared.config.files import NotRegularError, read_regular
from fared.config.reading import Reading, Refused
from fared.config.shapes import Json, Scalar
from fared.config.values import expected

HIDDEN: Final = "<hidden>"
SECTION: Final = "authentication"
_KEY_NAME: Final = re.compile(r"[A-Za-z][A-Za-z_-]{0,19}")
_WORD: Final = re.compile(r"(hmac|keyed|meticulous)?-?(sha|md5)-?\d{0,3}|plain|text|none|null")
_MAX_FILE: Final = 4096
_WHAT_KEY: Final = "a key as text"
_WHAT_FILE: Final = "an absolute path of a file whose first line is the key"
_WHAT_TIME: Final = "a time with its zone such as 2027-01-31T12:00:00Z"


class Secret(msgspec.Struct, frozen=True):
    """A key as written in the file; its ``repr`` hides it."""

    content: bytes

    def __repr__(self) -> str:
        return "Secret()"


class KeyFile(msgspec.Struct, frozen=True):
    """The name of a key file, and the key: its first line, which ``repr`` hides."""

    path: str
    content: bytes

    def __repr__(self) -> str:
        return f"KeyFile(path={self.path!r})"


def _parse_secret(value: object) -> Secret:
    if not isinstance(value, str):
        raise expected(_WHAT_KEY, hint="digits and dates need quotes")
    if value == HIDDEN:
        raise expected("a key", hint="show config hides it; enter the key itself here")
    if not value:
        raise expected("a key that is not empty")
    return Secret(value.encode())


def _read_key_file(value: object, reading: Reading) -> KeyFile:
    if not isinstance(value, str) or not value.startswith("/"):
        raise expected(_WHAT_FILE)
    try:
        text, others_write = read_regular(Path(value), _MAX_FILE)
    except NotRegularError as error:
        raise expected("a regular file", hint=f"it is {error.strerror}") from None
    except OSError as error:
        raise expected("a readable key file", hint=str(error.strerror)) from None
    except ValueError:
        raise expected(_WHAT_FILE) from None
    content = text.splitlines()[0] if text else b""
    if not content:
        raise expected(_WHAT_FILE, hint="its first line is empty")
    if others_write:
        reading.exposed.add(value)
    return KeyFile(value, content)


def _parse_time(value: object) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        raise ValueError  # noqa: TRY004 - a value of the file, not of the program
    if value.tzinfo is None:
        raise expected(_WHAT_TIME, hint="Z is missing, or an offset such as +01:00")
    return value.astimezone(UTC)


def _show_time(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


def _show_secret(_: Secret) -> str:
    return HIDDEN


class _KeyFileShape:
    """The file gives the name of the key file, which holds the key."""

    words = _WHAT_FILE

    def read(self, data: object, path: PathKey, reading: Reading) -> KeyFile | None:
        """Read the key file; note one that others can write."""
        try:
            return _read_key_file(data, reading)
        except Refused as refused:
            reading.refuse(path, refused, data)
            return None

    def write(self, value: KeyFile) -> str:
        """Return its name."""
        return value.path

    def describe(self, definitions: Json) -> Json:
        """Return the JSON schema."""
        _ = definitions
        return {"type": "string", "examples": ["/etc/fared/ospf.key"]}


SecretText = Annotated[
    Secret, Scalar(_WHAT_KEY, _parse_secret, {"type": "string", "minLength": 1}, _show_secret)
]
KeyFilePath = Annotated[KeyFile, _KeyFileShape()]
Timestamp = Annotated[
    datetime,
    Scalar(_WHAT_TIME, _parse_time, {"type": "string", "format": "date-time"}, _show_time),
]


def shown(path: tuple[Any, ...], value: object, show: Callable[[object], str]) -> str:
    """Format a given value for an error; secrets, which may be anywhere, are hidden."""
    if SECTION not in path or value is None or isinstance(value, dict | list | bool):
        return show(value)
    if isinstance(value, datetime):
        return value.isoformat()
    number = path[-1] == "key-id" and isinstance(value, int)
    file = path[-1] == "key-file" and str(value).startswith("/")
    # a word for an algorithm, unless it is a key in its place
    word = path[-1] == "algorithm" and isinstance(value, str) and bool(_WORD.fullmatch(value))
    return show(value) if number or file or word else "something else"


def presentable(path: tuple[Any, ...]) -> bool:
    """Whether the last key of a path may be shown: ``{key:secret}`` is one key with the secret."""
    return SECTION not in path[:-1] or bool(_KEY_NAME.fullmatch(str(path[-1])))
