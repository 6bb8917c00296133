"""BIER as both protocols advertise it, and its settings; not loaded without BIER (RFC 8279).

RFC 8444 (OSPFv2) and RFC 8401 (IS-IS) attach the same facts to the prefix of a BFR, each in its own
layout: ``fared.protocols.ospf.packet.bier`` and ``fared.protocols.isis.pdu.bier``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from fared.core.json_text import unknown_document
from fared.core.wire import DecodeError

LENGTHS: Final = (64, 128, 256, 512, 1024, 2048, 4096)
"""The lengths of bit strings that RFC 8296 §2.1.2 defines, bits."""
CODE_OF: Final[Mapping[int, int]] = MappingProxyType({n: at for at, n in enumerate(LENGTHS, 1)})
"""The code of each length in BSL fields: 1 for 64 bits."""
MAX_BFR_ID: Final = 0xFFFF
MAX_SETS: Final = 256
"""The field for the set of a BIFT-id, and that for the highest set, have 8 bits."""


class BierEncapsulation(msgspec.Struct, frozen=True):
    """The MPLS encapsulation sub-TLV: the label of set 0, the others follow.

    No code point is assigned for the encapsulation without MPLS
    (draft-ietf-bier-lsr-non-mpls-extensions). Routers that mean it advertise their BIFT-id here,
    which has the place of the label in the packet; another label means MPLS. ``length_code`` is
    that of the bit string, as received.
    """

    max_set: int
    label: int
    length_code: int


class BierInfo(msgspec.Struct, frozen=True):
    """One BIER sub-TLV: a prefix is that of a BFR in a sub-domain; BFR-id 0: it is no BFER.

    ``bar`` and ``ipa`` (RFC 9272) select the algorithm of paths: 0 and 0 are shortest paths.
    ``unknown`` are further sub-TLVs.
    """

    sub_domain: int
    bfr_id: int
    mt_id: int = 0
    bar: int = 0
    ipa: int = 0
    encapsulations: tuple[BierEncapsulation, ...] = ()
    unknown: tuple[tuple[int, bytes], ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "sub_domain": self.sub_domain,
            "mt_id": self.mt_id,
            "bfr_id": self.bfr_id,
            "bar": self.bar,
            "ipa": self.ipa,
            "encapsulations": [msgspec.structs.asdict(each) for each in self.encapsulations],
            "unknown": unknown_document(self.unknown),
        }


class BierSettings(msgspec.Struct, frozen=True):
    """BIER on this router, in one sub-domain.

    ``length`` is that of bit strings. ``hosts``: IPv4 addresses of hosts on links of this router,
    which advertises them with these BFR-ids. ``php``: they get payloads without BIER header.
    """

    sub_domain: int
    bfr_id: int
    length: int
    hosts: tuple[tuple[int, int], ...] = ()
    php: bool = False

    def info(self, bfr_id: int) -> BierInfo:
        """Return what is advertised with the prefix of a BFR of ours, this router or a host."""
        most = -(-MAX_BFR_ID // self.length)
        label = bift_id(self.length, self.sub_domain, 0)
        offered = BierEncapsulation(min(most, MAX_SETS) - 1, label, CODE_OF[self.length])
        return BierInfo(self.sub_domain, bfr_id, encapsulations=(offered,))

    def difference(self, offered: Iterable[BierEncapsulation]) -> str:
        """Return why packets of ours cannot be sent to who offers this; empty: they can.

        RFC 8296 §2.2: without an advertised encapsulation the BIFT-id is agreed upon.
        """
        codes: dict[int, set[int]] = {}
        for each in offered:
            codes.setdefault(each.length_code, set()).add(each.label)
        labels = codes.get(CODE_OF[self.length], set())
        agreed = bift_id(self.length, self.sub_domain, 0)
        if codes and not labels:
            return f"no bit strings of {self.length}"
        if labels and agreed not in labels:
            return f"it means MPLS (label {min(labels)}), this router sends BIER without MPLS"
        return ""


def read_infos(
    sub_tlvs: Iterable[tuple[int, bytes]], bier: int, decode: Callable[[bytes], BierInfo]
) -> Iterator[BierInfo]:
    """Yield those of type ``bier`` among the sub-TLVs of a prefix, without malformed ones."""
    for kind, value in sub_tlvs:
        if kind == bier:
            try:
                yield decode(value)
            except DecodeError:
                continue


def bift_id(length: int, sub_domain: int, set_id: int) -> int:
    """Return the BIFT-id: BSL code, sub-domain, set, so that nobody has to learn it.

    draft-ietf-bier-non-mpls-bift-encoding: 4, 8 and 8 bits.
    """
    return CODE_OF[length] << 16 | sub_domain << 8 | set_id
