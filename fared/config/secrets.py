"""Authentication keys of the config file: secrets that never leave it in words.

A ``Secret`` or ``KeyFile`` is compared by what it holds and shown without it. Only a document
made for comparison (``comparing``) carries the content, and ``changes`` hides it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, PlainSerializer, SerializationInfo, WithJsonSchema

from fared.config.values import expected

HIDDEN: Final = "<hidden>"
SECTION: Final = "authentication"
COMPARING: Final = {"secrets": True}
"""Serialization context of a document that is made to be compared, not shown."""
_KEY_NAME: Final = re.compile(r"[A-Za-z][A-Za-z_-]{0,19}")
_MAX_FILE: Final = 4096
_SEPARATOR: Final = "\0"


@dataclass(frozen=True, slots=True)
class Secret:
    """A key as written in the file."""

    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A file that holds a key, and the key: its first line."""

    path: str
    content: bytes = field(repr=False)


def _parse_secret(value: object) -> Secret:
    if not isinstance(value, str):
        raise expected("a key as text", hint="digits and dates need quotes")
    if value == HIDDEN:
        raise expected("a key", hint="show config hides it; put the key itself here")
    if not value:
        raise expected("a key that is not empty")
    return Secret(value.encode())


def _parse_key_file(value: object) -> KeyFile:
    what = "an absolute path of a file whose first line is the key"
    if not isinstance(value, str) or not value.startswith("/"):
        raise expected(what)
    try:
        with Path(value).open("rb") as source:
            text = source.read(_MAX_FILE)
    except OSError as error:
        raise expected("a readable key file", hint=str(error.strerror)) from None
    except ValueError:
        raise expected(what) from None
    content = text.splitlines()[0] if text else b""
    if not content:
        raise expected(what, hint="its first line is empty")
    return KeyFile(value, content)


def _parse_time(value: object) -> datetime:
    what = "a time with its zone such as 2027-01-31T12:00:00Z"
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise expected(what) from None
    if not isinstance(value, datetime):
        raise expected(what)
    if value.tzinfo is None:
        raise expected(what, hint="Z is missing, or an offset such as +01:00")
    return value.astimezone(UTC)


def _show_time(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


def _show_secret(value: Secret, info: SerializationInfo) -> str:
    return value.content.decode() if info.context else HIDDEN


def _show_key_file(value: KeyFile, info: SerializationInfo) -> str:
    return f"{value.path}{_SEPARATOR}{value.content.hex()}" if info.context else value.path


SecretText = Annotated[
    Secret,
    BeforeValidator(_parse_secret),
    PlainSerializer(_show_secret),
    WithJsonSchema({"type": "string", "minLength": 1}),
]
KeyFilePath = Annotated[
    KeyFile,
    BeforeValidator(_parse_key_file),
    PlainSerializer(_show_key_file),
    WithJsonSchema({"type": "string", "examples": ["/etc/fared/ospf.key"]}),
]
Timestamp = Annotated[
    datetime,
    BeforeValidator(_parse_time),
    PlainSerializer(_show_time),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


def without_secrets(path: tuple[str, ...], value: Any) -> Any:  # noqa: ANN401 - part of a document
    """Hide the secrets in a part of a document that was made for comparison."""
    if SECTION not in path:
        return value
    if isinstance(value, dict):
        return {key: without_secrets((*path, str(key)), part) for key, part in value.items()}
    if isinstance(value, list):
        return [without_secrets(path, part) for part in value]
    if path[-1] == "key" and value is not None:
        return HIDDEN
    if path[-1] == "key-file" and isinstance(value, str):
        return value.partition(_SEPARATOR)[0]
    return value


def shown(path: tuple[Any, ...], value: object, show: Callable[[object], str]) -> str:
    """Show what was given at a place of the file, for an error: a secret may stand anywhere."""
    if SECTION not in path or value is None or isinstance(value, dict | list | bool):
        return show(value)
    if isinstance(value, datetime):
        return value.isoformat()
    number = path[-1] == "key-id" and isinstance(value, int)
    file = path[-1] == "key-file" and str(value).startswith("/")
    return show(value) if number or file else "something else"


def presentable(path: tuple[Any, ...]) -> bool:
    """Whether the last key of a path may be shown: ``{key:secret}`` is one key, with the secret."""
    return SECTION not in path[:-1] or bool(_KEY_NAME.fullmatch(str(path[-1])))
