"""Rebuilding an IS-IS database from a capture: the newest instance of each LSP."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from fared.core.ids import SystemId, format_system_id
from fared.core.wire import DecodeError
from fared.extensions.offline.isis.capture import Frame, read_isis_capture
from fared.protocols.isis.ids import Level, LspId, system_of
from fared.protocols.isis.pdu.codec import decode_raw, read_pdu, with_lifetime
from fared.protocols.isis.pdu.model import LanHello, Lsp, P2pHello

Json = dict[str, Any]


class _Seen(msgspec.Struct, frozen=True):
    """An LSP and the time of its frame in the capture."""

    lsp: Lsp
    raw: bytes
    time: float

    @property
    def order(self) -> tuple[int, bool]:
        """The newest instance has the highest order (ISO 10589 §7.3.16)."""
        return self.lsp.sequence_number, not self.lsp.remaining_lifetime

    def at(self, now: float) -> bytes:
        """The LSP with its remaining lifetime at ``now``; 0 if it has expired."""
        left = self.lsp.remaining_lifetime - max(0, int(now - self.time))
        return with_lifetime(self.raw, max(0, left))


class IsisCapture(msgspec.Struct):
    """The LSPs of a capture so far. ``system_id`` is that of the first hello."""

    system_id: SystemId | None = None
    lsps: dict[tuple[Level, LspId], _Seen] = msgspec.field(default_factory=dict)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    """Counts of PDUs that were skipped: malformed ones, and LSPs with a wrong checksum."""
    end: float = 0.0

    def take(self, frame: Frame) -> None:
        """Process one frame. Authentication is not verified: a capture has no keys."""
        self.end = max(self.end, frame.time)
        try:
            raw = read_pdu(frame.payload)
            pdu = decode_raw(raw)
        except DecodeError as error:
            wrong = error.code == "checksum"
            self.skipped["LSP with a wrong checksum" if wrong else "malformed PDU"] += 1
            return
        if isinstance(pdu, LanHello | P2pHello) and self.system_id is None:
            self.system_id = SystemId(pdu.source_id)
        elif isinstance(pdu, Lsp):
            newcomer = _Seen(pdu, raw.data, frame.time)
            key = Level(pdu.level), pdu.lsp_id
            present = self.lsps.get(key)
            # Of equal instances the first is kept: others are copies flooded by more routers.
            if present is None or newcomer.order > present.order:
                self.lsps[key] = newcomer

    @property
    def empty(self) -> bool:
        """Whether no LSP was seen."""
        return not self.lsps

    def document(self) -> Json:
        """Write it as ``fared-lsdb/1``; lifetimes are those at the end of the capture."""
        known = sorted(self.lsps.items())
        first = self.system_id
        if first is None:
            first = next((system_of(identifier) for (_, identifier), _ in known), SystemId(0))
        return {
            "format": "fared-lsdb/1",
            "proto": "isis",
            "system_id": format_system_id(first),
            "levels": sorted({int(level) for level, _ in self.lsps}),
            "lsps": [
                {"level": int(level), "hex": seen.at(self.end).hex()} for (level, _), seen in known
            ],
        }


def gather_isis(path: Path) -> IsisCapture:
    """Read a whole capture. Raises CaptureError and OSError."""
    capture = IsisCapture()
    for frame in read_isis_capture(path):
        capture.take(frame)
    return capture
