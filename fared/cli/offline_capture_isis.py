"""Rebuilding an IS-IS database from a capture: the newest instance of all LSPs it shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fared.cli.capture_isis import Frame, read_isis_capture
from fared.core.ids import SystemId, format_system_id
from fared.core.wire import DecodeError
from fared.isis.ids import Level, LspId, system_of
from fared.isis.pdu.codec import decode_pdu, exact, with_lifetime
from fared.isis.pdu.model import LanHello, Lsp, P2pHello

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Seen:
    """An LSP and when it passed, in the capture's seconds."""

    lsp: Lsp
    raw: bytes
    time: float

    @property
    def order(self) -> tuple[int, bool]:
        """The newest is the highest (ISO 10589 §7.3.16)."""
        return self.lsp.sequence_number, not self.lsp.remaining_lifetime

    def at(self, now: float) -> bytes:
        """The LSP with the lifetime that is left at the end; one that ran out is at 0."""
        left = self.lsp.remaining_lifetime - max(0, int(now - self.time))
        return with_lifetime(self.raw, max(0, left))


@dataclass(slots=True)
class IsisCapture:
    """What was gathered so far. ``system_id`` is that of the first router heard."""

    system_id: SystemId | None = None
    lsps: dict[tuple[Level, LspId], _Seen] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    """Why something was left out: malformed PDUs and LSPs whose checksum is wrong."""
    end: float = 0.0

    def take(self, frame: Frame) -> None:
        """Take one frame; authentication is not verified, whoever captured was there."""
        self.end = max(self.end, frame.time)
        try:
            raw = exact(frame.payload)
            pdu = decode_pdu(raw)
        except DecodeError as error:
            wrong = error.code == "checksum"
            self.skipped["LSP with a wrong checksum" if wrong else "malformed PDU"] += 1
            return
        if isinstance(pdu, LanHello | P2pHello) and self.system_id is None:
            self.system_id = SystemId(pdu.source_id)
        elif isinstance(pdu, Lsp):
            newcomer = _Seen(pdu, raw, frame.time)
            key = Level(pdu.level), pdu.lsp_id
            present = self.lsps.get(key)
            # The same LSP is flooded by many; the first to come is the nearest to its source.
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
