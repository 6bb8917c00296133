"""Information of an application in the LSPs of other routers (RFC 6823), put together."""

from __future__ import annotations

from collections.abc import Iterator

from fared.core.ids import NodeId
from fared.core.wire import DecodeError
from fared.protocols.igp.events import InformationUpdated
from fared.protocols.isis.ids import Level
from fared.protocols.isis.pdu.geninfo import GENINFO, Pieces, decode_geninfo
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import UnknownTlv

_NodeKey = tuple[Level, NodeId]


class InformationTable:
    """The pieces of each router, by fragment, and the values that are whole."""

    def __init__(self, application: int) -> None:
        self._application = application
        self._fragments: dict[_NodeKey, dict[int, Pieces]] = {}
        self._known: dict[_NodeKey, dict[int, bytes]] = {}
        self._changed: dict[_NodeKey, None] = {}

    def put(self, key: _NodeKey, number: int, lsp: Lsp | None) -> None:
        """Read a fragment; None: it is gone."""
        fragments = self._fragments.get(key, {})
        found = {} if lsp is None else self._read(lsp)
        if found == fragments.get(number, {}):
            return
        fragments = self._fragments.setdefault(key, {})
        fragments[number] = found
        if not found:
            del fragments[number]
        self._changed[key] = None

    def _read(self, lsp: Lsp) -> Pieces:
        found: Pieces = {}
        for tlv in lsp.tlvs:
            if isinstance(tlv, UnknownTlv) and tlv.type == GENINFO:
                try:
                    found |= decode_geninfo(tlv.value, self._application)
                except DecodeError:
                    continue
        return found

    def take(self) -> Iterator[InformationUpdated]:
        """Yield what changed since the last call.

        A value in change has no pieces or too many. While any value of a router lacks pieces, what
        it had before stays: fragments of one change may arrive long after each other, and a value
        without pieces may be about to be replaced, as that of a job's former epoch.
        """
        changed, self._changed = self._changed, {}
        for key in changed:
            level, node = key
            before, (now, in_change) = self._known.get(key, {}), self._whole(key)
            if in_change:
                now = before | now
            self._known[key] = now
            if not now:
                del self._known[key]
            for item in sorted({*before, *now}):
                if before.get(item) != now.get(item):
                    yield InformationUpdated(int(level), node, item, now.get(item))

    def _whole(self, key: _NodeKey) -> tuple[dict[int, bytes], bool]:
        """Return the values that are whole, and whether there are others."""
        pieces: dict[tuple[int, int], dict[int, bytes]] = {}
        for found in self._fragments.get(key, {}).values():
            for (item, number, count), part in found.items():
                pieces.setdefault((item, count), {})[number] = part
        whole = {
            item: b"".join(parts[number] for number in range(count))
            for (item, count), parts in sorted(pieces.items())
            if len(parts) == count
        }
        return whole, any(len(parts) < count for (_, count), parts in pieces.items())
