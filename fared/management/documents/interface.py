"""An interface that a protocol runs on, and who is at its other end."""

from __future__ import annotations

from fared.management.documents.facts import (
    BytesPerSecond,
    Facts,
    NamedNode,
    OfProtocol,
    Seconds,
)
from fared.management.documents.link import Derated, LagMembers, LinkHealthStatus
from fared.management.documents.neighbor import RefusedHelloEntry
from fared.management.documents.packet_counts import PacketCounts, RejectedPackets


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

    ``passive``: no neighbor is looked for. ``full`` counts the neighbors that are Full (OSPF), Up
    (IS-IS) or Established (BGP). ``bandwidth`` is the capacity of the link, ``bandwidth_source``
    its source: config, shaper, speed, sonic, or None. A ``derated`` link has the least share of the
    deratings left. ``utilized`` and ``available`` are measured outbound load and the rest of the
    capacity. ``delay``: that of the link, if it is configured.
    """

    interface: str
    ifindex: int
    state: str
    passive: bool
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
    delay: Seconds | None
    neighbors: int
    full: int
    flaps: int
    refused: list[RefusedHelloEntry]
    lag: LagMembers | None
    """None: it is none, or the platform does not tell."""


class HelloInterfaceFacts(InterfaceFacts):
    """An interface with hellos, of OSPF or IS-IS.

    ``prefix_suppression``: its network is not advertised. ``announced_available`` is the available
    bandwidth advertised last: a change of load below the announce threshold is not advertised.
    ``hello_in``: seconds to the next hello, None where none is sent.
    """

    area: str
    network_type: str
    prefix_suppression: bool
    priority: int
    cost: int
    announced_available: BytesPerSecond
    hello_interval: Seconds
    dead_interval: Seconds
    retransmit_interval: Seconds
    hello_in: Seconds | None
    authentication: AuthenticationStatus | None


class OspfInterfaceEntry(HelloInterfaceFacts, tag="ospf"):
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


class IsisInterfaceEntry(HelloInterfaceFacts, tag="isis"):
    """One circuit. ``state`` is Down, Loopback, Point-to-point, LAN, or DIS if we are the DIS.

    ``cost`` is the metric, ``dead_interval`` the holding time in our hellos. ``pending`` LSPs are
    still to be sent or acknowledged.
    """

    levels: list[int]
    circuit_id: int
    hello_multiplier: int
    pending: int
    lans: list[Lan]


class BgpInterfaceEntry(InterfaceFacts, tag="bgp"):
    """A link that leads to neighbors, or whose networks are announced.

    ``state`` is Up, Down or Loopback. ``announced``: the networks of it that this router announces.
    """

    announced: list[str]


InterfaceEntry = OspfInterfaceEntry | IsisInterfaceEntry | BgpInterfaceEntry
HelloInterfaceEntry = OspfInterfaceEntry | IsisInterfaceEntry


class InterfaceNeighbor(NamedNode):
    """A neighbor on an interface; ``cost`` that of its end, None on a LAN, or while it is unknown.

    ``available``: what it advertises for its direction.
    """

    address: str | None
    state: str
    uptime: Seconds | None
    cost: int | None
    capacity: BytesPerSecond
    available: BytesPerSecond


class InterfaceDetail(Facts):
    """Who is at the other end of an interface, and the packets that came and went.

    They count since the protocol runs on it, or since ``clear counters``; types without a packet
    are left out.
    """

    proto: str
    interface: str
    neighbors: list[InterfaceNeighbor]
    packets: list[PacketCounts]
    rejected: list[RejectedPackets]
