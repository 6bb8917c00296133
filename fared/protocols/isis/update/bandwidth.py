"""Recognizing LSPs that only announce changed bandwidths, which are flooded a moment later.

As in ``ospf.flooding.bandwidth``: in a fabric that adapts to load most LSPs are fragments in which
what a link has left differs from the last instance. Nothing but weights depends on that. All
neighbors of a router have such an LSP within milliseconds, so a copy that waits is mostly not sent.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from fared.paths.te.attributes import VOLATILE, TeAttributes
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.tlvs import IsNeighbor, IsReachability

_STEADY: Final = attrgetter(
    *(name for name in TeAttributes.__struct_fields__ if name not in VOLATILE)
)
_LINK: Final = attrgetter(*(name for name in IsNeighbor.__struct_fields__ if name != "attributes"))


def only_bandwidth(old: StoredLsp | None, new: StoredLsp) -> bool:
    """Whether two instances differ in available or unreserved bandwidth of links only.

    ``new`` has replaced ``old``.
    """
    if old is None or new.renewed is None:
        return False
    before, after = old.lsp.tlvs, new.lsp.tlvs
    changed = [(before[place], after[place]) for place in new.renewed]
    return all(
        (isinstance(a, IsReachability) and isinstance(b, IsReachability) and _same(a, b)) or a == b
        for a, b in changed
    )


def _same(a: IsReachability, b: IsReachability) -> bool:
    """Whether two TLVs list the same links, regardless of volatile attributes."""
    return (
        a.topology == b.topology
        and len(a.neighbors) == len(b.neighbors)
        and all(
            one is other
            or (_LINK(one) == _LINK(other) and _STEADY(one.attributes) == _STEADY(other.attributes))
            for one, other in zip(a.neighbors, b.neighbors, strict=True)
        )
    )
