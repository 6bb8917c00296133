"""Path capacities of AS-external LSAs, which their AS boundary routers advertise beside them.

They are in extended prefix LSAs (RFC 7684 §2) with route type 5, of AS scope (LS type 11) or of an
area (LS type 10). Either LSA of a prefix may come first, and be replaced without the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.core.ids import length_mask
from fared.core.units import sane_capacity
from fared.paths.ted.rows import snapped
from fared.protocols.ospf.packet.extended_prefix import ExtendedPrefixLsa, RouteType
from fared.protocols.ospf.packet.lsa import LsaKey, LsType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fared.core.ids import AreaId, Prefix
    from fared.protocols.ospf.packet.body import LsaBody

INTER_AREA = (RouteType.INTER_AREA, RouteType.UNSPECIFIED)
EXTERNAL = (RouteType.AS_EXTERNAL,)
EXTERNAL_OF_AS = (RouteType.AS_EXTERNAL, RouteType.UNSPECIFIED)
"""Route types in extended prefix LSAs: of summaries and externals in an area, of externals in the
AS."""
_WORD = 0xFFFFFFFF
_Of = tuple[int, "Prefix"]
"""Advertising router, and prefix."""
_At = tuple["AreaId | None", LsaKey]
"""An LSA of an area, or (None) of AS scope."""


def capacities_of(
    body: LsaBody | None, code_point: int | None, route_types: tuple[RouteType, ...]
) -> dict[Prefix, float]:
    """Return the path capacities in an LSA of routes of some types, bytes/s, by prefix."""
    if not isinstance(body, ExtendedPrefixLsa) or code_point is None:
        return {}
    return {
        facts.prefix: snapped(capacity)
        for facts in body.prefixes
        if facts.route_type in route_types
        and (capacity := sane_capacity(facts.capacity(code_point))) is not None
    }


class ExternalCapacities:
    """The path capacity of each external prefix of each router that advertises one."""

    def __init__(self) -> None:
        self._listed: dict[_At, dict[Prefix, float]] = {}
        self._advertised: dict[_Of, dict[_At, float]] = {}

    def of(self, router: int, prefix: Prefix) -> float | None:
        """The capacity that a router advertises; None: none."""
        known = self._advertised.get((router, prefix))
        return min(known.values()) if known else None

    def take(self, at: _At, listed: dict[Prefix, float]) -> list[Prefix]:
        """Process an extended prefix LSA; return the prefixes whose capacity is another one."""
        before = self._listed.pop(at, {})
        if listed:
            self._listed[at] = listed
        changed = []
        for prefix in sorted(before.keys() | listed.keys()):
            of = at[1].advertising_router, prefix
            old = self.of(*of)
            known = self._advertised.setdefault(of, {})
            known.pop(at, None)
            if prefix in listed:
                known[at] = listed[prefix]
            if not known:
                del self._advertised[of]
            if self.of(*of) != old:
                changed.append(prefix)
        return changed


def external_keys(router: int, prefix: Prefix) -> Iterator[LsaKey]:
    """Yield the keys that the AS-external LSA of a prefix may have (RFC 2328 appendix E)."""
    for link_state_id in {prefix.network, prefix.network | length_mask(prefix.length) ^ _WORD}:
        yield LsaKey(LsType.AS_EXTERNAL, link_state_id, router)
