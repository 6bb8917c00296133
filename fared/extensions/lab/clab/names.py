"""Names of interfaces: Linux refuses ``/``, ``:``, blanks, and more than 15 characters."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}")
_TAKEN = {"all", "default"}
"""Names of directories in /proc/sys/net/ipv4/conf."""
_LONGEST = 15
_NOKIA = re.compile(r"ethernet-(\d+(?:/\d+)+)")
_SHORT = (
    ("FourHundredGig", "FH"),
    ("TwoHundredGig", "TH"),
    ("HundredGig", "Hu"),
    ("FiftyGig", "Fi"),
    ("FortyGig", "Fo"),
    ("TwentyFiveGig", "Tw"),
    ("TenGig", "Te"),
    ("Gigabit", "Gi"),
    ("Ethernet", "Et"),
)
_PREFIX = re.compile(r"([A-Za-z]+)(.*)", re.DOTALL)


def mapped(names: Iterable[str]) -> dict[str, str]:
    """Return what the interfaces of a node are called here: as written, where Linux takes it.

    Other names keep their numbers, with ``-`` between them: ``ge-0/0/1`` is ``ge-0-0-1``, and
    ``ethernet-1/1`` is ``e1-1``, as in SR Linux. No two are called the same.
    """
    wanted = list(dict.fromkeys(names))
    found = {name: name for name in wanted if _takes(name)}
    for name in wanted:
        if name not in found:
            found[name] = _free(_spelled(name), set(found.values()))
    return {name: found[name] for name in wanted}


def _takes(name: str) -> bool:
    return _PLAIN.fullmatch(name) is not None and name not in _TAKEN


def _spelled(name: str) -> str:
    nokia = _NOKIA.fullmatch(name)
    if nokia is not None:
        return "e" + nokia[1].replace("/", "-")
    plain = re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.") or "port"
    if len(plain) <= _LONGEST:
        return plain
    parted = _PREFIX.fullmatch(plain)
    if parted is None:
        return plain
    short = next((to for long, to in _SHORT if parted[1].startswith(long)), parted[1][:2])
    return f"{short}{parted[2]}"


def _free(name: str, taken: set[str]) -> str:
    short = name[:_LONGEST].rstrip("-.")
    number, free = 1, short
    while free in taken or not _takes(free):
        number += 1
        free = f"{short[: _LONGEST - 1 - len(str(number))]}-{number}"
    return free
