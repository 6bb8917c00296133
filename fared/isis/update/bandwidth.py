"""Recognizing LSPs that only announce changed bandwidths, which are flooded a moment later.

As in ``ospf.flooding.bandwidth``: in a fabric that adapts to load most LSPs are fragments in which
what a link has left differs from the last instance. Nothing but weights depends on that. All
neighbors of a router have such an LSP within milliseconds, so a copy that waits is mostly not sent.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from fared.isis.lsdb import StoredLsp
from fared.isis.pdu.tlvs import IsNeighbor, IsReachability
from fared.te.attributes import NO_ATTRIBUTES, TeAttributes

_VOLATILE: Final = {
    "unreserved_bandwidth": None,
    "available_bandwidth": None,
    "utilized_bandwidth": None,
}


def only_bandwidth(old: StoredLsp | None, new: StoredLsp) -> bool:
    """Whether two instances differ in available or unreserved bandwidth of links only.

    ``new`` has replaced ``old``.
    """
    if old is None or new.renewed is None:
        return False
    before, after = old.lsp.tlvs, new.lsp.tlvs
    changed = [(before[place], after[place]) for place in new.renewed]
    return all(
        a == b or (isinstance(a, IsReachability) and isinstance(b, IsReachability) and _same(a, b))
        for a, b in changed
    )


def _same(a: IsReachability, b: IsReachability) -> bool:
    """Whether two TLVs list the same links, regardless of volatile attributes."""
    return (
        a.topology == b.topology
        and len(a.neighbors) == len(b.neighbors)
        and all(
            one == other or _steady(one) == _steady(other)
            for one, other in zip(a.neighbors, b.neighbors, strict=True)
        )
    )


def _steady(neighbor: IsNeighbor) -> tuple[IsNeighbor, TeAttributes]:
    return replace(neighbor, attributes=NO_ATTRIBUTES), replace(neighbor.attributes, **_VOLATILE)
