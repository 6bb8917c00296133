"""The file compared with this machine: interfaces and addresses that it does not have.

Only a check that a person asks for does that: a daemon may start before its interfaces are there,
and a file may be checked on another machine. Then one warning says so instead of one each.

What a pattern takes in with the links of the fabric is said at every start: the management network
of a container or a switch, by which all routers would be neighbors of each other.
"""

from __future__ import annotations

import errno
import fnmatch
import socket
from collections.abc import Collection, Iterator
from typing import Any, Final

from fared.config.bgp_neighbor import is_address
from fared.config.checks import Compare
from fared.config.document import PathKey, Places
from fared.config.globs import is_glob
from fared.config.model import Config
from fared.config.traps import Trap
from fared.core.ids import dotted
from fared.core.link_facts import MANAGEMENT_PORTS

_SHOWN: Final = 8
_NO_LINK: Final = {
    False: "which has the default route: a management network is no link of the fabric. "
    "Take a pattern without it, or enter {name} if it is meant",
    True: "a management port of SONiC: no protocol runs there. Enter {name} if it is meant",
}


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


def management(leaving: Collection[str]) -> Compare:
    """Return what warns of patterns that match an interface with a default route, or of a switch.

    ``leaving``: the interfaces of default routes that people or DHCP made. One that the file names
    is meant.
    """

    def compare(config: Config, places: Places) -> Iterator[Trap]:
        entries = list(_entries(places))
        named = {key for _, key in entries}
        ports = _management_ports() if config.platform.is_sonic() else frozenset[str]()
        for name in sorted((ports | set(leaving)) - named):
            if not _sends_hellos(config, name):
                continue
            path, key = next((path, key) for path, key in entries if _matches(key, [name]))
            yield path, f"{key} matches {name}, {_NO_LINK[name in ports].format(name=name)}"

    return compare


def compared(leaving: Collection[str], *, here: bool) -> Compare:
    """Return what compares a file with this machine; not ``here``: only as a start does."""

    def compare(config: Config, places: Places) -> Iterator[Trap]:
        yield from management(leaving)(config, places)
        if here:
            yield from absent(config, places)

    return compare


def _management_ports() -> frozenset[str]:
    return MANAGEMENT_PORTS.intersection(name for _, name in socket.if_nameindex())


def _sends_hellos(config: Config, name: str) -> bool:
    found = (section.interface(name) for section in config.protocols.values())
    return any(entry is not None and entry[1].expects_neighbors for entry in found)


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
    for path, given in (*places.find("interfaces"), *places.find("neighbors")):
        known = path[0] in ("ospf", "isis") or path == ("bgp", "neighbors")
        entries: Any = given if known and isinstance(given, dict) else {}
        yield from (((*path, key), str(key)) for key in entries if not is_address(str(key)))
