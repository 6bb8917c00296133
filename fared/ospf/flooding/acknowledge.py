"""Acknowledging received LSAs: delayed, directly or not at all (RFC 2328 §13.5, table 19)."""

from __future__ import annotations

from fared.ospf.interface import InterfaceState, Neighbor, Retransmission
from fared.ospf.lsdb import LsaEntry
from fared.ospf.packet.lsa import LsaHeader


def acknowledge(neighbor: Neighbor, header: LsaHeader) -> None:
    """Acknowledge to all routers on the link, delayed."""
    interface = neighbor.interface
    # RFC 2328 table 19: the BDR acknowledges only LSAs received from the DR
    backup = interface.state is InterfaceState.BACKUP
    if backup and neighbor.address != interface.designated_router:
        return
    interface.tx.ack(header)


def acknowledge_directly(neighbor: Neighbor, header: LsaHeader) -> None:
    """Acknowledge to the sender; on a point-to-point link with the delayed acknowledgments."""
    if neighbor.interface.broadcast:
        neighbor.tx.ack(header)
    else:
        # RFC 2328 §13.5 sends it immediately. But it has the same receiver as a delayed one, with
        # which it shares packets, and ``ack_delay`` is well below RxmtInterval.
        acknowledge(neighbor, header)


def acknowledge_duplicate(
    neighbor: Neighbor, entry: LsaEntry, header: LsaHeader, listed: Retransmission | None
) -> None:
    """Acknowledge a duplicate: RFC 2328 §13 (7)(b). ``listed``: what (7)(a) took off the list."""
    # RFC 2328 table 19: a direct acknowledgment, unless the duplicate is an implied one. It is not
    # if it was not listed, or if our copy was deferred and not sent.
    if listed is None or listed.deferred:
        acknowledge_directly(neighbor, header)
    # table 19: after an implied acknowledgment, only the BDR acknowledges
    elif neighbor.interface.broadcast:
        if neighbor.interface.state is InterfaceState.BACKUP:
            acknowledge(neighbor, header)
    elif neighbor.interface.tx.updates.get(entry.key) is entry:
        # Our copy is still queued for this neighbor, the only one here, and is not needed. But it
        # would have acknowledged the neighbor's copy, so an acknowledgment takes its place.
        del neighbor.interface.tx.updates[entry.key]
        acknowledge(neighbor, header)
