"""The contents of one LSP fragment, its links as arrays: read once, when it arrives.

A router with many links spreads them over dozens of fragments, of which one changes at a time. So
each fragment becomes arrays of its own, and the block of a router is their concatenation.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping
from math import isnan
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from fared.core.ids import ISIS_NODE
from fared.paths.te.attributes import TeAttributes
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import (
    MT_IPV4,
    AreaAddresses,
    Hostname,
    IpReachability,
    IsNeighbor,
    IsReachability,
    MultiTopology,
    NarrowIpReachability,
    NarrowIsReachability,
    NarrowNeighbor,
    ProtocolsSupported,
    Topology,
    of_type,
)
from fared.protocols.isis.ted.fragment_prefixes import NO_PREFIXES, FragmentPrefixes, read_prefixes

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Links(msgspec.Struct, frozen=True, eq=False):
    """Links as columns of ``NodeBlock``, all (K,); ``delays`` None: no link has one."""

    neighbors: NDArray[np.int64]
    metrics: NDArray[np.int64]
    capacities: NDArray[np.float64]
    availables: NDArray[np.float64]
    local_ids: NDArray[np.int64]
    remote_ids: NDArray[np.int64]
    delays: NDArray[np.float64] | None = None

    def columns(self) -> tuple[NDArray[Any], ...]:
        """All arrays but the delays, in this order."""
        return (
            self.neighbors,
            self.metrics,
            self.capacities,
            self.availables,
            self.local_ids,
            self.remote_ids,
        )

    def each_delay(self) -> NDArray[np.float64]:
        """Return the delay of each link (K,), NaN where it is not known."""
        return np.full(len(self.metrics), np.nan) if self.delays is None else self.delays


_NO_TOPOLOGIES: Final[Mapping[int, Topology]] = MappingProxyType({})
_NO_LINKS: Final[Mapping[int | None, Links]] = MappingProxyType({})


class FragmentFacts(msgspec.Struct, frozen=True):
    """One fragment. ``links`` by MT id, None for TLV 22; ``narrow`` are those of TLV 2.

    Most fragments lack some of these: what is empty is shared.
    """

    areas: frozenset[bytes] = frozenset()
    nlpids: frozenset[int] = frozenset()
    topologies: Mapping[int, Topology] = _NO_TOPOLOGIES
    multi_topology: bool = False
    hostname: str | None = None
    overload: bool = False
    attached: bool = False
    links: Mapping[int | None, Links] = _NO_LINKS
    narrow: tuple[NarrowNeighbor, ...] = ()
    prefixes: FragmentPrefixes = NO_PREFIXES


Rows = dict[int | None, list[int]]
"""Rows of links, by topology."""
Former = tuple[Lsp, FragmentFacts]
"""Another instance of an LSP, and its facts read with the same arguments."""


def link_ids(neighbor: IsNeighbor) -> tuple[int, int]:
    """The ids that distinguish parallel links, at this end and at the other.

    IPv4 addresses (RFC 5305 §3.2, §3.3) where there are any, else link identifiers (RFC 5307 §1.1);
    0 where unknown. FRR sends addresses only, and without TE only that of the other end.
    """
    near, far = neighbor.local_addresses, neighbor.remote_addresses
    if near or far:
        return near[0] if near else 0, far[0] if far else 0
    return neighbor.local_id or 0, neighbor.remote_id or 0


def read_fragment(
    lsp: Lsp, *, own: bool, capacity_code: int | None, former: Former | None = None
) -> FragmentFacts:
    """Read one LSP. ``own``: it is ours, and its leaked prefixes are ignored.

    TLVs that are identical objects in ``former`` are not read again.
    """
    tlvs = lsp.tlvs
    topologies = of_type(tlvs, MultiTopology)
    names = of_type(tlvs, Hostname)
    same = _unchanged(lsp, former, IsReachability)
    links = same.links if same else _read_links(lsp)
    same = _unchanged(lsp, former, IpReachability, NarrowIpReachability)
    if same is None:
        before = None if former is None else (former[0], former[1].prefixes)
        prefixes = read_prefixes(lsp, own=own, capacity_code=capacity_code, former=before)
    else:
        prefixes = same.prefixes
    return FragmentFacts(
        areas=_areas(tuple([a for tlv in of_type(tlvs, AreaAddresses) for a in tlv.addresses])),
        nlpids=_nlpids(tuple([n for tlv in of_type(tlvs, ProtocolsSupported) for n in tlv.nlpids])),
        topologies={entry.topology: entry for tlv in topologies for entry in tlv.topologies}
        or _NO_TOPOLOGIES,
        multi_topology=bool(topologies),
        hostname=names[-1].name or None if names else None,
        overload=lsp.overload,
        attached=lsp.attached,
        links=links or _NO_LINKS,
        narrow=tuple([n for tlv in of_type(tlvs, NarrowIsReachability) for n in tlv.neighbors]),
        prefixes=prefixes,
    )


@functools.lru_cache(maxsize=64)
def _areas(addresses: tuple[bytes, ...]) -> frozenset[bytes]:
    """A set, 216 bytes or more, that fragments share: most routers have the same areas."""
    return frozenset(addresses)


@functools.lru_cache(maxsize=64)
def _nlpids(nlpids: tuple[int, ...]) -> frozenset[int]:
    """As ``_areas``: most routers support the same protocols."""
    return frozenset(nlpids)


def changed_rows(old: FragmentFacts, new: FragmentFacts) -> Rows | None:
    """The links, by topology, whose bandwidths differ between two instances; None: more differs.

    Delays, which differ rarely, are more.

    Areas and prefixes are not compared: the block does not have them.
    """
    if _role(old) != _role(new) or old.links.keys() != new.links.keys():
        return None
    found: Rows = {}
    for topology, before in old.links.items():
        after = new.links[topology]
        if after is before:
            continue
        if not _same_ends(before, after):
            return None
        capacities = _differ(before.capacities, after.capacities)
        if rows := sorted(capacities | _differ(before.availables, after.availables)):
            found[topology] = rows
    return found


def _role(facts: FragmentFacts) -> tuple[object, ...]:
    return (
        facts.nlpids,
        facts.topologies,
        facts.multi_topology,
        facts.hostname,
        facts.overload,
        facts.attached,
        facts.narrow,
    )


def _same_ends(a: Links, b: Links) -> bool:
    """Whether two columns of links differ in bandwidths at most."""
    if not _same_delays(a.delays, b.delays):
        return False
    pairs = (
        (a.neighbors, b.neighbors),
        (a.metrics, b.metrics),
        (a.local_ids, b.local_ids),
        (a.remote_ids, b.remote_ids),
    )
    return all(one is other or one.tobytes() == other.tobytes() for one, other in pairs)


def _same_delays(a: NDArray[np.float64] | None, b: NDArray[np.float64] | None) -> bool:
    return a is b or (a is not None and b is not None and a.tobytes() == b.tobytes())


def _differ(a: NDArray[np.float64], b: NDArray[np.float64]) -> set[int]:
    """The rows in which bandwidths differ; NaN, unknown, equals NaN."""
    if a.tobytes() == b.tobytes():  # nearly always: of capacities
        return set()
    rows: list[int] = (a != b).nonzero()[0].tolist()
    return {row for row in rows if not (isnan(a[row]) and isnan(b[row]))}


def _unchanged(lsp: Lsp, former: Former | None, *kinds: type) -> FragmentFacts | None:
    """The facts of the former instance, if both have identical TLVs of these kinds."""
    if former is None:
        return None
    mine, others = (
        [tlv for tlv in instance.tlvs if isinstance(tlv, kinds)] for instance in (lsp, former[0])
    )
    same = len(mine) == len(others) and all(map(operator.is_, mine, others))
    return former[1] if same else None


def _read_links(lsp: Lsp) -> dict[int | None, Links]:
    found: dict[int | None, list[IsNeighbor]] = {}
    for tlv in of_type(lsp.tlvs, IsReachability):
        # RFC 5120 §7.2: TLV 222 with MT id 0 is ignored
        if tlv.topology != MT_IPV4:
            found.setdefault(tlv.topology, []).extend(tlv.neighbors)
    return {topology: _links(neighbors) for topology, neighbors in found.items()}


def _links(neighbors: Iterable[IsNeighbor]) -> Links:
    whole: list[tuple[int, int, int, int]] = []
    floats: list[tuple[float, float]] = []
    # links of one router mostly share their attributes object
    known: dict[int, tuple[float, float]] = {}
    delayed: dict[int, int] = {}
    delays: dict[int, int] = {}
    for neighbor in neighbors:
        local, remote = link_ids(neighbor)
        whole.append((ISIS_NODE | neighbor.neighbor, neighbor.metric, local, remote))
        pair = known.get(id(neighbor.attributes))
        if pair is None:
            pair = known[id(neighbor.attributes)] = bandwidths(neighbor.attributes)
            if (delay := neighbor.attributes.one_way_delay) is not None:
                delayed[id(neighbor.attributes)] = delay
        if delayed and (delay := delayed.get(id(neighbor.attributes))) is not None:
            delays[len(floats)] = delay
        floats.append(pair)
    # an array of its own for each column: views of one would take twice as many objects
    ints = [np.array(column, np.int64) for column in zip(*whole, strict=True)]
    reals = [np.array(column, np.float64) for column in zip(*floats, strict=True)]
    nodes, metrics, local_ids, remote_ids = ints or [np.empty(0, np.int64)] * 4
    capacities, availables = reals or [np.empty(0)] * 2
    # ids that no router sends, and bandwidths without load, are the same: nothing writes to these
    if not (local_ids.any() or remote_ids.any()):
        remote_ids = local_ids
    if capacities.tobytes() == availables.tobytes():
        availables = capacities
    return Links(
        nodes, metrics, capacities, availables, local_ids, remote_ids, _delays(len(nodes), delays)
    )


def _delays(count: int, found: Mapping[int, int]) -> NDArray[np.float64] | None:
    """The delay of each of ``count`` links, microseconds, ``found`` by row; None: there is none."""
    if not found:
        return None
    delays = np.full(count, np.nan)
    delays[list(found)] = list(found.values())
    return delays


def bandwidths(attributes: TeAttributes) -> tuple[float, float]:
    """Capacity and available bandwidth, bytes/s, NaN where unknown."""
    capacity, available = attributes.capacity, attributes.available
    return (
        np.nan if capacity is None else capacity,
        np.nan if available is None else available,
    )


def narrow_links(neighbors: Iterable[NarrowNeighbor], known: set[int]) -> Links:
    """Links of TLV 2 toward neighbors that wide TLVs do not list."""
    used = [n for n in neighbors if (ISIS_NODE | n.neighbor) not in known]
    unknown = np.full(len(used), np.nan)
    nothing = np.zeros(len(used), np.int64)
    return Links(
        neighbors=np.array([ISIS_NODE | n.neighbor for n in used], np.int64),
        metrics=np.array([n.metric for n in used], np.int64),
        capacities=unknown,
        availables=unknown,
        local_ids=nothing,
        remote_ids=nothing,
    )


@functools.lru_cache(maxsize=1)
def _without_links() -> Links:
    """One object for all routers that list no neighbor; nothing writes to its arrays."""
    return _links(())


def joined(parts: list[Links]) -> Links:
    """All links of a router."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return _without_links()
    columns = zip(*[part.columns() for part in parts], strict=True)
    links = Links(*[*map(np.concatenate, columns)])
    if all(part.delays is None for part in parts):
        return links
    return replace(links, delays=np.concatenate([part.each_delay() for part in parts]))
