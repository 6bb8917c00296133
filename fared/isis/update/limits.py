"""Limits of the databases of both levels (``core.database_limit``).

An LSP that is ignored is acknowledged in a PSNP, and not requested when SNPs list it. A complete
set of CSNPs asks for it again: each neighbor sends what is missing there (§7.3.15.2 c)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from fared.core.database_limit import DatabaseLimit, LimitView, on_paths
from fared.isis.ids import Level, LspId, lsp_id, system_of
from fared.isis.pdu.tlvs import IsReachability

if TYPE_CHECKING:
    from fared.core.ids import SystemId
    from fared.isis.circuit import Circuit
    from fared.isis.instance import Instance
    from fared.isis.lsdb import Lsdb


class DatabaseLimits:
    """The limits of the levels; ``send_csnps`` sends a set to each neighbor of a level."""

    def __init__(self, instance: Instance, send_csnps: Callable[[Level], None]) -> None:
        self._instance = instance
        self._send_csnps = send_csnps
        self._limits: dict[Level, DatabaseLimit[LspId]] = {
            level: DatabaseLimit(
                instance.process,
                database,
                level.label,
                settings=lambda: instance.settings.limit,
                on_path=partial(_on_path, database, instance.system_id),
                ask=partial(self._ask, level),
            )
            for level, database in instance.databases.items()
        }

    def admits(self, circuit: Circuit, level: Level, identifier: LspId, more: int = 0) -> bool:
        """Whether an LSP that is not in the database may come in; ``more`` are requested."""
        system, adjacency = system_of(identifier), circuit.adjacency
        if system == self._instance.system_id:
            return True
        if adjacency is not None and identifier == lsp_id(adjacency.system_id):
            return True
        return self._limits[level].admits(system, more)

    def ignore(self, level: Level, identifier: LspId) -> None:
        """An LSP has been ignored."""
        self._limits[level].ignore(identifier, system_of(identifier))

    def reset(self) -> None:
        """Zero the counts, and ask the neighbors again for what was ignored."""
        for limit in self._limits.values():
            limit.reset()

    def _ask(self, level: Level, _ignored: Iterable[LspId] | None) -> None:
        self._send_csnps(level)

    def views(self) -> tuple[tuple[Level, LimitView], ...]:
        """The limits, by level."""
        return tuple((level, limit.view()) for level, limit in sorted(self._limits.items()))


def _on_path(database: Lsdb, root: SystemId) -> set[int]:
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
