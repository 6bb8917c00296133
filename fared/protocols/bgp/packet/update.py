"""The contents of UPDATE messages (RFC 4271 §4.3, RFC 4760), read by the rules of RFC 7606.

The session is reset only if prefixes cannot be found in the message. After other errors its routes
are treated as withdrawn, or single attributes discarded, and the message says so.
"""

from __future__ import annotations

from typing import Final

from fared.core.ids import FAMILY_IPV4, Prefix
from fared.protocols.bgp.packet.attribute_block import (
    Finding,
    block_reader,
    split_block,
)
from fared.protocols.bgp.packet.attributes import MP_REACH, MP_UNREACH, NEXT_HOP, Action
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.messages import RouteGroup, Update
from fared.protocols.bgp.packet.nlri import (
    AFI_SAFI,
    FAMILIES,
    UNICAST,
    BgpNextHop,
    decode_next_hop,
    decode_prefixes,
    family_name,
)
from fared.protocols.bgp.packet.notification import Fault, MessageError

_LENGTH: Final = 2


class UpdateReader:
    """Decodes the UPDATE messages of one session."""

    def __init__(self, coding: Coding) -> None:
        self.coding = coding
        self._read_block = block_reader(coding)

    def decode(self, data: bytes, start: int) -> Update:
        """Decode the body of a message from an offset on. Raises MessageError."""
        end = len(data)
        first = start + _LENGTH
        attributes_at = first + int.from_bytes(data[start:first], "big")
        block_at = attributes_at + _LENGTH
        nlri_at = block_at + int.from_bytes(data[attributes_at:block_at], "big")
        if block_at > end or nlri_at > end:
            # RFC 4271 §6.3
            raise _malformed("lengths of withdrawn routes and attributes exceed the message", start)
        withdrawn = decode_prefixes(data, first, attributes_at, FAMILY_IPV4)
        prefixes = decode_prefixes(data, nlri_at, end, FAMILY_IPV4)
        if block_at == nlri_at and not prefixes:
            # RFC 4724 §2: a message of the least length marks the end of IPv4
            eor = None if withdrawn else FAMILY_IPV4
            return Update(tuple(withdrawn), end_of_rib=eor)
        return self._with_attributes(data, (block_at, nlri_at), withdrawn, prefixes)

    def _with_attributes(
        self, data: bytes, at: tuple[int, int], withdrawn: list[Prefix], prefixes: list[Prefix]
    ) -> Update:
        raw = split_block(data, *at)
        block = self._read_block(raw.plain)
        findings = [*block.findings] if raw.broken is None else [*block.findings, raw.broken]
        routes = []
        if prefixes:
            # without NEXT_HOP they are withdrawn below, and the address does not matter
            routes.append(RouteGroup(BgpNextHop(FAMILY_IPV4, block.next_hop or 0), tuple(prefixes)))
            if block.next_hop is None and all(one.code != NEXT_HOP for one in findings):
                findings.append(Finding(NEXT_HOP, Action.WITHDRAW, "next_hop is missing"))
        if raw.reach is not None:
            routes += self._reached(raw.reach, findings)
        eor = None
        if raw.unreach is not None:
            family, lost = self._unreached(raw.unreach, findings)
            alone = not (lost or withdrawn or routes or raw.plain or raw.broken or raw.reach)
            eor = family if alone else None
            withdrawn += lost
        if routes:
            findings += block.missing
        action = max([one.action for one in findings], default=Action.DISCARD)
        if action is Action.DISCARD:
            kept = block.attributes if routes else Update().attributes
            return Update(tuple(withdrawn), tuple(routes), kept, eor, tuple(findings))
        if not routes:
            # RFC 7606 §5.2: perhaps its prefixes have not been found
            raise _malformed(f"{findings[-1].what}, in a message without prefixes", at[0])
        withdrawn += [prefix for one in routes for prefix in one.prefixes]
        return Update(tuple(withdrawn), findings=tuple(findings))

    def _family(self, value: bytes, code: int, findings: list[Finding]) -> int | None:
        """Return the family of a list of prefixes; None, with a finding, if it is not agreed."""
        if len(value) < AFI_SAFI.size:
            raise _malformed(f"attribute {code} without a family", 0)
        afi, safi = AFI_SAFI.unpack_from(value)
        family = FAMILIES.get(afi) if safi == UNICAST else None
        if family in self.coding.families:
            return family
        what = f"prefixes of {family_name(afi, safi)}, which is not agreed"
        findings.append(Finding(code, Action.DISCARD, what))
        return None

    def _reached(self, value: bytes, findings: list[Finding]) -> list[RouteGroup]:
        """Decode MP_REACH_NLRI (RFC 4760 §3)."""
        family = self._family(value, MP_REACH, findings)
        if family is None:
            return []
        at = AFI_SAFI.size
        first = at + 1
        end = first + value[at] if len(value) > at else first
        next_hop = decode_next_hop(value[first:end], family)
        if next_hop is None or end >= len(value):
            # RFC 7606 §7.11: the prefixes come behind it
            what = f"next hop of {end - first} bytes for IPv{family}"
            raise MessageError(Fault.OPTIONAL_ATTRIBUTE_ERROR, what)
        # one octet is reserved
        prefixes = decode_prefixes(value, end + 1, len(value), family)
        return [RouteGroup(next_hop, tuple(prefixes))] if prefixes else []

    def _unreached(self, value: bytes, findings: list[Finding]) -> tuple[int | None, list[Prefix]]:
        """Decode MP_UNREACH_NLRI (RFC 4760 §4)."""
        family = self._family(value, MP_UNREACH, findings)
        if family is None:
            return None, []
        return family, decode_prefixes(value, AFI_SAFI.size, len(value), family)


def _malformed(what: str, at: int) -> MessageError:
    return MessageError(Fault.MALFORMED_ATTRIBUTE_LIST, what, offset=at)
