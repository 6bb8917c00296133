"""Settings of the OSPF engine, resolved and typed.

Globs of the configuration are resolved outside: ``igp.LinkChanged`` brings the settings of an
interface, and the engine matches no names.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from fared.core.bfd import BfdSettings
from fared.core.filters import Filter
from fared.core.ids import AreaId, Prefix, RouterId
from fared.paths.te.advertise import DEFAULT_ADVERTISE, AdvertiseSettings
from fared.protocols.igp import redistribution
from fared.protocols.igp.database_limit import DEFAULT_PREFIX_LIMIT, LimitSettings
from fared.protocols.igp.keys import Keyring
from fared.protocols.igp.reduction import ReductionSettings
from fared.protocols.igp.restart import OSPF_GRACE_PERIOD
from fared.protocols.igp.throttle import ThrottleSettings
from fared.protocols.ospf.packet.extended_prefix import PATH_CAPACITY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fared.core.bier import BierSettings
    from fared.core.routes import RouteSource


class NetworkType(enum.Enum):
    """Interface network types this engine runs (RFC 2328 §1.2)."""

    POINT_TO_POINT = "point-to-point"
    BROADCAST = "broadcast"
    LOOPBACK = "loopback"


class TtlSecurity(enum.Enum):
    """RFC 5082 on one interface, as in BIRD: ON sends and requires TTL 255, TX_ONLY sends it."""

    OFF = "off"
    TX_ONLY = "tx-only"
    ON = "on"


class InterfaceSettings(msgspec.Struct, frozen=True):
    """One OSPF interface; intervals in seconds. ``capacity`` (bytes/s) overrides the link's own.

    ``share``: the part of the capacity that is advertised; less than 1 on a derated link.
    ``delay``: of the link in our direction, seconds; None: not advertised.
    ``prefix_suppression`` hides the network of the primary address (RFC 6860), not loopbacks and
    secondary addresses.
    """

    area: AreaId
    network_type: NetworkType = NetworkType.POINT_TO_POINT
    cost: int = 10
    hello_interval: int = 10
    router_dead_interval: int = 40
    rxmt_interval: float = 5.0
    inf_trans_delay: int = 1
    router_priority: int = 1
    passive: bool = False
    prefix_suppression: bool = False
    mtu_ignore: bool = False
    ttl_security: TtlSecurity = TtlSecurity.OFF
    capacity: float | None = None
    delay: float | None = None
    share: float = 1.0
    authentication: Keyring = ()
    bfd: BfdSettings | None = None


class RangeSettings(msgspec.Struct, frozen=True):
    """An area address range (RFC 2328 §3.5), advertised to other areas in place of its components.

    ``cost`` None: the highest of the components. ``advertise`` False hides them.
    """

    prefix: Prefix
    cost: int | None = None
    advertise: bool = True


class AreaSettings(msgspec.Struct, frozen=True):
    """One area. AS-external LSAs are not flooded into ``stub`` areas (RFC 2328 §3.6).

    ``summary`` False: border routers advertise only a default route into this stub area.
    ``default_cost`` is the metric of the default route: StubDefaultCost. At border routers,
    ``filter_in`` permits the prefixes of summaries originated into the area, ``filter_out`` those
    of its intra-area routes that are summarized in other areas (``area N filter-list`` of FRR).
    """

    area: AreaId
    stub: bool = False
    summary: bool = True
    default_cost: int = 1
    ranges: tuple[RangeSettings, ...] = ()
    filter_in: Filter | None = None
    filter_out: Filter | None = None


class Redistribution(msgspec.Struct, frozen=True):
    """How routes of one source are advertised: the fields of an AS-external LSA (§A.4.5).

    ``tag``, ``filters`` and ``refused`` are those of ``igp.redistribution``.
    """

    metric: int = 20
    type_2: bool = True
    tag: int | None = 0
    filters: tuple[Filter, ...] = ()
    refused: tuple[int, ...] = ()


class RedistributeSettings(redistribution.RedistributedSources[Redistribution], frozen=True):
    """The sources that OSPF redistributes into AS-external LSAs."""


class GracefulRestartSettings(msgspec.Struct, frozen=True):
    """Graceful restart (RFC 3623): ``enabled`` for this router, ``helper`` of neighbors.

    ``period``: the grace period of this router, seconds.
    ``strict_lsa_checking``: a change of the topology ends helping (§3.2 (3)). ``planned_only``: not
    after a crash. ``longest``: seconds for which it helps at most, from the beginning.
    """

    enabled: bool = False
    period: float = OSPF_GRACE_PERIOD
    helper: bool = False
    strict_lsa_checking: bool = True
    planned_only: bool = False
    longest: float = OSPF_GRACE_PERIOD


class OspfSettings(msgspec.Struct, frozen=True):
    """Settings of the engine. ``areas`` lists the areas that exist even without interfaces."""

    router_id: RouterId
    hostname: str | None = None
    areas: tuple[AreaSettings, ...] = ()
    stub_router: bool = False
    stub_router_on_startup: float = 0.0
    redistribute: RedistributeSettings = RedistributeSettings()
    throttle: ThrottleSettings = ThrottleSettings()
    advertise: AdvertiseSettings = DEFAULT_ADVERTISE
    path_capacity_code: int | None = PATH_CAPACITY
    """Code point of the path capacity sub-TLV; None: neither sent nor accepted."""
    external_capacity_scope: Literal["area", "as"] = "area"
    """Where path capacities of AS-external LSAs are flooded; received, both scopes count."""
    bier: BierSettings | None = None
    information_type: int | None = None
    """Opaque type of an application's information; None: neither sent nor read."""
    flood_pacing: float = 0.005
    """Least gap between two floods into one area, in seconds; the first is immediate."""
    bandwidth_pacing: float = 0.1
    """The same for LSAs that only announce another available or unreserved bandwidth, if there are
    many; a part of it, down to ``flood_pacing``, if there are few (``bandwidth_rate``)."""
    adjacency_stagger: int = 8
    """Adjacencies that may form at once (RFC 4222 §2 (5))."""
    ack_delay: float = 0.1
    """Seconds for which acknowledgments are collected: well below any RxmtInterval (§13.5)."""
    reduction: ReductionSettings = ReductionSettings()
    graceful_restart: GracefulRestartSettings = GracefulRestartSettings()
    limit: LimitSettings = LimitSettings(most=150_000, of_originator=120_000)
    """LSAs in each area, and in the AS."""
    prefix_limit: LimitSettings = DEFAULT_PREFIX_LIMIT
    """Prefixes of router LSAs, summaries and externals, of all areas together."""
    min_ls_arrival: float = 0.0
    """MinLSArrival of §13 (5)(a), seconds; RFC 2328 has 1 s. Off, since originators limit their
    rate by a throttle, and an instance that is discarded has to be retransmitted."""
    epoch: float = 0.0
    """Wall-clock time, seconds since 1970, at ``now`` 0: key lifetimes count in it."""
    boot_count: int = 0
    """The upper half of 64-bit sequence numbers, higher than in earlier runs (RFC 7474 §2)."""

    @property
    def drained(self) -> bool:
        """Whether this router is drained: others avoid it."""
        return self.stub_router

    @property
    def redistributed(self) -> Mapping[RouteSource, int]:
        """The other protocols that are redistributed, with the tag of each."""
        return self.redistribute.tags

    def with_clock(self, epoch: float, boot_count: int) -> OspfSettings:
        """The same with the clock offset, and the boot count of the router."""
        return replace(self, epoch=epoch, boot_count=boot_count)

    def drain(self) -> OspfSettings:
        """The same as a stub router (RFC 6987): the last resort."""
        return replace(self, stub_router=True)
