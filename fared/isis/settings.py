"""Settings of the IS-IS engine: what the config file says, resolved and typed.

Globs are resolved before they come here: a circuit's settings travel with the link event that
announces it (``events.LinkChanged``), so the engine never matches names.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from fared.core.ids import Prefix, SystemId
from fared.core.keys import Keyring
from fared.core.reduction import ReductionSettings
from fared.core.routes import RouteSource
from fared.core.throttle import ThrottleSettings
from fared.isis.ids import LevelSet
from fared.te.announce import DEFAULT_ANNOUNCE, AnnounceSettings

PATH_CAPACITY = 250
"""Sub-TLV of TLVs 135, 235, 236 and 237, unassigned by IANA: path capacity of a leaked prefix."""
MAX_PATH_METRIC = 0xFE00_0000
"""Prefixes of a higher metric are not to be considered (RFC 5305 §4)."""
DEFAULT_LSP_MTU = 1492
IPV4_AND_IPV6 = (4, 6)


class CircuitKind(enum.Enum):
    """How a circuit is run; values are the names in the configuration."""

    POINT_TO_POINT = "point-to-point"
    BROADCAST = "broadcast"
    LOOPBACK = "loopback"


@dataclass(frozen=True, slots=True)
class CircuitSettings:
    """One circuit; intervals in seconds. ``capacity`` (bytes/s) overrides the link's own.

    ``passive`` circuits are announced and never speak. ``hello_multiplier`` hellos missed end
    an adjacency. ``hello_padding``: hellos are padded to the MTU until the adjacency is up
    (ISO 10589 §8.2.3). ``authentication`` signs hellos (RFC 5304, RFC 5310).
    """

    kind: CircuitKind = CircuitKind.POINT_TO_POINT
    levels: LevelSet = LevelSet.BOTH
    metric: int = 10
    hello_interval: float = 3.0
    hello_multiplier: int = 10
    priority: int = 64
    passive: bool = False
    hello_padding: bool = True
    csnp_interval: float = 10.0
    psnp_interval: float = 2.0
    lsp_retransmit_interval: float = 5.0
    capacity: float | None = None
    authentication: Keyring = ()


@dataclass(frozen=True, slots=True)
class Redistribution:
    """How routes of one source are announced, and in which levels.

    ``tag`` is an administrative tag (RFC 5130 §3.1), 0 for none. ``prefixes``: only what lies
    inside one of these; empty: everything.
    """

    levels: LevelSet
    metric: int = 0
    tag: int = 0
    prefixes: tuple[Prefix, ...] = ()


@dataclass(frozen=True, slots=True)
class RedistributeSettings:
    """Which routes of other origin are announced. ``default`` is for static default routes.

    ``default_always``: announce one of each family whether there is one or not.
    """

    connected: Redistribution | None = None
    static: Redistribution | None = None
    default: Redistribution | None = None
    default_always: bool = False

    def of(self, source: RouteSource) -> Redistribution | None:
        """How routes of one source are announced; None: not."""
        return self.connected if source is RouteSource.CONNECTED else self.static


@dataclass(frozen=True, slots=True)
class IsisSettings:
    """The whole engine.

    ``areas`` are area addresses of 1 to 13 bytes. ``families`` are those routed (4, 6);
    ``multi_topology``: IPv6 in a topology of its own (RFC 5120, MT 2) instead of sharing that
    of IPv4. ``overload`` sets the overload bit, ``overload_on_startup`` (seconds) for that long
    after the start. ``level1_to_level2`` and ``level2_to_level1`` say whether a level-1-2 router
    leaks (RFC 5302). ``lsp_authentication`` signs LSPs and SNPs of a level. Lifetimes and
    intervals are in seconds.
    """

    system_id: SystemId
    areas: tuple[bytes, ...]
    levels: LevelSet = LevelSet.TWO
    hostname: str | None = None
    router_id: int = 0
    """The TE router id (TLV 134), an IPv4 address; 0: none is announced."""
    families: tuple[int, ...] = IPV4_AND_IPV6
    multi_topology: bool = False
    overload: bool = False
    overload_on_startup: float = 0.0
    level1_to_level2: bool = True
    level2_to_level1: bool = False
    redistribute: RedistributeSettings = RedistributeSettings()
    attached: bool = True
    """Whether a level-1-2 router that reaches other areas sets the attached bit (§7.2.9.2)."""
    lsp_mtu: int = DEFAULT_LSP_MTU
    lsp_lifetime: int = 1200
    lsp_refresh_interval: int = 900
    flood_pacing: float = 0.005
    """Least gap between two bursts of LSPs out of one circuit; the first never waits."""
    ack_delay: float = 0.1
    """Seconds for which acknowledgments wait for company: below any retransmission interval."""
    reduction: ReductionSettings = field(default_factory=ReductionSettings)
    throttle: ThrottleSettings = field(default_factory=lambda: ThrottleSettings(maximum=1.0))
    """A fragment holds many links and prefixes, and one event may change it several times: what
    is one LSA each in OSPF shares one back-off here, so that it must end sooner."""
    announce: AnnounceSettings = DEFAULT_ANNOUNCE
    path_capacity_code: int | None = PATH_CAPACITY
    """Code point of the path capacity sub-TLV; None: neither sent nor believed."""
    lsp_authentication: tuple[tuple[int, Keyring], ...] = ()
    """Keyring of each level that has one, as (level, keys)."""
    epoch: float = 0.0
    """Wall-clock time, seconds since 1970, at ``now`` 0: key lifetimes count in it."""

    def lsp_keys(self, level: int) -> Keyring:
        """The keys of LSPs and SNPs of a level."""
        return dict(self.lsp_authentication).get(level, ())
