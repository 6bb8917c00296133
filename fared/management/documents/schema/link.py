"""The keys of interfaces and neighbors that all protocols share."""

from __future__ import annotations

from typing import TypedDict

from fared.management.documents.schema.common import BytesPerSecond, Seconds, UnixTime


class Derated(TypedDict):
    """Why less than the capacity of a link is advertised: ``share`` of it, since ``at``.

    ``by``: a user who drained it, or ``link-health``.
    """

    by: str
    share: float
    at: UnixTime
    reason: str


class LinkHealthStatus(TypedDict):
    """How a link is that ``link-health`` watches; in mode monitor nothing follows.

    ``errors`` among ``packets`` of the last window; ``share`` of the capacity is left, for
    ``reason``, and all of it ``recovers_in`` so many seconds at the earliest. ``penalty`` of flaps
    (RFC 2439); a ``suppressed`` link is not used before ``reuse_in`` seconds.
    """

    mode: str
    errors: int
    packets: int
    share: float
    reason: str
    recovers_in: Seconds
    penalty: float
    suppressed: bool
    reuse_in: Seconds


class LinkStatus(TypedDict):
    """``bandwidth`` is the capacity of the link, ``bandwidth_source`` its source.

    A ``derated`` link has the least share of the deratings left.

    That is config, shaper, speed, or None. ``utilized`` and ``available`` are measured outbound
    load and the rest of the capacity, ``announced_available`` the value advertised last: a change
    of load below the announce threshold is not advertised.
    """

    up: bool
    bandwidth: BytesPerSecond
    bandwidth_source: str | None
    utilized: BytesPerSecond
    available: BytesPerSecond
    health: LinkHealthStatus | None
    derated: list[Derated]
    announced_available: BytesPerSecond


class AuthenticationStatus(TypedDict):
    """The id of the key that signs on an interface, and the key ids it accepts; never a key.

    ``algorithm`` None: no key's lifetime has begun, nothing is sent. ``extended``: sequence numbers
    of RFC 7474. ``expired``: the last key is in use after its end.
    """

    algorithm: str | None
    key_id: int | None
    extended: bool
    expired: bool
    accepted_key_ids: list[int]


class ProblemEntry(TypedDict):
    """Why a neighbor is not used: ``cause`` is a code of logs and counters, ``text`` a sentence."""

    cause: str
    text: str


class RefusedHelloEntry(TypedDict):
    """The last refused hello of a source, and ``times`` since the first; kept for five minutes.

    ``first`` and ``last``: seconds ago. ``router_id``: the id in it, None if it was not read.
    ``cause`` and ``text`` as in ``ProblemEntry``.
    """

    proto: str
    interface: str
    source: str
    router_id: str | None
    cause: str
    text: str
    first: Seconds
    last: Seconds
    times: int


class InterfaceFacts(LinkStatus):
    """One interface that a protocol runs on.

    ``prefix_suppression``: its network is not advertised. ``full`` counts the neighbors that are
    Full (OSPF) or Up (IS-IS).
    """

    interface: str
    ifindex: int
    proto: str
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
    hello_interval: Seconds
    dead_interval: Seconds
    neighbors: int
    full: int
    flaps: int
    refused: list[RefusedHelloEntry]
    authentication: AuthenticationStatus | None


class NeighborFacts(TypedDict):
    """One neighbor; ``uptime``: seconds in its state, ``dead_in``: until it is declared down.

    ``router_id`` is a router id, or a system id of IS-IS; ``address`` is the destination of
    packets. ``problem``: why it is not used, or would not be again; None if nothing is known.
    """

    proto: str
    router_id: str
    hostname: str | None
    area: str
    interface: str
    address: str | None
    state: str
    problem: ProblemEntry | None
    uptime: Seconds | None
    dead_in: Seconds | None
    priority: int
    flaps: int
    last_reason: str | None
