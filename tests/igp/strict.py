"""A receiver that refuses a cryptographic sequence number equal to the last, as current FRR does.

FRR drops such packets, under MD5 and HMAC alike, from 10.2.6, 10.3.4, 10.4.4, 10.5.3 and 10.6.0
on. fared requires "not less" as RFC 2328 §D.3 does; ``refuse_equal_numbers`` requires "greater".
"""

from __future__ import annotations

from fared.protocols.ospf.auth.signature import AuthInfo
from fared.protocols.ospf.interface import Interface
from fared.protocols.ospf.packet.packets import AuType
from fared.protocols.ospf.processing import authenticate
from fared.protocols.ospf.processing.authenticate import Refusal

_lenient = authenticate.sequence_problem


def refuse_equal_numbers(interface: Interface, payload: bytes, info: AuthInfo) -> Refusal | None:
    """A replacement for ``authenticate.sequence_problem``."""
    router_id = int.from_bytes(payload[4:8], "big")
    known = any(neighbor.router_id == router_id for neighbor in interface.neighbors.values())
    last = interface.authentication.highest.get((router_id, -1, 0))
    if info.au_type == AuType.CRYPTOGRAPHIC and known and info.sequence == last:
        return Refusal("auth-sequence", f"bad sequence {info.sequence} (expect > {last})")
    return _lenient(interface, payload, info)
