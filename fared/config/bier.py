"""The ``bier`` section: this router as a BFR (RFC 8279) in one sub-domain."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from msgspec import field

from fared.config import values
from fared.config.section import Reload, Section

_LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
"""RFC 8296 §2.1.2."""
_SETS = 256
"""A BIFT-id has 8 bits for the set."""
_BFR_ID = values.whole(0, 0xFFFF)


class BierRouter(Section, frozen=True):
    """BIER. ``bfr_id`` 0: packets pass through, none is for this router. ``bsl``: bits.

    ``hosts``: BFR-ids of hosts on links of this router, by IPv4 address. ``php``: they get the
    payload without BIER header.
    """

    sub_domain: Annotated[int, values.whole(0, 255), Reload.RESTART] = 0
    bfr_id: Annotated[int, _BFR_ID] = 0
    bsl: Annotated[int, values.whole(64, 4096), Reload.RESTART] = 64
    hosts: dict[values.RouterIdText, Annotated[int, values.whole(1, 0xFFFF)]] = field(
        default_factory=dict
    )
    php: bool = False

    def check(self) -> None:
        """Refuse an undefined length, a BFR-id beyond the sets, and one that is given twice."""
        if self.bsl not in _LENGTHS:
            raise values.expected(f"one of {', '.join(map(str, _LENGTHS))}", field="bsl")
        most = _SETS * self.bsl
        if self.bfr_id > most:
            raise values.expected(f"at most {most} with bsl {self.bsl}", field="bfr-id")
        if max(self.hosts.values(), default=0) > most:
            raise values.expected(f"BFR-ids of at most {most} with bsl {self.bsl}", field="hosts")
        given = Counter(self.hosts.values())
        if self.bfr_id:
            given[self.bfr_id] += 1
        if any(count > 1 for count in given.values()):
            raise values.expected("each BFR-id once", field="hosts")
