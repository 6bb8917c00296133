"""The prefixes that level-1-2 routers leak after a change of their routes.

The policy of a router is inferred from its LSPs. A router that leaks every route that it may leak
is assumed to do so after the change, too. Of a router that filters, only the prefixes that it
leaked before are followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeGuard

import msgspec
from msgspec.structs import replace

from fared.core.ids import FAMILY_IPV4, NodeId, Prefix, isis_node
from fared.extensions.offline.isis.database import Contents, own_lsps, own_tlvs
from fared.paths.te.advertise import DEFAULT_ADVERTISE, damped
from fared.paths.ted.events import AdvertisedRoute
from fared.protocols.isis.ids import Level, LspId, fragment_of
from fared.protocols.isis.origination.leaking import LEAKED_KINDS
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import (
    FLAG_READVERTISED,
    IpReach,
    IpReachability,
    MultiTopology,
    NarrowIpReachability,
    Tlv,
)
from fared.protocols.isis.settings import MAX_PATH_METRIC, used_last
from fared.protocols.isis.ted.fragment_prefixes import narrow_as_wide

Facts = Mapping[Prefix, AdvertisedRoute]


class ObservedLeaking(msgspec.Struct, frozen=True):
    """The prefixes of one family that one router leaks into one level of a saved database.

    ``leaked`` are these prefixes, ``own`` the other prefixes that it advertises in that level,
    ``before`` its routes by the saved database. ``overloaded``: a change sets its overload bit.
    """

    node: NodeId
    level: Level
    family: int
    leaked: Mapping[Prefix, IpReach]
    own: frozenset[Prefix]
    before: Facts
    overloaded: bool = False

    @property
    def everything(self) -> bool:
        """Whether the router leaks every route that it may leak."""
        could = {prefix for prefix, facts in self.before.items() if _leakable(facts, self.level)}
        return could - self.own <= self.leaked.keys()

    def wanted(self, routes: Facts) -> dict[Prefix, IpReach]:
        """The prefixes that the router leaks if it has these routes."""
        everything = self.everything
        return {
            prefix: self._as_advertised(self._reach(prefix, facts))
            for prefix, facts in routes.items()
            if _leakable(facts, self.level)
            and prefix not in self.own
            and (everything or prefix in self.leaked)
        }

    def _as_advertised(self, reach: IpReach) -> IpReach:
        return replace(reach, metric=used_last(reach.metric)) if self.overloaded else reach

    def _reach(self, prefix: Prefix, facts: AdvertisedRoute) -> IpReach:
        leaked, before = self.leaked.get(prefix), self.before.get(prefix)
        if leaked is not None and before == facts:
            return leaked
        like = next(iter(self.leaked.values()))
        reach = leaked or IpReach(
            prefix, facts.metric, like.down, flags=(like.flags or 0) & FLAG_READVERTISED or None
        )
        if leaked is not None and before is not None:
            reach = replace(reach, metric=max(0, leaked.metric + facts.metric - before.metric))
        if all(known.capacity is None for known in self.leaked.values()):
            return reach
        return replace(reach, capacity=damped(reach.capacity, facts.capacity, DEFAULT_ADVERTISE))


def _leakable(facts: AdvertisedRoute, level: Level) -> bool:
    return facts.path_type in LEAKED_KINDS[level] and facts.metric <= MAX_PATH_METRIC


def border_routers(contents: Contents) -> list[NodeId]:
    """The routers with LSPs in both levels."""
    found = [{lsp >> 16 for lsp in contents.get(level, {})} for level in Level]
    nodes = (isis_node(system) for system in sorted(found[0] & found[1]))
    return [node for node in nodes if all(own_lsps(contents, level, node) for level in Level)]


def read_leaking(
    contents: Contents, node: NodeId, family: int, unmarked: set[Prefix], before: Facts
) -> Iterator[ObservedLeaking]:
    """The leaking of a router, by level. ``unmarked``: see ``viewpoint.leaked_unmarked``."""
    for level in Level:
        leaked: dict[Prefix, IpReach] = {}
        own: set[Prefix] = set()
        for reach in _reaches(own_tlvs(contents, level, node), family):
            if _leaked(reach) or (level is Level.TWO and reach.prefix in unmarked):
                leaked[reach.prefix] = reach
            else:
                own.add(reach.prefix)
        if leaked:
            yield ObservedLeaking(node, level, family, leaked, frozenset(own), before)


def _reaches(tlvs: tuple[Tlv, ...], family: int) -> Iterator[IpReach]:
    """The entries of one family: those of wide TLVs, and of narrow ones those that no wide has."""
    wide = [reach for tlv in tlvs if _is_of(tlv, family) for reach in tlv.prefixes]
    yield from wide
    if family == FAMILY_IPV4:
        listed = {reach.prefix for reach in wide}
        yield from (reach for reach in narrow_as_wide(tlvs) if reach.prefix not in listed)


def _is_of(tlv: Tlv, family: int) -> TypeGuard[IpReachability]:
    return isinstance(tlv, IpReachability) and tlv.family == family


def _leaked(reach: IpReach) -> bool:
    return reach.down or bool((reach.flags or 0) & FLAG_READVERTISED)


def with_leaking(contents: Contents, leaking: ObservedLeaking, routes: Facts) -> dict[LspId, Lsp]:
    """The LSPs of a level after a router leaks into it by these routes."""
    wanted = leaking.wanted(routes)
    lsps = dict(contents[leaking.level])
    mine = own_lsps(contents, leaking.level, leaking.node)
    topology: int | None = None
    for lsp in mine:
        tlvs: list[Tlv] = []
        for tlv in lsp.tlvs:
            if _is_of(tlv, leaking.family):
                topology = tlv.topology
                kept = (
                    r if r.prefix in leaking.own else wanted.pop(r.prefix, None)
                    for r in tlv.prefixes
                )
                tlvs.append(replace(tlv, prefixes=tuple(r for r in kept if r is not None)))
            elif isinstance(tlv, NarrowIpReachability):  # leaked ones are in wide TLVs
                narrow = tuple(r for r in tlv.prefixes if r.prefix not in leaking.leaked)
                tlvs.append(replace(tlv, prefixes=narrow))
            else:
                tlvs.append(tlv)
        lsps[lsp.lsp_id] = replace(lsp, tlvs=tuple(tlvs))
    if wanted and mine:
        first = lsps[mine[0].lsp_id]
        more = IpReachability(leaking.family, tuple(wanted.values()), topology)
        lsps[first.lsp_id] = replace(first, tlvs=(*first.tlvs, more))
    return lsps


def detach(contents: Contents, node: NodeId) -> dict[LspId, Lsp]:
    """Level 1 after a router cleared its attached bits (ISO 10589 §7.2.9.2, RFC 5120 §4)."""
    lsps = dict(contents[Level.ONE])
    for lsp in own_lsps(contents, Level.ONE, node):
        if fragment_of(lsp.lsp_id) == 0:
            tlvs = (_detached(tlv) for tlv in lsp.tlvs)
            lsps[lsp.lsp_id] = replace(lsp, attached=False, tlvs=tuple(tlvs))
    return lsps


def _detached(tlv: Tlv) -> Tlv:
    if not isinstance(tlv, MultiTopology):
        return tlv
    return replace(tlv, topologies=tuple(replace(e, attached=False) for e in tlv.topologies))
