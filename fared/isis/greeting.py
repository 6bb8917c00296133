"""What our hellos say (ISO 10589 §9.5 to §9.7) and how far they are padded."""

from __future__ import annotations

import math
from dataclasses import replace

from fared.core.keys import AuthKey
from fared.isis.checks import levels_on, own_nlpids, own_topologies
from fared.isis.circuit import Adjacency, AdjacencyState, Circuit
from fared.isis.ids import Level, LevelSet, Snpa
from fared.isis.instance import Instance
from fared.isis.pdu.codec import encode_pdu
from fared.isis.pdu.model import (
    MT_IPV4,
    AreaAddresses,
    InterfaceAddresses,
    IsNeighbors,
    LanHello,
    MultiTopology,
    P2pHello,
    Padding,
    ProtocolsSupported,
    ThreeWay,
    ThreeWayState,
    Tlv,
    Topology,
)
from fared.isis.transmit import pdu_space

DIS_HELLOS = 3
"""The designated IS sends hellos so many times as often as others (§8.4.5)."""
_MAX_HOLDING_TIME = 0xFFFF
_TLV_HEADER = 2
_TLV_VALUE = 255
_ADDRESSES_PER_TLV = {4: 63, 6: 15}
_SNPAS_PER_TLV = 42
_LINK_LOCAL = 0x3FA
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
    """Seconds, whole ones as the field has them, after which neighbors give us up."""
    seconds = hello_interval(circuit, level) * circuit.settings.hello_multiplier
    return max(1, min(_MAX_HOLDING_TIME, math.ceil(seconds)))


def p2p_hello(instance: Instance, circuit: Circuit, adjacency: Adjacency | None) -> P2pHello:
    """The hello of a point-to-point circuit; without an adjacency it says that we are Down."""
    return P2pHello(
        circuit_type=levels_on(instance, circuit),
        source_id=instance.system_id,
        holding_time=holding_time(circuit, None),
        local_circuit_id=circuit.circuit_id,
        tlvs=(_three_way(circuit, adjacency), *_common(instance, circuit)),
    )


def lan_hello(
    instance: Instance, circuit: Circuit, level: Level, snpas: tuple[int, ...]
) -> LanHello:
    """The hello of a LAN in one level, which lists the neighbors that are heard.

    While no designated IS is known its LAN id is 0, and not one of ours (§8.4.4): that would
    read as if we were it, and a better one would leave its office before we take over.
    """
    heard = tuple(
        IsNeighbors(tuple(Snpa(snpa) for snpa in snpas[at : at + _SNPAS_PER_TLV]))
        for at in range(0, len(snpas), _SNPAS_PER_TLV)
    )
    return LanHello(
        level=int(level),
        circuit_type=levels_on(instance, circuit) | LevelSet(int(level)),
        source_id=instance.system_id,
        holding_time=holding_time(circuit, level),
        priority=circuit.settings.priority,
        lan_id=circuit.lan[level].dis,
        tlvs=(*_common(instance, circuit), *heard),
    )


def padded(
    circuit: Circuit, hello: LanHello | P2pHello, key: AuthKey | None
) -> LanHello | P2pHello:
    """Fill a hello up to the MTU (§8.2.3): if the neighbor hears it, LSPs will reach it, too.

    One byte may be missing, since a TLV has at least two.
    """
    space = pdu_space(circuit) - len(encode_pdu(hello, key))
    padding = []
    while space >= _TLV_HEADER:
        size = min(_TLV_VALUE, space - _TLV_HEADER)
        padding.append(Padding(size))
        space -= size + _TLV_HEADER
    return replace(hello, tlvs=(*hello.tlvs, *padding))


def _three_way(circuit: Circuit, adjacency: Adjacency | None) -> ThreeWay:
    """RFC 5303 §3.2: the neighbor's ids are there once we heard it."""
    if adjacency is None:
        return ThreeWay(ThreeWayState.DOWN, circuit.ifindex)
    return ThreeWay(
        _THREE_WAY[adjacency.state],
        circuit.ifindex,
        adjacency.system_id,
        adjacency.extended_circuit_id,
    )


def _common(instance: Instance, circuit: Circuit) -> tuple[Tlv, ...]:
    """The TLVs that every hello has; IPv6 addresses are link-local ones (RFC 5308 §3)."""
    settings = instance.settings
    tlvs: list[Tlv] = [
        AreaAddresses(settings.areas),
        ProtocolsSupported(own_nlpids(settings)),
    ]
    for family in settings.families:
        addresses = tuple(
            entry.address
            for entry in circuit.addresses(family)
            if family == 4 or entry.address >> 118 == _LINK_LOCAL
        )
        if addresses:
            tlvs.append(InterfaceAddresses(family, addresses[: _ADDRESSES_PER_TLV[family]]))
    topologies = own_topologies(settings)
    if topologies != (MT_IPV4,):
        tlvs.append(MultiTopology(tuple(Topology(topology) for topology in topologies)))
    return tuple(tlvs)
