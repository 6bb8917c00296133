"""Settings of the FIB planner, and of packets that take another path than their flow."""

from __future__ import annotations

import enum

import msgspec

from fared.core.ids import Prefix

ID_BASE = 0x0FA0_0000
"""First id of fared's own range in the kernel's one id space of next hops and groups.

262144000 in decimal: far above the ids of people and iproute2 (from 1 up) and FRR's defaults, and
below 2^31, so that every tool prints it as a positive number.
"""
ID_COUNT = 0x0010_0000
MAIN_TABLE = 254
PROTOCOL, METRIC = 201, 20
"""Table, protocol and metric of our routes in the kernel, unless the configuration has others."""
_BUCKETS_PER_MEMBER = 4
_MAX_BUCKETS = 0xFFFF


class FibSettings(msgspec.Struct, frozen=True):
    """How the planner lays out next hops and groups; times are seconds.

    ``resilient``: whether groups are resilient; ``buckets``: the number of buckets of such a group.
    ``id_base``/``id_count``: the id range; the lower half is for next hops, the upper for groups.
    ``max_weight``, ``max_group_size``: bounds of weights and of their sum; None: as routes have.
    ``max_groups``: the most groups of several next hops that routes want; None: any.
    ``coalesce_delay``: quiet time before identical groups are merged and unused objects removed.
    ``coalesce_limit``: the longest that constant change delays this.
    ``retry_initial``/``retry_limit``: delays before refused operations are retried; they double.
    """

    id_base: int = ID_BASE
    id_count: int = ID_COUNT
    resilient: bool = False
    buckets: int = 512
    max_weight: int | None = None
    max_group_size: int | None = None
    max_groups: int | None = None
    coalesce_delay: float = 5.0
    coalesce_limit: float = 30.0
    retry_initial: float = 1.0
    retry_limit: float = 30.0

    def buckets_of(self, members: int) -> int:
        """Return the buckets of a group with so many members: with too few some get no traffic."""
        least = 1 << (_BUCKETS_PER_MEMBER * members - 1).bit_length()
        return min(max(self.buckets, least), _MAX_BUCKETS)

    @property
    def group_base(self) -> int:
        """First id used for groups."""
        return self.id_base + self.id_count // 2

    def owns(self, object_id: int) -> bool:
        """Whether an id lies in the range."""
        return self.id_base <= object_id < self.id_base + self.id_count


class Granularity(enum.StrEnum):
    """What takes one path: all packets of a flow, those between two pauses, or each alone."""

    FLOW = "flow"
    FLOWLET = "flowlet"
    PACKET = "packet"


class SprayMatch(msgspec.Struct, frozen=True):
    """Packets with one of these DSCPs, or ports as source or destination. All empty: any packet."""

    dscp: tuple[int, ...] = ()
    udp_ports: tuple[int, ...] = ()
    tcp_ports: tuple[int, ...] = ()


class SpraySettings(msgspec.Struct, frozen=True):
    """Which packets leave the path of their flow (``fared.paths.fib.spray``).

    ``gap``: seconds without a packet that end a flowlet. ``prefixes``: destinations, empty for all.
    ``phase``: where in a period this router begins, 0..1.
    """

    granularity: Granularity = Granularity.FLOW
    gap: float = 0.02
    prefixes: tuple[Prefix, ...] = ()
    match: SprayMatch = SprayMatch()
    phase: float = 0.0

    @property
    def by_flow(self) -> bool:
        """Whether nothing is sprayed."""
        return self.granularity is Granularity.FLOW
