"""What the counters of BGP can count (``igp.counted``): sessions that begin and end, messages."""

from __future__ import annotations

from fared.protocols.bgp.packet.messages import MessageType
from fared.protocols.bgp.packet.notification import REASONS
from fared.protocols.bgp.session.fsm import BgpState
from fared.protocols.igp.counted import Countable

COUNTABLE = Countable(
    transitions=(
        (BgpState.OPEN_CONFIRM.label, BgpState.ESTABLISHED.label),
        (BgpState.ESTABLISHED.label, BgpState.IDLE.label),
    ),
    types=tuple(kind.label for kind in MessageType),
    errors=(*REASONS.values(), "attributes", "next-hop"),
)
