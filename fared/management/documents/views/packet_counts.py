"""The packets of an interface, or of a BGP neighbor, by type and by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from fared.management.documents.packet_counts import PacketCounts, RejectedPackets
from fared.protocols.igp.counters import OTHER, PacketCounters


def packets_by_type(counted: PacketCounters, types: Iterable[str]) -> list[PacketCounts]:
    """Return the counters of types that have come, or were sent."""
    found = _packets(counted, (*types, OTHER))
    return [each for each in found if each.sent or each.received or each.rejected]


def rejected_by_reason(counted: PacketCounters) -> list[RejectedPackets]:
    """Return how many were rejected for each reason."""
    found = _summed(counted.rejected, 1)
    return [RejectedPackets(reason, packets) for reason, packets in sorted(found.items())]


def _packets(counted: PacketCounters, types: Iterable[str]) -> Iterator[PacketCounts]:
    rejected = _summed(counted.rejected, 0)
    for kind in types:
        yield PacketCounts(kind, counted.sent[kind], counted.received[kind], rejected[kind])


def _summed(rejected: Counter[tuple[str, str]], part: int) -> Counter[str]:
    """Sum what was rejected by one part of the keys: type, or reason."""
    found: Counter[str] = Counter()
    for key, number in rejected.items():
        found[key[part]] += number
    return found
