"""The block of a router that lost links: a copy without their rows, at the cost of these.

Rows keep the numbers that ``build`` gave them (``RouterFacts.place``), so that nothing else is
matched again. That is so where each link and each TE link has an address of its own, as in
``blocks``: a TE link without its row then matches no other.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from msgspec.structs import replace

from fared.paths.ted.graph import anywhere
from fared.paths.ted.rows import without
from fared.protocols.ospf.common_ends import common_ends
from fared.protocols.ospf.packet.bodies import TO_VERTICES, RouterLink, RouterLinkType, RouterLsa
from fared.protocols.ospf.ted.blocks import HIGHEST_INDEX, RouterFacts, names_of, prefixes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.paths.ted.model import NodeBlock, PrefixReachability
    from fared.protocols.ospf.packet.lsa import LsaKey
    from fared.protocols.ospf.packet.te_facts import TeFacts

_T = TypeVar("_T", bound=np.generic)
_FEW_LINKS = 24
"""A block of fewer links is built as fast as shrunk."""
_MOST_LOST = 16
"""The most links to remove from a block one by one."""


def shrunk(router: RouterFacts, block: NodeBlock, body: RouterLsa) -> NodeBlock | None:
    """Return the block without the links that the router LSA has lost, at a cost of these.

    None where the LSA differs in another way, or TE links may match other rows than before.
    """
    old = () if router.listed is None else router.listed.links
    if len(old) < _FEW_LINKS:
        return None
    alike = common_ends(old, body.links)
    low, high = alike.begin, len(old) - alike.end
    if alike.begin + alike.end < len(body.links) or high - low > _MOST_LOST:
        return None
    rows = _forget(router, block, [k for k in old[low:high] if k.link_type in TO_VERTICES])
    if rows is None:
        return None
    router.listed = body
    return replace(
        block,
        neighbors=_left(block.neighbors, rows),
        metrics=_left(block.metrics, rows),
        capacities=_left(block.capacities, rows),
        availables=_left(block.availables, rows),
        local_ids=_left(block.local_ids, rows),
        remote_ids=_left(block.remote_ids, rows),
        prefixes=block.prefixes if high - low == len(rows) else _kept(block, old, low, high),
    )


def _forget(router: RouterFacts, block: NodeBlock, lost: list[RouterLink]) -> list[int] | None:
    """Forget lost links and what matched them; return the rows of the block that they had.

    None, and nothing is forgotten, unless each link and each TE link has an address of its own: as
    in ``_look_up``, all others match the same rows as before.
    """
    te, named = router.te, router.named
    if named is None:
        named = router.named = names_of(te)
    if len(router.rows) < len(block.neighbors) or len(named) < len(te):
        return None
    if te and not _numbered(block):
        return None
    names = [(link.link_id, link.link_data) for link in lost]
    rows = [router.rows[name] for name in names]
    keys = [named.get(name) for name in names]
    for key, row in zip(keys, rows, strict=True):
        if row in router.claimed if key is None else router.row_of.get(key) != row:
            return None
    places = [router.place(row) for row in rows]
    for name, key, row in zip(names, keys, rows, strict=True):
        del router.rows[name]
        router.lost_rows.append(row)
        if key is not None:
            del router.row_of[key]
            router.claimed.discard(row)
            router.patched.pop(key, None)
    router.lost_rows.sort()
    return places


def _left(values: NDArray[_T], rows: list[int]) -> NDArray[_T]:
    """Remove a few rows, ascending."""
    for row in reversed(rows):
        values = without(values, row)
    return values


def _kept(
    block: NodeBlock, links: tuple[RouterLink, ...], low: int, high: int
) -> tuple[PrefixReachability, ...]:
    """Return the prefixes of a block without those of the links ``low`` to ``high - 1``."""
    stubs = [at for at, link in enumerate(links) if link.link_type == RouterLinkType.STUB]
    if len(stubs) != len(block.prefixes):  # some have no valid mask
        return prefixes_of(links[:low] + links[high:])
    return block.prefixes[: bisect_left(stubs, low)] + block.prefixes[bisect_left(stubs, high) :]


def withdraw(router: RouterFacts, key: LsaKey, gone: TeFacts) -> bool:
    """Vacate the row of a TE LSA that is not in ``te`` any more.

    False, and nothing is vacated, where other TE links may match other rows now.
    """
    row = router.row_of.get(key)
    if row is None:
        return router.block is not None
    named, name = router.named, (gone.link_id, gone.local)
    if named is None:
        named = router.named = names_of(router.te)
    alone = len(named) == len(router.te) and name not in named and not gone.more
    if not alone or router.rows.get(name) != row:
        return False
    if router.block is None or not _numbered(router.block):
        return False
    del router.row_of[key]
    router.claimed.discard(row)
    router.patched.pop(key, None)
    router.vacant.append(row)
    return True


def _numbered(block: NodeBlock) -> bool:
    """Whether no link is known by its interface index only, and so may match TE links by order."""
    return not anywhere(block.local_ids <= HIGHEST_INDEX)
