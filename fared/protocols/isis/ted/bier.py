"""BIER info sub-TLVs of all routers, by level (RFC 8401); loaded where BIER runs.

Leaking preserves the sub-TLVs (``fragment_prefixes``); a router that only leaks them need not be a
BFR, so prefixes that are readvertised do not make one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from fared.core.ids import FAMILY_IPV4, NodeId
from fared.paths.ted.events import BierUpdated
from fared.protocols.isis.ids import Level
from fared.protocols.isis.pdu.bier import read_bier
from fared.protocols.isis.pdu.tlvs import FLAG_READVERTISED, IpReach

if TYPE_CHECKING:
    from fared.core.bier import BierInfo
    from fared.core.ids import Prefix

_HOST_LENGTH = 32
_NodeKey = tuple[Level, NodeId]


class _Found(NamedTuple):
    infos: tuple[BierInfo, ...]
    own: bool


class BierTable:
    """The BIER prefixes of all routers, by fragment."""

    def __init__(self) -> None:
        self._fragments: dict[_NodeKey, dict[int, dict[Prefix, _Found]]] = {}
        self._changed: dict[_NodeKey, tuple[str, float]] = {}

    def put(
        self,
        at: _NodeKey,
        number: int,
        attributes: Mapping[Prefix, IpReach],
        cause: str,
        now: float,
    ) -> None:
        """Process a fragment of a router: its prefixes with attributes, none if it is gone."""
        fragments = self._fragments.get(at, {})
        found = dict(_prefixes(attributes))
        if found == fragments.get(number, {}):
            return
        self._fragments.setdefault(at, fragments)[number] = found
        self._changed.setdefault(at, (cause, now))

    def take(self) -> Iterator[BierUpdated]:
        """Yield what changed since the last call, router by router."""
        changed, self._changed = self._changed, {}
        for at, (cause, since) in changed.items():
            merged: dict[Prefix, _Found] = {}
            for number in sorted(self._fragments[at], reverse=True):
                merged.update(self._fragments[at][number])
            if not merged:
                del self._fragments[at]
            level, node = at
            prefixes = {prefix: item.infos for prefix, item in merged.items()}
            is_bfr = any(item.own for item in merged.values())
            yield BierUpdated(int(level), node, prefixes, is_bfr, cause, since)


def _prefixes(attributes: Mapping[Prefix, IpReach]) -> Iterator[tuple[Prefix, _Found]]:
    """Yield the prefixes with the sub-TLV; RFC 8401 §6.1: only host prefixes count."""
    for prefix, reach in attributes.items():
        if prefix.family != FAMILY_IPV4 or prefix.length != _HOST_LENGTH:
            continue
        infos = (*read_bier(reach.unknown),)
        if infos:
            leaked = reach.down or bool((reach.flags or 0) & FLAG_READVERTISED)
            yield prefix, _Found(infos, not leaked)
