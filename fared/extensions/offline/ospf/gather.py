"""Rebuilding a link state database from a capture: the newest instance of each LSA."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from fared.core.ids import dotted
from fared.core.wire import DecodeError
from fared.extensions.offline.ospf.capture import Datagram, read_capture
from fared.protocols.ospf.lsdb import SCOPES, Scope, compare
from fared.protocols.ospf.packet.codec import decode_packet
from fared.protocols.ospf.packet.lsa import MAX_AGE, Lsa, LsaKey, LsType, lsa_checksum_ok, with_age
from fared.protocols.ospf.packet.packets import Hello, LsUpdate, Options, Packet

Json = dict[str, Any]


class _Seen(msgspec.Struct, frozen=True):
    """An LSA and the time of its packet in the capture."""

    lsa: Lsa
    time: float

    def at(self, now: float) -> Lsa:
        """The LSA at the age that it has at ``now`` in a database."""
        age = self.lsa.header.ls_age + max(0, int(now - self.time))
        return with_age(self.lsa, min(age, MAX_AGE))


class OspfCapture(msgspec.Struct):
    """The LSAs of a capture so far. ``router_id`` is that of the first packet."""

    router_id: int | None = None
    areas: dict[int, dict[LsaKey, _Seen]] = msgspec.field(default_factory=dict)
    as_scope: dict[LsaKey, _Seen] = msgspec.field(default_factory=dict)
    stub: dict[int, bool] = msgspec.field(default_factory=dict)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    """Counts of what was skipped: malformed packets, and LSAs with a wrong checksum."""
    end: float = 0.0

    def take(self, datagram: Datagram) -> None:
        """Process one datagram. Authentication is not verified: a capture has no keys."""
        self.end = max(self.end, datagram.time)
        try:
            packet = decode_packet(datagram.payload)
        except DecodeError:
            self.skipped["malformed packet"] += 1
            return
        if self.router_id is None:
            self.router_id = packet.router_id
        if isinstance(packet.body, Hello):
            self.stub.setdefault(packet.area_id, not packet.body.options & Options.E)
        elif isinstance(packet.body, LsUpdate):
            self._update(packet, packet.body, datagram.time)

    def _update(self, packet: Packet, update: LsUpdate, time: float) -> None:
        for lsa in update.lsas:
            scope = _scope(lsa)
            if scope is Scope.LINK:
                continue
            if not lsa_checksum_ok(lsa):  # RFC 2328 §13 (1)
                self.skipped["LSA with a wrong checksum"] += 1
                continue
            area = self.areas.setdefault(packet.area_id, {})
            store = self.as_scope if scope is Scope.AS else area
            present = store.get(lsa.header.key)
            newcomer = with_age(lsa, min(lsa.header.ls_age, MAX_AGE))
            if present is None or compare(newcomer.header, present.at(time).header) > 0:
                store[lsa.header.key] = _Seen(newcomer, time)

    @property
    def empty(self) -> bool:
        """Whether no LSA was seen."""
        return not any(self.areas.values()) and not self.as_scope

    def document(self) -> Json:
        """Write it as ``fared-lsdb/1``; ages are those at the end of the capture."""
        return {
            "format": "fared-lsdb/1",
            "proto": "ospf",
            "router_id": dotted(self.router_id or 0),
            "areas": [
                {"area": dotted(area), "stub": self._is_stub(area), "lsas": self._lsas(store)}
                for area, store in sorted(self.areas.items())
            ],
            "as": self._lsas(self.as_scope),
        }

    def _is_stub(self, area: int) -> bool:
        """By the E bit of hellos, or without any of router LSAs (RFC 2328 §10.5, §12.1.2)."""
        if area in self.stub:
            return self.stub[area]
        routers = [s.lsa for k, s in self.areas[area].items() if k.ls_type == LsType.ROUTER]
        return bool(routers) and not any(lsa.header.options & Options.E for lsa in routers)

    def _lsas(self, store: dict[LsaKey, _Seen]) -> list[Json]:
        lsas = [store[key].at(self.end) for key in sorted(store)]
        return [{"hex": lsa.raw.hex(), "age": lsa.header.ls_age} for lsa in lsas]


def _scope(lsa: Lsa) -> Scope:
    """The flooding scope; an unknown type is kept with its area."""
    return SCOPES.get(lsa.header.ls_type, Scope.AREA)


def gather_ospf(path: Path) -> OspfCapture:
    """Read a whole capture. Raises CaptureError and OSError."""
    capture = OspfCapture()
    for datagram in read_capture(path):
        capture.take(datagram)
    return capture
