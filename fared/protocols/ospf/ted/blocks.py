"""The block of one router: the links of its router LSA as arrays, with TE LSAs matched to rows.

A TE LSA identifies its link by link id and local address. If that is ambiguous (unnumbered links to
the same neighbor, addresses that are not in the router LSA), links are matched by order.

``patch`` is a fast path beside ``build``: tests/ospf/test_builder.py proves them equal; row ``block
of a router with other bandwidths``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace

from fared.core.ids import NETWORK_NODE, NodeId, ipv4_prefix, mask_length
from fared.paths.ted.model import NodeBlock, PrefixReachability
from fared.protocols.ospf.packet.bodies import TO_VERTICES, RouterLink, RouterLinkType, RouterLsa
from fared.protocols.ospf.packet.lsa import LsaKey
from fared.protocols.ospf.packet.te_facts import TeFacts

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD = 0xFFFFFFFF
_HIGHEST_INDEX = 0x00FFFFFF
"""Link data below 1.0.0.0 is an interface index, not an address (RFC 2328 §12.4.1.1)."""
RowKey = tuple[int, int]
VIRTUAL = RouterLinkType.VIRTUAL


class RouterFacts(msgspec.Struct):
    """The LSAs of one router in one area, and the block made of them."""

    node: NodeId
    body: RouterLsa | None = None
    listed: RouterLsa | None = None
    """The router LSA of ``block``."""
    hostname: str | None = None
    hostname_key: LsaKey | None = None
    te: dict[LsaKey, TeFacts] = msgspec.field(default_factory=dict)
    rows: dict[RowKey, int] = msgspec.field(default_factory=dict)
    """The rows of the block by link id and link data."""
    row_of: dict[LsaKey, int] = msgspec.field(default_factory=dict)
    claimed: set[int] = msgspec.field(default_factory=set)
    numbered: bool = True
    """Whether these rows are those of the block; else links were lost since (``lost_links``)."""
    distinct: bool = False
    """Whether each link and each TE link has an address of its own, no interface index.

    Then a TE link has the row of its address or none, whatever other links are lost.
    """
    withdrawn: list[RowKey] = msgspec.field(default_factory=list)
    """Names of TE links that are gone."""
    block: NodeBlock | None = None
    emitted: NodeBlock | None = None
    rebuild: bool = False
    relisted: bool = False
    """Whether ``body`` is new."""
    beyond: bool = False
    """Whether its E-bit or its type 4 summaries may have changed."""
    patched: dict[LsaKey, None] = msgspec.field(default_factory=dict)
    cause: str | None = None
    since: float = 0.0


def fits(router: RouterFacts, key: LsaKey, link: TeFacts) -> bool:
    """Match a new TE LSA to a row without one; return whether there is such a row.

    If another TE LSA has the row already, all are to be matched again, in their order.
    """
    if not router.numbered:
        return False
    for local in (*link.locals, link.local_identifier):
        row = router.rows.get((link.link_id, local))
        if row is not None:
            if row in router.claimed:
                return False
            router.row_of[key] = row
            router.claimed.add(row)
            router.distinct &= local == link.local and not link.rare.more
            return True
    return False


def build(router: RouterFacts, body: RouterLsa) -> NodeBlock:
    """Make a block from the router LSA and match all TE links to its rows."""
    links = number(router, body)
    kinds, ids, data, metrics = zip(*links, strict=True) if links else ((), (), (), ())
    neighbors = np.array(ids, dtype=np.int64)
    # §16.1: the link id of a type 2 link is the vertex id of a network
    if RouterLinkType.TRANSIT in kinds:
        neighbors[np.array(kinds) == RouterLinkType.TRANSIT] |= NETWORK_NODE
    virtual = [k for k in links if k.link_type == VIRTUAL] if VIRTUAL in kinds else []
    capacities, availables, remote_ids, delays = _columns(router, len(links))
    return NodeBlock(
        node=router.node,
        neighbors=neighbors,
        metrics=np.array(metrics, dtype=np.int64),
        capacities=np.array(capacities, dtype=np.float64),
        availables=np.array(availables, dtype=np.float64),
        local_ids=np.array(data, dtype=np.int64),
        remote_ids=np.array(remote_ids, dtype=np.int64),
        prefixes=prefixes_of(body.links),
        virtual=frozenset([(link.link_id, link.link_data) for link in virtual]),
        hostname=router.hostname,
        delays=delays,
    )


def number(router: RouterFacts, body: RouterLsa) -> list[RouterLink]:
    """Number the rows of the block, and match all TE links to them; return the links by row."""
    # RFC 2328 §16.1 (2): links to routers and transit networks; stub networks are its prefixes
    links = [k for k in body.links if k.link_type in TO_VERTICES]
    router.listed = body
    router.rows = {(link.link_id, link.link_data): row for row, link in enumerate(links)}
    router.row_of = _match(router, links)
    router.claimed = set(router.row_of.values())
    router.numbered = True
    return links


def patch(router: RouterFacts, block: NodeBlock) -> NodeBlock:
    """Return the block with the rows of LSAs that changed; the same object if none differs."""
    changed: dict[int, tuple[float, float, int, TeFacts]] = {}
    if router.patched and not router.numbered and router.listed is not None:
        number(router, router.listed)
    delayed = block.delays is not None
    for key in router.patched:
        row, link = router.row_of[key], router.te[key]
        values = _values(link)
        capacity, available, remote_id, _ = values
        delayed |= link.rare.delay is not None
        if (
            _other(float(block.availables[row]), available)
            or _other(float(block.capacities[row]), capacity)
            or block.remote_ids[row] != remote_id
            or (delayed and _other(block.each_delay().item(row), link.delay))
        ):
            changed[row] = values
    if not changed:
        return block
    capacities, availables = block.capacities.copy(), block.availables.copy()
    remote_ids = block.remote_ids.copy()
    for row, values in changed.items():
        capacities[row], availables[row], remote_ids[row], _ = values
    made = replace(block, capacities=capacities, availables=availables, remote_ids=remote_ids)
    if not delayed:
        return made
    found = {row: link.delay for row, (*_, link) in changed.items()}
    return replace(made, delays=_with_delays(block, found))


def _values(link: TeFacts) -> tuple[float, float, int, TeFacts]:
    """Capacity, available bandwidth, remote address or identifier, and all others."""
    return link.capacity, link.available, link.remote or link.remote_identifier, link


def _with_delays(block: NodeBlock, found: dict[int, float]) -> NDArray[np.float64] | None:
    """The delays with those of some rows, as ``_delays`` makes them."""
    known = {} if block.delays is None else dict(enumerate(block.delays.tolist()))
    delays = {row: delay for row, delay in (known | found).items() if not math.isnan(delay)}
    return _delays(len(block.neighbors), delays)


def _delays(count: int, found: dict[int, float]) -> NDArray[np.float64] | None:
    """The delay of each of ``count`` links, ``found`` by row; None where none has any: mostly."""
    if not found:
        return None
    delays = np.full(count, math.nan)
    delays[list(found)] = list(found.values())
    return delays


def _other(a: float, b: float) -> bool:
    """Whether two bandwidths differ; both may be NaN, unknown."""
    return a != b and not (math.isnan(a) and math.isnan(b))


def _columns(
    router: RouterFacts, count: int
) -> tuple[list[float], list[float], list[int], NDArray[np.float64] | None]:
    """Capacity, available bandwidth, remote address or identifier, and delay of each row."""
    capacities, availables, remote_ids = [math.nan] * count, [math.nan] * count, [0] * count
    te, delays = router.te, dict[int, float]()
    for key, row in router.row_of.items():
        link = te[key]
        capacities[row], availables[row] = link.capacity, link.available
        remote_ids[row] = link.remote or link.remote_identifier
        if link.rare.delay is not None:
            delays[row] = link.rare.delay
    return capacities, availables, remote_ids, _delays(count, delays)


def _match(router: RouterFacts, links: list[RouterLink]) -> dict[LsaKey, int]:
    """Find the row of each TE link: by address (RFC 3630 §2.5.3), by interface index, by order.

    Sets ``distinct``: each has its only address, and either the row of that or none.
    """
    matched: dict[LsaKey, int] = {}
    taken: set[int] = set()
    left: list[tuple[LsaKey, TeFacts]] = []
    rows = router.rows
    distinct = len(rows) == len(links) and all(data > _HIGHEST_INDEX for _, data in rows)
    for key, te in sorted(router.te.items()):
        first = (
            te.rare.more[0] if te.rare.more else te.local or te.local_identifier
        )  # mostly the only one
        row = named = rows.get((te.link_id, first))
        if row is None or row in taken:
            candidates = [*te.locals, te.local_identifier]
            found = [rows.get((te.link_id, local)) for local in candidates]
            row = next((r for r in found if r is not None and r not in taken), None)
        distinct &= row == named and bool(te.local) and not te.rare.more
        if row is None:
            left.append((key, te))
        else:
            matched[key] = row
            taken.add(row)
    if left:
        _match_by_order(left, links, matched, taken)
    router.distinct = distinct
    return matched


def _match_by_order(
    left: list[tuple[LsaKey, TeFacts]],
    links: list[RouterLink],
    matched: dict[LsaKey, int],
    taken: set[int],
) -> None:
    """Match TE links without a matching address to unnumbered rows of the same neighbor."""
    free: dict[int, list[int]] = {}
    for row, link in enumerate(links):
        if row not in taken and link.link_data <= _HIGHEST_INDEX:
            free.setdefault(link.link_id, []).append(row)
    for key, te in left:
        rows = free.get(te.link_id)
        if rows:
            matched[key] = rows.pop(0)


def prefixes_of(links: tuple[RouterLink, ...]) -> tuple[PrefixReachability, ...]:
    """The stub networks of a router LSA (RFC 2328 §16.1, second stage)."""
    attachments = []
    for link in links:
        if link.link_type == RouterLinkType.STUB:
            length = mask_length(link.link_data & _WORD)
            if length is not None:
                attachments.append(
                    PrefixReachability(ipv4_prefix(link.link_id, length), link.metric)
                )
    return tuple(attachments)
