"""Limits of the databases of both levels (``igp.database_limit``).

An LSP that is ignored is acknowledged in a PSNP, and not requested when SNPs list it. A complete
set of CSNPs asks for it again: each neighbor sends what is missing there (§7.3.15.2 c)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from fared.protocols.igp.database_limit import DatabaseLimit, LimitView
from fared.protocols.isis.ids import Level, LspId, lsp_id, system_of
from fared.protocols.isis.paths import systems_on_paths

if TYPE_CHECKING:
    from fared.protocols.isis.circuit import Circuit
    from fared.protocols.isis.instance import Instance


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
                on_path=partial(systems_on_paths, (database,), instance.system_id),
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

    def ignore(self, circuit: Circuit, level: Level, identifier: LspId) -> None:
        """An LSP that came over a circuit has been ignored."""
        self._limits[level].ignore(identifier, system_of(identifier), sender=circuit.ifindex)

    def reset(self) -> None:
        """Zero the counts, and ask the neighbors again for what was ignored."""
        for limit in self._limits.values():
            limit.reset()

    def _ask(self, level: Level, _ignored: Iterable[LspId] | None) -> None:
        self._send_csnps(level)

    def views(self) -> tuple[tuple[Level, LimitView], ...]:
        """The limits, by level."""
        return tuple((level, limit.view()) for level, limit in sorted(self._limits.items()))
