"""How fast LSPs are sent over a circuit: by the neighbor's flooding parameters (RFC 9681), or not.

If both ends take part, a neighbor is sent no more LSPs than fit into its receive window until it
acknowledges some, in bursts of the size that it receives without a gap, and on average at its rate.
Otherwise bursts are ``BURST`` LSPs, ``flood_pacing`` apart, and ``SLOW_GAP`` while many LSPs are
unacknowledged.
"""

from __future__ import annotations

from typing import Final

from fared.protocols.isis.instance import Instance
from fared.protocols.isis.update.circuit_tx import CircuitTx, SrmSsnQueue

BURST: Final = 20
"""PDUs of one burst at most: LSPs and CSNPs together."""
LARGEST_BURST: Final = 200
"""Even if the neighbor receives more without a gap: other circuits and hellos have their turn."""
WINDOW: Final = 200
"""With this many LSPs unacknowledged the gap between bursts is ``SLOW_GAP``."""
SLOW_GAP: Final = 0.05
_MICROSECONDS: Final = 1e6


class Pace:
    """The limits of one circuit at this moment."""

    __slots__ = ("_parameters", "_settings", "_tx")

    def __init__(self, instance: Instance, tx: CircuitTx) -> None:
        self._settings, self._tx = instance.settings, tx
        adjacency = None if tx.circuit.broadcast else tx.circuit.adjacency
        advertised = None if adjacency is None else adjacency.flooding
        self._parameters = advertised if self._settings.fast_flooding.enabled else None

    @property
    def window(self) -> int | None:
        """LSPs that may be sent before more are acknowledged (§4.6); None: no limit is known."""
        known = None if self._parameters is None else self._parameters.receive_window
        if known is None:
            return None
        sent = sum(len(queue.unacknowledged) for queue in self._tx.levels.values())
        return max(0, known - sent)

    @property
    def burst(self) -> int:
        """PDUs of one burst (§4.1)."""
        known = None if self._parameters is None else self._parameters.burst_size
        return BURST if not known else min(known, LARGEST_BURST)

    def gap(self, sent: int) -> float:
        """Seconds to the next burst after one of so many PDUs."""
        gap, known = self._settings.flood_pacing, self._parameters
        # §4.2: the interval between LSPs, on average
        if known is not None and known.transmission_interval is not None:
            gap = max(gap, sent * known.transmission_interval / _MICROSECONDS)
        if known is None or known.receive_window is None:
            crowded = any(_crowded(queue) for queue in self._tx.levels.values())
            gap = max(gap, SLOW_GAP) if crowded else gap
        return gap


def _crowded(queue: SrmSsnQueue) -> bool:
    """Whether more LSPs were sent (on a LAN: are pending) than receive buffers may hold."""
    return len(queue.unacknowledged if queue.reliable else queue.pending) >= WINDOW
