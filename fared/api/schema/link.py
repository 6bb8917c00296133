"""What interfaces and neighbors have in common whatever protocol it is."""

from __future__ import annotations

from typing import TypedDict

from fared.api.schema.common import BytesPerSecond, Seconds


class LinkFacts(TypedDict):
    """``bandwidth`` is what the link can carry, ``bandwidth_source`` where that comes from.

    That is config, shaper, speed, or None. ``utilized`` and ``available`` are measured outbound
    load and what is left, ``announced_available`` what others were told last: load that changes
    by less than the announce threshold is not.
    """

    up: bool
    bandwidth: BytesPerSecond
    bandwidth_source: str | None
    utilized: BytesPerSecond
    available: BytesPerSecond
    announced_available: BytesPerSecond


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


class InterfaceFacts(LinkFacts):
    """One interface that a protocol runs on.

    ``full`` counts the neighbors that are Full (OSPF) or Up (IS-IS); ``dampened`` says whether
    coming up is being delayed.
    """

    interface: str
    ifindex: int
    proto: str
    area: str
    network_type: str
    state: str
    passive: bool
    priority: int
    cost: int
    mtu: int
    addresses: list[str]
    """With prefix length: ``10.128.0.1/31``."""
    unnumbered: bool
    hello_interval: Seconds
    dead_interval: Seconds
    neighbors: int
    full: int
    flaps: int
    dampened: bool
    authentication: Authentication | None


class NeighborFacts(TypedDict):
    """One neighbor; ``uptime``: seconds in its state, ``dead_in``: until it is declared down.

    ``router_id`` is a router id, or a system id of IS-IS; ``address`` where packets are sent.
    """

    proto: str
    router_id: str
    hostname: str | None
    area: str
    interface: str
    address: str | None
    state: str
    uptime: Seconds | None
    dead_in: Seconds | None
    priority: int
    flaps: int
    last_reason: str | None
