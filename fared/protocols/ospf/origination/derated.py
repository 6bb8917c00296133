"""Follows neighbors that derate a link: their TE LSAs of links to this router (``te.far_ends``)."""

from __future__ import annotations

from collections.abc import Sequence

from fared.core.wire import DecodeError
from fared.paths.te.far_ends import FarEnd, FarEnds
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface
from fared.protocols.ospf.lsdb import LsaEntry
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE
from fared.protocols.ospf.packet.opaque import TeLink
from fared.protocols.ospf.packet.te import decode_te

_POINT_TO_POINT = 1


class DeratedLinks:
    """The shares that neighbors leave of links to this router; point-to-point links only."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._far_ends = FarEnds()
        self._us = instance.router_id.to_bytes(4, "big")

    def te_lsa_changed(self, entry: LsaEntry) -> Sequence[Interface]:
        """Read a TE LSA that is new, changed or at MaxAge; return links with another share."""
        router_id = entry.key.advertising_router
        if router_id == self._instance.router_id:
            return ()
        ends = () if entry.is_maxage(self._instance.process.now) else self._read(entry)
        if not self._far_ends.put(entry.lsdb.area, router_id, entry.key, ends):
            return ()
        return [each for each in self._instance.interfaces.values() if self.changed(each)]

    def changed(self, interface: Interface) -> bool:
        """Determine the share of a link anew; return whether it is another one."""
        share = min(
            (
                self._far_ends.share(
                    interface.settings.area,
                    neighbor.router_id,
                    (neighbor.address,),
                    0,
                    alone=self._alone(neighbor.router_id),
                )
                for neighbor in interface.neighbors.values()
                if not interface.broadcast
            ),
            default=1.0,
        )
        before, interface.far_share = interface.far_share, share
        return share != before

    def _alone(self, router_id: int) -> bool:
        """Whether there is only one link to a neighbor."""
        ends = self._instance.interfaces.values()
        return sum(n.router_id == router_id for i in ends for n in i.neighbors.values()) == 1

    def _read(self, entry: LsaEntry) -> tuple[FarEnd, ...]:
        # most LSAs do not name us: looking for four bytes costs less than decoding
        if self._us not in entry.raw[LSA_HEADER_SIZE:]:
            return ()
        try:
            link = decode_te(entry.raw, LSA_HEADER_SIZE)
        except DecodeError:
            return ()  # the TED reports it
        if not isinstance(link, TeLink) or link.attributes.share >= 1.0:
            return ()
        if (link.link_type, link.link_id) != (_POINT_TO_POINT, self._instance.router_id):
            return ()
        return (FarEnd(link.attributes.share, link.local_addresses, link.local_identifier or 0),)
