"""Limits of the OSPF databases (``igp.database_limit``): an area, the AS, the links.

RFC 1765 bounds AS-external LSAs only, and needs every router to take part; here each router bounds
what it holds. A neighbor whose LSAs were ignored is Full all the same. LSAs that are known by name
are requested from it again (§10.9); if there were too many, the exchange starts anew
(SeqNumberMismatch), since only that makes it describe its database (§10.6).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fared.core.ids import dotted
from fared.protocols.igp.database_limit import DatabaseLimit, LimitView
from fared.protocols.igp.limit_shares import Paths
from fared.protocols.ospf.lsdb import Lsdb, Scope
from fared.protocols.ospf.neighbor import NeighborEvent, NeighborState
from fared.protocols.ospf.packet.bodies import (
    TO_ROUTERS,
    NetworkLsa,
    RouterLink,
    RouterLinkType,
    RouterLsa,
)
from fared.protocols.ospf.packet.lsa import LsaKey, LsType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fared.core.ids import AreaId
    from fared.protocols.ospf.instance import Instance
    from fared.protocols.ospf.interface import Neighbor

MOST_LINK_LSAS = 1024
"""LSAs of link scope (RFC 5250) on one interface; those beyond are ignored for good."""
BYTES_OF_AN_LSA = 2048
"""Bytes that LSAs of a database may have on average when it is full; those of routers with 150
links. Otherwise a neighbor could fill it with LSAs of 64 kB, the largest that there are."""

Ignored = tuple[LsaKey, "Neighbor"]
"""An LSA that was ignored, and who sent it."""


class DatabaseLimits:
    """The limits of all databases of the instance; ``request`` requests LSAs of a neighbor."""

    def __init__(
        self, instance: Instance, request: Callable[[Neighbor, Sequence[LsaKey]], None]
    ) -> None:
        self._instance = instance
        self._request = request
        self._limits: dict[Lsdb, DatabaseLimit[Ignored]] = {}
        self._senders: dict[Lsdb, dict[Neighbor, None]] = {}

    def admits(self, lsdb: Lsdb, key: LsaKey, sender: Neighbor, more: int = 0) -> bool:
        """Whether an LSA that is not in the database may come in; ``more`` are requested."""
        if self._always_admits(key, sender):
            return True
        if lsdb.scope is Scope.LINK:
            return len(lsdb) + more < MOST_LINK_LSAS
        return self._of(lsdb).admits(key.advertising_router, more)

    def are_ample(self, lsdb: Lsdb, more: int, size: int = 0) -> bool:
        """Whether ``more`` LSAs of ``size`` bytes in all may come in, whoever originated them.

        As nearly always: then none of them needs to be asked about.
        """
        if lsdb.scope is Scope.LINK:
            return False
        # Bytes count as LSAs of the usual size (``_MeasuredDatabase``).
        return self._of(lsdb).is_ample(more + size // BYTES_OF_AN_LSA + 1)

    def fits(self, lsdb: Lsdb, key: LsaKey, sender: Neighbor, more: int) -> bool:
        """Whether an LSA with so many bytes more than its former instance, if any, may come in."""
        most = self._instance.settings.limit.most * BYTES_OF_AN_LSA
        originator = key.advertising_router
        if more <= 0 or lsdb.size + more <= most or lsdb.scope is Scope.LINK:
            return True
        if self._always_admits(key, sender):
            return True
        wanted = -(-more // BYTES_OF_AN_LSA)
        return self._of(lsdb).room(originator, wanted) == wanted

    def _always_admits(self, key: LsaKey, sender: Neighbor) -> bool:
        """Whether an LSA is this router's own, or the router LSA of the neighbor that sent it."""
        if key.advertising_router == self._instance.router_id:
            return True
        return key.ls_type == LsType.ROUTER and key.advertising_router == sender.router_id

    def ignore(self, lsdb: Lsdb, key: LsaKey, sender: Neighbor) -> None:
        """An LSA of a neighbor has been ignored."""
        if lsdb.scope is Scope.LINK:
            self._instance.process.counters.lsdb["ignored"] += 1
            return
        self._senders.setdefault(lsdb, {})[sender] = None
        self._of(lsdb).ignore((key, sender), key.advertising_router, sender=sender)

    def reset(self) -> None:
        """Zero the counts, and ask the neighbors again for what was ignored."""
        for limit in self._limits.values():
            limit.reset()

    def views(self) -> tuple[tuple[AreaId | None, LimitView], ...]:
        """The limits, by area; None: of the AS."""
        instance = self._instance
        databases = [area.lsdb for _, area in sorted(instance.areas.items())]
        return tuple(
            [(lsdb.area, self._of(lsdb).view()) for lsdb in (*databases, instance.as_scope)]
        )

    def _of(self, lsdb: Lsdb) -> DatabaseLimit[Ignored]:
        limit = self._limits.get(lsdb)
        if limit is None:
            instance = self._instance
            limit = self._limits[lsdb] = DatabaseLimit(
                instance.process,
                _MeasuredDatabase(lsdb),
                "as" if lsdb.area is None else dotted(lsdb.area),
                settings=lambda: instance.settings.limit,
                on_path=partial(routers_on_paths, instance, lsdb),
                ask=partial(self._ask, lsdb),
            )
        return limit

    def _ask(self, lsdb: Lsdb, ignored: Iterable[Ignored] | None) -> None:
        if ignored is None:
            for neighbor in self._senders.pop(lsdb, ()):
                if neighbor.state is NeighborState.FULL:
                    neighbor.fire(NeighborEvent.SEQ_NUMBER_MISMATCH)
            return
        wanted: dict[Neighbor, list[LsaKey]] = {}
        for key, neighbor in ignored:
            if neighbor.state is NeighborState.FULL and lsdb.get(key) is None:
                wanted.setdefault(neighbor, []).append(key)
        for neighbor, keys in wanted.items():
            self._request(neighbor, keys)


class _MeasuredDatabase:
    """A database as its limit sees it: of large LSAs each counts for several."""

    def __init__(self, lsdb: Lsdb) -> None:
        self._lsdb = lsdb
        self.originators = lsdb.originators

    def __len__(self) -> int:
        return max(len(self._lsdb), self._lsdb.size // BYTES_OF_AN_LSA)


def routers_on_paths(instance: Instance, lsdb: Lsdb) -> Paths:
    """The routers that this router reaches in the scope of a database, and their neighbors."""
    found = Paths()
    if lsdb.scope is Scope.AREA:
        found.add(instance.router_id, _ListedRouters(lsdb).of)
        return found
    for area in instance.areas.values():
        found.add(instance.router_id, _ListedRouters(area.lsdb).of)
    # AS boundary routers of other areas have ASBR-summary LSAs (§12.4.3)
    boundary = [
        (key.link_state_id, key.advertising_router)
        for area in instance.areas.values()
        for key in area.lsdb.entries
        if key.ls_type == LsType.SUMMARY_ASBR and key.advertising_router in found
    ]
    for router, through in boundary:
        found.follow(router, through)
    return found


class _ListedRouters:
    """The routers that each router of an area lists, over links to routers and networks."""

    def __init__(self, lsdb: Lsdb) -> None:
        self._lsdb = lsdb
        self._known: dict[int, set[int]] = {}
        self._attached: dict[int, tuple[int, ...]] = {}
        for key, entry in lsdb.entries.items():
            if key.ls_type == LsType.NETWORK and isinstance(entry.body, NetworkLsa):
                self._attached[key.link_state_id] = entry.body.attached_routers

    def of(self, router: int) -> set[int]:
        found = self._known.get(router)
        if found is None:
            entry = self._lsdb.get(LsaKey(LsType.ROUTER, router, router))
            body = None if entry is None else entry.body
            links = body.links if isinstance(body, RouterLsa) else ()
            found = self._known[router] = {far for link in links for far in self._ends(link)}
        return found

    def _ends(self, link: RouterLink) -> tuple[int, ...]:
        if link.link_type in TO_ROUTERS:
            return (link.link_id,)
        if link.link_type == RouterLinkType.TRANSIT:
            return self._attached.get(link.link_id, ())
        return ()
