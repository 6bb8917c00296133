"""Settings of the OSPF engine: what the config file says, resolved and typed.

Globs are resolved before they come here: an interface's settings travel with the link event
that announces it (``events.LinkChanged``), so the engine never matches names.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from fared.core.ids import AreaId, Prefix, RouterId
from fared.core.keys import Keyring
from fared.core.reduction import ReductionSettings
from fared.core.routes import RouteSource
from fared.core.throttle import ThrottleSettings
from fared.ospf.packet.extended_prefix import PATH_CAPACITY
from fared.te.announce import DEFAULT_ANNOUNCE, AnnounceSettings


class NetworkType(enum.Enum):
    """Interface network types this engine runs (RFC 2328 §1.2)."""

    POINT_TO_POINT = "point-to-point"
    BROADCAST = "broadcast"
    LOOPBACK = "loopback"


@dataclass(frozen=True, slots=True)
class InterfaceSettings:
    """One OSPF interface; intervals in seconds. ``capacity`` (bytes/s) overrides the link's own."""

    area: AreaId
    network_type: NetworkType = NetworkType.POINT_TO_POINT
    cost: int = 10
    hello_interval: int = 10
    router_dead_interval: int = 40
    rxmt_interval: float = 5.0
    inf_trans_delay: int = 1
    router_priority: int = 1
    passive: bool = False
    mtu_ignore: bool = False
    capacity: float | None = None
    authentication: Keyring = ()


@dataclass(frozen=True, slots=True)
class RangeSettings:
    """An area address range (RFC 2328 §3.5): what other areas see in place of its components.

    ``cost`` None: the greatest of the components. ``advertise`` False hides them.
    """

    prefix: Prefix
    cost: int | None = None
    advertise: bool = True


@dataclass(frozen=True, slots=True)
class AreaSettings:
    """One area. ``stub`` areas carry no AS-external LSAs.

    ``summary`` False: border routers announce into this (stub) area nothing but a default
    route (a totally stubby area). ``default_cost`` is the metric of that default route.
    """

    area: AreaId
    stub: bool = False
    summary: bool = True
    default_cost: int = 1
    ranges: tuple[RangeSettings, ...] = ()


@dataclass(frozen=True, slots=True)
class Redistribution:
    """How routes of one source are announced: the fields of an AS-external LSA (§A.4.5).

    ``prefixes``: only what lies inside one of these; empty: everything.
    """

    metric: int = 20
    type_2: bool = True
    tag: int = 0
    prefixes: tuple[Prefix, ...] = ()


@dataclass(frozen=True, slots=True)
class RedistributeSettings:
    """Which routes of other origin are announced. ``default`` is for a static default route.

    ``default_always``: announce it whether there is one or not.
    """

    connected: Redistribution | None = None
    static: Redistribution | None = None
    default: Redistribution | None = None
    default_always: bool = False

    def __bool__(self) -> bool:
        """Whether this makes an AS boundary router."""
        return bool(self.connected or self.static or self.default)

    def of(self, source: RouteSource) -> Redistribution | None:
        """How routes of one source are announced; None: not."""
        return self.connected if source is RouteSource.CONNECTED else self.static


@dataclass(frozen=True, slots=True)
class OspfSettings:
    """The whole engine. ``areas`` lists the areas that exist even without interfaces."""

    router_id: RouterId
    hostname: str | None = None
    areas: tuple[AreaSettings, ...] = field(default_factory=tuple)
    stub_router: bool = False
    redistribute: RedistributeSettings = RedistributeSettings()
    throttle: ThrottleSettings = field(default_factory=ThrottleSettings)
    announce: AnnounceSettings = DEFAULT_ANNOUNCE
    path_capacity_code: int | None = PATH_CAPACITY
    """Code point of the path capacity sub-TLV; None: neither sent nor believed."""
    flood_pacing: float = 0.005
    """Least gap between two floods out of one interface, in seconds; the first never waits."""
    ack_delay: float = 0.1
    """Seconds for which acknowledgments wait for company: well below any RxmtInterval (§13.5)."""
    reduction: ReductionSettings = field(default_factory=ReductionSettings)
    min_ls_arrival: float = 0.0
    """RFC 2328 says 1 s; with an exponential origination throttle it only costs retransmissions."""
    epoch: float = 0.0
    """Wall-clock time, seconds since 1970, at ``now`` 0: key lifetimes count in it."""
    auth_sequence: int = 0
    """Above all 64-bit sequence numbers that this router id has ever signed with (RFC 7474 §3)."""
