"""Dynamic flooding in the router capability TLV (RFC 7981): sub-TLVs 27 and 28 of RFC 9667 §5.1.

Nothing else in this TLV is used, so it is an ``UnknownTlv`` everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fared.core.wire import DecodeError
from fared.protocols.igp.dynamic_flooding import Capability
from fared.protocols.isis.pdu.tlv import Tlv, UnknownTlv
from fared.protocols.isis.pdu.triplet import read_triplets, write_triplet

ROUTER_CAPABILITY: Final = 242
_AREA_LEADER: Final = 27
_DYNAMIC_FLOODING: Final = 28
_HEAD: Final = 5
"""Router id and flags; with no flag set it is not leaked into other levels (RFC 7981 §2)."""
_AREA_LEADER_SIZE: Final = 2


def write_capability(router_id: int, capability: Capability) -> UnknownTlv:
    """The TLV of a router that takes part."""
    value = router_id.to_bytes(4, "big") + b"\0"
    if capability.priority is not None:
        leader = bytes((capability.priority, capability.leader_algorithm))
        value += write_triplet(_AREA_LEADER, leader)
    value += write_triplet(_DYNAMIC_FLOODING, bytes(capability.algorithms))
    return UnknownTlv(ROUTER_CAPABILITY, value)


def read_capability(tlvs: Iterable[Tlv]) -> Capability | None:
    """What the TLVs of a router's LSPs tell about dynamic flooding; None: nothing, or malformed."""
    algorithms: tuple[int, ...] | None = None
    leader: tuple[int, int] | None = None
    for tlv in tlvs:
        if not isinstance(tlv, UnknownTlv) or tlv.type != ROUTER_CAPABILITY:
            continue
        try:
            for kind, first, last in read_triplets(tlv.value, _HEAD, len(tlv.value)):
                if kind == _AREA_LEADER and last - first == _AREA_LEADER_SIZE and leader is None:
                    leader = tlv.value[first], tlv.value[first + 1]
                elif kind == _DYNAMIC_FLOODING and algorithms is None:
                    algorithms = tuple(tlv.value[first:last])
        except DecodeError:
            continue
    if leader is None:
        return None if algorithms is None else Capability(algorithms)
    return Capability(algorithms or (), *leader)
