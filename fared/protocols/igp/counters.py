"""Running counters of one routing process, and of each of its interfaces.

Packets are counted on the interface that carries them; totals are sums, made when they are read.
"""

from __future__ import annotations

from collections import Counter

import msgspec

RECEIVED, SENT = "received", "sent"
OTHER = "other"
"""The type of a packet that says it has one that is not known."""


class PacketCounters(msgspec.Struct):
    """Packets of one interface, since the protocol runs on it, or since ``clear counters``.

    Those ``received`` are valid packets: of these and of others some are ``rejected``.
    """

    received: Counter[str] = msgspec.field(default_factory=Counter)
    """By type."""
    sent: Counter[str] = msgspec.field(default_factory=Counter)
    """By type."""
    rejected: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """By type and reason; the type is empty if it was not the packet of a neighbor."""


class ProtocolCounters(msgspec.Struct):
    """Running totals since the process began."""

    interfaces: dict[int, PacketCounters] = msgspec.field(default_factory=dict)
    """By ifindex; of BGP, by neighbor: its number negated."""
    former: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """Packets that no interface counts any more, so that totals never fall."""
    errors: Counter[str] = msgspec.field(default_factory=Counter)
    """Packets rejected, by reason."""
    discarded: Counter[str] = msgspec.field(default_factory=Counter)
    """Packets that are not for this router by a rule of the protocol, by rule: no errors."""
    transitions: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """State changes of neighbors, by (from, to)."""
    lsdb: Counter[str] = msgspec.field(default_factory=Counter)
    """LSA or LSP events: originated, flooded, retransmitted, deferred (not flooded at once, since
    others may deliver it), deferred-sent (no other did), and those of one protocol only."""

    @property
    def packets(self) -> Counter[tuple[str, str]]:
        """The packets of all interfaces, by (``received`` or ``sent``, type of packet)."""
        found = self.former.copy()
        for one in self.interfaces.values():
            for way, counts in ((RECEIVED, one.received), (SENT, one.sent)):
                for kind, number in counts.items():
                    found[way, kind] += number
        return found

    def forget(self, ifindex: int) -> None:
        """The protocol no longer runs on an interface."""
        if ifindex in self.interfaces:
            packets = self.packets
            del self.interfaces[ifindex]
            self.former += packets - self.packets

    def clear_interfaces(self) -> None:
        """Begin the counters of all interfaces anew; totals go on."""
        self.former = self.packets
        for one in self.interfaces.values():
            one.received.clear()
            one.sent.clear()
            one.rejected.clear()
