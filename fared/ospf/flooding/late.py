"""Flushed TE LSAs that came with a router LSA: processed once routes are computed.

A router that loses a link floods its router LSA without the link, and flushes the TE LSA of the
link, in one update. Only the first is urgent, since the graph has no such link any more. To verify,
install, flood and acknowledge the second would take a quarter of the CPU time from the packet to
the routes, in every router of a fabric at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fared.core.timers import Timer, TimerQueue
from fared.ospf.interface import Neighbor
from fared.ospf.packet.lsa import LS_TYPE_OFFSET, MAX_AGE, LsType
from fared.ospf.packet.opaque import OpaqueType

DELAY = 0.01
"""Seconds, so few that deferred copies of the flush share their time, and their packets, with those
of the router LSA (``core.reduction.FloodDelay``)."""
_NAME = slice(LS_TYPE_OFFSET, 12)
"""LS type, link state id and advertising router in a header (RFC 2328 §A.4.1)."""
_OPAQUE_TYPE = 4
_MOST = 1024


class LateFlushes:
    """Holds LSAs as received; ``receive`` processes one of them."""

    def __init__(self, timers: TimerQueue, receive: Callable[[Neighbor, bytes], object]) -> None:
        self._timers = timers
        self._receive = receive
        self._waiting: list[tuple[Neighbor, bytes]] = []
        self._names: set[bytes] = set()
        self._timer: Timer | None = None

    def take(self, neighbor: Neighbor, packed: Sequence[bytes], now: float) -> Sequence[bytes]:
        """Keep those LSAs of an update that may wait; return the others."""
        if self._names and not self._names.isdisjoint([raw[_NAME] for raw in packed]):
            self._process()  # instances of one LSA stay in order
        if len(packed) < 2 or neighbor.requests or len(self._waiting) + len(packed) > _MOST:
            return packed
        late = [raw for raw in packed if _is_flushed_te(raw)]
        urgent = [raw for raw in packed if raw not in late]
        if not late or not any(_is_router_lsa(raw) for raw in urgent):
            return packed
        self._waiting += [(neighbor, raw) for raw in late]
        self._names.update([raw[_NAME] for raw in late])
        if self._timer is None or not self._timer.active:
            self._timer = self._timers.arm(now + DELAY, self._process)
        return urgent

    def _process(self) -> None:
        self._timers.cancel(self._timer)
        waiting, self._waiting = self._waiting, []
        self._names.clear()
        for neighbor, raw in waiting:
            self._receive(neighbor, raw)


def _is_flushed_te(raw: bytes) -> bool:
    return (
        raw[LS_TYPE_OFFSET] == LsType.OPAQUE_AREA
        and raw[_OPAQUE_TYPE] == OpaqueType.TRAFFIC_ENGINEERING
        and _is_flushed(raw)
    )


def _is_router_lsa(raw: bytes) -> bool:
    """Whether it is one of a router that goes on, and has not shut down."""
    return raw[LS_TYPE_OFFSET] == LsType.ROUTER and not _is_flushed(raw)


def _is_flushed(raw: bytes) -> bool:
    return raw[0] << 8 | raw[1] >= MAX_AGE
