"""The database of IS-IS that FRR prints as JSON, as ``fared-lsdb/1``.

FRR names LSPs by host names: the table of ``show isis hostname`` has their system ids. Up to 10.x
only one link of each LSP is in the JSON (``whole``). What is read of later versions is each
router's links and prefixes; sub-TLVs of links are not, and LSPs that have some are ``cut``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final

from fared.core.ids import (
    FAMILY_IPV4,
    FAMILY_IPV6,
    SystemId,
    format_system_id,
    parse_dotted,
    parse_prefix,
    parse_system_id,
)
from fared.extensions.foreign.frr.database import DatabaseError, FrrDatabase
from fared.protocols.isis.ids import LspId, lsp_id
from fared.protocols.isis.pdu.codec import encode_pdu
from fared.protocols.isis.pdu.ip_reach import IpReach, IpReachability
from fared.protocols.isis.pdu.is_reach import IsNeighbor, IsReachability
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlv import Tlv
from fared.protocols.isis.pdu.tlvs import AreaAddresses, Hostname, ProtocolsSupported, TeRouterId

Json = dict[str, Any]
_COMMAND: Final = "vtysh -c 'show isis database detail json' -c 'show isis hostname'"
_HOSTNAMES: Final = re.compile(
    r"^vrf +: .*$|^Level +System ID .*$"
    r"|^ *(?:\d|\*) +(?P<system>[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}) +(?P<name>\S+) *$",
    re.MULTILINE,
)
_SHORT: Final = 14
"""Characters of a host name that are the most in the name of an LSP."""
_NLPIDS: Final = {"IPv4": 0xCC, "IPv6": 0x8E}
_OF_LINKS: Final = frozenset(("mtId", "id", "metric"))
_WRONG: Final = (KeyError, TypeError, AttributeError)
"""What a document of another form raises."""
_BOTH: Final = 3
"""The type of a router in both levels (ISO 10589 §9.8)."""


def without_hostnames(text: str) -> tuple[str, dict[str, str]]:
    """Return a text without the table of host names, and it: system ids by name."""
    rows = [found for found in _HOSTNAMES.finditer(text) if found["name"]]
    return _HOSTNAMES.sub("", text), {row["name"]: row["system"] for row in rows}


def whole(document: object) -> bool:
    """Whether a document is FRR's, with all links of its LSPs."""
    return any("pduLen" in lsp for _, lsp in _lsps([document]))


def read_lsps(documents: Iterable[object], hostnames: dict[str, str]) -> FrrDatabase:
    """Read what one router printed; ``cut`` has levels and names. Raises DatabaseError."""
    found: list[tuple[int, LspId, Json]] = []
    names = _LspNames(hostnames)
    for level, lsp in _lsps(documents):
        try:
            found.append((level, names.lsp_id(str(lsp["lsp"]["id"])), lsp))
        except _WRONG as error:
            raise DatabaseError(f"not what FRR prints: {error!r}") from error
    own = [at for _, at, lsp in found if str(lsp["lsp"].get("own", "")).strip()]
    both = {at for level, at, _ in found if level == 1} & {
        at for level, at, _ in found if level > 1
    }
    entries = []
    for level, at, lsp in found:
        try:
            raw = encode_pdu(_lsp(level, at, lsp, _BOTH if at in both else (1, 3)[level - 1]))
        except (*_WRONG, ValueError, OverflowError, struct.error) as error:
            raise DatabaseError(f"LSP {lsp['lsp']['id']}: {error}") from error
        entries.append({"level": level, "hex": raw.hex()})
    system = SystemId(min(own, default=0) >> 16)
    document = {"format": "fared-lsdb/1", "proto": "isis", "system_id": format_system_id(system)}
    cut = [f"{level} {lsp['lsp']['id']}" for level, _, lsp in found if _is_cut(lsp)]
    return FrrDatabase(document | {"lsps": entries}, cut)


def _lsps(documents: Iterable[object]) -> Iterator[tuple[int, Json]]:
    """Yield all LSPs with their levels."""
    for document in documents:
        areas = document.get("areas") if isinstance(document, dict) else None
        for area in areas if isinstance(areas, list) else ():
            levels = area.get("levels") if isinstance(area, dict) else None
            for level in levels if isinstance(levels, list) else ():
                lsps = level.get("lsps") if isinstance(level, dict) else None
                if isinstance(lsps, list) and level.get("id") in (1, 2):
                    yield from ((level["id"], lsp) for lsp in lsps if isinstance(lsp, dict))


class _LspNames:
    """The systems of host names, which FRR shortens in the names of LSPs."""

    def __init__(self, hostnames: dict[str, str]) -> None:
        self._systems: dict[str, set[str]] = {}
        for name, system in hostnames.items():
            for each in {name, name[:_SHORT]}:
                self._systems.setdefault(each, set()).add(system)

    def lsp_id(self, text: str) -> LspId:
        """Read ``spine1.00-00`` or ``0102.5500.0001.00-00``. Raises DatabaseError."""
        name, _, number = text.rpartition(".")
        pseudonode, _, fragment = number.partition("-")
        systems = self._systems.get(name, set())
        try:
            (system,) = systems or {name}
            return lsp_id(parse_system_id(system), int(pseudonode, 16), int(fragment, 16))
        except ValueError:
            why = f"two systems are called {name}" if len(systems) > 1 else f"who is {name}?"
            raise DatabaseError(f"LSP {text}: {why} {_COMMAND} prints both") from None


def _is_cut(lsp: Json) -> bool:
    return any(each.keys() - _OF_LINKS for each in lsp.get("extReach") or ())


def _lsp(level: int, at: LspId, lsp: Json, kind: int) -> Lsp:
    attached, partition, overload = (int(bit) for bit in str(lsp["attPOl"]).split("/"))
    return Lsp(
        level=level,
        lsp_id=at,
        sequence_number=int(str(lsp["seqNumber"]), 16),
        remaining_lifetime=int(lsp["holdtime"]),
        partition_repair=bool(partition),
        attached=bool(attached),
        overload=bool(overload),
        is_type=kind,
        tlvs=tuple(_tlvs(lsp)),
    )


def _tlvs(lsp: Json) -> Iterator[Tlv]:
    if area := lsp.get("areaAddr"):
        listed = area if isinstance(area, list) else [area]
        yield AreaAddresses(tuple(bytes.fromhex(str(each).replace(".", "")) for each in listed))
    if protocols := lsp.get("supportedProtocols"):
        yield ProtocolsSupported(tuple(_NLPIDS[name] for name in protocols.values()))
    if name := lsp.get("hostname"):
        yield Hostname(str(name))
    if router := lsp.get("teRouterId"):
        yield TeRouterId(parse_dotted(router))
    if links := lsp.get("extReach"):
        yield IsReachability(tuple(_neighbor(each) for each in links))
    if prefixes := lsp.get("extIpReach"):
        yield IpReachability(FAMILY_IPV4, tuple(_prefix(each, FAMILY_IPV4) for each in prefixes))
    if prefixes := lsp.get("ipv6Reach"):
        yield IpReachability(FAMILY_IPV6, tuple(_prefix(each, FAMILY_IPV6) for each in prefixes))


def _neighbor(link: Json) -> IsNeighbor:
    _check_topology(link)
    system, _, pseudonode = str(link["id"]).rpartition(".")
    neighbor = parse_system_id(system) << 8 | int(pseudonode, 16)
    return IsNeighbor(neighbor, int(link["metric"]))


def _prefix(reach: Json, family: int) -> IpReach:
    _check_topology(reach)
    text, metric = (
        (reach["ipReach"], reach["ipReachMetric"])
        if family == FAMILY_IPV4
        else (reach["prefix"], reach["metric"])
    )
    prefix = parse_prefix(str(text))
    if prefix.family != family:
        raise ValueError(f"{text} is no prefix of IPv{family}")
    down, external = bool(reach.get("down")), bool(reach.get("external"))
    return IpReach(prefix, int(metric), down=down, external=external)


def _check_topology(item: Json) -> None:
    if str(item.get("mtId", "")).strip() not in ("", "Extended"):
        raise ValueError("multi-topology: 'fared-cli lsdb from-pcap' reads a capture")
