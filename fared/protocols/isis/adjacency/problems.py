"""What keeps a neighbor from being used, as far as its hellos tell."""

from __future__ import annotations

from fared.core.bfd import BfdStatus
from fared.core.ids import FAMILY_IPV4, dotted
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
    own = {address.address for address in adjacency.circuit.addresses(FAMILY_IPV4)}
    if own & set(adjacency.ipv4):
        return NeighborProblem("duplicate-address", explain("duplicate-address"))
    if adjacency.up:
        if _topologies_differ(settings, adjacency):
            return NeighborProblem("topology-mismatch", explain("topology-mismatch"))
        return _subnets_differ(settings, adjacency)
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


def _subnets_differ(settings: IsisSettings, adjacency: Adjacency) -> NeighborProblem | None:
    """Return that a neighbor has no address on our IPv4 networks, if the link has any.

    Hellos do not depend on it, and fared forwards to it all the same. FRR's adjacency is up, too,
    but it installs no route to a next hop that is on none of its networks.
    """
    own, theirs = adjacency.circuit.addresses(FAMILY_IPV4), adjacency.ipv4
    networks = [address for address in own if not address.host]
    met = any(network.contains(far) for network in networks for far in theirs)
    if FAMILY_IPV4 not in settings.families or not networks or not theirs or met:
        return None
    ours = ", ".join(f"{dotted(n.address)}/{n.prefix_length}" for n in networks)
    differs = ", ".join(map(dotted, theirs)), ours
    return NeighborProblem("source-network", explain("source-network", differs))


def _topologies_differ(settings: IsisSettings, adjacency: Adjacency) -> bool:
    """Whether a family that both ends have is in another topology at each (RFC 5120 §3)."""
    for family in settings.families:
        ours = TOPOLOGIES[family] if settings.multi_topology else MT_IPV4
        theirs = TOPOLOGIES[family] if TOPOLOGIES[family] in adjacency.topologies else MT_IPV4
        if NLPIDS[family] in adjacency.nlpids and ours != theirs:
            return True
    return False
