"""What keeps a neighbor from being used, as far as its hellos tell."""

from __future__ import annotations

from fared.core.bfd import BfdStatus
from fared.protocols.igp.refusals import NeighborProblem, explain
from fared.protocols.isis.circuit import Adjacency, AdjacencyState
from fared.protocols.isis.pdu.tlvs import MT_IPV4, NLPIDS, TOPOLOGIES
from fared.protocols.isis.settings import IsisSettings
from fared.protocols.isis.transmit import LLC_SIZE

_PATIENCE = 2
"""A neighbor that receives us lists us within this many hello intervals."""
_MISSING = 1
"""Bytes that padding may leave: a TLV has two at least."""


def problem_of(settings: IsisSettings, adjacency: Adjacency, now: float) -> NeighborProblem | None:
    """Return why a neighbor is not used, or not for all address families."""
    if {address.address for address in adjacency.circuit.addresses(4)} & set(adjacency.ipv4):
        return NeighborProblem("duplicate-address", explain("duplicate-address"))
    if adjacency.up:
        if not _topologies_differ(settings, adjacency):
            return None
        return NeighborProblem("topology-mismatch", explain("topology-mismatch"))
    interval = adjacency.circuit.settings.hello_interval
    initializes = adjacency.state is AdjacencyState.INITIALIZING
    if not initializes or now - adjacency.since < _PATIENCE * interval:
        return None
    return _why_it_initializes(adjacency)


def _why_it_initializes(adjacency: Adjacency) -> NeighborProblem | None:
    """Return why an adjacency has not come up, though hellos of the neighbor arrive."""
    if adjacency.awaited is not None:
        down = BfdStatus.DOWN in adjacency.bfd.values()
        return NeighborProblem("bfd-down", explain("bfd-down")) if down else None
    # RFC 3719 §6: both pad their hellos to their MTU, so that those of the larger end are lost
    theirs, ours = adjacency.padded_to + LLC_SIZE, adjacency.circuit.link.mtu
    if adjacency.padded_to and not theirs <= ours <= theirs + _MISSING:
        text = f"{explain('mtu-mismatch', (theirs, ours))}, it does not receive our padded hellos"
        return NeighborProblem("mtu-mismatch", text)
    return NeighborProblem("not-heard", explain("not-heard"))


def _topologies_differ(settings: IsisSettings, adjacency: Adjacency) -> bool:
    """Whether a family that both ends have is in another topology at each (RFC 5120 §3)."""
    for family in settings.families:
        ours = TOPOLOGIES[family] if settings.multi_topology else MT_IPV4
        theirs = TOPOLOGIES[family] if TOPOLOGIES[family] in adjacency.topologies else MT_IPV4
        if NLPIDS[family] in adjacency.nlpids and ours != theirs:
            return True
    return False
