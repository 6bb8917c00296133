"""Recognizing LSAs that only announce a changed bandwidth, which are flooded in full packets.

In a fabric that adapts to load most LSAs are TE LSAs of which only what a link has left differs
from the last instance. Nothing but weights depends on them, so they wait for each other
(``transmit``); all other LSAs are flooded at once.
"""

from __future__ import annotations

from typing import Final

from fared.core.wire import DecodeError
from fared.paths.te.attributes import OSPF_TE, VOLATILE
from fared.paths.te.sub_tlvs import Layout
from fared.protocols.ospf.packet.body import opaque_type
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, MAX_AGE, LsaKey, LsType
from fared.protocols.ospf.packet.opaque import OpaqueType
from fared.protocols.ospf.packet.te import LINK_TLV
from fared.protocols.ospf.packet.tlv import read_tlvs

_VOLATILE: Final = OSPF_TE.types(VOLATILE)


class BandwidthChanges:
    """Compares instances of TE LSAs, by the layout of the last one."""

    __slots__ = ("_layout", "_steady")

    def __init__(self) -> None:
        self._layout = Layout(())
        self._steady = 0
        """The bits of an LSA after its header that are no available or unreserved bandwidth."""

    def only(self, key: LsaKey, old: bytes, new: bytes) -> bool:
        """Whether two instances of an LSA differ in available or unreserved bandwidth only."""
        if key.ls_type != LsType.OPAQUE_AREA or len(old) != len(new):
            return False
        if opaque_type(key.link_state_id) != OpaqueType.TRAFFIC_ENGINEERING:
            return False
        if int.from_bytes(new[:2], "big") >= MAX_AGE or int.from_bytes(old[:2], "big") >= MAX_AGE:
            return False
        before, after = old[LSA_HEADER_SIZE:], new[LSA_HEADER_SIZE:]
        if before == after:
            return True
        if not self._layout.fits(before) and not self._read(before):
            return False
        changed = int.from_bytes(before, "big") ^ int.from_bytes(after, "big")
        return not changed & self._steady

    def _read(self, block: bytes) -> bool:
        """Use the layout of a body; False if it is not one link TLV."""
        parts: list[tuple[bytes, int]] = []
        steady = bytearray(b"\xff" * len(block))
        at = 0
        try:
            tlvs = list(read_tlvs(block, 0, len(block)))
            if len(tlvs) != 1 or tlvs[0][0] != LINK_TLV:
                return False
            _, start, end = tlvs[0]
            for kind, first, last in read_tlvs(block, start, end):
                parts.append((block[at:first], last - first))
                at = last
                if kind in _VOLATILE:
                    steady[first:last] = bytes(last - first)
        except DecodeError:
            return False
        parts.append((block[at:], 0))
        self._layout = Layout(parts)
        self._steady = int.from_bytes(steady, "big")
        return True
