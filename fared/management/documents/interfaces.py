"""``show interfaces``: where protocols run, with capacity, load and designated routers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fared.management.documents import human
from fared.management.documents.cells import Cell, Columns, judged, plural_list, yellow
from fared.management.documents.declare import Answer, Document
from fared.management.documents.facts import BytesPerSecond, Facts, OfProtocol, Seconds
from fared.management.documents.link import Derated, LinkHealthStatus
from fared.management.documents.missing import MissingAdjacency, show_missing
from fared.management.documents.neighbors import RefusedHelloEntry, levels_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fared.management.documents.paper import Paper

_INTERFACES_SHOWN = 6
_ROLES = {"DR": "DR", "Backup": "BDR", "DR Other": "DROther", "Waiting": "waiting"}
_TTL_SECURITY = {"on": "255 sent and required", "tx-only": "255 sent"}


class AuthenticationStatus(Facts):
    """The id of the key that signs on an interface, and the key ids it accepts; never a key.

    ``algorithm`` None: no key's lifetime has begun, nothing is sent. ``extended``: sequence numbers
    of RFC 7474. ``expired``: the last key is in use after its end.
    """

    algorithm: str | None
    key_id: int | None
    extended: bool
    expired: bool
    accepted_key_ids: list[int]


class InterfaceFacts(OfProtocol):
    """One interface that a protocol runs on.

    ``prefix_suppression``: its network is not advertised. ``full`` counts the neighbors that are
    Full (OSPF) or Up (IS-IS). ``bandwidth`` is the capacity of the link, ``bandwidth_source`` its
    source: config, shaper, speed, or None. A ``derated`` link has the least share of the deratings
    left. ``utilized`` and ``available`` are measured outbound load and the rest of the capacity,
    ``announced_available`` the value advertised last: a change of load below the announce threshold
    is not advertised.
    """

    interface: str
    ifindex: int
    area: str
    network_type: str
    state: str
    passive: bool
    prefix_suppression: bool
    priority: int
    cost: int
    mtu: int
    addresses: list[str]
    """With prefix length: ``10.128.0.1/31``."""
    unnumbered: bool
    up: bool
    bandwidth: BytesPerSecond
    bandwidth_source: str | None
    utilized: BytesPerSecond
    available: BytesPerSecond
    health: LinkHealthStatus | None
    derated: list[Derated]
    announced_available: BytesPerSecond
    hello_interval: Seconds
    dead_interval: Seconds
    neighbors: int
    full: int
    flaps: int
    refused: list[RefusedHelloEntry]
    authentication: AuthenticationStatus | None


class OspfInterfaceEntry(InterfaceFacts, tag="ospf"):
    """One interface. ``state`` is a term of RFC 2328 §9.1.

    It is Down, Loopback, Point-to-point, Waiting, DR Other, Backup or DR. The designated
    routers are interface addresses, None where there are none. ``ttl_security``: off, tx-only, on.
    """

    designated_router: str | None
    designated_router_hostname: str | None
    backup_designated_router: str | None
    backup_designated_router_hostname: str | None
    ttl_security: str


class Lan(Facts):
    """One level of a broadcast circuit.

    ``dis`` is the LAN id that the designated IS assigned (``0102.5500.0004.02``), None while none
    is elected.
    """

    level: int
    dis: str | None
    hostname: str | None
    is_dis: bool


class IsisInterfaceEntry(InterfaceFacts, tag="isis"):
    """One circuit. ``state`` is Down, Loopback, Point-to-point, LAN, or DIS if we are the DIS.

    ``cost`` is the metric, ``dead_interval`` the holding time in our hellos. ``pending`` LSPs are
    still to be sent or acknowledged.
    """

    levels: list[int]
    circuit_id: int
    hello_multiplier: int
    pending: int
    lans: list[Lan]


InterfaceEntry = OspfInterfaceEntry | IsisInterfaceEntry


class Interfaces(Answer, tag="fared-interfaces/1"):
    """``show interfaces``; ``missing``: those without an adjacency."""

    router_id: str
    interfaces: list[InterfaceEntry]
    missing: list[MissingAdjacency]

    def show(self, paper: Paper) -> None:
        """Print the interfaces of each protocol, and what is special about some."""
        for proto, entries in paper.by_protocol(self.interfaces):
            paper.table(entries, _INTERFACES[proto])
            _networks(paper, [e for e in entries if isinstance(e, OspfInterfaceEntry)])
            _lans(paper, [e for e in entries if isinstance(e, IsisInterfaceEntry)])
            _derated(paper, entries)
            _health(paper, entries)
            _authentication(paper, entries)
            _ttl_security(paper, [e for e in entries if isinstance(e, OspfInterfaceEntry)])
            suppressed = [e.interface for e in entries if e.prefix_suppression]
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


def _authentication(paper: Paper, entries: Iterable[InterfaceFacts]) -> None:
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
    "Interfaces with their capacity and load.",
    narrowed=True,
)
