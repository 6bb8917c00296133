"""The block of one router: the links of its router LSA as arrays, TE LSAs matched to their rows.

Mostly each TE LSA names the row of one link by neighbor and local address, and a look at a table
finds it. Where that does not tell links apart (unnumbered ones to the same neighbor, addresses
that are not in the router LSA) they are matched one by one, at last by their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from fared.core.ids import NETWORK_NODE, NodeId, ipv4_prefix, mask_length
from fared.ospf import contents
from fared.ospf.packet.bodies import RouterLink, RouterLinkType, RouterLsa
from fared.ospf.packet.lsa import LsaKey
from fared.ospf.packet.te_facts import TeFacts
from fared.ted.model import NodeBlock, PrefixAttachment

_WORD = 0xFFFFFFFF
_HIGHEST_INDEX = 0x00FFFFFF
"""Link data below 1.0.0.0 is an interface index, not an address (RFC 2328 §12.4.1.1)."""
_TO_VERTICES = (RouterLinkType.POINT_TO_POINT, RouterLinkType.TRANSIT)
RowKey = tuple[int, int]


@dataclass(slots=True)
class RouterFacts:
    """What we know of one router in one area."""

    node: NodeId
    body: RouterLsa | None = None
    hostname: str | None = None
    hostname_key: LsaKey | None = None
    te: dict[LsaKey, TeFacts] = field(default_factory=dict)
    named: dict[RowKey, LsaKey] | None = None
    """TE links by neighbor and address; None when ``te`` has others than it was made of."""
    rows: dict[RowKey, int] = field(default_factory=dict)
    row_of: dict[LsaKey, int] = field(default_factory=dict)
    claimed: set[int] = field(default_factory=set)
    block: NodeBlock | None = None
    emitted: NodeBlock | None = None
    rebuild: bool = False
    prefixes: tuple[PrefixAttachment, ...] = ()
    """Those of its own links; the block's are these and what lies beyond."""
    beyond: bool = False
    """Whether what lies beyond the area (summaries, externals) reads differently."""
    patched: dict[LsaKey, None] = field(default_factory=dict)
    cause: str | None = None
    since: float = 0.0


def fits(router: RouterFacts, key: LsaKey, link: TeFacts) -> bool:
    """Whether a new TE LSA names exactly one row that none has claimed yet; it has it then."""
    for local in link.locals:
        row = router.rows.get((link.link_id, local))
        if row is not None and row not in router.claimed:
            router.row_of[key] = row
            router.claimed.add(row)
            return True
    return False


def build(router: RouterFacts, body: RouterLsa) -> NodeBlock:
    """Make a block from the router LSA and match all TE links to its rows."""
    links = [k for k in body.links if k.link_type in _TO_VERTICES]
    count = len(links)
    kinds, ids, data, metrics = zip(*links, strict=True) if links else ((), (), (), ())
    router.rows = dict(zip(zip(ids, data, strict=True), range(count), strict=True))
    router.row_of = _look_up(router, links) or _match(router, links)
    router.claimed = set(router.row_of.values())
    neighbors = np.array(ids, dtype=np.int64)
    if RouterLinkType.TRANSIT in kinds:  # such links lead to the network of a designated router
        neighbors[np.array(kinds) == RouterLinkType.TRANSIT] |= NETWORK_NODE
    block = NodeBlock(
        node=router.node,
        neighbors=neighbors,
        metrics=np.array(metrics, dtype=np.int64),
        capacities=np.full(count, np.nan),
        availables=np.full(count, np.nan),
        local_ids=np.array(data, dtype=np.int64),
        remote_ids=np.zeros(count, dtype=np.int64),
        prefixes=_prefixes(body.links),
        # RFC 6987 §2: every link at MaxLinkMetric means "do not pass through".
        transit=not links or set(metrics) != {contents.MAX_LINK_METRIC},
        hostname=router.hostname,
    )
    _fill(block.capacities, block.availables, block.remote_ids, router, router.row_of)
    return block


def patch(router: RouterFacts, block: NodeBlock) -> NodeBlock:
    """Copy the arrays TE LSAs write to and fill in the rows of those that changed."""
    capacities, availables = block.capacities.copy(), block.availables.copy()
    remote_ids = block.remote_ids.copy()
    rows = {key: router.row_of[key] for key in router.patched}
    _fill(capacities, availables, remote_ids, router, rows)
    return replace(block, capacities=capacities, availables=availables, remote_ids=remote_ids)


def _fill(
    capacities: NDArray[np.float64],
    availables: NDArray[np.float64],
    remote_ids: NDArray[np.int64],
    router: RouterFacts,
    rows: dict[LsaKey, int],
) -> None:
    """Write what TE LSAs say into their rows."""
    if not rows:
        return
    at = list(rows.values())
    columns = list(zip(*(router.te[key] for key in rows), strict=True))
    _, _, _, remote, _, identifier, capacity, available, _ = columns
    capacities[at] = capacity
    availables[at] = available
    remote_ids[at] = [one or other for one, other in zip(remote, identifier, strict=True)]


def _look_up(router: RouterFacts, links: list[RouterLink]) -> dict[LsaKey, int] | None:
    """Find the row of each TE link by its only address, if that tells all apart; else None."""
    te, rows = router.te, router.rows
    if router.named is None:
        router.named = _names(te)
    if len(router.named) < len(te) or len(rows) < len(links):
        return None
    found = {key: rows[name] for name, key in router.named.items() if name in rows}
    left = len(found) < len(te)
    if left and any(link.link_data <= _HIGHEST_INDEX for link in links):
        return None
    return found


def _names(te: dict[LsaKey, TeFacts]) -> dict[RowKey, LsaKey]:
    """TE links by neighbor and address, less those that this does not tell from others."""
    return {
        (link.link_id, link.local): key for key, link in te.items() if link.local and not link.more
    }


def _match(router: RouterFacts, links: list[RouterLink]) -> dict[LsaKey, int]:
    """Find the row of each TE link: by address, by interface index, then by order (unnumbered)."""
    matched: dict[LsaKey, int] = {}
    taken: set[int] = set()
    left: list[tuple[LsaKey, TeFacts]] = []
    for key, te in sorted(router.te.items()):
        candidates = [*te.locals, te.local_identifier]
        found = (router.rows.get((te.link_id, local)) for local in candidates)
        row = next((r for r in found if r is not None and r not in taken), None)
        if row is None:
            left.append((key, te))
        else:
            matched[key] = row
            taken.add(row)
    if left:
        _match_by_order(left, links, matched, taken)
    return matched


def _match_by_order(
    left: list[tuple[LsaKey, TeFacts]],
    links: list[RouterLink],
    matched: dict[LsaKey, int],
    taken: set[int],
) -> None:
    """Give TE links without a matching address the free unnumbered rows to the same neighbor."""
    free: dict[int, list[int]] = {}
    for row, link in enumerate(links):
        if row not in taken and link.link_data <= _HIGHEST_INDEX:
            free.setdefault(link.link_id, []).append(row)
    for key, te in left:
        rows = free.get(te.link_id)
        if rows:
            matched[key] = rows.pop(0)


def _prefixes(links: tuple[RouterLink, ...]) -> tuple[PrefixAttachment, ...]:
    attachments = []
    for link in links:
        if link.link_type == RouterLinkType.STUB:
            length = mask_length(link.link_data & _WORD)
            if length is not None:
                attachments.append(PrefixAttachment(ipv4_prefix(link.link_id, length), link.metric))
    return tuple(attachments)
