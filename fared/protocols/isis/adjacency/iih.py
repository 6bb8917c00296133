"""IS-IS hellos (IIHs, ISO 10589 §9.5 to §9.7): their contents and padding."""

from __future__ import annotations

import math

from msgspec.structs import replace

from fared.protocols.igp.keys import AuthKey
from fared.protocols.isis.addresses import hello_addresses
from fared.protocols.isis.adjacency.checks import levels_on, own_nlpids, own_topologies
from fared.protocols.isis.adjacency.detection import bfd_tlv
from fared.protocols.isis.adjacency.fsm import all_adjacencies
from fared.protocols.isis.adjacency.restart import restart_tlvs
from fared.protocols.isis.circuit import Adjacency, AdjacencyState, Circuit, LanLevel
from fared.protocols.isis.ids import Level, LevelSet, Snpa
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.codec import encode_pdu
from fared.protocols.isis.pdu.flooding_parameters import FloodingParameters
from fared.protocols.isis.pdu.model import LanHello, P2pHello
from fared.protocols.isis.pdu.tlvs import (
    MT_IPV4,
    AreaAddresses,
    InterfaceAddresses,
    IsNeighbors,
    MultiTopology,
    Padding,
    ProtocolsSupported,
    ThreeWay,
    ThreeWayState,
    Tlv,
    Topology,
)
from fared.protocols.isis.settings import IsisSettings
from fared.protocols.isis.transmit import pdu_space

DIS_HELLOS = 3
"""The DIS sends hellos this many times as often (ISO 10589, dRISISHelloTimer)."""
_MAX_HOLDING_TIME = 0xFFFF
_MICROSECONDS, _MILLISECONDS = 1e6, 1e3
_TLV_HEADER = 2
_TLV_VALUE = 255
_ADDRESSES_PER_TLV = {4: 63, 6: 15}
_SNPAS_PER_TLV = 42
_THREE_WAY = {
    AdjacencyState.DOWN: ThreeWayState.DOWN,
    AdjacencyState.INITIALIZING: ThreeWayState.INITIALIZING,
    AdjacencyState.UP: ThreeWayState.UP,
}


def hello_interval(circuit: Circuit, level: Level | None) -> float:
    """Seconds between two hellos."""
    interval = circuit.settings.hello_interval
    return interval / DIS_HELLOS if level is not None and circuit.lan[level].is_dis else interval


def holding_time(circuit: Circuit, level: Level | None) -> int:
    """Seconds after which neighbors end the adjacency, whole ones as in the field of the hello."""
    seconds = hello_interval(circuit, level) * circuit.settings.hello_multiplier
    return max(1, min(_MAX_HOLDING_TIME, math.ceil(seconds)))


def p2p_hello(instance: Instance, circuit: Circuit, adjacency: Adjacency | None) -> P2pHello:
    """The hello of a point-to-point circuit (ISO 10589 §9.7)."""
    return P2pHello(
        circuit_type=levels_on(instance, circuit),
        source_id=instance.system_id,
        holding_time=_holding_time(instance, circuit, None),
        local_circuit_id=circuit.circuit_id,
        tlvs=(
            _three_way(circuit, adjacency),
            *_common(instance, circuit),
            *_flooding_parameters(instance.settings),
            *restart_tlvs(
                instance, circuit, all_adjacencies(circuit), requesting=_requesting(circuit)
            ),
        ),
    )


def lan_hello(
    instance: Instance, circuit: Circuit, level: Level, snpas: tuple[int, ...]
) -> LanHello:
    """The hello of a LAN in one level, which lists the neighbors received.

    Its LAN id is that of the DIS (ISO 10589 §9.5, §9.6), 0 while there is none. An id of our own
    would say that we have elected ourselves, and the present DIS would resign (``election``).
    """
    # §8.4.2: the SNPAs of adjacencies in state Initializing or Up
    received = tuple(
        [
            IsNeighbors(tuple([Snpa(snpa) for snpa in snpas[at : at + _SNPAS_PER_TLV]]))
            for at in range(0, len(snpas), _SNPAS_PER_TLV)
        ]
    )
    lan = circuit.lan[level]
    known = list(lan.adjacencies.values())
    return LanHello(
        level=int(level),
        circuit_type=levels_on(instance, circuit) | LevelSet(int(level)),
        source_id=instance.system_id,
        holding_time=_holding_time(instance, circuit, level),
        priority=circuit.settings.priority,
        lan_id=lan.dis,
        tlvs=(
            *_common(instance, circuit),
            *received,
            *restart_tlvs(instance, circuit, known, requesting=_requesting(lan)),
        ),
    )


def _requesting(holder: Circuit | LanLevel) -> bool:
    """Whether hellos have RR set."""
    return holder.reacquiring is not None and holder.reacquiring.requesting


def _holding_time(instance: Instance, circuit: Circuit, level: Level | None) -> int:
    """The holding time of a hello: that of a restart while RR is set (RFC 8706 §3.2.1 a))."""
    usual, restart = holding_time(circuit, level), instance.restart
    if restart is None or not _requesting(circuit if level is None else circuit.lan[level]):
        return usual
    left = math.ceil(restart.until - instance.process.now)
    return max(usual, min(_MAX_HOLDING_TIME, left))


def padded(
    circuit: Circuit, hello: LanHello | P2pHello, key: AuthKey | None
) -> LanHello | P2pHello:
    """Fill a hello up to the MTU (RFC 3719 §6): where it arrives, LSPs arrive as well.

    One byte may be missing, since a TLV has at least two.
    """
    space = pdu_space(circuit) - len(encode_pdu(hello, key))
    padding = []
    while space >= _TLV_HEADER:
        size = min(_TLV_VALUE, space - _TLV_HEADER)
        padding.append(Padding(size))
        space -= size + _TLV_HEADER
    return replace(hello, tlvs=(*hello.tlvs, *padding))


def _flooding_parameters(settings: IsisSettings) -> tuple[FloodingParameters, ...]:
    """How fast this router receives LSPs (RFC 9681 §4)."""
    speed = settings.fast_flooding
    if not speed.enabled:
        return ()
    return (
        FloodingParameters(
            burst_size=speed.burst_size,
            transmission_interval=max(1, round(_MICROSECONDS / speed.rate)),
            lsps_per_psnp=speed.lsps_per_psnp,
            psnp_interval=max(1, round(settings.ack_delay * _MILLISECONDS)),
            receive_window=speed.receive_window,
        ),
    )


def _three_way(circuit: Circuit, adjacency: Adjacency | None) -> ThreeWay:
    """The three-way TLV. The extended local circuit id is the ifindex, unique as §3.2 requires."""
    # RFC 5303 §3.2: Down without an adjacency
    if adjacency is None:
        return ThreeWay(ThreeWayState.DOWN, circuit.ifindex)
    # with the neighbor's ids once it has been received
    return ThreeWay(
        _THREE_WAY[adjacency.state],
        circuit.ifindex,
        adjacency.system_id,
        adjacency.extended_circuit_id,
    )


def _common(instance: Instance, circuit: Circuit) -> tuple[Tlv, ...]:
    """The TLVs of every hello."""
    settings = instance.settings
    # ISO 10589 §9.5 to §9.7; RFC 1195 §5.2
    tlvs: list[Tlv] = [
        AreaAddresses(settings.areas),
        ProtocolsSupported(own_nlpids(settings)),
    ]
    # RFC 1195 §5.2, RFC 5308 §3
    for family in settings.families:
        addresses = hello_addresses(instance, circuit, family)
        if addresses:
            tlvs.append(InterfaceAddresses(family, addresses[: _ADDRESSES_PER_TLV[family]]))
    # RFC 5120 §7.1: without the TLV the interface is in topology 0 only
    topologies = own_topologies(settings)
    if topologies != (MT_IPV4,):
        tlvs.append(MultiTopology(tuple([Topology(topology) for topology in topologies])))
    return (*tlvs, *bfd_tlv(instance, circuit))
