"""BIER sub-TLVs of extended prefix LSAs, by area and router (RFC 8444); loaded where BIER runs.

Changes are passed on as ``BierUpdated``, and to ``border``, since a border router copies the
sub-TLVs of a prefix to the areas that it advertises the prefix to (§2.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from fared.core.ids import AreaId, NodeId
from fared.paths.ted.events import BierUpdated
from fared.protocols.ospf.packet.bier import read_bier
from fared.protocols.ospf.packet.extended_prefix import ExtendedPrefixLsa

if TYPE_CHECKING:
    from fared.core.bier import BierInfo
    from fared.core.ids import Prefix
    from fared.protocols.ospf.lsdb import LsaEntry
    from fared.protocols.ospf.packet.body import LsaBody
    from fared.protocols.ospf.packet.lsa import LsaKey

_HOST_LENGTH = 32
_RouterKey = tuple[AreaId, int]


class BierPrefix(msgspec.Struct, frozen=True):
    """What one router advertises of a prefix: flags of the TLV, one sub-TLV a sub-domain."""

    flags: int
    infos: tuple[BierInfo, ...]


class BierTable:
    """The BIER prefixes of all routers."""

    def __init__(self) -> None:
        self._lsas: dict[_RouterKey, dict[LsaKey, dict[Prefix, BierPrefix]]] = {}
        self._known: dict[_RouterKey, dict[Prefix, BierPrefix]] = {}
        self._changed: dict[_RouterKey, tuple[str, float]] = {}
        self._prefixes: dict[Prefix, None] = {}

    def lsa_changed(self, entry: LsaEntry, body: LsaBody | None, cause: str, now: float) -> None:
        """Process an extended prefix LSA; ``body`` None: flushed."""
        key, area = entry.key, entry.lsdb.area
        if area is None:
            return
        at = area, key.advertising_router
        lsas = self._lsas.setdefault(at, {})
        lsas.pop(key, None)
        if isinstance(body, ExtendedPrefixLsa) and (found := _prefixes(body)):
            lsas[key] = found
        merged: dict[Prefix, BierPrefix] = {}
        # RFC 7684 §2: of several TLVs for a prefix that of the lowest opaque id counts
        for known in sorted(lsas, reverse=True):
            merged.update(lsas[known])
        before = self._known.get(at, {})
        if merged == before:
            return
        self._known[at] = merged
        self._changed.setdefault(at, (cause, now))
        differing = {p for p, _ in merged.items() ^ before.items()}
        self._prefixes.update(dict.fromkeys(sorted(differing)))

    def of(self, areas: Iterable[int], prefix: Prefix) -> tuple[int, tuple[BierInfo, ...]] | None:
        """Return flags and sub-TLVs of a prefix in one of the areas, of the lowest router."""
        inside = {*areas}
        for at in sorted(self._known):
            if at[0] in inside and prefix in self._known[at]:
                found = self._known[at][prefix]
                return found.flags, found.infos
        return None

    def take_prefixes(self) -> list[Prefix]:
        """Return the prefixes whose sub-TLVs changed since the last call."""
        changed, self._prefixes = self._prefixes, {}
        return list(changed)

    def take(self) -> Iterator[BierUpdated]:
        """Yield what changed since the last call, router by router."""
        changed, self._changed = self._changed, {}
        for at, (cause, since) in changed.items():
            prefixes = {prefix: item.infos for prefix, item in self._known[at].items()}
            if not prefixes:
                del self._known[at], self._lsas[at]
            area, router = at
            yield BierUpdated(area, NodeId(router), prefixes, bool(prefixes), cause, since)


def _prefixes(body: ExtendedPrefixLsa) -> dict[Prefix, BierPrefix]:
    """Return the prefixes with BIER sub-TLVs; RFC 8444 §2.1: only host prefixes count."""
    found: dict[Prefix, BierPrefix] = {}
    for facts in reversed(body.prefixes):
        infos = (*read_bier(facts.sub_tlvs),)
        if infos and facts.prefix.length == _HOST_LENGTH:
            found[facts.prefix] = BierPrefix(facts.flags, infos)
    return found
