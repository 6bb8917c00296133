"""Notifications of changes in the table of sprayed packets, and of rules.

They do not say who changed something: ``SprayWriter`` discards those that arrive while it changes
something itself. ``KernelMonitor`` reports the routes of marks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fared.kernel.netlink import attributes, messages, notifications
from fared.kernel.nft_table import TABLE
from fared.kernel.nft_watch import NftWatch, subscribe
from fared.kernel.rtnetlink import RTMSG

_RTNLGRP_IPV4_RULE, _RTNLGRP_IPV6_RULE = 8, 19
_FRA_PROTOCOL = 21


class SprayWatch:
    """Calls ``changed`` when objects that may be ours change; ``protocol`` is that of our rules."""

    def __init__(self, changed: Callable[[], None], protocol: int) -> None:
        self._changed = changed
        self._protocol = bytes([protocol])
        self._nft = NftWatch(self._nft_reported, TABLE)
        self._rules = subscribe(0, _RTNLGRP_IPV4_RULE, _RTNLGRP_IPV6_RULE)

    def start(self) -> None:
        """Report from now on."""
        self._nft.start()
        asyncio.get_running_loop().add_reader(self._rules, self._rules_reported)

    def close(self) -> None:
        """Stop and close the sockets."""
        self._nft.close()
        asyncio.get_running_loop().remove_reader(self._rules)
        self._rules.close()

    def discard(self) -> None:
        """Ignore what has changed until now."""
        self._nft.discard()
        self._rules_changed()

    # The other one is read, too, or its changes would be reported again.

    def _nft_reported(self) -> None:
        self._rules_changed()
        self._changed()

    def _rules_reported(self) -> None:
        nft, rules = self._nft.discard(), self._rules_changed()
        if nft or rules:
            self._changed()

    def _rules_changed(self) -> bool:
        changed = False
        for received in notifications(self._rules):
            changed |= received is None
            for _, _, _, _, body in messages(received or b""):
                changed |= (
                    attributes(body, RTMSG.size).get(_FRA_PROTOCOL, b"")[:1] == self._protocol
                )
        return changed
