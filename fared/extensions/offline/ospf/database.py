"""The LSAs of a saved or captured database that are used, and their TED blocks.

The ``TedBuilder`` of the engine builds the blocks, so the same LSAs give the same result as in a
router. ``whatif`` changes the LSAs before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from fared.core.ids import NETWORK_NODE, AreaId, NodeId, RouterId, dotted
from fared.core.rng import NoJitter
from fared.core.text import type_name
from fared.core.wire import DecodeError
from fared.extensions.offline.ignored import Ignored
from fared.paths.ted.events import PrefixesUpdated, TedUpdated
from fared.paths.ted.links import Blocks
from fared.paths.ted.model import LocalLink, NodeBlock
from fared.protocols.ospf.instance import Area, Instance
from fared.protocols.ospf.lsdb import LsaEntry, compare
from fared.protocols.ospf.packet.body import LsaBody, decode_body
from fared.protocols.ospf.packet.lsa import MAX_AGE, Lsa, LsaHeader, LsaKey, LsType, lsa_checksum_ok
from fared.protocols.ospf.settings import AreaSettings, OspfSettings
from fared.protocols.ospf.ted.builder import TedBuilder

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
"""The LS types that ``TedBuilder`` reads, and opaque types, which have no part in routing."""


class StoredLsa(NamedTuple):
    """An LSA and its decoded body. After ``whatif`` the body may differ from the bytes."""

    lsa: Lsa
    body: LsaBody | None


class AreaContents(msgspec.Struct, frozen=True):
    """The LSAs of one area that are used: one valid instance each, younger than MaxAge."""

    area: AreaId
    stub: bool
    lsas: Mapping[LsaKey, StoredLsa]


class SavedNeighbor(NamedTuple):
    """A neighbor of a saved interface, to which packets can be forwarded."""

    router_id: int
    address: int


class SavedInterface(msgspec.Struct, frozen=True):
    """An interface of the router on which the database was saved. ``bandwidth`` is in bytes/s."""

    name: str
    area: AreaId
    ifindex: int
    addresses: tuple[int, ...]
    cost: int
    bandwidth: float | None
    neighbors: tuple[SavedNeighbor, ...]
    broadcast: bool = False


def name_lsa(header: LsaHeader) -> str:
    """The name of an LSA: type, link state id, advertising router."""
    kind = type_name(LsType, header.ls_type)
    return f"{kind} {dotted(header.link_state_id)} {dotted(header.advertising_router)}"


def newest(lsas: Iterable[Lsa]) -> dict[LsaKey, Lsa]:
    """The newest instance of each LSA (RFC 2328 §13.1); the ages are current."""
    kept: dict[LsaKey, Lsa] = {}
    for lsa in lsas:
        present = kept.get(lsa.header.key)
        if present is None or compare(lsa.header, present.header) > 0:
            kept[lsa.header.key] = lsa
    return kept


def screen(area: AreaId, lsas: Iterable[Lsa], *, stub: bool) -> tuple[AreaContents, list[Ignored]]:
    """The LSAs that a router computes with, and the others with the reason."""
    ignored: list[Ignored] = []
    sound: list[Lsa] = []
    for lsa in lsas:
        if lsa_checksum_ok(lsa):  # RFC 2328 §13 (1)
            sound.append(lsa)
        else:
            ignored.append(Ignored(name_lsa(lsa.header), "checksum"))
    stored: dict[LsaKey, StoredLsa] = {}
    for key, lsa in sorted(newest(sound).items()):
        if lsa.header.ls_age >= MAX_AGE:  # §16.1 (2)(b), §16.2 (1), §16.4 (1)
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
    """The blocks by area, in ascending order of node.

    ``as_scope``: the LSAs of AS scope, which are used in every area that is not a stub area.
    """
    instance = Instance(OspfSettings(RouterId(0)), NoJitter())
    builder = TedBuilder(instance)
    blocks: dict[AreaId, Blocks] = {}
    for contents in areas:
        area = Area(AreaSettings(contents.area, contents.stub))
        instance.areas[contents.area] = area
        blocks[contents.area] = {}
        for key, stored in contents.lsas.items():
            entry = LsaEntry(area.lsdb, key, stored.lsa.raw, instance.process.now)
            entry.body = stored.body
            area.lsdb.entries[key] = entry
            builder.lsa_changed(entry)
    for key, stored in (as_scope.lsas if as_scope is not None else {}).items():
        entry = LsaEntry(instance.as_scope, key, stored.lsa.raw, instance.process.now)
        entry.body = stored.body
        instance.as_scope.entries[key] = entry
        builder.lsa_changed(entry)
    builder.flush()
    for output in instance.process.take_outputs():
        if isinstance(output, TedUpdated) and output.block is not None:
            blocks[AreaId(output.area)][output.node] = output.block
        elif isinstance(output, PrefixesUpdated):
            block = blocks[AreaId(output.area)].get(output.node)
            beyond = tuple(item for item in output.changes.values() if item is not None)
            if block is not None:
                known = replace(block, prefixes=block.prefixes + beyond)
                blocks[AreaId(output.area)][output.node] = known
    return {area: dict(sorted(found.items())) for area, found in blocks.items()}


def links_of_interfaces(
    block: NodeBlock, interfaces: Iterable[SavedInterface]
) -> tuple[LocalLink, ...]:
    """The local links of the router on which the database was saved."""
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
            continue  # the router advertises no transit network on this interface
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
