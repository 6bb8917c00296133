"""The file compared with this machine: interfaces and addresses that it does not have.

Only a check that a person asks for does that: a daemon may start before its interfaces are there,
and a file may be checked on another machine. Then one warning says so instead of one each.
"""

from __future__ import annotations

import errno
import fnmatch
import socket
from collections.abc import Iterator
from typing import Any, Final

from fared.config.document import PathKey, Places
from fared.config.globs import is_glob
from fared.config.model import Config
from fared.config.traps import Trap
from fared.core.ids import dotted

_SHOWN: Final = 8


def absent(config: Config, places: Places) -> Iterator[Trap]:
    """Yield the names and patterns that match no interface, and a router id that none has."""
    names = [name for _, name in socket.if_nameindex()]
    entries = list(_entries(places))
    missing = [(path, key) for path, key in entries if not _matches(key, names)]
    known = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    used = [key for path, key in entries if key != "lo" and (path, key) not in missing]
    if missing and not used:
        message = f"this machine has none of the interfaces of the file: it has {known}"
        yield missing[0][0], message
        return
    for path, key in missing:
        what = "no interface of this machine matches" if is_glob(key) else "no such interface"
        yield path, f"{what}: it has {known}"
    if config.router_id is not None and not has_address(dotted(config.router_id)):
        yield ("router-id",), "no interface of this machine has this address, as a loopback should"


def has_address(address: str) -> bool:
    """Whether an interface has an IPv4 address: only then the kernel lets a socket bind to it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            return error.errno != errno.EADDRNOTAVAIL
    return True


def _matches(key: str, names: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, key) for name in names) if is_glob(key) else key in names


def _entries(places: Places) -> Iterator[tuple[PathKey, str]]:
    """Yield each name or pattern of an interface on which a protocol is to run."""
    for path, given in places.find("interfaces"):
        entries: Any = given if path[0] in ("ospf", "isis") and isinstance(given, dict) else {}
        for key in entries:
            yield (*path, key), str(key)
