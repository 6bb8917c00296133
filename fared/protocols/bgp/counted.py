"""What the counters of BGP can count (``igp.counted``): sessions that begin and end."""

from __future__ import annotations

from fared.protocols.bgp.session.fsm import BgpState
from fared.protocols.igp.counted import Countable

COUNTABLE = Countable(
    transitions=(
        (BgpState.OPEN_CONFIRM.label, BgpState.ESTABLISHED.label),
        (BgpState.ESTABLISHED.label, BgpState.IDLE.label),
    ),
    types=(),
    errors=("attributes", "next-hop"),
)
