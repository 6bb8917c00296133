"""The type of packet that each counter of a job in a router counts.

A counter names what was done with a packet, as the slot machine counts it in the path of packets;
the type follows from that, and is told to monitoring beside it.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

DATA: Final = "data"
"""Packets to be summed, the synchronization of an epoch among them."""
RESULT: Final = "result"
"""Results that are passed on, or sent again."""
LACKING: Final = "lacking"
"""Packets that tell a worker for whom its sum waits."""
UNREAD: Final = "unread"
"""Packets that were refused by their source, or before they could be read."""

_RESULTS: Final = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "added",
                "beyond-window",
                "duplicate",
                "epoch-ahead",
                "epoch-behind",
                "foreign",
                "no-tree",
                "overlap",
                "passed",
                "shape",
                "stale",
            ),
            DATA,
        ),
        **dict.fromkeys(
            (
                "answered",
                "answered-lately",
                "bier-given-up",
                "passed-on",
                "result-of-another-epoch",
            ),
            RESULT,
        ),
        "told": LACKING,
    }
)
_UNREAD: Final = (
    "address",
    "sender",
    "unexpected",
    *(f"malformed-{code}" for code in ("truncated", "version", "length", "size", "tlv")),
)
COUNTED: Final = (*_RESULTS, *_UNREAD)
"""All counters of packets of a job, so that metrics begin at 0 before the first packet."""


def type_of(result: str) -> str:
    """Return the type of the packets that a counter counts."""
    return _RESULTS.get(result, UNREAD)
