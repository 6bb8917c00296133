"""Which prefixes of the databases become prefixes of the TED (``igp.prefix_limit``).

A router LSA may list five thousand stub networks; a summary or an external LSA has one prefix.
Those of network LSAs are not counted: their number is that of the LSAs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fared.protocols.igp.prefix_limit import PrefixLimit, known_first
from fared.protocols.ospf.flooding.limits import routers_on_paths
from fared.protocols.ospf.lsdb import USED
from fared.protocols.ospf.packet.bodies import RouterLinkType, RouterLsa
from fared.protocols.ospf.packet.lsa import LsaKey, LsType

if TYPE_CHECKING:
    from fared.core.ids import AreaId
    from fared.protocols.ospf.instance import Instance
    from fared.protocols.ospf.lsdb import LsaEntry
    from fared.protocols.ospf.packet.body import LsaBody

_Source = tuple["AreaId | None", LsaKey]
_LIMITED = (LsType.SUMMARY_NETWORK, LsType.AS_EXTERNAL)


class UsedPrefixes:
    """The limit of the prefixes of all areas; ``read`` processes an LSA of a database again."""

    def __init__(self, instance: Instance, read: Callable[[LsaEntry], None]) -> None:
        self._instance = instance
        self._read_one = read
        self.limit: PrefixLimit[_Source] = PrefixLimit(
            instance.process,
            settings=lambda: instance.settings.prefix_limit,
            on_path=partial(routers_on_paths, instance, instance.as_scope),
            read=self._read,
        )

    def of_router(
        self, entry: LsaEntry, body: RouterLsa | None, former: RouterLsa | None
    ) -> RouterLsa | None:
        """Return a router LSA (None: gone) with no more stub networks than may be used.

        ``former`` is what this returned for its former instance.
        """
        stubs = () if body is None else [k for k in body.links if k.link_type == _STUB]
        source, originator, own = self._of(entry)
        most = self.limit.take(source, originator, len(stubs), own=own)
        if body is None or most == len(stubs):
            return body
        known = () if former is None else {k for k in former.links if k.link_type == _STUB}
        kept = known_first(stubs, known, most)
        links = tuple([k for k in body.links if k.link_type != _STUB or k in kept])
        return replace(body, links=links)

    def beyond(self, entry: LsaEntry, body: LsaBody | None) -> LsaBody | None:
        """Return the body of an LSA with a prefix beyond the area, None if that is not used."""
        before, listed = int(entry.used), int(body is not None)
        if listed == before or entry.key.ls_type not in _LIMITED:
            return body
        source, originator, own = self._of(entry)
        used = self.limit.admit(source, originator, before, listed, own=own)
        if used != before:
            entry.mark(USED, on=bool(used))
        return body if used else None

    def withdrawn(self, entries: Sequence[LsaEntry]) -> None:
        """``beyond`` for AS-external LSAs of one other router without a body, at MaxAge."""
        used = [entry for entry in entries if entry.marks & USED]
        if used:
            source, originator, own = self._of(used[0])
            self.limit.admit(source, originator, len(used), 0, own=own)
            for entry in used:
                entry.marks &= ~USED

    def _of(self, entry: LsaEntry) -> tuple[_Source, int, bool]:
        """The LSA as a source of prefixes, its originator, and whether that is this router."""
        originator = entry.key.advertising_router
        own = originator == self._instance.router_id
        return (entry.lsdb.area, entry.key), originator, own

    def _read(self, sources: Iterable[_Source] | None) -> None:
        instance = self._instance
        databases = [area.lsdb for area in instance.areas.values()]
        by_area = {lsdb.area: lsdb for lsdb in (*databases, instance.as_scope)}
        if sources is None:
            sources = [(area, key) for area, lsdb in by_area.items() for key in lsdb.entries]
        for area, key in sources:
            entry = by_area[area].get(key) if area in by_area else None
            if entry is not None:
                self._read_one(entry)


_STUB = RouterLinkType.STUB
