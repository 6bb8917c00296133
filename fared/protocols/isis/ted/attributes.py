"""Attributes of prefixes beyond their metrics, by level: leaking preserves them (RFC 7794 §2)."""

from __future__ import annotations

from collections.abc import Mapping

from fared.core.ids import Prefix
from fared.protocols.isis.ids import Level, LspId
from fared.protocols.isis.pdu.tlvs import IpReach


class PrefixAttributes:
    """The entries with tags, flags and other attributes (RFC 5130, RFC 7794), by prefix."""

    def __init__(self) -> None:
        self._entries: dict[Level, dict[Prefix, dict[LspId, IpReach]]] = {}
        self._changed: dict[tuple[Level, Prefix], None] = {}

    def of(self, level: Level, prefix: Prefix) -> IpReach | None:
        """The attributes of a prefix in a level; the first by LSP id."""
        known = self._entries.get(level, {}).get(prefix)
        return known[min(known)] if known else None

    def take_changed(self) -> list[tuple[Level, Prefix]]:
        """The prefixes whose attributes changed since the last call."""
        changed, self._changed = self._changed, {}
        return list(changed)

    def replace(
        self,
        level: Level,
        lsp_id: LspId,
        old: Mapping[Prefix, IpReach],
        new: Mapping[Prefix, IpReach],
    ) -> None:
        """Store the entries of an LSP; ``old`` are those of its previous instance."""
        if old is new:
            return
        table = self._entries.setdefault(level, {})
        for prefix in old:
            if prefix not in new:
                del table[prefix][lsp_id]
                if not table[prefix]:
                    del table[prefix]
                self._changed[level, prefix] = None
        for prefix, reach in new.items():
            if old.get(prefix) != reach:
                table.setdefault(prefix, {})[lsp_id] = reach
                self._changed[level, prefix] = None
