"""The summaries that a border router advertises into one area, and the bodies of their LSAs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fared.core.ids import NodeId, Prefix, length_mask
from fared.paths.te.advertise import PathCapacities
from fared.protocols.ospf.origination.summary_ids import SummaryIds
from fared.protocols.ospf.packet.bodies import SummaryLsa
from fared.protocols.ospf.packet.body import encode_summary_lsa
from fared.protocols.ospf.packet.extended_prefix import (
    ExtendedPrefixLsa,
    PrefixFacts,
    RouteType,
    capacity_sub_tlv,
    encode_extended_prefix,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from fared.core.bier import BierInfo

    AdvertisedBier = tuple[int, tuple[BierInfo, ...]]


class Summary(msgspec.Struct, frozen=True):
    """A summary to advertise: metric, and capacity in bytes/s (None: no capacity)."""

    metric: int
    capacity: float | None
    bier: AdvertisedBier | None = None
    """Flags and BIER sub-TLVs of the prefix in the area of its path (RFC 8444 §2.5)."""


class AreaSummaries(msgspec.Struct):
    """The summaries advertised into one area at present."""

    prefixes: dict[Prefix, Summary] = msgspec.field(default_factory=dict)
    asbrs: dict[NodeId, int] = msgspec.field(default_factory=dict)
    ids: SummaryIds = msgspec.field(default_factory=SummaryIds)
    capacities: PathCapacities = msgspec.field(default_factory=PathCapacities)

    def summary_body(self, link_state_id: int) -> bytes | None:
        """The body of a type 3 LSA; None: it is not to exist."""
        prefix = self.ids.prefix_of_id(link_state_id)
        summary = None if prefix is None else self.prefixes.get(prefix)
        if prefix is None or summary is None:
            return None
        return encode_summary_lsa(SummaryLsa(length_mask(prefix.length), summary.metric))

    def asbr_body(self, node: NodeId) -> bytes | None:
        """The body of a type 4 LSA; None: it is not to exist."""
        metric = self.asbrs.get(node)
        return None if metric is None else encode_summary_lsa(SummaryLsa(0, metric))

    def attributes_body(
        self, number: int, code_point_now: Callable[[], int | None]
    ) -> bytes | None:
        """The attributes of a prefix, all in one TLV, since only one counts (RFC 7684 §2).

        ``code_point_now`` returns that of the path capacity; None: capacities are not advertised.
        """
        code_point = code_point_now()
        prefix = self.ids.prefix_of_number(number)
        summary = None if prefix is None else self.prefixes.get(prefix)
        if prefix is None or summary is None:
            return None
        sub_tlvs: tuple[tuple[int, bytes], ...] = ()
        flags = 0
        if summary.capacity is not None and code_point is not None:
            sub_tlvs = (capacity_sub_tlv(summary.capacity, code_point),)
        if summary.bier is not None:
            from fared.protocols.ospf.packet.bier import BIER, encode_bier  # noqa: PLC0415 - where BIER runs

            flags, infos = summary.bier
            sub_tlvs += tuple((BIER, encode_bier(info)) for info in infos)
        if not sub_tlvs:
            return None
        attributes = PrefixFacts(RouteType.INTER_AREA, prefix, flags, sub_tlvs)
        return encode_extended_prefix(ExtendedPrefixLsa((attributes,)))
