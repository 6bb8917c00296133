"""The systems on a path from this one, by the database of a level: they come in beyond limits.

``update.limits`` asks it for LSPs, ``ted.builder`` for the prefixes that LSPs list.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fared.protocols.igp.limit_shares import Paths
from fared.protocols.isis.ids import lsp_id
from fared.protocols.isis.pdu.tlvs import IsReachability

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fared.core.ids import SystemId
    from fared.protocols.isis.lsdb import Lsdb


def systems_on_paths(databases: Iterable[Lsdb], root: SystemId) -> Paths:
    """The systems that this one reaches in any of the levels, and those that they list."""
    found = Paths()
    for database in databases:
        known: dict[int, set[int]] = {}
        found.add(int(root), partial(_neighbors, database, known))
    return found


def _neighbors(database: Lsdb, known: dict[int, set[int]], system: int) -> set[int]:
    """The systems that the LSPs of a system list, those of its pseudonodes included."""
    listed = known.get(system)
    if listed is None:
        mine = database.between(lsp_id(system), lsp_id(system, 0xFF, 0xFF))
        listed = known[system] = {
            neighbor.neighbor >> 8
            for entry in mine
            for tlv in entry.lsp.tlvs
            if isinstance(tlv, IsReachability)
            for neighbor in tlv.neighbors
        }
    return listed
