"""The BIER prefixes of a saved OSPF database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fared.extensions.offline.ospf.database import AreaContents
from fared.paths.ted.events import BierUpdated
from fared.protocols.ospf.lsdb import LsaEntry, Lsdb, Scope
from fared.protocols.ospf.packet.extended_prefix import ExtendedPrefixLsa
from fared.protocols.ospf.ted.bier import BierTable


def bier_prefixes(areas: Iterable[AreaContents]) -> Iterator[BierUpdated]:
    """Yield what each router advertises in each area."""
    table = BierTable()
    for contents in areas:
        lsdb = Lsdb(Scope.AREA, area=contents.area)
        for key, stored in contents.lsas.items():
            if isinstance(stored.body, ExtendedPrefixLsa):
                entry = LsaEntry(lsdb, key, stored.lsa.raw, 0.0)
                table.lsa_changed(entry, stored.body, "", 0.0)
    yield from table.take()
