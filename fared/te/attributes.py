"""What a TE link says of itself, independent of the protocol that carries it.

OSPF packs it into opaque LSAs (RFC 3630, RFC 7471), IS-IS into sub-TLVs (RFC 5305, RFC 8570).
All bandwidths are bytes/s as on the wire, delays microseconds, loss a percentage. A field is
None where the peer did not send it; values are as sent, so readers go through ``capacity``
and ``available``, which never let NaN, infinities or absurd numbers through.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fared.core.units import sane_capacity, sane_load


@dataclass(frozen=True, slots=True)
class TeAttributes:
    """Attributes of one direction of one link."""

    te_metric: int | None = None
    max_bandwidth: float | None = None
    max_reservable_bandwidth: float | None = None
    unreserved_bandwidth: tuple[float, ...] | None = None
    admin_group: int | None = None
    delay: int | None = None
    min_max_delay: tuple[int, int] | None = None
    delay_variation: int | None = None
    loss: float | None = None
    residual_bandwidth: float | None = None
    available_bandwidth: float | None = None
    utilized_bandwidth: float | None = None

    @property
    def capacity(self) -> float | None:
        """What the link can carry, bytes/s: residual bandwidth, which RFC 7471 §4.5 defines so.

        Without it the lower of maximum and available: FRR derives a wrong maximum from the
        interface speed but sends the available bandwidth that was configured.
        """
        residual = sane_capacity(self.residual_bandwidth)
        if residual is not None:
            return residual
        known = [
            v
            for v in (sane_capacity(self.max_bandwidth), sane_capacity(self.available_bandwidth))
            if v is not None
        ]
        return min(known) if known else None

    @property
    def available(self) -> float | None:
        """What the link could carry on top of its present load, bytes/s; zero is possible."""
        available = sane_load(self.available_bandwidth)
        capacity = self.capacity
        if available is None or capacity is None:
            return capacity
        return min(available, capacity)

    def resized(self, bandwidth: float) -> TeAttributes:
        """Another capacity under the same load; where the load is not told all stays available."""
        available = self.available_bandwidth
        if available is not None:
            used = self.utilized_bandwidth
            spare = bandwidth - used if used is not None else min(available, bandwidth)
            available = max(0.0, spare)
        return replace(
            self,
            max_bandwidth=bandwidth,
            residual_bandwidth=bandwidth,
            available_bandwidth=available,
        )


NO_ATTRIBUTES = TeAttributes()
"""Of a link whose router floods no TE."""
