"""Whether the sender of a hello may be a neighbor, and for which levels.

Reasons are short codes: ``Process.reject`` counts them and operators see them.
"""

from __future__ import annotations

import msgspec

from fared.protocols.igp.refusals import Differs
from fared.protocols.isis.circuit import Adjacency, Circuit
from fared.protocols.isis.ids import Level, LevelSet
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.model import LanHello, P2pHello
from fared.protocols.isis.pdu.tlvs import (
    MT_IPV4,
    NLPIDS,
    TOPOLOGIES,
    AreaAddresses,
    BfdEnabled,
    InterfaceAddresses,
    MultiTopology,
    ProtocolsSupported,
    format_area,
    of_type,
)
from fared.protocols.isis.settings import IsisSettings
from fared.protocols.isis.transmit import pdu_space

AREA_MISMATCH, LEVEL_MISMATCH = "area-mismatch", "level-mismatch"
_SHOWN_AREAS = 3
"""As many as a router usually has at most (maximumAreaAddresses); a hello may list more."""
_ALIVE_SHARE = 3
"""No other neighbor replaces one received within this part of its holding time."""


class HelloFacts(msgspec.Struct, frozen=True):
    """The contents of a hello of either kind.

    ``topologies`` is (0,) if it has no multi-topology TLV (RFC 5120 §7.1).
    """

    circuit_type: LevelSet
    areas: tuple[bytes, ...]
    nlpids: tuple[int, ...]
    topologies: tuple[int, ...] = (MT_IPV4,)
    ipv4: tuple[int, ...] = ()
    ipv6: tuple[int, ...] = ()
    bfd_enabled: tuple[tuple[int, int], ...] = ()


def read_hello(hello: LanHello | P2pHello) -> HelloFacts:
    """Read a hello; of a TLV that occurs several times the union counts (RFC 5120 §7.1)."""
    tlvs = hello.tlvs
    addresses = of_type(tlvs, InterfaceAddresses)
    topologies = of_type(tlvs, MultiTopology)
    return HelloFacts(
        circuit_type=hello.circuit_type,
        areas=_areas(hello),
        nlpids=tuple([nlpid for tlv in of_type(tlvs, ProtocolsSupported) for nlpid in tlv.nlpids]),
        topologies=tuple([entry.topology for tlv in topologies for entry in tlv.topologies])
        or (MT_IPV4,),
        ipv4=tuple([a for tlv in addresses if tlv.family == 4 for a in tlv.addresses]),
        ipv6=tuple([a for tlv in addresses if tlv.family == 6 for a in tlv.addresses]),
        bfd_enabled=tuple([pair for tlv in of_type(tlvs, BfdEnabled) for pair in tlv.protocols]),
    )


def _areas(hello: LanHello | P2pHello) -> tuple[bytes, ...]:
    return tuple([area for tlv in of_type(hello.tlvs, AreaAddresses) for area in tlv.addresses])


def differing(settings: IsisSettings, hello: LanHello | P2pHello, reason: str) -> Differs:
    """The values of the neighbor and of this router behind a refusal; None: it is of no value."""
    if reason != AREA_MISMATCH:
        return None
    return _areas_text(_areas(hello)) or "none", _areas_text(settings.areas)


def _areas_text(areas: tuple[bytes, ...]) -> str:
    return ", ".join(map(format_area, areas[:_SHOWN_AREAS]))


def stored_hello(adjacency: Adjacency) -> HelloFacts:
    """The contents of the last hello of a neighbor."""
    return HelloFacts(
        circuit_type=adjacency.circuit_type,
        areas=adjacency.areas,
        nlpids=adjacency.nlpids,
        topologies=adjacency.topologies,
        ipv4=adjacency.ipv4,
        ipv6=adjacency.ipv6,
        bfd_enabled=adjacency.bfd_enabled,
    )


def store_hello(adjacency: Adjacency, facts: HelloFacts) -> None:
    """Store the contents of a neighbor's hello."""
    adjacency.circuit_type = facts.circuit_type
    adjacency.areas = facts.areas
    adjacency.nlpids = facts.nlpids
    adjacency.topologies = facts.topologies
    adjacency.ipv4 = facts.ipv4
    adjacency.ipv6 = facts.ipv6
    adjacency.bfd_enabled = facts.bfd_enabled


def advertised_facts(adjacency: Adjacency) -> tuple[object, ...]:
    """Contents of a neighbor's hellos that LSPs and next hops depend on."""
    return (stored_hello(adjacency), adjacency.snpa, adjacency.extended_circuit_id)


def is_alive(adjacency: Adjacency, now: float) -> bool:
    """Whether a neighbor has been received recently, so that no other may replace it."""
    return adjacency.up and (now - adjacency.last_hello) * _ALIVE_SHARE < adjacency.holding_time


def carries_lsps(instance: Instance, circuit: Circuit) -> bool:
    """Whether LSPs of our size fit into its frames; otherwise no adjacency may form.

    RFC 3719 §5: an LSP that does not fit into the frames of a link is lost there.
    """
    return pdu_space(circuit) >= instance.settings.lsp_mtu


def levels_on(instance: Instance, circuit: Circuit) -> LevelSet:
    """The levels in which adjacencies may form on a circuit."""
    if not circuit.is_active or not carries_lsps(instance, circuit):
        return LevelSet.NONE
    return circuit.settings.levels & instance.settings.levels


def own_nlpids(settings: IsisSettings) -> tuple[int, ...]:
    """The network layer protocols of this router (TLV 129, RFC 1195 §5.2, RFC 5308 §4)."""
    return tuple([NLPIDS[family] for family in settings.families])


def own_topologies(settings: IsisSettings) -> tuple[int, ...]:
    """The topologies of this router (RFC 5120 §7.1, §7.5)."""
    if not settings.multi_topology:
        return (MT_IPV4,)
    return tuple([TOPOLOGIES[family] for family in settings.families])


def judge_p2p(instance: Instance, circuit: Circuit, facts: HelloFacts) -> tuple[LevelSet, str]:
    """Decide for which levels a point-to-point neighbor is used; none, and why.

    The result is the adjacency usage of ISO 10589 §8.2.5.2, tables 5 to 8. Their actions Up, Accept
    and Down follow from it and the present usage (``P2pHellos.receive``).
    """
    # §8.2.5.2 a) 2) to 4), tables 5 to 7: the levels that both ends run, else "wrong system"
    common = levels_on(instance, circuit) & facts.circuit_type
    if not common:
        return LevelSet.NONE, _no_level(instance, circuit)
    # §8.2.5.2 b), table 8: without a common area address level 2 only, else "area mismatch"
    if not set(facts.areas) & set(instance.settings.areas):
        common &= LevelSet.TWO
        if not common:
            return LevelSet.NONE, AREA_MISMATCH
    # RFC 5120 §2.1: a point-to-point adjacency needs a common topology
    if not set(facts.topologies) & set(own_topologies(instance.settings)):
        return LevelSet.NONE, "no-common-topology"
    return _with_common_protocol(instance, facts, common)


def judge_lan(
    instance: Instance, circuit: Circuit, level: Level, facts: HelloFacts
) -> tuple[LevelSet, str]:
    """Decide whether a neighbor on a LAN is accepted in a level (ISO 10589 §8.4.2).

    Topologies are not compared: all routers of a LAN must elect the same DIS (RFC 5120 §2.2).
    """
    # §8.4.2: a hello of a level that is not enabled on this circuit is discarded
    if not levels_on(instance, circuit) & level:
        return LevelSet.NONE, _no_level(instance, circuit)
    # §9.5, §9.6: the circuit type contains the level of the PDU; one that does not contradicts it
    if not facts.circuit_type & level:
        return LevelSet.NONE, "circuit-type"
    # §8.4.2.2: a common area address in level 1; §8.4.2.3: none is needed in level 2
    if level is Level.ONE and not set(facts.areas) & set(instance.settings.areas):
        return LevelSet.NONE, AREA_MISMATCH
    return _with_common_protocol(instance, facts, LevelSet(int(level)))


def _no_level(instance: Instance, circuit: Circuit) -> str:
    """Why there is no level in common."""
    return LEVEL_MISMATCH if carries_lsps(instance, circuit) else "mtu-too-small"


def _with_common_protocol(
    instance: Instance, facts: HelloFacts, levels: LevelSet
) -> tuple[LevelSet, str]:
    """Require a common network layer protocol: without one, no packet could be forwarded.

    RFC 1195 does not; RFC 3787 §9 allows it.
    """
    if set(facts.nlpids) & set(own_nlpids(instance.settings)):
        return levels, ""
    return LevelSet.NONE, "no-common-protocol"
