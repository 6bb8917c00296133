"""Acknowledging received LSAs: delayed, directly or not at all (RFC 2328 §13.5, table 19)."""

from __future__ import annotations

from fared.ospf.instance import Instance
from fared.ospf.interface import InterfaceState, Neighbor
from fared.ospf.lsdb import LsaEntry
from fared.ospf.packet.lsa import LSA_HEADER_SIZE


def acknowledge(neighbor: Neighbor, lsa: bytes) -> None:
    """Acknowledge an LSA to all routers on the link, delayed."""
    interface = neighbor.interface
    # RFC 2328 table 19: the BDR acknowledges only LSAs received from the DR
    backup = interface.state is InterfaceState.BACKUP
    if backup and neighbor.address != interface.designated_router:
        return
    interface.tx.ack(lsa[:LSA_HEADER_SIZE])


def acknowledge_directly(neighbor: Neighbor, headers: list[bytes]) -> None:
    """Acknowledge to the sender; on a point-to-point link with the delayed acknowledgments.

    RFC 2328 §13.5 sends it immediately. But there it has the same receiver as a delayed one, with
    which it shares packets, and ``ack_delay`` is well below RxmtInterval.
    """
    if headers:
        queue = neighbor.tx if neighbor.interface.broadcast else neighbor.interface.tx
        queue.ack_all(headers)


def acknowledge_implied(
    instance: Instance, neighbor: Neighbor, entry: LsaEntry, lsa: bytes
) -> None:
    """Acknowledge a duplicate that acknowledged a copy that we have sent, or queued: §13 (7)(b)."""
    # RFC 2328 table 19: after an implied acknowledgment, only the BDR acknowledges
    if neighbor.interface.broadcast:
        if neighbor.interface.state is InterfaceState.BACKUP:
            acknowledge(neighbor, lsa)
    elif instance.outbox.take_back(entry, neighbor.bit):
        # Our copy was still queued for this neighbor, the only one here, and is not needed. But it
        # would have acknowledged the neighbor's copy, so an acknowledgment takes its place.
        acknowledge(neighbor, lsa)
