"""What routers of both levels would leak if their routes were others than in a saved database.

Their policy is read off what they announce: who leaks all it could would leak all it could
afterwards as well; of one that chooses, what it leaks already is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

from fared.core.ids import NodeId, Prefix, isis_node
from fared.isis.contents import FLAG_READVERTISED
from fared.isis.ids import Level, LspId, fragment_of
from fared.isis.offline import Contents, own_lsps
from fared.isis.pdu.model import IpReach, IpReachability, Lsp, MultiTopology, Tlv
from fared.isis.settings import MAX_PATH_METRIC
from fared.te.announce import DEFAULT_ANNOUNCE
from fared.ted.events import RouteFacts
from fared.ted.model import PathType

_SOURCE = {Level.TWO: PathType.LEVEL_1, Level.ONE: PathType.LEVEL_2}
Facts = Mapping[Prefix, RouteFacts]


@dataclass(frozen=True, slots=True)
class Leaking:
    """What one router leaks into one level of a saved database, in one family.

    ``told`` is that, ``own`` are the prefixes that it announces there as its own, ``before`` its
    routes by the saved database.
    """

    node: NodeId
    level: Level
    family: int
    told: Mapping[Prefix, IpReach]
    own: frozenset[Prefix]
    before: Facts

    @property
    def everything(self) -> bool:
        """Whether it leaks all that it could."""
        could = {prefix for prefix, facts in self.before.items() if _leakable(facts, self.level)}
        return could - self.own <= self.told.keys()

    def wanted(self, routes: Facts) -> dict[Prefix, IpReach]:
        """What it would leak of other routes."""
        everything = self.everything
        return {
            prefix: self._reach(prefix, facts)
            for prefix, facts in routes.items()
            if _leakable(facts, self.level)
            and prefix not in self.own
            and (everything or prefix in self.told)
        }

    def _reach(self, prefix: Prefix, facts: RouteFacts) -> IpReach:
        told, before = self.told.get(prefix), self.before.get(prefix)
        if told is not None and before == facts:
            return told
        like = next(iter(self.told.values()))
        reach = told or IpReach(
            prefix, facts.metric, like.down, flags=(like.flags or 0) & FLAG_READVERTISED or None
        )
        if told is not None and before is not None:
            reach = replace(reach, metric=max(0, told.metric + facts.metric - before.metric))
        if all(known.capacity is None for known in self.told.values()):
            return reach
        return replace(reach, capacity=_damped(reach.capacity, facts.capacity))


def _leakable(facts: RouteFacts, level: Level) -> bool:
    return facts.path_type is _SOURCE[level] and facts.metric <= MAX_PATH_METRIC


def _damped(announced: float | None, current: float | None) -> float | None:
    """Stay with what was announced unless the change exceeds the threshold."""
    if announced is None or current is None:
        return current
    same = abs(current - announced) <= DEFAULT_ANNOUNCE.threshold * announced
    return announced if same else current


def border_routers(contents: Contents) -> list[NodeId]:
    """The routers of which the LSPs of both levels are known."""
    found = [{lsp >> 16 for lsp in contents.get(level, {})} for level in Level]
    nodes = (isis_node(system) for system in sorted(found[0] & found[1]))
    return [node for node in nodes if all(own_lsps(contents, level, node) for level in Level)]


def read_leaking(
    contents: Contents, node: NodeId, family: int, unmarked: set[Prefix], before: Facts
) -> Iterator[Leaking]:
    """What a router leaks, by level. ``unmarked`` is what it leaks into level 2 without a mark."""
    for level in Level:
        told: dict[Prefix, IpReach] = {}
        own: set[Prefix] = set()
        for lsp in own_lsps(contents, level, node):
            for tlv in lsp.tlvs:
                for reach in tlv.prefixes if _is_of(tlv, family) else ():
                    if _leaked(reach) or (level is Level.TWO and reach.prefix in unmarked):
                        told[reach.prefix] = reach
                    else:
                        own.add(reach.prefix)
        if told:
            yield Leaking(node, level, family, told, frozenset(own), before)


def _is_of(tlv: Tlv, family: int) -> TypeGuard[IpReachability]:
    return isinstance(tlv, IpReachability) and tlv.family == family


def _leaked(reach: IpReach) -> bool:
    return reach.down or bool((reach.flags or 0) & FLAG_READVERTISED)


def releak(contents: Contents, leaking: Leaking, routes: Facts) -> dict[LspId, Lsp]:
    """The LSPs of a level with what a router leaks there of other routes."""
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
            else:
                tlvs.append(tlv)
        lsps[lsp.lsp_id] = replace(lsp, tlvs=tuple(tlvs))
    if wanted and mine:
        first = lsps[mine[0].lsp_id]
        more = IpReachability(leaking.family, tuple(wanted.values()), topology)
        lsps[first.lsp_id] = replace(first, tlvs=(*first.tlvs, more))
    return lsps


def detach(contents: Contents, node: NodeId) -> dict[LspId, Lsp]:
    """Level 1 after a router found that it leads to no other area any more (§7.2.9.2)."""
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
