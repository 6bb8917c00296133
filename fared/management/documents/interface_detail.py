"""All that is known of an interface, in words: ``show interfaces NAME``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fared.management.documents import human
from fared.management.documents.cells import Cell, Columns, count, facts, judged
from fared.management.documents.interface import HelloInterfaceFacts
from fared.management.documents.packet_counts import reasons, show_packets

if TYPE_CHECKING:
    from fared.management.documents.interface import (
        HelloInterfaceEntry,
        InterfaceDetail,
        InterfaceEntry,
        IsisInterfaceEntry,
        OspfInterfaceEntry,
    )
    from fared.management.documents.paper import Paper

_SOURCES = {
    "config": "configured",
    "shaper": "of its shaper",
    "speed": "its speed",
    "sonic": "of SONiC",
}
_TTL_SECURITY = {"on": "255 sent and required", "tx-only": "255 sent"}


def show_interface(
    paper: Paper, entry: InterfaceEntry, detail: InterfaceDetail, *, first: bool
) -> None:
    """Print one interface, and who is at its other end."""
    title = f"{entry.interface}, {human.PROTOCOLS[entry.proto]}"
    columns = {**_FACTS, **_OF_PROTOCOL[entry.proto]}
    if isinstance(entry, HelloInterfaceFacts):
        where = human.area_title(entry.area)
        title += f" {where[:1].lower()}{where[1:]}"
        columns = {**_STATE, "Network": "network_type", **columns, **_REST}
    else:
        columns = {**_STATE, **columns}
    paper.heading(title, first=first)
    known = list(facts(entry, columns))
    rejected = reasons(detail.rejected)
    paper.pairs([*known, ("Rejected", rejected)] if rejected else known)
    hellos = isinstance(entry, HelloInterfaceFacts)
    paper.more(detail.neighbors, {**_NEIGHBORS, **(_FAR_ENDS if hellos else {})})
    show_packets(paper, detail.packets)


def _state(entry: InterfaceEntry) -> Cell:
    remarks = [
        "passive" if entry.passive else "",
        "unnumbered" if entry.unnumbered else "",
        "its network is not advertised" if getattr(entry, "prefix_suppression", False) else "",
        f"ifindex {entry.ifindex}",
    ]
    state = judged(entry.state, good=entry.up)
    return state, "".join(f", {remark}" for remark in remarks if remark)


def _capacity(entry: InterfaceEntry) -> str:
    source = _SOURCES.get(entry.bandwidth_source or "", "unknown")
    if entry.bandwidth is None:
        return "not known"
    text = f"{human.bandwidth(entry.bandwidth)} bit/s ({source})"
    if entry.lag is not None:
        text += f", {entry.lag.enabled} of {count(entry.lag.members, 'member')} enabled"
    if entry.utilized is None:
        return text
    text += f", load {human.bandwidth(entry.utilized)}, free {human.bandwidth(entry.available)}"
    if not isinstance(entry, HelloInterfaceFacts):
        return text
    return f"{text}, advertised {human.bandwidth(entry.announced_available)}"


def _hellos(entry: HelloInterfaceEntry) -> str:
    if entry.hello_in is None:
        return "none are sent"
    return (
        f"every {human.duration(entry.hello_interval)},"
        f" next in {human.duration(entry.hello_in)};"
        f" dead after {human.duration(entry.dead_interval)}"
    )


def _retransmits(entry: HelloInterfaceEntry) -> str | None:
    return None if entry.hello_in is None else f"after {human.duration(entry.retransmit_interval)}"


def _designated(entry: OspfInterfaceEntry) -> str | None:
    if entry.network_type != "broadcast":
        return None
    dr = _named(entry.designated_router, entry.designated_router_hostname)
    bdr = _named(entry.backup_designated_router, entry.backup_designated_router_hostname)
    return f"DR {dr}, BDR {bdr}; our priority {entry.priority}"


def _dis(entry: IsisInterfaceEntry) -> str | None:
    if entry.network_type != "broadcast":
        return None
    found = [
        f"level {lan.level}: {'we' if lan.is_dis else _named(lan.dis, lan.hostname)}"
        for lan in entry.lans
    ]
    return f"{', '.join(found)}; our priority {entry.priority}"


def _named(address: str | None, hostname: str | None) -> str:
    return " ".join(filter(None, (hostname, address))) or "none"


def _keys(entry: HelloInterfaceEntry) -> str:
    keys = entry.authentication
    if keys is None:
        return "none"
    if keys.algorithm is None:
        return "no key is valid yet: nothing is sent"
    accepted = ", ".join(map(str, keys.accepted_key_ids)) or human.DASH
    expired = ", expired" if keys.expired else ""
    return f"{keys.algorithm}, key {keys.key_id} signs{expired}; accepted: {accepted}"


def _adjacencies(entry: Any) -> str | None:  # noqa: ANN401 - an interface of either protocol
    if entry.passive:
        return None
    return f"{entry.full} of {entry.neighbors}, {count(entry.flaps, 'flap')}"


_FACTS: Columns = {
    "Addresses": lambda e: ", ".join(e.addresses) or human.DASH,
    "MTU": "mtu",
    "Capacity": _capacity,
    "Delay": lambda e: None if e.delay is None else f"{human.duration(e.delay)} (configured)",
}
_STATE: Columns = {"State": _state}
_OSPF: Columns = {
    "Cost": "cost",
    "Designated": _designated,
    "TTL security": lambda e: _TTL_SECURITY.get(e.ttl_security),
    "Full": _adjacencies,
}
_ISIS: Columns = {
    "Metric": "cost",
    "Circuit id": "circuit_id",
    "DIS": _dis,
    "LSPs": lambda e: f"{e.pending} still to be sent or acknowledged" if e.pending else None,
    "Up": _adjacencies,
}
_BGP: Columns = {
    "Announced": lambda e: ", ".join(e.announced) or "none of its networks",
    "Up": _adjacencies,
}
_OF_PROTOCOL = {"ospf": _OSPF, "isis": _ISIS, "bgp": _BGP}
_REST: Columns = {
    "Hellos": _hellos,
    "Retransmits": _retransmits,
    "Authentication": _keys,
}
_NEIGHBORS: Columns = {
    "Neighbor": "name",
    "Address": "address",
    "State": "state",
    ">For": "uptime",
}
_FAR_ENDS: Columns = {
    ">Its cost": "cost",
    ">Its capacity": "capacity",
    ">Free": "available",
}
