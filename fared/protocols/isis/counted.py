"""What the counters of IS-IS can count (``igp.counted``)."""

from __future__ import annotations

from fared.protocols.igp.counted import MALFORMED, Countable
from fared.protocols.igp.refusals import ISIS_REFUSALS
from fared.protocols.isis.adjacency.fsm import ADJACENCY_TABLE
from fared.protocols.isis.pdu.model import PduType

_NOT_HELLOS = ("lsp-sequence", "malformed-tlv", "no-adjacency")
_OF_THIS_ROUTER = ("no-send-key",)


def _transitions() -> dict[tuple[str, str], None]:
    """Return the pairs of states of the table."""
    found: dict[tuple[str, str], None] = {}
    for state, event in ADJACENCY_TABLE:
        row = ADJACENCY_TABLE.find(state, event)
        if row is not None and row.target is not None and row.target is not state:
            found[state.value, row.target.value] = None
    return found


COUNTABLE = Countable(
    transitions=tuple(_transitions()),
    types=tuple(kind.label for kind in PduType),
    errors=(*ISIS_REFUSALS, *MALFORMED, *_NOT_HELLOS, *_OF_THIS_ROUTER),
)
