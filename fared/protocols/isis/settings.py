"""Settings of the IS-IS engine: those of the config file, resolved and typed.

Globs are resolved before: the settings of a circuit arrive with its link (``igp.LinkChanged``), and
the engine matches no names.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fared.core.bfd import BfdSettings
from fared.core.filters import Filter
from fared.core.ids import SystemId
from fared.paths.te.advertise import DEFAULT_ADVERTISE, AdvertiseSettings
from fared.protocols.igp import redistribution
from fared.protocols.igp.database_limit import DEFAULT_PREFIX_LIMIT, LimitSettings
from fared.protocols.igp.keys import Keyring
from fared.protocols.igp.reduction import ReductionSettings
from fared.protocols.igp.restart import ISIS_GRACE_PERIOD
from fared.protocols.igp.throttle import ThrottleSettings
from fared.protocols.isis.ids import PATH_CAPACITY, LevelSet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fared.core.bier import BierSettings
    from fared.core.routes import RouteSource

MAX_PATH_METRIC = 0xFE00_0000
"""Prefixes of a higher metric are ignored (RFC 5305 §4)."""
LAST_RESORT = 0x4000_0000
"""What an overloaded router adds to the metrics of prefixes that lie behind it.

More than 63 links of the highest metric, so that any other way is preferred; three routers on a
way, one that redistributes and two that leak, may add it below MAX_PATH_METRIC.
"""
DEFAULT_LSP_MTU = 1492
_LSPS_PER_PSNP = 90
"""As many as a PSNP of 1497 bytes holds."""
IPV4_AND_IPV6 = (4, 6)


def used_last(metric: int) -> int:
    """The metric at which an overloaded router advertises a prefix that lies behind it."""
    return min(metric + LAST_RESORT, MAX_PATH_METRIC)


class CircuitKind(enum.Enum):
    """The kinds of circuits; values are the names in the configuration."""

    POINT_TO_POINT = "point-to-point"
    BROADCAST = "broadcast"
    LOOPBACK = "loopback"


class CircuitSettings(msgspec.Struct, frozen=True):
    """One circuit; intervals in seconds. ``capacity`` (bytes/s) overrides the link's own.

    ``share``: the part of the capacity that is advertised; less than 1 on a derated link.
    ``delay``: of the link in our direction, seconds; None: not advertised.
    ``passive`` circuits are advertised, but run no IS-IS. ``prefix_suppression``: the prefixes of
    the circuit are not advertised, unless it is a loopback. ``hello_multiplier`` hellos missed end
    an adjacency. ``hello_padding``: hellos are padded to the MTU until the adjacency is up
    (RFC 3719 §6). ``authentication`` signs hellos (RFC 5304, RFC 5310).
    """

    kind: CircuitKind = CircuitKind.POINT_TO_POINT
    levels: LevelSet = LevelSet.BOTH
    metric: int = 10
    hello_interval: float = 3.0
    hello_multiplier: int = 10
    priority: int = 64
    passive: bool = False
    prefix_suppression: bool = False
    hello_padding: bool = True
    csnp_interval: float = 10.0
    psnp_interval: float = 2.0
    lsp_retransmit_interval: float = 5.0
    capacity: float | None = None
    delay: float | None = None
    share: float = 1.0
    authentication: Keyring = ()
    bfd: BfdSettings | None = None


class FastFloodingSettings(msgspec.Struct, frozen=True):
    """How fast this router receives LSPs on each point-to-point circuit, as it tells neighbors.

    ``receive_window``: LSPs that may be unacknowledged; ``burst_size``: of these, those that may
    arrive without a gap; ``rate``: LSPs a second after them (RFC 9681). If not ``enabled``, nothing
    is advertised, and what neighbors advertise is not used.
    """

    enabled: bool = True
    receive_window: int = 200
    burst_size: int = 20
    rate: int = 4000

    @property
    def lsps_per_psnp(self) -> int | None:
        """So many received LSPs are acknowledged at once (RFC 9681 §4.3); None: as many as fit.

        Half of the receive window, so that the neighbor need not stop for our acknowledgments.
        """
        return max(1, min(_LSPS_PER_PSNP, self.receive_window // 2)) if self.enabled else None


class Redistribution(msgspec.Struct, frozen=True):
    """How routes of one source are advertised, and in which levels.

    ``tag`` (RFC 5130 §3.1), ``filters`` and ``refused`` are those of ``igp.redistribution``.
    """

    levels: LevelSet
    metric: int = 0
    tag: int | None = 0
    filters: tuple[Filter, ...] = ()
    refused: tuple[int, ...] = ()


class RedistributeSettings(redistribution.RedistributedSources[Redistribution], frozen=True):
    """What IS-IS redistributes, and into which levels."""


class IsisSettings(msgspec.Struct, frozen=True):
    """The whole engine.

    ``areas`` are area addresses of 1 to 13 bytes. ``families`` are those routed (4, 6);
    ``multi_topology``: IPv6 in a topology of its own (RFC 5120, MT 2) instead of sharing that
    of IPv4. ``overload`` sets the overload bit, ``overload_on_startup`` (seconds) for that long
    after the start. ``level1_to_level2`` and ``level2_to_level1`` say whether a level-1-2 router
    leaks (RFC 5302), ``filter_up`` and ``filter_down`` which prefixes.
    ``lsp_authentication`` signs LSPs and SNPs of a level. Lifetimes and intervals are in seconds.
    """

    system_id: SystemId
    areas: tuple[bytes, ...]
    levels: LevelSet = LevelSet.TWO
    hostname: str | None = None
    router_id: int = 0
    """The TE router id (TLV 134), an IPv4 address; 0: none is advertised."""
    families: tuple[int, ...] = IPV4_AND_IPV6
    multi_topology: bool = False
    overload: bool = False
    overload_on_startup: float = 0.0
    level1_to_level2: bool = True
    level2_to_level1: bool = False
    filter_up: Filter | None = None
    filter_down: Filter | None = None
    redistribute: RedistributeSettings = RedistributeSettings()
    attached: bool = True
    """Whether a level-1-2 router that reaches other areas sets the attached bit (§7.2.9.2)."""
    lsp_mtu: int = DEFAULT_LSP_MTU
    lsp_lifetime: int = 1200
    lsp_refresh_interval: int = 900
    flood_pacing: float = 0.005
    """Least gap between two bursts of LSPs out of one circuit; the first never waits."""
    ack_delay: float = 0.1
    """Seconds for which acknowledgments are collected: below any retransmission interval."""
    reduction: ReductionSettings = ReductionSettings()
    fast_flooding: FastFloodingSettings = FastFloodingSettings()
    limit: LimitSettings = LimitSettings(most=20_000, of_originator=4_096)
    """LSPs in each level."""
    prefix_limit: LimitSettings = DEFAULT_PREFIX_LIMIT
    """Prefixes of both families and levels together."""
    throttle: ThrottleSettings = ThrottleSettings(maximum=1.0)
    """A fragment holds many links and prefixes, each an LSA of its own in OSPF. They share one
    back-off here, so its maximum is lower."""
    advertise: AdvertiseSettings = DEFAULT_ADVERTISE
    path_capacity_code: int | None = PATH_CAPACITY
    """Code point of the path capacity sub-TLV; None: neither sent nor accepted."""
    bier: BierSettings | None = None
    information_application: int | None = None
    """Application of GENINFO TLVs (RFC 6823) with information; None: neither sent nor read."""
    lsp_authentication: tuple[tuple[int, Keyring], ...] = ()
    """Keyring of each level that has one, as (level, keys)."""
    restart_helper: bool = False
    """Whether adjacencies stay up while neighbors restart gracefully (RFC 8706)."""
    strict_lsp_checking: bool = True
    """Whether a change of the topology ends that, which such a neighbor could not follow."""
    restarts: bool = False
    """Whether this router restarts gracefully (RFC 8706), in ``restart_period`` seconds at most."""
    restart_period: float = ISIS_GRACE_PERIOD
    suppress_adjacency: bool = False
    """Whether neighbors of this router, when it starts, are to wait for its database (SA)."""
    epoch: float = 0.0
    """Wall-clock time, seconds since 1970, at ``now`` 0, for key lifetimes."""

    @property
    def drained(self) -> bool:
        """Whether this router is drained: others avoid it."""
        return self.overload

    @property
    def redistributed(self) -> Mapping[RouteSource, int]:
        """The other protocols that are redistributed, with the tag of each."""
        return self.redistribute.tags

    def with_clock(self, epoch: float, boot_count: int) -> IsisSettings:
        """The same with the clock offset; IS-IS keeps no sequence number across restarts."""
        del boot_count
        return replace(self, epoch=epoch)

    def drain(self) -> IsisSettings:
        """The same with the overload bit (ISO 10589 §7.2.8.1): no transit."""
        return replace(self, overload=True)

    def lsp_keys(self, level: int) -> Keyring:
        """The keys of LSPs and SNPs of a level."""
        return dict(self.lsp_authentication).get(level, ())
