"""Reads what ``fpmsyncd`` sends: the acknowledgements of routes.

An acknowledgement is either the request itself with a flag, or made anew without next hops; family,
prefix, table and protocol are in both.
"""

from __future__ import annotations

from typing import NamedTuple

from fared.core.ids import Prefix
from fared.core.wire import DecodeError
from fared.fpm.frames import Received
from fared.kernel.netlink import attributes, u32
from fared.kernel.rtnetlink import FAMILY, RTA_TABLE, RTM_NEWROUTE, RTMSG, destination

RTM_F_OFFLOAD = 0x4000


class Ack(NamedTuple):
    """The route to ``prefix`` was taken over, with the suppression of SONiC: by the chip."""

    prefix: Prefix
    table: int
    protocol: int


def ack_in(message: Received) -> Ack | None:
    """Return the acknowledgement in a message, None if it is another. Raises DecodeError."""
    kind, body = message
    if kind != RTM_NEWROUTE:
        return None
    if len(body) < RTMSG.size:
        raise DecodeError("truncated", 0, "route message of an acknowledgement")
    number, length, _, _, table, protocol, _, _, flags = RTMSG.unpack_from(body)
    if not flags & RTM_F_OFFLOAD:
        return None
    found = attributes(body, RTMSG.size)
    family = FAMILY.get(number)
    prefix = destination(family, length, found) if family else None
    if prefix is None:
        raise DecodeError("message", 0, f"acknowledgement of family {number}, length {length}")
    return Ack(prefix, u32(found[RTA_TABLE]) if RTA_TABLE in found else table, protocol)
