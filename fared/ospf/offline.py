"""Databases without a daemon: which LSAs count, and the TED blocks they make.

A saved or captured database goes through the very ``TedBuilder`` that the engine runs, so what
is computed offline from the same LSAs is what a router computes. ``whatif`` changes contents
in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fared.core.ids import NETWORK_NODE, AreaId, NodeId, RouterId, dotted
from fared.core.wire import DecodeError
from fared.ospf.events import TedUpdated
from fared.ospf.instance import Area, Instance
from fared.ospf.lsdb import LsaEntry, compare
from fared.ospf.packet.body import LsaBody, decode_body
from fared.ospf.packet.lsa import MAX_AGE, Lsa, LsaHeader, LsaKey, LsType, lsa_checksum_ok
from fared.ospf.settings import AreaSettings, OspfSettings
from fared.ospf.ted import TedBuilder
from fared.ted.model import LocalLink, NodeBlock
from fared.ted.saved import Blocks, Ignored

_COMPUTED = (
    LsType.ROUTER,
    LsType.NETWORK,
    LsType.SUMMARY_NETWORK,
    LsType.SUMMARY_ASBR,
    LsType.AS_EXTERNAL,
    LsType.OPAQUE_AREA,
    LsType.OPAQUE_LINK,
    LsType.OPAQUE_AS,
)
"""The LS types that ``TedBuilder`` reads, and opaque ones, which describe no routes."""


class StoredLsa(NamedTuple):
    """An LSA and its decoded body, which may say something else than the bytes (``whatif``)."""

    lsa: Lsa
    body: LsaBody | None


@dataclass(frozen=True, slots=True)
class AreaContents:
    """The LSAs of one area that count: one instance each, whole, younger than MaxAge."""

    area: AreaId
    stub: bool
    lsas: Mapping[LsaKey, StoredLsa]


class SavedNeighbor(NamedTuple):
    """A neighbor of a saved interface to which packets may be sent."""

    router_id: int
    address: int


@dataclass(frozen=True, slots=True)
class SavedInterface:
    """An interface of the router whose database this is. ``bandwidth`` in bytes/s."""

    name: str
    area: AreaId
    ifindex: int
    addresses: tuple[int, ...]
    cost: int
    bandwidth: float | None
    neighbors: tuple[SavedNeighbor, ...]
    broadcast: bool = False


class _NoJitter:
    def random(self) -> float:
        return 0.0


def name_lsa(header: LsaHeader) -> str:
    """Name an LSA: type, link state id, advertising router."""
    kinds = {member.value: member.name.lower().replace("_", "-") for member in LsType}
    kind = kinds.get(header.ls_type, f"type-{header.ls_type}")
    return f"{kind} {dotted(header.link_state_id)} {dotted(header.advertising_router)}"


def newest(lsas: Iterable[Lsa]) -> dict[LsaKey, Lsa]:
    """Keep one instance of each LSA, the newest (RFC 2328 §13.1); ages are those of now."""
    kept: dict[LsaKey, Lsa] = {}
    for lsa in lsas:
        present = kept.get(lsa.header.key)
        if present is None or compare(lsa.header, present.header) > 0:
            kept[lsa.header.key] = lsa
    return kept


def screen(area: AreaId, lsas: Iterable[Lsa], *, stub: bool) -> tuple[AreaContents, list[Ignored]]:
    """Take what a router would calculate with; say what it would not, and why."""
    ignored: list[Ignored] = []
    sound: list[Lsa] = []
    for lsa in lsas:
        if lsa_checksum_ok(lsa):
            sound.append(lsa)
        else:
            ignored.append(Ignored(name_lsa(lsa.header), "checksum"))
    stored: dict[LsaKey, StoredLsa] = {}
    for key, lsa in sorted(newest(sound).items()):
        if lsa.header.ls_age >= MAX_AGE:
            ignored.append(Ignored(name_lsa(lsa.header), "maxage"))
            continue
        if key.ls_type not in _COMPUTED:
            ignored.append(Ignored(name_lsa(lsa.header), "unsupported"))
        try:
            stored[key] = StoredLsa(lsa, decode_body(lsa))
        except DecodeError:
            ignored.append(Ignored(name_lsa(lsa.header), "malformed"))
    return AreaContents(area, stub, stored), ignored


def build_blocks(
    areas: Iterable[AreaContents], as_scope: AreaContents | None = None
) -> dict[AreaId, Blocks]:
    """What each router says of itself, by area, in ascending order of router id.

    ``as_scope``: the LSAs of the whole AS, which count in every area that is no stub.
    """
    instance = Instance(OspfSettings(RouterId(0)), _NoJitter())
    builder = TedBuilder(instance)
    blocks: dict[AreaId, Blocks] = {}
    for contents in areas:
        area = Area(AreaSettings(contents.area, contents.stub))
        instance.areas[contents.area] = area
        blocks[contents.area] = {}
        for key, stored in contents.lsas.items():
            entry = LsaEntry(area.lsdb, stored.lsa, instance.now, flooded_in=True)
            entry.body = stored.body
            area.lsdb.entries[key] = entry
            builder.lsa_changed(entry)
    for key, stored in (as_scope.lsas if as_scope is not None else {}).items():
        entry = LsaEntry(instance.as_scope, stored.lsa, instance.now, flooded_in=True)
        entry.body = stored.body
        instance.as_scope.entries[key] = entry
        builder.lsa_changed(entry)
    builder.flush()
    for output in instance.take_outputs():
        if isinstance(output, TedUpdated) and output.block is not None:
            blocks[AreaId(output.area)][output.node] = output.block
    return {area: dict(sorted(found.items())) for area, found in blocks.items()}


def links_of_interfaces(
    block: NodeBlock, interfaces: Iterable[SavedInterface]
) -> tuple[LocalLink, ...]:
    """The local links of the router whose interfaces are known, as its daemon has them."""
    links: list[LocalLink] = []
    metrics = {
        (neighbor if neighbor < NETWORK_NODE else None, local_id): metric
        for neighbor, local_id, metric in zip(
            block.neighbors.tolist(), block.local_ids.tolist(), block.metrics.tolist(), strict=True
        )
    }
    for interface in sorted(interfaces, key=lambda i: i.ifindex):
        ids = (*interface.addresses, interface.ifindex)
        if interface.broadcast and not any((None, local) in metrics for local in ids):
            continue  # the network is not, or no more, one to pass through
        for neighbor in sorted(interface.neighbors):
            end = None if interface.broadcast else neighbor.router_id
            known = (local for local in ids if (end, local) in metrics)
            local_id = next(known, ids[0])
            links.append(
                LocalLink(
                    ifindex=interface.ifindex,
                    interface=interface.name,
                    neighbor=NodeId(neighbor.router_id),
                    gateway=neighbor.address,
                    local_id=local_id,
                    metric=metrics.get((end, local_id), interface.cost),
                    bandwidth=interface.bandwidth,
                )
            )
    return tuple(links)
