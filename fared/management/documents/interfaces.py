"""``show interfaces``: where protocols run, with capacity, load and designated routers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from fared.management.documents import human
from fared.management.documents.cells import Cell, Columns, judged, plural_list, yellow
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.interface import (
    AuthenticationStatus,
    HelloInterfaceFacts,
    InterfaceDetail,
    InterfaceEntry,
    InterfaceFacts,
    IsisInterfaceEntry,
    OspfInterfaceEntry,
)
from fared.management.documents.interface_detail import show_interface
from fared.management.documents.link import LinkHealthStatus
from fared.management.documents.missing import MissingAdjacency, show_missing
from fared.management.documents.neighbor import levels_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fared.management.documents.paper import Paper

_INTERFACES_SHOWN = 6
_ROLES = {"DR": "DR", "Backup": "BDR", "DR Other": "DROther", "Waiting": "waiting"}
_TTL_SECURITY = {"on": "255 sent and required", "tx-only": "255 sent"}


class Interfaces(Answer, tag="fared-interfaces/1"):
    """``show interfaces``; ``missing``: those without an adjacency.

    Argument ``name`` (an interface, or a router there): only those, with ``detail``, in the same
    order.
    """

    router_id: str
    interfaces: list[InterfaceEntry]
    missing: list[MissingAdjacency]
    detail: list[InterfaceDetail] | UnsetType = UNSET

    def show(self, paper: Paper) -> None:
        """Print the interfaces of each protocol, and what is special about some."""
        if self.detail is not UNSET:
            for index, (entry, detail) in enumerate(zip(self.interfaces, self.detail, strict=True)):
                show_interface(paper, entry, detail, first=index == 0)
            _derated(paper, self.interfaces)
            _health(paper, self.interfaces)
            show_missing(paper, self.missing)
            return
        for proto, entries in paper.by_protocol(self.interfaces):
            paper.table(entries, _INTERFACES[proto])
            paper.rates()
            _networks(paper, [e for e in entries if isinstance(e, OspfInterfaceEntry)])
            _lans(paper, [e for e in entries if isinstance(e, IsisInterfaceEntry)])
            _derated(paper, entries)
            _health(paper, entries)
            hellos = [e for e in entries if isinstance(e, HelloInterfaceFacts)]
            _authentication(paper, hellos)
            _ttl_security(paper, [e for e in entries if isinstance(e, OspfInterfaceEntry)])
            suppressed = [e.interface for e in hellos if e.prefix_suppression]
            names = [plural_list(suppressed, _INTERFACES_SHOWN)] if suppressed else []
            _more(paper, ("~Networks not advertised",), [(name,) for name in names])
        show_missing(paper, self.missing)


def _more(paper: Paper, columns: Iterable[str], rows: list[tuple[Cell, ...]]) -> None:
    """Print a table of cells after an empty line; nothing if there are no rows."""
    if rows:
        paper.line()
        paper.grid(columns, rows)


def _networks(paper: Paper, entries: list[OspfInterfaceEntry]) -> None:
    """Print the designated router of each network; one with priority 0 is never elected."""
    paper.more([e for e in entries if e.network_type == "broadcast"], _NETWORKS)


def _lans(paper: Paper, entries: list[IsisInterfaceEntry]) -> None:
    """Print the DIS of each LAN, by level."""
    rows: list[tuple[Cell, ...]] = [
        (
            entry.interface,
            str(lan.level),
            "DIS" if lan.is_dis else human.DASH,
            str(entry.priority),
            _named(lan.dis, lan.hostname),
        )
        for entry in entries
        if entry.network_type == "broadcast"
        for lan in entry.lans
    ]
    _more(paper, ("LAN", ">Level", "Role", ">Priority", "~Designated IS"), rows)


def _named(address: str | None, hostname: str | None) -> str:
    if address is None:
        return human.DASH
    return f"{address} ({hostname})" if hostname else address


def _derated(paper: Paper, entries: Iterable[InterfaceFacts]) -> None:
    """Print why less than the capacity of a link is advertised."""
    rows: list[tuple[Cell, ...]] = [
        (
            entry.interface,
            human.share(item.share),
            item.by,
            time.strftime("%b %d %H:%M", time.localtime(item.at)),
            item.reason,
        )
        for entry in entries
        for item in entry.derated
    ]
    _more(paper, ("Derated", ">Share", "By", "Since", "~Reason"), rows)


def _health(paper: Paper, entries: Iterable[InterfaceFacts]) -> None:
    """Print the watched links that are not well, and how long that lasts."""
    rows: list[tuple[Cell, ...]] = [
        (
            entry.interface,
            health.mode,
            str(health.errors),
            human.share(health.share),
            f"{health.penalty:.0f}",
            _follows(health),
        )
        for entry in entries
        if (health := entry.health) is not None and _follows(health)
    ]
    _more(paper, ("Sick", "Mode", ">Errors", ">Share", ">Penalty", "~What follows"), rows)


def _follows(health: LinkHealthStatus) -> str:
    follows = []
    if health.share < 1:
        follows.append(f"{health.reason}; well in {human.duration(health.recovers_in)}")
    if health.suppressed:
        follows.append(f"suppressed for {human.duration(health.reuse_in)}")
    return "; ".join(follows)


def _authentication(paper: Paper, entries: Iterable[HelloInterfaceFacts]) -> None:
    """Print the signing key, once for all interfaces in the same state."""
    alike: dict[tuple[Cell, ...], list[str]] = {}
    for entry in entries:
        if keys := entry.authentication:
            row = (keys.algorithm or human.DASH, *_key_ids(keys), yellow(_key_state(keys)))
            alike.setdefault(row, []).append(entry.interface)
    rows = [(plural_list(names, _INTERFACES_SHOWN), *row) for row, names in alike.items()]
    _more(paper, ("~Keys of", "Algorithm", ">Signs", "~Accepted", "~"), rows)


def _key_ids(keys: AuthenticationStatus) -> tuple[str, str]:
    """Format the id that signs and those accepted; a cleartext password has no id."""
    if keys.algorithm in (None, "cleartext"):
        return human.DASH, human.DASH
    return str(keys.key_id), ", ".join(map(str, keys.accepted_key_ids)) or human.DASH


def _key_state(keys: AuthenticationStatus) -> str:
    if keys.algorithm is None:
        return "no key is valid yet: nothing is sent"
    return "the last key, expired" if keys.expired else ""


def _ttl_security(paper: Paper, entries: list[OspfInterfaceEntry]) -> None:
    """Print where OSPF sends TTL 255, and where it accepts nothing else."""
    found = {
        meaning: [e.interface for e in entries if e.ttl_security == mode]
        for mode, meaning in _TTL_SECURITY.items()
    }
    rows: list[tuple[Cell, ...]] = [
        (plural_list(names, _INTERFACES_SHOWN), meaning)
        for meaning, names in found.items()
        if names
    ]
    _more(paper, ("~TTL security of", "~TTL"), rows)


def _state(entry: InterfaceFacts) -> Cell:
    passive = entry.passive and entry.up and entry.state != "Loopback"
    return judged("Passive" if passive else entry.state, good=entry.up)


def _load(entry: InterfaceFacts) -> str:
    if entry.utilized is None or not entry.bandwidth:
        return human.bandwidth(entry.utilized)
    return human.share(entry.utilized / entry.bandwidth)


def _full(entry: InterfaceFacts) -> str:
    return human.DASH if entry.passive else f"{entry.full}/{entry.neighbors}"


_LINK: Columns = {">Capacity": "bandwidth", ">Load": _load, ">Free": "available"}
_INTERFACES: dict[str, Columns] = {
    "ospf": {
        "Interface": "interface",
        "Area": "area",
        "State": _state,
        ">Cost": "cost",
        **_LINK,
        ">Full": _full,
        ">Flaps": "flaps",
    },
    "isis": {
        "Interface": "interface",
        "Levels": lambda e: levels_text(e.levels),
        "State": _state,
        ">Metric": "cost",
        **_LINK,
        ">Up": _full,
        ">Flaps": "flaps",
    },
    "bgp": {
        "Interface": "interface",
        "State": _state,
        **_LINK,
        ">Up": _full,
        ">Flaps": "flaps",
        "~Announced": lambda e: ", ".join(e.announced) or human.DASH,
    },
}
_NETWORKS: Columns = {
    "Network": "interface",
    "Role": lambda e: _ROLES.get(e.state, human.DASH),
    ">Priority": "priority",
    "~Designated router": lambda e: _named(e.designated_router, e.designated_router_hostname),
    "~Backup": lambda e: _named(e.backup_designated_router, e.backup_designated_router_hostname),
}

DOCUMENT = Document(
    Interfaces,
    "protocol:interfaces",
    "Interfaces with their capacity and load.\n\n"
    "With NAME (an interface, or a router at its other end) all that is known of these.",
    (Argument("name", word="NAME"),),
    narrowed=True,
)
