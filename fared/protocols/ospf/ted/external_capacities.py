"""Path capacities of AS-external LSAs, which their AS boundary routers advertise beside them.

They are in extended prefix LSAs of AS scope (RFC 7684 §2: LS type 11, route type 5). Either LSA of
a prefix may come first, and be replaced without the other.
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

    from fared.core.ids import Prefix
    from fared.protocols.ospf.packet.body import LsaBody

INTER_AREA = (RouteType.INTER_AREA, RouteType.UNSPECIFIED)
AS_EXTERNAL = (RouteType.AS_EXTERNAL, RouteType.UNSPECIFIED)
"""Route types that an extended prefix LSA may have: of area scope, of AS scope."""
_WORD = 0xFFFFFFFF
_Of = tuple[int, "Prefix"]
"""Advertising router, and prefix."""


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
        self._listed: dict[LsaKey, dict[Prefix, float]] = {}
        self._advertised: dict[_Of, dict[LsaKey, float]] = {}

    def of(self, router: int, prefix: Prefix) -> float | None:
        """The capacity that a router advertises; None: none."""
        known = self._advertised.get((router, prefix))
        return known[max(known)] if known else None

    def take(self, key: LsaKey, listed: dict[Prefix, float]) -> list[Prefix]:
        """Process an extended prefix LSA; return the prefixes whose capacity is another one."""
        before = self._listed.pop(key, {})
        if listed:
            self._listed[key] = listed
        changed = []
        for prefix in sorted(before.keys() | listed.keys()):
            at = key.advertising_router, prefix
            old = self.of(*at)
            known = self._advertised.setdefault(at, {})
            known.pop(key, None)
            if prefix in listed:
                known[key] = listed[prefix]
            if not known:
                del self._advertised[at]
            if self.of(*at) != old:
                changed.append(prefix)
        return changed


def external_keys(router: int, prefix: Prefix) -> Iterator[LsaKey]:
    """Yield the keys that the AS-external LSA of a prefix may have (RFC 2328 appendix E)."""
    for link_state_id in {prefix.network, prefix.network | length_mask(prefix.length) ^ _WORD}:
        yield LsaKey(LsType.AS_EXTERNAL, link_state_id, router)
