"""Documents of the protocol: interfaces, neighbors, the database, timers."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from fared.api.schema.common import BytesPerSecond, Document, Seconds


class Authentication(TypedDict):
    """Which key signs what an interface sends, and which key ids it accepts; never the key.

    ``algorithm`` None: the first key has not begun yet, nothing is sent. ``extended``: sequence
    numbers of RFC 7474. ``expired``: it is the last key, past its end, and used all the same.
    """

    algorithm: str | None
    key_id: int | None
    extended: bool
    expired: bool
    accepted_key_ids: list[int]


class Interface(TypedDict):
    """One interface that a protocol runs on.

    ``state`` is the RFC's word (Down, Loopback, Point-to-point, Waiting, DR Other, Backup, DR);
    the designated routers are interface addresses, None where there are none; ``bandwidth`` what the link can
    carry and ``bandwidth_source`` where that comes from: config, shaper, speed, or None.
    ``utilized`` and ``available`` are measured outbound load and what is left, ``dampened``
    whether coming up is being delayed.
    """

    interface: str
    ifindex: int
    up: bool
    proto: str
    area: str
    network_type: str
    state: str
    passive: bool
    priority: int
    designated_router: str | None
    designated_router_hostname: str | None
    backup_designated_router: str | None
    backup_designated_router_hostname: str | None
    cost: int
    mtu: int
    addresses: list[str]
    """With prefix length: ``10.128.0.1/31``."""
    unnumbered: bool
    bandwidth: BytesPerSecond
    bandwidth_source: str | None
    utilized: BytesPerSecond
    available: BytesPerSecond
    hello_interval: Seconds
    dead_interval: Seconds
    neighbors: int
    full: int
    flaps: int
    dampened: bool
    authentication: Authentication | None


class Interfaces(Document):
    """``show interfaces``."""

    router_id: str
    interfaces: list[Interface]


class Neighbor(TypedDict):
    """One neighbor. ``state`` is the RFC's word (``Full``); ``uptime`` seconds in that state.

    ``dead_in``: seconds until it is declared down; the lists are lengths (RFC 2328 §10).
    """

    proto: str
    router_id: str
    hostname: str | None
    area: str
    interface: str
    address: str
    state: str
    uptime: Seconds
    dead_in: Seconds | None
    priority: int
    flaps: int
    last_reason: str | None
    retransmission_list: int
    request_list: int
    summary_list: int


class Neighbors(Document):
    """``show neighbors``."""

    router_id: str
    neighbors: list[Neighbor]


class DatabaseLsa(TypedDict):
    """One LSA, with the field names of ``fared-decode/1``.

    ``type`` is the word of the decoder (``router``, ``te-link``...), ``hostname`` that of the
    advertising router; ``body`` only where one LSA was asked for by ``id``.
    """

    type: str
    id: str
    adv_router: str
    hostname: str | None
    seq: int
    age: int
    checksum: int
    length: int
    self_originated: bool
    body: NotRequired[dict[str, Any]]


class DatabaseArea(TypedDict):
    """The LSAs of one area; ``checksum`` as in ``AreaStatus``."""

    area: str
    type: str
    checksum: str
    lsas: list[DatabaseLsa]


class Database(Document):
    """``show database``; arguments ``type`` (a word or the beginning of one) and ``id``, optional.

    ``as_scope``: LSAs that belong to no area (AS-external, AS-scoped opaque).
    """

    router_id: str
    areas: list[DatabaseArea]
    as_scope: list[DatabaseLsa]


class Timer(TypedDict):
    """A pending timer. ``subject`` is what it is about (interface, neighbor, LSA)."""

    timer: str
    subject: str
    due_in: Seconds


class Timers(Document):
    """``show timers``, the next one first."""

    timers: list[Timer]
