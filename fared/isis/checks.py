"""Whether a neighbor may be one, and for which levels: calculations on what hellos say.

Reasons are short codes: they are counted by ``Instance.reject`` and shown to operators.
"""

from __future__ import annotations

from dataclasses import dataclass

from fared.isis.circuit import Adjacency, Circuit
from fared.isis.ids import Level, LevelSet
from fared.isis.instance import Instance
from fared.isis.pdu.model import (
    MT_IPV4,
    MT_IPV6,
    NLPID_IPV4,
    NLPID_IPV6,
    AreaAddresses,
    InterfaceAddresses,
    LanHello,
    MultiTopology,
    P2pHello,
    ProtocolsSupported,
    of_type,
)
from fared.isis.settings import IsisSettings
from fared.isis.transmit import pdu_space

_NLPIDS = {4: NLPID_IPV4, 6: NLPID_IPV6}
_TOPOLOGIES = {4: MT_IPV4, 6: MT_IPV6}


@dataclass(frozen=True, slots=True)
class Offer:
    """What a neighbor says of itself, in hellos of either kind.

    ``topologies`` is (0,) where it sends no multi-topology TLV (RFC 5120 §3).
    """

    circuit_type: LevelSet
    areas: tuple[bytes, ...]
    nlpids: tuple[int, ...]
    topologies: tuple[int, ...] = (MT_IPV4,)
    ipv4: tuple[int, ...] = ()
    ipv6: tuple[int, ...] = ()


def offer_of(hello: LanHello | P2pHello) -> Offer:
    """Collect from a hello; a TLV may come several times."""
    tlvs = hello.tlvs
    addresses = of_type(tlvs, InterfaceAddresses)
    topologies = of_type(tlvs, MultiTopology)
    return Offer(
        circuit_type=hello.circuit_type,
        areas=tuple(area for tlv in of_type(tlvs, AreaAddresses) for area in tlv.addresses),
        nlpids=tuple(nlpid for tlv in of_type(tlvs, ProtocolsSupported) for nlpid in tlv.nlpids),
        topologies=tuple(entry.topology for tlv in topologies for entry in tlv.topologies)
        or (MT_IPV4,),
        ipv4=tuple(a for tlv in addresses if tlv.family == 4 for a in tlv.addresses),
        ipv6=tuple(a for tlv in addresses if tlv.family == 6 for a in tlv.addresses),
    )


def offer_in_force(adjacency: Adjacency) -> Offer:
    """What the neighbor said last."""
    return Offer(
        circuit_type=adjacency.circuit_type,
        areas=adjacency.areas,
        nlpids=adjacency.nlpids,
        topologies=adjacency.topologies,
        ipv4=adjacency.ipv4,
        ipv6=adjacency.ipv6,
    )


def accept_offer(adjacency: Adjacency, offer: Offer) -> None:
    """Keep what the neighbor says."""
    adjacency.circuit_type = offer.circuit_type
    adjacency.areas = offer.areas
    adjacency.nlpids = offer.nlpids
    adjacency.topologies = offer.topologies
    adjacency.ipv4 = offer.ipv4
    adjacency.ipv6 = offer.ipv6


def carries_lsps(instance: Instance, circuit: Circuit) -> bool:
    """Whether LSPs of the size we make fit into its frames; if not, nobody may depend on it."""
    return pdu_space(circuit) >= instance.settings.lsp_mtu


def levels_on(instance: Instance, circuit: Circuit) -> LevelSet:
    """The levels in which adjacencies may form on a circuit."""
    if not circuit.speaks or not carries_lsps(instance, circuit):
        return LevelSet.NONE
    return circuit.settings.levels & instance.settings.levels


def own_nlpids(settings: IsisSettings) -> tuple[int, ...]:
    """The network layer protocols of this router (RFC 1195 §4.4)."""
    return tuple(_NLPIDS[family] for family in settings.families)


def own_topologies(settings: IsisSettings) -> tuple[int, ...]:
    """The topologies of this router (RFC 5120 §3)."""
    if not settings.multi_topology:
        return (MT_IPV4,)
    return tuple(_TOPOLOGIES[family] for family in settings.families)


def judge_p2p(instance: Instance, circuit: Circuit, offer: Offer) -> tuple[LevelSet, str]:
    """Decide which levels a point-to-point neighbor is used for; none, and why.

    ISO 10589 §8.2.4.2, tables 5 to 8: what both have in common, but level 1 only with an area in
    common. RFC 5120 §4.1: without a topology in common there is no adjacency.
    """
    common = levels_on(instance, circuit) & offer.circuit_type
    if not common:
        return LevelSet.NONE, "level-mismatch"
    if not set(offer.areas) & set(instance.settings.areas):
        common &= LevelSet.TWO
        if not common:
            return LevelSet.NONE, "area-mismatch"
    if not set(offer.topologies) & set(own_topologies(instance.settings)):
        return LevelSet.NONE, "no-common-topology"
    return _speaking_our_protocols(instance, offer, common)


def judge_lan(
    instance: Instance, circuit: Circuit, level: Level, offer: Offer
) -> tuple[LevelSet, str]:
    """Decide whether a neighbor on a LAN is one in a level (ISO 10589 §8.4.2); if not, why."""
    if not levels_on(instance, circuit) & level:
        return LevelSet.NONE, "level-mismatch"
    if not offer.circuit_type & level:
        return LevelSet.NONE, "circuit-type"
    if level is Level.ONE and not set(offer.areas) & set(instance.settings.areas):
        return LevelSet.NONE, "area-mismatch"
    return _speaking_our_protocols(instance, offer, LevelSet(int(level)))


def _speaking_our_protocols(
    instance: Instance, offer: Offer, levels: LevelSet
) -> tuple[LevelSet, str]:
    """RFC 1195 §4.4: a router that shares no protocol with us could forward nothing for us."""
    if set(offer.nlpids) & set(own_nlpids(instance.settings)):
        return levels, ""
    return LevelSet.NONE, "no-common-protocol"
