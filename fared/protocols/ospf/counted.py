"""What the counters of OSPF can count (``igp.counted``)."""

from __future__ import annotations

from fared.protocols.igp.counted import MALFORMED, Countable
from fared.protocols.igp.refusals import OSPF_REFUSALS
from fared.protocols.ospf.neighbor import NEIGHBOR_TABLE, NeighborAction, NeighborState
from fared.protocols.ospf.packet.packets import PacketType

_DECIDED = {
    NeighborAction.DECIDE_ADJACENCY: (NeighborState.TWO_WAY, NeighborState.EXSTART),
    NeighborAction.REVIEW_ADJACENCY: (NeighborState.TWO_WAY,),
    NeighborAction.FINISH_EXCHANGE: (NeighborState.LOADING, NeighborState.FULL),
}
"""The states that an action of the table may decide for."""
_NOT_HELLOS = (
    "mtu-mismatch",
    "unknown-neighbor",
    "update-before-exchange",
    "lsa-checksum",
    "lsa-type",
    "lsa-body",
    "grace-lsa",
)
_OF_THIS_ROUTER = ("interface-not-running", "auth-no-key", "lsdb-checksum")


def _transitions() -> dict[tuple[str, str], None]:
    """Return the pairs of states of the table (RFC 2328 §10.3); Attempt is for NBMA networks."""
    found: dict[tuple[str, str], None] = {}
    for state, event in NEIGHBOR_TABLE:
        row = NEIGHBOR_TABLE.find(state, event)
        if row is None or state is NeighborState.ATTEMPT:
            continue
        decided = _DECIDED.get(row.action, ()) if row.action is not None else ()
        for target in decided if row.target is None else (row.target,):
            if target is not state:
                found[state.label, target.label] = None
    return found


COUNTABLE = Countable(
    transitions=tuple(_transitions()),
    types=tuple(kind.label for kind in PacketType),
    errors=(*OSPF_REFUSALS, *MALFORMED, *_NOT_HELLOS, *_OF_THIS_ROUTER),
)
