"""The TLVs of an LSP in words, from their JSON (``render_tlvs``); names instead of system ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from fared.management.documents import human
from fared.management.documents.contents import nested
from fared.management.documents.views.te_words import ends, te_words

Json = dict[str, Any]
Namer = Callable[[str], str]
"""Returns the hostname of a system id, or the id."""
_FLAGS: Final = ((0x80, "external"), (0x40, "readvertised"), (0x20, "node"))
"""Prefix attribute flags of RFC 7794."""
_ROUTER: Final = ".00"
"""The pseudonode number of a router."""


def words(tlvs: Json, name: Namer) -> list[str]:
    """Return the contents of an LSP, line by line."""
    return list(_words(tlvs, name))


def _words(tlvs: Json, name: Namer) -> Iterator[str]:
    for label, value in tlvs.items():
        if label in _LISTS:
            yield f"{_LISTS[label]}: {_joined(value)}"
        elif label in _PREFIXES:
            yield from (f"{_PREFIXES[label]} {_prefix(entry)}" for entry in value)
        elif label in _NEIGHBORS:
            for entry in value:
                yield from _neighbor(entry, name)
        elif label not in _SAID:
            yield from nested({label: value})


def _joined(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _prefix(entry: Json) -> str:
    parts = [entry["prefix"], f"metric {entry['metric']}", *_topology(entry)]
    parts += [word for word in ("down", "external") if entry.get(word)]
    parts += [word for bit, word in _FLAGS if entry.get("flags", 0) & bit]
    parts += [f"tag {tag}" for tag in entry.get("tags", ())]
    if isinstance(entry.get("capacity"), (int, float)):
        parts.append(f"path capacity {human.bandwidth(entry['capacity'])}")
    parts += [f"BFR {info['bfr_id']}" for info in entry.get("bier", ())]
    return ", ".join(parts)


def _topology(entry: Json) -> Iterable[str]:
    return (f"topology {entry['topology']}",) if entry.get("topology") is not None else ()


def _neighbor(entry: Json, name: Namer) -> Iterator[str]:
    parts = [_far_end(entry["neighbor"], name), f"metric {entry['metric']}", *_topology(entry)]
    yield f"link to {', '.join(parts)}"
    sub = entry.get("sub") or {}
    for family in ("", "6"):
        if f"local_addresses{family}" in sub:
            here = _joined(sub[f"local_addresses{family}"])
            yield "  " + ends("address", here, _joined(sub.get(f"remote_addresses{family}", [])))
    if "local_identifier" in sub:
        yield "  " + ends("identifier", sub["local_identifier"], sub["remote_identifier"])
    yield from (f"  {line}" for line in te_words(sub))
    yield from (f"  {line}" for line in nested({"unknown": sub.get("unknown")}))


def _far_end(neighbor: str, name: Namer) -> str:
    """Return a router's name; of a LAN the id, and who has it."""
    system = neighbor[: -len(_ROUTER)]
    if neighbor.endswith(_ROUTER):
        return name(system)
    return f"LAN {neighbor} of {name(system)}"


_LISTS: Final[Mapping[str, str]] = {
    "area_addresses": "area addresses",
    "protocols_names": "protocols",
    "hostname": "hostname",
    "te_router_id": "TE router id",
    "ip_addresses": "addresses",
    "ipv6_addresses": "IPv6 addresses",
    "lsp_buffer_size": "LSP buffer size",
}
_PREFIXES: Final[Mapping[str, str]] = dict.fromkeys(
    ("ext_ip_reach", "ipv6_reach", "mt_ip_reach", "mt_ipv6_reach"), "network"
)
_NEIGHBORS: Final = ("ext_is_reach", "mt_is_reach")
_SAID: Final = ("protocols",)
"""What another key says in words."""
