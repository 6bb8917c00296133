"""What keeps a neighbor from being used, as far as its hellos and descriptions tell."""

from __future__ import annotations

from fared.core.bfd import BfdStatus
from fared.protocols.igp.refusals import NeighborProblem, explain
from fared.protocols.ospf.interface import Interface, InterfaceState, Neighbor
from fared.protocols.ospf.neighbor import NeighborState

_PATIENCE = 2
"""A neighbor that receives us lists us within this many hello intervals."""


def problem_of(neighbor: Neighbor, now: float) -> NeighborProblem | None:
    """Return why a neighbor is not used, or would not be again."""
    if network_types_differ(neighbor, now):
        return NeighborProblem("network-type-mismatch", explain("network-type-mismatch"))
    mtus = mtu_mismatch(neighbor)
    if mtus is not None:
        text = f"{explain('mtu-mismatch', mtus)}, {_what_follows(neighbor, *mtus)}"
        return NeighborProblem("mtu-mismatch", text)
    if now - neighbor.since < _PATIENCE * neighbor.interface.settings.hello_interval:
        return None
    if neighbor.awaits_bfd:  # neither end lists the other (RFC 9355 §4)
        down = neighbor.bfd is BfdStatus.DOWN
        return NeighborProblem("bfd-down", explain("bfd-down")) if down else None
    if neighbor.state is NeighborState.INIT and not neighbor.lists_us:
        return NeighborProblem("not-heard", explain("not-heard"))
    return None


def mtu_mismatch(neighbor: Neighbor) -> tuple[int, int] | None:
    """Different MTUs, the probable reason why an exchange does not complete (RFC 2328 §10.6).

    The router with the smaller MTU rejects descriptions, so the other can only conclude it. If the
    exchange completes, that router ignores the MTU; unless one of them has changed since.
    """
    both = neighbor.mtu, neighbor.interface.advertised_mtu
    if neighbor.state > NeighborState.EXCHANGE and both == neighbor.agreed_mtus:
        return None
    return both if neighbor.mtu and both[0] != both[1] else None


def _what_follows(neighbor: Neighbor, theirs: int, ours: int) -> str:
    if neighbor.state > NeighborState.EXCHANGE:
        return f"packets have at most {min(theirs, ours)} bytes"
    if theirs < ours:
        return "it refuses ours, unless it has mtu-ignore"
    if neighbor.interface.settings.mtu_ignore:
        return "its larger packets are lost here"
    return "its descriptions are refused"


def network_types_differ(neighbor: Neighbor, now: float) -> bool:
    """Whether only one end of the link elects a designated router (§9.4).

    They may be Full all the same; but each advertises a link that the other does not, so that no
    path crosses it (§16.1 (2) (b)). A hello on a point-to-point link names none. On a broadcast
    network a router that has heard of one names it, once its own Waiting has ended (§9.5).
    """
    interface = neighbor.interface
    names_one = bool(neighbor.designated_router or neighbor.backup_designated_router)
    if not interface.broadcast:
        return names_one
    waited = now - neighbor.since > interface.settings.router_dead_interval
    return not names_one and waited and neighbor.bidirectional and _has_leader(interface)


def _has_leader(interface: Interface) -> bool:
    waiting = interface.state is InterfaceState.WAITING
    return bool(interface.designated_router) and not waiting
