"""Acknowledging received LSAs: delayed, directly or not at all (RFC 2328 §13.5, table 19)."""

from __future__ import annotations

from fared.protocols.ospf.interface import InterfaceState, Neighbor


def acknowledge(neighbor: Neighbor, headers: bytes) -> None:
    """Acknowledge headers to all routers on the link, delayed."""
    interface = neighbor.interface
    # RFC 2328 table 19: the BDR acknowledges only LSAs received from the DR
    backup = interface.state is InterfaceState.BACKUP
    if backup and neighbor.address != interface.designated_router:
        return
    interface.tx.ack(headers)


def acknowledge_directly(neighbor: Neighbor, headers: bytes) -> None:
    """Acknowledge headers to the sender; on a point-to-point link with the delayed ones.

    RFC 2328 §13.5 sends it immediately. But there it has the same receiver as a delayed one, with
    which it shares packets, and ``ack_delay`` is well below RxmtInterval.
    """
    if headers:
        queue = neighbor.tx if neighbor.interface.broadcast else neighbor.interface.tx
        queue.ack(headers)


def acknowledge_implied(neighbor: Neighbor, header: bytes) -> None:
    """Acknowledge a duplicate that was an implied acknowledgment: RFC 2328 §13 (7)(b)."""
    # RFC 2328 table 19: only the BDR acknowledges it
    if neighbor.interface.state is InterfaceState.BACKUP:
        acknowledge(neighbor, header)
