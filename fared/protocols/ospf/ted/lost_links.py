"""The block of a router that lost links: a copy without their rows.

It applies where each link and each TE link has an address of its own: a TE link without its row
then matches no other. The rows that are left keep their former numbers in ``RouterFacts`` until a
TE LSA needs them (``blocks.number``).

A fast path beside ``blocks.build``: tests/ospf/test_builder.py proves them equal; row ``block of a
lost link``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from fared.protocols.ospf.common_ends import common_ends
from fared.protocols.ospf.packet.bodies import TO_VERTICES, RouterLink, RouterLinkType, RouterLsa
from fared.protocols.ospf.ted.blocks import RouterFacts, prefixes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.paths.ted.model import NodeBlock
    from fared.protocols.ospf.packet.lsa import LsaKey

_FEW_LINKS = 32
"""A block of fewer links is built as fast."""
_MOST_LOST = 8
"""The most links to remove."""


def shrunk(router: RouterFacts, block: NodeBlock, body: RouterLsa) -> NodeBlock | None:
    """Return the block without the links that the router LSA has lost.

    None where the LSA differs in another way, or TE links may match other rows than before.
    """
    old = () if router.listed is None else router.listed.links
    if len(old) < _FEW_LINKS or not router.distinct:
        return None
    alike = common_ends(old, body.links)
    lost = old[alike.begin : len(old) - alike.end]
    if alike.begin + alike.end < len(body.links) or len(lost) > _MOST_LOST:
        return None
    rows = _rows(block, lost)
    if rows is None:
        return None
    _forget(router, lost)
    router.listed = body
    kept = np.ones(len(block.neighbors), bool)
    kept[rows] = False
    return replace(
        block,
        neighbors=block.neighbors[kept],
        metrics=block.metrics[kept],
        capacities=block.capacities[kept],
        availables=block.availables[kept],
        delays=_left(block.delays, kept),
        local_ids=block.local_ids[kept],
        remote_ids=block.remote_ids[kept],
        prefixes=block.prefixes if len(rows) == len(lost) else prefixes_of(body.links),
    )


def _left(
    delays: NDArray[np.float64] | None, kept: NDArray[np.bool_]
) -> NDArray[np.float64] | None:
    """The delays of the rows that are kept; None where none of these has one, as in ``build``."""
    if delays is None or np.isnan(delays[kept]).all():
        return None
    return delays[kept]


def _rows(block: NodeBlock, lost: tuple[RouterLink, ...]) -> list[int] | None:
    """Find the rows of lost links by their addresses; None if that is ambiguous."""
    rows: list[int] = []
    for link in lost:
        if link.link_type == RouterLinkType.VIRTUAL:
            return None
        if link.link_type in TO_VERTICES:
            found = np.flatnonzero(block.local_ids == link.link_data)
            if len(found) != 1:
                return None
            rows.append(int(found[0]))
    return rows


def _forget(router: RouterFacts, lost: tuple[RouterLink, ...]) -> None:
    """Forget the rows of lost links, and which TE LSAs had them."""
    gone = {
        router.rows.pop((link.link_id, link.link_data))
        for link in lost
        if link.link_type in TO_VERTICES
    }
    for row in gone & router.claimed:
        key = list(router.row_of)[list(router.row_of.values()).index(row)]
        del router.row_of[key]
        router.patched.pop(key, None)
    router.claimed -= gone
    router.numbered &= not gone


def withdraw(router: RouterFacts, key: LsaKey) -> bool:
    """Forget a TE LSA; return whether no other TE link may take its row.

    Its row has to be gone too, else the block is built again: see ``withdrawn``.
    """
    gone = router.te.pop(key)
    router.claimed.discard(router.row_of.pop(key, -1))
    router.patched.pop(key, None)
    router.withdrawn.append((gone.link_id, gone.local))
    return router.distinct
