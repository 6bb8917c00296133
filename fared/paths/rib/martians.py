"""Martians (RFC 1812 §5.3.7): prefixes that no router may advertise do not enter the RIB.

They become no route, are neither leaked nor summarized into other areas, and reach no kernel,
whichever protocol advertised them. They stay in the link state database, since flooding does not
check contents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fared.core.routes import is_martian

if TYPE_CHECKING:
    from collections.abc import Hashable

    from fared.core.ids import NodeId, Prefix
    from fared.paths.rib.prefixes import Changes


_ORDINARY = frozenset(range(1, 224)) - {127}
"""First octets of IPv4 networks that are no martians: so most are told without a call.

The few IPv6 networks with such a number above their last 24 bits are none, either.
"""


class NewMartians(NamedTuple):
    """New martians that a router advertises, at least one."""

    node: NodeId
    prefixes: tuple[Prefix, ...]


class Martians:
    """The martians that routers advertise at present."""

    def __init__(self) -> None:
        self._advertised: dict[tuple[int, NodeId], dict[Hashable, Prefix]] = {}
        self._new: list[NewMartians] = []

    @property
    def count(self) -> int:
        """The number of advertisements rejected at present, of all routers."""
        return sum(map(len, self._advertised.values()))

    def screen(self, area: int, node: NodeId, changes: Changes) -> Changes:
        """Replace the martians among a router's changes (by source) by None and return the changes.

        None withdraws what the same source advertised before.
        """
        found = {
            source: item.prefix
            for source, item in changes.items()
            if item is not None
            and item.prefix.network >> 24 not in _ORDINARY
            and is_martian(item.prefix)
        }
        before = self._advertised.get((area, node), {})
        if not found and not before:
            return changes
        kept = {source: prefix for source, prefix in before.items() if source not in changes}
        self._advertised[area, node] = {**kept, **found}
        if not self._advertised[area, node]:
            del self._advertised[area, node]
        known = set(before.values())
        new_ones = tuple(prefix for prefix in found.values() if prefix not in known)
        if new_ones:
            self._new.append(NewMartians(node, new_ones))
        return {source: None if source in found else item for source, item in changes.items()}

    def take_new(self) -> list[NewMartians]:
        """Return the new martians since the last call."""
        new_ones, self._new = self._new, []
        return new_ones
