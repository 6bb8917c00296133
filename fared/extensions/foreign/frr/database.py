"""The database that FRR prints as JSON, as ``fared-lsdb/1``.

FRR names the fields of an LSA; the LSA is encoded again, and its checksum shows that nothing is
missing. Of an opaque LSA FRR 8.4 prints the first 64 bytes: what is whole of them is taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from fared.core.ids import parse_dotted
from fared.protocols.ospf.packet.bodies import (
    B_BIT,
    E_BIT,
    AsExternalLsa,
    NetworkLsa,
    RouterLink,
    RouterLinkType,
    RouterLsa,
    SummaryLsa,
)
from fared.protocols.ospf.packet.body import encode_body
from fared.protocols.ospf.packet.lsa import LsType, encode_lsa
from fared.protocols.ospf.packet.packets import Options

Json = dict[str, Any]
_SHOW: Final = "show ip ospf database"
COMMAND: Final = (
    "vtysh -c 'show ip ospf database router json' -c 'show ip ospf database network json' and so"
    " on, of summary, asbr-summary, external and opaque-area too, print one, in one file"
)
_SECTIONS: Final[Mapping[str, tuple[LsType, str]]] = MappingProxyType(
    {
        "routerLinkStates": (LsType.ROUTER, "router"),
        "networkLinkStates": (LsType.NETWORK, "network"),
        "summaryLinkStates": (LsType.SUMMARY_NETWORK, "summary"),
        "asbrSummaryLinkStates": (LsType.SUMMARY_ASBR, "asbr-summary"),
        "areaLocalOpaqueLsa": (LsType.OPAQUE_AREA, "opaque-area"),
        "asExternalLinkStates": (LsType.AS_EXTERNAL, "external"),
        "asExternalOpaqueLsa": (LsType.OPAQUE_AS, "opaque-as"),
    }
)
"""The sections that are read: the LS type, and the word of the command that prints them."""
_AS_SCOPE: Final = (LsType.AS_EXTERNAL, LsType.OPAQUE_AS)
_LINK_KINDS: Final = MappingProxyType(
    {
        "another Router (point-to-point)": (
            RouterLinkType.POINT_TO_POINT,
            "neighborRouterId",
            "routerInterfaceAddress",
        ),
        "a Transit Network": (
            RouterLinkType.TRANSIT,
            "designatedRouterAddress",
            "routerInterfaceAddress",
        ),
        "Stub Network": (RouterLinkType.STUB, "networkAddress", "networkMask"),
        "a Virtual Link": (RouterLinkType.VIRTUAL, "neighborRouterId", "routerInterfaceAddress"),
    }
)
"""Links of a router LSA by FRR's words: the type, and the keys of link id and link data."""
_OPTIONS: Final = (
    (1, Options.O),
    (2, Options.DC),
    (3, Options.L),
    (4, Options.NP),
    (5, Options.MC),
    (6, Options.E),
)
_LINK_TLV: Final = 2
_TLV_HEADER: Final = 4


class DatabaseError(ValueError):
    """The documents are no database, or lack a part; the text names what to ask FRR."""


class FrrDatabase(msgspec.Struct):
    """A database as ``fared-lsdb/1``, and the LSAs or LSPs of which FRR printed a part."""

    document: Json
    cut: list[str]


def documents_of(text: str) -> list[Any]:
    """Return the JSON documents of a text, one behind the other. Raises ValueError."""
    decoder = json.JSONDecoder()
    found: list[Any] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        document, at = decoder.raw_decode(text, at)
        found.append(document)
    return found


def is_frr(documents: Iterable[Any]) -> bool:
    """Whether any document has a section that FRR prints."""
    return any(
        isinstance(each, dict) and (_SECTIONS.keys() & each.keys() or _is_list(each))
        for each in documents
    )


def _is_list(document: Json) -> bool:
    """Whether a document lists LSAs without their contents."""
    areas = document.get("areas")
    return isinstance(areas, dict) and "routerId" in document


def read_frr(documents: Iterable[Any]) -> FrrDatabase:
    """Read what the commands of one router printed, in any order. Raises DatabaseError."""
    reader = _Printed()
    for document in documents:
        if not isinstance(document, dict):
            raise DatabaseError("not what FRR prints: expected JSON objects")
        try:
            reader.take(document)
        except (KeyError, TypeError, AttributeError) as error:
            raise DatabaseError(f"not what FRR prints: {error!r}") from error
    reader.check()
    return FrrDatabase(reader.document(), reader.cut)


class _Printed:
    """The LSAs of all documents so far."""

    def __init__(self) -> None:
        self.router_id: str | None = None
        self.areas: dict[str, dict[tuple[int, str, str], Json]] = {}
        self.as_scope: dict[tuple[int, str, str], Json] = {}
        self.seen: set[LsType] = set()
        self.listed: set[LsType] = set()
        """Types of which a list without contents has LSAs."""
        self.flags = 0
        self.transit = False
        self.asbrs = False
        self.external: set[str] = set()
        self.cut: list[str] = []

    def take(self, document: Json) -> None:
        router_id = document.get("routerId")
        if router_id is not None and self.router_id not in (None, router_id):
            raise DatabaseError(f"databases of two routers, {self.router_id} and {router_id}")
        self.router_id = router_id or self.router_id
        for area in (document.get("areas") or {}).values() if _is_list(document) else ():
            self.listed |= {kind for name, (kind, _) in _SECTIONS.items() if area.get(name)}
        for name, (kind, _) in _SECTIONS.items():
            section = document.get(name)
            if section is None:
                continue
            if isinstance(section, list) and section and "linkStateId" not in section[0]:
                self.listed.add(kind)
                continue
            self.seen.add(kind)
            for area, lsas in _by_area(section):
                for lsa in lsas:
                    self._put(kind, area, lsa)

    def _put(self, kind: LsType, area: str, lsa: Json) -> None:
        identity = (int(kind), str(lsa["linkStateId"]), str(lsa["advertisingRouter"]))
        name = " ".join(map(str, identity))
        try:
            entry, whole = _encode(kind, lsa)
        except (ValueError, KeyError) as error:
            raise DatabaseError(f"LSA {name}: {error}") from error
        if not whole:
            self.cut.append(name)
        store = self.as_scope if kind in _AS_SCOPE else self.areas.setdefault(area, {})
        store[identity] = entry
        if kind is LsType.ROUTER:
            self.flags |= int(lsa.get("flags", 0))
            self.transit |= any(
                link["linkType"] == "a Transit Network" for link in lsa["routerLinks"].values()
            )
        elif kind is LsType.AS_EXTERNAL:
            self.external.add(identity[2])
        elif kind is LsType.SUMMARY_ASBR:
            self.asbrs = True

    def check(self) -> None:
        """Raise DatabaseError if a part is missing, with the command that prints it."""
        if LsType.ROUTER not in self.seen:
            only = "it lists LSAs without their contents; " if self.listed else ""
            raise DatabaseError(f"{only}missing: {_commands(self.listed | {LsType.ROUTER})}")
        originators = {key[2] for lsas in self.areas.values() for key in lsas if key[0] == 1}
        wanted = set(self.listed)
        wanted |= {LsType.NETWORK} if self.transit else set()
        wanted |= {LsType.SUMMARY_NETWORK} if self.flags & B_BIT else set()
        wanted |= {LsType.AS_EXTERNAL} if self.flags & E_BIT else set()
        wanted |= {LsType.SUMMARY_ASBR} if self.external - originators else set()
        wanted |= {LsType.AS_EXTERNAL} if self.asbrs else set()
        if wanted - self.seen:
            raise DatabaseError(f"missing: {_commands(wanted - self.seen)}")

    def document(self) -> Json:
        return {
            "format": "fared-lsdb/1",
            "proto": "ospf",
            "router_id": self.router_id or "0.0.0.0",  # noqa: S104 - a router id
            "areas": [
                {"area": area, "stub": _is_stub(lsas), "lsas": list(lsas.values())}
                for area, lsas in sorted(self.areas.items())
            ],
            "as": list(self.as_scope.values()),
        }


def _commands(kinds: Iterable[LsType]) -> str:
    words = dict(_SECTIONS.values())
    return ", ".join(f"'{_SHOW} {words[kind]} json'" for kind in sorted(kinds))


def _by_area(section: Any) -> Iterator[tuple[str, list[Json]]]:  # noqa: ANN401 - JSON
    if isinstance(section, list):
        yield "", section
        return
    yield from section["areas"].items()


def _is_stub(lsas: Mapping[tuple[int, str, str], Json]) -> bool:
    """A stub area has no router LSA with the E bit (RFC 2328 §12.1.2)."""
    options = [bytes.fromhex(entry["hex"])[2] for key, entry in lsas.items() if key[0] == 1]
    return bool(options) and not any(each & Options.E for each in options)


# One LSA


def _encode(kind: LsType, lsa: Json) -> tuple[Json, bool]:
    """Return an LSA as in ``fared-lsdb/1``, and whether FRR printed all of it."""
    body, whole = _BODIES[kind](lsa)
    words = str(lsa["options"]).split("|")
    options = sum(bit for at, bit in _OPTIONS if len(words) > at and words[at] != "-")
    sequence = int(str(lsa["lsaSeqNumber"]), 16)
    found = encode_lsa(
        ls_age=int(lsa["lsaAge"]),
        options=options,
        ls_type=kind,
        link_state_id=parse_dotted(lsa["linkStateId"]),
        advertising_router=parse_dotted(lsa["advertisingRouter"]),
        ls_sequence_number=sequence - (1 << 32 if sequence >> 31 else 0),
        body=body,
    )
    raw = bytearray(found.raw)
    if whole:  # a field that is not read here shows by its checksum, which the reader verifies
        raw[16:18] = int(str(lsa["checksum"]), 16).to_bytes(2, "big")
    return {"hex": raw.hex(), "age": found.header.ls_age}, whole


def _mask(value: Any) -> int:  # noqa: ANN401 - JSON
    """A length, or a dotted mask."""
    if isinstance(value, int):
        return (0xFFFFFFFF << (32 - value)) & 0xFFFFFFFF
    return parse_dotted(value)


def _router(lsa: Json) -> tuple[bytes, bool]:
    links = []
    for link in lsa["routerLinks"].values():
        kind, identity, data = _LINK_KINDS[link["linkType"]]
        metric = int(link["tos0Metric"])
        links.append(RouterLink(kind, parse_dotted(link[identity]), _mask(link[data]), metric))
    return encode_body(RouterLsa(int(lsa.get("flags", 0)), tuple(links))), True


def _network(lsa: Json) -> tuple[bytes, bool]:
    attached = lsa.get("attchedRouters") or lsa.get("attachedRouters") or {}
    routers = tuple(parse_dotted(each["attachedRouterId"]) for each in attached.values())
    return encode_body(NetworkLsa(_mask(lsa["networkMask"]), routers)), True


def _summary(lsa: Json) -> tuple[bytes, bool]:
    return encode_body(SummaryLsa(_mask(lsa["networkMask"]), int(lsa["tos0Metric"]))), True


def _external(lsa: Json) -> tuple[bytes, bool]:
    body = AsExternalLsa(
        network_mask=_mask(lsa["networkMask"]),
        type_2=str(lsa["metricType"]).startswith("E2"),
        metric=int(lsa["metric"]),
        forwarding_address=parse_dotted(lsa["forwardAddress"]),
        external_route_tag=int(lsa["externalRouteTag"]),
    )
    return encode_body(body), True


def _opaque(lsa: Json) -> tuple[bytes, bool]:
    data = bytes.fromhex(lsa["opaqueData"])
    if len(data) >= int(lsa["opaqueDataLength"]):
        return data, True
    # FRR 8.4 formats into a buffer of 128 digits that the last ones of the checksum overwrite
    return _whole_tlvs(data[:-3]), False


def _whole_tlvs(data: bytes) -> bytes:
    """Return the TLVs that are whole, a link with the sub-TLVs of it that are."""
    found = b""
    at = 0
    while at + _TLV_HEADER <= len(data):
        kind, length = (int.from_bytes(data[i : i + 2], "big") for i in (at, at + 2))
        at += _TLV_HEADER
        end = at + length
        if end > len(data):
            inside = _whole_tlvs(data[at:]) if kind == _LINK_TLV else b""
            return found + (_tlv(kind, inside) if inside else b"")
        found += _tlv(kind, data[at:end])
        at = end + -length % 4
    return found


def _tlv(kind: int, value: bytes) -> bytes:
    return kind.to_bytes(2, "big") + len(value).to_bytes(2, "big") + value + bytes(-len(value) % 4)


_BODIES: Final[Mapping[LsType, Callable[[Json], tuple[bytes, bool]]]] = MappingProxyType(
    {
        LsType.ROUTER: _router,
        LsType.NETWORK: _network,
        LsType.SUMMARY_NETWORK: _summary,
        LsType.SUMMARY_ASBR: _summary,
        LsType.AS_EXTERNAL: _external,
        LsType.OPAQUE_AREA: _opaque,
        LsType.OPAQUE_AS: _opaque,
    }
)
