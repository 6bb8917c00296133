"""The systems on a path from this one, by the database of a level: they come in beyond limits.

``update.limits`` asks it for LSPs, ``ted.builder`` for the prefixes that LSPs list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.core.database_limit import on_paths
from fared.isis.ids import lsp_id
from fared.isis.pdu.tlvs import IsReachability

if TYPE_CHECKING:
    from fared.core.ids import SystemId
    from fared.isis.lsdb import Lsdb


def systems_on_paths(database: Lsdb, root: SystemId) -> set[int]:
    """The systems that this one reaches, and those that they list as neighbors."""
    known: dict[int, set[int]] = {}
    return on_paths(int(root), lambda system: _neighbors(database, system, known))


def _neighbors(database: Lsdb, system: int, known: dict[int, set[int]]) -> set[int]:
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
