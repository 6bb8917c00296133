"""What one LSP fragment says, as arrays: made once when it arrives, laid end to end afterwards.

A router with many links spreads them over dozens of fragments of which one changes at a time.
So each fragment is turned into arrays for itself, and the description of a router is their
concatenation.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from fared.core.ids import ISIS_NODE, Prefix
from fared.core.units import sane_capacity
from fared.isis.contents import FLAG_EXTERNAL, FLAG_READVERTISED
from fared.isis.ids import Level
from fared.isis.pdu.model import (
    AreaAddresses,
    Hostname,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    Lsp,
    MultiTopology,
    NarrowIpReach,
    NarrowIpReachability,
    NarrowIsReachability,
    NarrowNeighbor,
    ProtocolsSupported,
    Topology,
    of_type,
)
from fared.isis.settings import MAX_PATH_METRIC
from fared.te.attributes import TeAttributes
from fared.ted.model import PathType, PrefixAttachment

MAX_LINK_METRIC = 0xFF_FFFF
"""A link of this metric is not considered in SPF (RFC 5305 §3)."""
_EXTERNAL_METRIC = 64
"""What an external metric of narrow TLVs counts more than an internal one, as others have it."""
_LEAKABLE = (2, 11, 12)
"""Sub-TLVs of a prefix that stay with it: 64-bit tag (RFC 5130), source router ids (RFC 7794)."""
_REDISTRIBUTED = {
    Level.ONE: PathType.LEVEL_1_REDISTRIBUTED,
    Level.TWO: PathType.LEVEL_2_REDISTRIBUTED,
}


_Attachments = dict[tuple[int | None, int], tuple[PrefixAttachment, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Links as columns of ``NodeBlock``, all (K,)."""

    neighbors: NDArray[np.int64]
    metrics: NDArray[np.int64]
    capacities: NDArray[np.float64]
    availables: NDArray[np.float64]
    local_ids: NDArray[np.int64]
    remote_ids: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Described:
    """One fragment. ``links`` and ``prefixes`` go by MT id, None for the TLVs without one.

    ``narrow`` and ``narrow_prefixes`` are those of RFC 1195. ``noted`` are prefixes with
    attributes that leaking keeps.
    """

    areas: frozenset[bytes] = frozenset()
    nlpids: frozenset[int] = frozenset()
    topologies: dict[int, Topology] = field(default_factory=dict)
    multi_topology: bool = False
    hostname: str | None = None
    overload: bool = False
    attached: bool = False
    links: dict[int | None, Links] = field(default_factory=dict)
    narrow: tuple[NarrowNeighbor, ...] = ()
    prefixes: _Attachments = field(default_factory=dict)
    narrow_prefixes: tuple[PrefixAttachment, ...] = ()
    noted: dict[Prefix, IpReach] = field(default_factory=dict)


def link_ids(neighbor: IsNeighbor) -> tuple[int, int]:
    """What tells a link from its parallels, at this end and at the other.

    IPv4 addresses where there are any, since FRR sends nothing else, and without TE only that of
    the other end; else link identifiers (RFC 5307 §1.1). 0 where unknown.
    """
    near, far = neighbor.local_addresses, neighbor.remote_addresses
    if near or far:
        return near[0] if near else 0, far[0] if far else 0
    return neighbor.local_id or 0, neighbor.remote_id or 0


def describe(
    lsp: Lsp,
    *,
    own: bool,
    capacity_code: int | None,
    former: tuple[Lsp, Described] | None = None,
) -> Described:
    """Read one LSP. ``own``: one of ours, whose leaked prefixes say nothing new to us.

    ``former``: another issue of it, and what was read there with the same arguments. Where its
    TLVs are the very same objects they are not read again.
    """
    level = Level(lsp.level)
    areas: set[bytes] = set()
    nlpids: set[int] = set()
    topologies: dict[int, Topology] = {}
    multi_topology = False
    hostname: str | None = None
    links: dict[int | None, list[IsNeighbor]] = {}
    narrow: list[NarrowNeighbor] = []
    narrow_prefixes: list[PrefixAttachment] = []
    for tlv in lsp.tlvs:
        match tlv:
            case AreaAddresses():
                areas.update(tlv.addresses)
            case ProtocolsSupported():
                nlpids.update(tlv.nlpids)
            case MultiTopology():
                multi_topology = True
                topologies.update((entry.topology, entry) for entry in tlv.topologies)
            case Hostname():
                hostname = tlv.name or None
            case IsReachability():
                links.setdefault(tlv.topology or None, []).extend(tlv.neighbors)
            case NarrowIsReachability():
                narrow += tlv.neighbors
            case NarrowIpReachability():
                narrow_prefixes += (_narrow_attachment(item, level) for item in tlv.prefixes)
            case _:
                pass
    prefixes, noted = _reached(lsp, former, capacity_code, own=own)
    return Described(
        areas=frozenset(areas),
        nlpids=frozenset(nlpids),
        topologies=topologies,
        multi_topology=multi_topology,
        hostname=hostname,
        overload=lsp.overload,
        attached=lsp.attached,
        links={topology: _links(found) for topology, found in links.items()},
        narrow=tuple(narrow),
        prefixes=prefixes,
        narrow_prefixes=tuple(narrow_prefixes),
        noted=noted,
    )


def _same_reach(a: Lsp, b: Lsp) -> bool:
    """Whether two LSPs tell of their prefixes by the very same TLVs."""
    mine, others = (of_type(lsp.tlvs, IpReachability) for lsp in (a, b))
    return len(mine) == len(others) and all(map(operator.is_, mine, others))


def _reached(
    lsp: Lsp, former: tuple[Lsp, Described] | None, capacity_code: int | None, *, own: bool
) -> tuple[_Attachments, dict[Prefix, IpReach]]:
    """The ``prefixes`` of an LSP and what of them is ``noted``, as of ``describe``."""
    if former is not None and _same_reach(lsp, former[0]):
        return former[1].prefixes, former[1].noted
    level = Level(lsp.level)
    reaches: dict[tuple[int | None, int], list[IpReach]] = {}
    for tlv in of_type(lsp.tlvs, IpReachability):
        kept = reaches.setdefault((tlv.topology or None, tlv.family), [])
        kept += (reach for reach in tlv.prefixes if _counts(reach, own=own))
    prefixes = {
        at: tuple(_attachment(reach, level, capacity_code, own=own) for reach in found)
        for at, found in reaches.items()
    }
    noted = {r.prefix: r for found in reaches.values() for r in found if _worth_keeping(r)}
    return prefixes, noted


def _counts(reach: IpReach, *, own: bool) -> bool:
    if own and (reach.down or (reach.flags or 0) & FLAG_READVERTISED):
        return False
    return reach.metric <= MAX_PATH_METRIC


def _links(neighbors: Iterable[IsNeighbor]) -> Links:
    whole: list[tuple[int, int, int, int]] = []
    floats: list[tuple[float, float]] = []
    known: dict[int, tuple[float, float]] = {}  # links of one router mostly share their attributes
    for neighbor in neighbors:
        if neighbor.metric >= MAX_LINK_METRIC:
            continue
        local, remote = link_ids(neighbor)
        whole.append((ISIS_NODE | neighbor.neighbor, neighbor.metric, local, remote))
        bandwidths = known.get(id(neighbor.attributes))
        if bandwidths is None:
            bandwidths = known[id(neighbor.attributes)] = _bandwidths(neighbor.attributes)
        floats.append(bandwidths)
    nodes, metrics, local_ids, remote_ids = np.array(whole, np.int64).reshape(-1, 4).T.copy()
    capacities, availables = np.array(floats, np.float64).reshape(-1, 2).T.copy()
    return Links(nodes, metrics, capacities, availables, local_ids, remote_ids)


def _bandwidths(attributes: TeAttributes) -> tuple[float, float]:
    """Capacity and what is available of it, bytes/s, NaN where unknown."""
    capacity, available = attributes.capacity, attributes.available
    return (
        np.nan if capacity is None else capacity,
        np.nan if available is None else available,
    )


def narrow_links(neighbors: Iterable[NarrowNeighbor], known: set[int]) -> Links:
    """Links of TLV 2 toward neighbors that wide TLVs do not tell of."""
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


def joined(parts: list[Links]) -> Links:
    """All links of a router."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return _links(())
    return Links(
        neighbors=np.concatenate([part.neighbors for part in parts]),
        metrics=np.concatenate([part.metrics for part in parts]),
        capacities=np.concatenate([part.capacities for part in parts]),
        availables=np.concatenate([part.availables for part in parts]),
        local_ids=np.concatenate([part.local_ids for part in parts]),
        remote_ids=np.concatenate([part.remote_ids for part in parts]),
    )


def path_type(level: Level, *, down: bool) -> PathType:
    """RFC 5302 §3.2: the up/down bit means something in level 1 only."""
    if level is Level.TWO:
        return PathType.LEVEL_2
    return PathType.LEVEL_1_DOWN if down else PathType.LEVEL_1


def _attachment(
    reach: IpReach, level: Level, capacity_code: int | None, *, own: bool
) -> PrefixAttachment:
    capacity = None if capacity_code is None else sane_capacity(reach.capacity)
    if capacity is not None:
        # A single holds seven digits; the rest is noise that would make equal capacities differ.
        capacity = float(f"{8.0 * capacity:.7g}") / 8.0
    kind = path_type(level, down=reach.down)
    if own and (reach.flags or 0) & FLAG_EXTERNAL:  # what is leaked has been left out before
        kind = _REDISTRIBUTED[level]
    return PrefixAttachment(reach.prefix, reach.metric, kind, capacity)


def _narrow_attachment(item: NarrowIpReach, level: Level) -> PrefixAttachment:
    metric = item.metric + (_EXTERNAL_METRIC if item.metric_external else 0)
    return PrefixAttachment(item.prefix, metric, path_type(level, down=item.down))


def _worth_keeping(reach: IpReach) -> bool:
    """Whether leaking has to carry more of a prefix than its metric and capacity."""
    known = any(kind in _LEAKABLE for kind, _ in reach.unknown)
    return bool(reach.tags or reach.flags or reach.external or known)


def kept_attributes(reach: IpReach) -> IpReach:
    """The entry without sub-TLVs that mean something only in its own level."""
    unknown = tuple(item for item in reach.unknown if item[0] in _LEAKABLE)
    return replace(reach, unknown=unknown)
