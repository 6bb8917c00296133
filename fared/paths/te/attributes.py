"""TE link attributes as a router advertises them, independent of the protocol.

OSPF carries them in opaque LSAs (RFC 3630, RFC 7471), IS-IS in sub-TLVs (RFC 5305, RFC 8570).
All bandwidths are bytes/s as on the wire, delays microseconds, loss a percentage. A field is
None where the peer did not send it. Values are as received: read them through ``capacity`` and
``available``, which reject NaN, infinities and absurd numbers.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from fared.core.units import sane_capacity, sane_load


class TeAttributes(msgspec.Struct, frozen=True, gc=False):
    """Attributes of one direction of one link: numbers, which the collector skips."""

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
        """Capacity of the link, bytes/s: its residual bandwidth (RFC 7471 §4.5).

        Without one, the lower of maximum and available: FRR derives a wrong maximum from the
        interface speed, but sends the available bandwidth that was configured.
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
    def share(self) -> float:
        """The part of its maximum that a derated link may carry (``te.far_ends``), 1 otherwise."""
        maximum, residual = map(sane_capacity, (self.max_bandwidth, self.residual_bandwidth))
        if maximum is None or residual is None:
            return 1.0
        return min(residual / maximum, 1.0)

    @property
    def available(self) -> float | None:
        """Capacity minus present load, bytes/s; it can be zero."""
        available = sane_load(self.available_bandwidth)
        capacity = self.capacity
        if available is None or capacity is None:
            return capacity
        return min(available, capacity)

    def resized(self, bandwidth: float) -> TeAttributes:
        """Return the attributes after a change of capacity under the same load."""
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
"""Attributes of a link whose router advertises no TE."""
