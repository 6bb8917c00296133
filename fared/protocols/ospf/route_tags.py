"""External route tags (RFC 2328 §A.4.5), looked up when somebody asks: routes do not hold them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from fared.core.ids import NodeId, Prefix, length_mask
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.lsdb import LsaEntry
from fared.protocols.ospf.packet.bodies import AsExternalLsa
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.lsa import LsaKey, LsType

_WORD = 0xFFFFFFFF


class RouteTags:
    """The tags of the AS-external LSAs that are in the database now."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    def __call__(
        self, prefix: Prefix, _area: int | None, destinations: tuple[NodeId, ...]
    ) -> int | None:
        """Return the tag of an external route; None: the prefix has no AS-external LSA.

        In another area the destinations are border routers: any boundary router counts.
        """
        tag = self._of(prefix, destinations)
        return self._of(prefix, self._boundary_routers) if tag is None else tag

    @cached_property
    def _boundary_routers(self) -> list[int]:
        return sorted({key.advertising_router for key in self._instance.as_scope.entries})

    def _of(self, prefix: Prefix, routers: Iterable[int]) -> int | None:
        mask = length_mask(prefix.length)
        for router in routers:
            # appendix E: the host bits may be set, where another mask has the same network
            for link_state_id in {prefix.network, prefix.network | mask ^ _WORD}:
                key = LsaKey(LsType.AS_EXTERNAL, link_state_id, router)
                entry = self._instance.as_scope.get(key)
                body = None if entry is None else self._body(entry)
                if body is not None and body.network_mask == mask:
                    return body.external_route_tag
        return None

    def _body(self, entry: LsaEntry) -> AsExternalLsa | None:
        body = None if entry.is_maxage(self._instance.process.now) else decode_body(entry.lsa)
        return body if isinstance(body, AsExternalLsa) else None
