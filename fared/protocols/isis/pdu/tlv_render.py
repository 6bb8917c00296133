"""TLVs as plain dictionaries for JSON; the conventions are those of ``render``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fared.core.ids import dotted, format_address, format_system_id
from fared.core.json_text import render_number
from fared.protocols.isis.ids import format_lsp_id, format_snpa
from fared.protocols.isis.pdu.flooding_parameters import FloodingParameters
from fared.protocols.isis.pdu.tlvs import (
    NLPID_IPV4,
    NLPID_IPV6,
    AreaAddresses,
    Authentication,
    BfdEnabled,
    Hostname,
    InterfaceAddresses,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsNeighbors,
    IsReachability,
    LspBufferSize,
    LspEntries,
    MultiTopology,
    NarrowIpReachability,
    NarrowIsReachability,
    Padding,
    ProtocolsSupported,
    PurgeOriginator,
    Restart,
    RestartFlag,
    TeRouterId,
    ThreeWay,
    ThreeWayState,
    Tlv,
    UnknownTlv,
)

Json = dict[str, Any]
_BIER: Final = 32
"""The BIER info sub-TLV of a prefix: ``fared.protocols.isis.pdu.bier``."""

_PROTOCOLS: Final = {NLPID_IPV4: "ipv4", NLPID_IPV6: "ipv6"}
_AUTHENTICATION_NAMES: Final = {1: "cleartext", 54: "md5"}
_SHA_NAMES: Final = {
    20: "hmac-sha-1",
    32: "hmac-sha-256",
    48: "hmac-sha-384",
    64: "hmac-sha-512",
}
_GENERIC: Final = 3
_KEY_ID_SIZE: Final = 2


def format_area(address: bytes) -> str:
    """Write an area address: ``49.0001``."""
    digits = address.hex()
    groups = [digits[:2], *(digits[at : at + 4] for at in range(2, len(digits), 4))]
    return ".".join(groups)


def format_neighbor(neighbor: int) -> str:
    """Write system id and pseudonode number: ``0102.5500.0002.00``."""
    return f"{format_system_id(neighbor >> 8)}.{neighbor & 0xFF:02x}"


def render_tlvs(tlvs: tuple[Tlv, ...]) -> Json:
    """TLVs by name, in the order of the first TLV of each name."""
    out: Json = {}
    for tlv in tlvs:
        for name, value in _RENDERERS[type(tlv)](tlv).items():
            if isinstance(value, list) and name in out:
                out[name] = out[name] + value
            elif name == "padding" and name in out:
                out[name] += value
            else:
                out.setdefault(name, value)
    return out


def _link_sub_tlvs(neighbor: IsNeighbor) -> Json:
    """The sub-TLVs that were sent, by the names of TE links in OSPF."""
    sub: Json = {}
    for name, family, addresses in (
        ("local_addresses", 4, neighbor.local_addresses),
        ("remote_addresses", 4, neighbor.remote_addresses),
        ("local_addresses6", 6, neighbor.local_addresses6),
        ("remote_addresses6", 6, neighbor.remote_addresses6),
    ):
        if addresses:
            sub[name] = [format_address(family, address) for address in addresses]
    if neighbor.local_id is not None:
        sub |= {"local_identifier": neighbor.local_id, "remote_identifier": neighbor.remote_id}
    sub |= neighbor.attributes.sent()
    if neighbor.anomalous:
        sub["anomalous"] = list(neighbor.anomalous)
    if neighbor.unknown:
        sub["unknown"] = _unknown(neighbor.unknown)
    return sub


def _unknown(triplets: tuple[tuple[int, bytes], ...]) -> list[Json]:
    return [{"type": kind, "hex": value.hex()} for kind, value in triplets]


def _is_reachability(tlv: IsReachability) -> Json:
    head = {} if tlv.topology is None else {"topology": tlv.topology}
    entries = [
        {
            **head,
            "neighbor": format_neighbor(neighbor.neighbor),
            "metric": neighbor.metric,
            "sub": _link_sub_tlvs(neighbor),
        }
        for neighbor in tlv.neighbors
    ]
    return {"ext_is_reach" if tlv.topology is None else "mt_is_reach": entries}


def _ip_reachability(tlv: IpReachability) -> Json:
    ipv4 = tlv.family == 4
    if tlv.topology is None:
        name, head = "ext_ip_reach" if ipv4 else "ipv6_reach", {}
    else:
        name = "mt_ip_reach" if ipv4 else "mt_ipv6_reach"
        head = {"topology": tlv.topology}
    return {name: [{**head, **_prefix(reach)} for reach in tlv.prefixes]}


def _prefix(reach: IpReach) -> Json:
    out: Json = {"prefix": str(reach.prefix), "metric": reach.metric, "down": reach.down}
    if reach.prefix.family != 4:
        out["external"] = reach.external
    if reach.tags:
        out["tags"] = list(reach.tags)
    if reach.flags is not None:
        out["flags"] = reach.flags
    if reach.capacity is not None:
        out["capacity"] = render_number(reach.capacity)
    if reach.unknown:
        out |= _bier(reach.unknown)
        out["unknown"] = _unknown(reach.unknown)
    return out


def _bier(sub_tlvs: tuple[tuple[int, bytes], ...]) -> Json:
    """The BIER info sub-TLVs (RFC 8401), if there are any; their codec is loaded for them only."""
    if all(kind != _BIER for kind, _ in sub_tlvs):
        return {}
    from fared.protocols.isis.pdu.bier import read_bier  # noqa: PLC0415

    return {"bier": [info.document() for info in read_bier(sub_tlvs)]}


def _narrow_is_reachability(tlv: NarrowIsReachability) -> Json:
    return {
        "is_reach": [
            {"neighbor": format_neighbor(n.neighbor), "metric": n.metric} for n in tlv.neighbors
        ]
    }


def _narrow_ip_reachability(tlv: NarrowIpReachability) -> Json:
    entries = [
        {
            "prefix": str(reach.prefix),
            "metric": reach.metric,
            "down": reach.down,
            "metric_external": reach.metric_external,
        }
        for reach in tlv.prefixes
    ]
    return {"ip_external_reach" if tlv.external else "ip_internal_reach": entries}


def _lsp_entries(tlv: LspEntries) -> Json:
    return {
        "lsp_entries": [
            {
                "lsp_id": format_lsp_id(entry.lsp_id),
                "seq": entry.sequence_number,
                "lifetime": entry.remaining_lifetime,
                "checksum": entry.checksum,
            }
            for entry in tlv.entries
        ]
    }


def authentication_name(tlv: Authentication) -> str:
    """The algorithm as the configuration names it, or ``type-42``."""
    if tlv.kind == _GENERIC:
        return _SHA_NAMES.get(len(tlv.value) - _KEY_ID_SIZE, "cryptographic")
    return _AUTHENTICATION_NAMES.get(tlv.kind, f"type-{tlv.kind}")


def _authentication(tlv: Authentication) -> Json:
    """The authentication TLV; a clear text password is not shown."""
    out: Json = {"type": tlv.kind, "type_name": authentication_name(tlv)}
    if tlv.kind == _GENERIC and len(tlv.value) >= _KEY_ID_SIZE:
        out["key_id"] = int.from_bytes(tlv.value[:_KEY_ID_SIZE], "big")
        out["digest"] = tlv.value[_KEY_ID_SIZE:].hex()
    elif tlv.kind != 1:
        out["digest"] = tlv.value.hex()
    return {"authentication": [out]}


def _protocols(tlv: ProtocolsSupported) -> Json:
    names = [_protocol_name(nlpid) for nlpid in tlv.nlpids]
    return {"protocols": list(tlv.nlpids), "protocols_names": names}


def _interface_addresses(tlv: InterfaceAddresses) -> Json:
    addresses = [format_address(tlv.family, address) for address in tlv.addresses]
    return {"ip_addresses" if tlv.family == 4 else "ipv6_addresses": addresses}


def _multi_topology(tlv: MultiTopology) -> Json:
    return {
        "mt_topologies": [
            {"topology": t.topology, "overload": t.overload, "attached": t.attached}
            for t in tlv.topologies
        ]
    }


def _flooding_parameters(tlv: FloodingParameters) -> Json:
    """The parameters that were sent."""
    names = tlv.__struct_fields__
    sent: Json = {name: value for name in names if (value := getattr(tlv, name)) is not None}
    if tlv.flags is not None:
        sent |= {"flags": tlv.flags.hex(), "ordered": tlv.ordered}
    del sent["unknown"]
    if tlv.unknown:
        sent["unknown"] = _unknown(tlv.unknown)
    return {"flooding_parameters": sent}


def _bfd_enabled(tlv: BfdEnabled) -> Json:
    return {
        "bfd_enabled": [
            {"topology": topology, "nlpid": nlpid, "protocol": _protocol_name(nlpid)}
            for topology, nlpid in tlv.protocols
        ]
    }


def _protocol_name(nlpid: int) -> str:
    return _PROTOCOLS.get(nlpid, f"nlpid-{nlpid:#04x}")


def _three_way(tlv: ThreeWay) -> Json:
    names = {int(state): state.name.lower() for state in ThreeWayState}
    system = tlv.neighbor_system_id
    return {
        "three_way": {
            "state": tlv.state,
            "state_name": names.get(tlv.state, f"state-{tlv.state}"),
            "extended_local_circuit_id": tlv.extended_local_circuit_id,
            "neighbor_system_id": None if system is None else format_system_id(system),
            "neighbor_extended_local_circuit_id": tlv.neighbor_extended_local_circuit_id,
        }
    }


def _restart(tlv: Restart) -> Json:
    system = tlv.system_id
    return {
        "restart": {
            "flags": tlv.flags,
            "flags_names": [str(flag.name) for flag in RestartFlag if tlv.flags & flag],
            "remaining_time": tlv.remaining_time,
            "system_id": None if system is None else format_system_id(system),
        }
    }


def _purge_originator(tlv: PurgeOriginator) -> Json:
    other = tlv.received_from
    return {
        "purge_originator": {
            "system_id": format_system_id(tlv.system_id),
            "received_from": None if other is None else format_system_id(other),
        }
    }


_RENDERERS: Final[dict[type[Tlv], Callable[[Any], Json]]] = {
    UnknownTlv: lambda tlv: {"unknown": [{"type": tlv.type, "hex": tlv.value.hex()}]},
    AreaAddresses: lambda tlv: {"area_addresses": [format_area(a) for a in tlv.addresses]},
    IsNeighbors: lambda tlv: {"is_neighbors": [format_snpa(snpa) for snpa in tlv.snpas]},
    Padding: lambda tlv: {"padding": tlv.size},
    LspEntries: _lsp_entries,
    Authentication: _authentication,
    PurgeOriginator: _purge_originator,
    LspBufferSize: lambda tlv: {"lsp_buffer_size": tlv.size},
    NarrowIsReachability: _narrow_is_reachability,
    IsReachability: _is_reachability,
    IpReachability: _ip_reachability,
    NarrowIpReachability: _narrow_ip_reachability,
    ProtocolsSupported: _protocols,
    InterfaceAddresses: _interface_addresses,
    TeRouterId: lambda tlv: {"te_router_id": dotted(tlv.address)},
    Hostname: lambda tlv: {"hostname": tlv.name},
    MultiTopology: _multi_topology,
    BfdEnabled: _bfd_enabled,
    ThreeWay: _three_way,
    FloodingParameters: _flooding_parameters,
    Restart: _restart,
}
