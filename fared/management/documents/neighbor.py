"""A neighbor of OSPF or BGP, an adjacency of IS-IS, and a router whose hellos are refused."""

from __future__ import annotations

from fared.management.documents import human
from fared.management.documents.cells import Styled, judged
from fared.management.documents.facts import BytesPerSecond, Facts, OfProtocol, Seconds
from fared.management.documents.packet_counts import PacketCounts, RejectedPackets


class ProblemEntry(Facts):
    """Why a neighbor is not used: ``cause`` is a code of logs and counters, ``text`` a sentence."""

    cause: str
    text: str


class RefusedHelloEntry(Facts):
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


class NeighborFacts(OfProtocol):
    """One neighbor; ``uptime``: seconds in its state, ``dead_in``: until it is declared down.

    ``router_id`` is a router id, or a system id of IS-IS; ``address`` is the destination of
    packets, ``own_address`` that of our interface. ``problem``: why it is not used, or would not be
    again; None if nothing is known. ``helped``: seconds that are left of its graceful restart, None
    while it does not restart.
    """

    router_id: str
    hostname: str | None
    interface: str
    address: str | None
    state: str
    problem: ProblemEntry | None
    uptime: Seconds | None
    dead_in: Seconds | None
    flaps: int
    last_reason: str | None
    own_address: str | None
    helped: Seconds | None

    @property
    def name(self) -> str:
        """Its hostname, or its id."""
        return human.router(self.router_id, self.hostname)

    def judged(self, good: str) -> Styled:
        """Its state."""
        return judged(self.state, good=self.state == good, bad="yellow")

    @property
    def sessions(self) -> str:
        """Its BFD sessions and their states; empty: there are none."""
        raise NotImplementedError

    def is_called(self, name: str) -> bool:
        """Whether a word is its name, its id, one of its addresses, or its interface."""
        return name in (self.hostname, self.router_id, self.address, self.interface)


class HelloNeighborFacts(NeighborFacts):
    """A neighbor by hellos, of OSPF or IS-IS.

    ``mtu``: what it states, or sent, 0 if that is not known; ``own_mtu``, ``network_type`` and the
    intervals are those of our interface.
    """

    area: str
    priority: int
    network_type: str
    mtu: int
    own_mtu: int
    hello_interval: Seconds
    dead_interval: Seconds


class MtuMismatch(Facts):
    """The MTU that a neighbor states and the one of our interface, bytes."""

    neighbor: int
    own: int


class OspfNeighborEntry(HelloNeighborFacts, tag="ospf"):
    """One neighbor. ``state`` is that of RFC 2328 §10.1 (``Full``); the lists are lengths (§10).

    ``mtu_mismatch``: the database exchange has not passed and the MTUs differ, which keeps a
    neighbor in ExStart (or Exchange) forever unless the smaller side has ``mtu-ignore``.
    ``waits_for``: it waits in 2-Way while so many adjacencies form (``adjacency-stagger``); else
    null. ``bfd``: the state of its BFD session, None without one. ``options`` are the letters of
    its last hello or description, the designated routers those that it names (addresses).
    """

    retransmission_list: int
    request_list: int
    summary_list: int
    waits_for: int | None
    mtu_mismatch: MtuMismatch | None
    bfd: str | None
    options: list[str]
    designated_router: str | None
    backup_designated_router: str | None

    @property
    def sessions(self) -> str:
        """The state of its BFD session; empty: there is none."""
        return self.bfd or ""

    @property
    def waiting(self) -> str:
        """How many LSAs the adjacency waits for."""
        lists = {
            "requested": self.request_list,
            "not acknowledged": self.retransmission_list,
            "to describe": self.summary_list,
        }
        return ", ".join(f"{length} {word}" for word, length in lists.items() if length)


class FloodingSpeed(Facts):
    """How fast a neighbor receives LSPs (RFC 9681), None where it does not say.

    ``transmission_interval`` in microseconds, ``psnp_interval`` in milliseconds.
    """

    burst_size: int | None
    transmission_interval: int | None
    lsps_per_psnp: int | None
    psnp_interval: int | None
    receive_window: int | None


class IsisNeighborEntry(HelloNeighborFacts, tag="isis"):
    """One adjacency. ``state`` is Initializing or Up; ``uptime`` None until it is up.

    ``levels`` are those in use, ``holding_time`` that in its hellos, ``areas`` its area addresses
    (``49.0001``), ``topologies`` MT ids (RFC 5120). ``flooding``: None if its hellos have no
    flooding parameters. ``bfd``: the state of its BFD sessions by address family (``ipv4``,
    ``ipv6``). ``dis``: the LAN id in its hellos, None on a point-to-point link.
    """

    system_id: str
    levels: list[int]
    snpa: str
    holding_time: Seconds
    areas: list[str]
    addresses: list[str]
    topologies: list[int]
    extended_circuit_id: int | None
    flooding: FloodingSpeed | None
    bfd: dict[str, str]
    dis: str | None

    def is_called(self, name: str) -> bool:
        """See ``NeighborFacts``."""
        return name in self.addresses or super().is_called(name)

    @property
    def sessions(self) -> str:
        """Its BFD sessions by family; empty: there are none."""
        return ", ".join(f"{family} {state}" for family, state in sorted(self.bfd.items()))


class SessionFamily(Facts):
    """The routes of a family that a BGP session carries.

    ``received``: prefixes that the neighbor advertises and that are accepted, ``advertised`` those
    that are advertised to it. ``waiting``: of these, changes of bandwidth alone that wait for
    threshold or budget.
    ``loading``: its first table has not ended; ``stale``: seconds for which its routes are kept
    while it restarts, None: they are not. ``next_hop``: ours.
    """

    af: str
    received: int
    advertised: int
    waiting: int
    loading: bool
    stale: Seconds | None
    next_hop: str | None


class PathBandwidthUse(Facts):
    """What a BGP session says, and hears, of path bandwidth: as configured.

    ``value``: path, or share: its part of what all such neighbors find here.
    """

    send: str
    value: str
    receive: bool
    missing: str


class BgpNeighborEntry(NeighborFacts, tag="bgp"):
    """One neighbor. ``state`` is that of RFC 4271 §8.2.2 (``Established``).

    ``peer`` is its key in the configuration: its address, or the interface of an unnumbered link.
    ``router_id`` is the BGP identifier, or ``peer`` before it is known. ``remote_as`` None: any
    external one, not known yet. ``hold_time`` and ``keepalive``: those agreed on, None while the
    session is not up. ``imports`` and ``exports``: what is accepted and advertised; none
    configured and external: nothing (RFC 8212). The filters are names. ``updates``: UPDATE
    messages; of those received, something was not accepted of ``updates_rejected``. ``messages``
    are those of all types that came or were sent, ``rejected`` the reasons; all of them count since
    the start, or since ``clear counters``. ``held``:
    seconds until it is tried again after too many prefixes. ``capacity``: of the link to it.
    ``demand``: what all neighbors that are told a share may send; None: it is told none, or that
    is not known.
    ``bfd``: the state of its BFD session, None without one.
    """

    peer: str
    remote_as: int | None
    external: bool | None
    description: str
    shutdown: bool
    hold_time: Seconds | None
    keepalive: Seconds | None
    capabilities: list[str]
    families: list[SessionFamily]
    updates_received: int
    updates_sent: int
    updates_rejected: int
    messages: list[PacketCounts]
    rejected: list[RejectedPackets]
    imports: list[str] | None
    exports: list[str] | None
    import_filter: str | None
    export_filter: str | None
    maximum_prefixes: int | None
    held: Seconds | None
    capacity: BytesPerSecond
    path_bandwidth: PathBandwidthUse
    min_path_bandwidth: BytesPerSecond
    demand: BytesPerSecond
    authenticated: bool
    ttl_security: bool
    bfd: str | None

    @property
    def name(self) -> str:
        """Its hostname, or its key in the configuration."""
        return human.router(self.peer, self.hostname)

    @property
    def sessions(self) -> str:
        """The state of its BFD session; empty: there is none."""
        return self.bfd or ""

    @property
    def received(self) -> int:
        """The prefixes that it advertises, of all families."""
        return sum(each.received for each in self.families)

    @property
    def advertised(self) -> int:
        """The prefixes that are advertised to it, of all families."""
        return sum(each.advertised for each in self.families)

    def is_called(self, name: str) -> bool:
        """See ``NeighborFacts``."""
        return name == self.peer or super().is_called(name)


NeighborEntry = OspfNeighborEntry | IsisNeighborEntry | BgpNeighborEntry
HelloNeighborEntry = OspfNeighborEntry | IsisNeighborEntry


def levels_text(levels: list[int]) -> str:
    """Format the levels of IS-IS as ``1-2``."""
    return "-".join(map(str, levels)) or human.DASH
