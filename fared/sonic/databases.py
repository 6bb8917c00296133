"""Numbers, separators and sockets of SONiC's databases, from its ``database_config.json``."""

from __future__ import annotations

from pathlib import Path

import msgspec

MOST_BYTES = 1 << 20
NAMES = ("APPL_DB", "COUNTERS_DB", "CONFIG_DB", "STATE_DB")
"""Those that are read."""


class SonicDatabase(msgspec.Struct, frozen=True):
    """One database: the path of its server's socket, its number there, and what divides keys."""

    socket: str
    number: int
    separator: str

    def key(self, *parts: str) -> str:
        """Join the parts of a key."""
        return self.separator.join(parts)


class _RedisInstance(msgspec.Struct):
    unix_socket_path: str = ""


class _DatabaseEntry(msgspec.Struct):
    id: int
    separator: str
    instance: str


class _DatabaseConfig(msgspec.Struct, rename="upper"):
    databases: dict[str, _DatabaseEntry]
    instances: dict[str, _RedisInstance] = {}


def read_databases(path: str, socket: str | None = None) -> dict[str, SonicDatabase]:
    """Return the databases of ``NAMES``; ``socket`` replaces that of the file.

    Raises OSError, or ValueError with what is wrong in the file.
    """
    with Path(path).open("rb") as source:
        raw = source.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES} bytes")
    return parse_databases(raw, socket)


def parse_databases(raw: bytes, socket: str | None = None) -> dict[str, SonicDatabase]:
    """Return what such a file says. Raises ValueError."""
    try:
        file = msgspec.json.decode(raw, type=_DatabaseConfig)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return {name: _database(file, name, socket) for name in NAMES}


def _database(file: _DatabaseConfig, name: str, socket: str | None) -> SonicDatabase:
    entry = file.databases.get(name)
    if entry is None:
        raise ValueError(f"no {name}")
    if len(entry.separator) != 1:
        raise ValueError(f"{name}: separator {entry.separator!r} is not one character")
    if not 0 <= entry.id < 1 << 16:
        raise ValueError(f"{name}: id {entry.id}")
    path = socket or file.instances.get(entry.instance, _RedisInstance()).unix_socket_path
    if not path or "\0" in path:
        raise ValueError(f"{name}: no unix_socket_path of instance {entry.instance!r}")
    return SonicDatabase(path, entry.id, entry.separator)
