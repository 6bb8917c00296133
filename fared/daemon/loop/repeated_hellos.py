"""Recognizes hellos that say nothing new, which ``Burst`` passes on before all other packets."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from fared.protocols.igp.events import PacketReceived, Received

_SENDERS = 8192
"""Places for senders whose last hello is remembered."""
_NO_DIGEST = -1
"""No object has this hash."""


class RepeatedHellos:
    """Recognizes hellos that say nothing new, by the last payload of each sender.

    Of senders and payloads only hashes are kept, in arrays of one size: strangers can send
    thousands of hellos as long as the MTU, and objects made for each would be scattered over
    memory. A sender has one of two places; if others have both, it takes the first.
    """

    def __init__(self) -> None:
        self._senders = array("q", bytes(8 * _SENDERS))
        self._digests = array("q", bytes(8 * _SENDERS))
        self._waiting: dict[tuple[str, int, int], PacketReceived] = {}
        """By sender, the last hello that keeps its place and has not been passed on."""

    def overtakes(self, proto: str, packet: PacketReceived, *, waits: bool) -> bool:
        """Whether a hello may be passed on before what ``waits``, an earlier other one included."""
        sender = proto, packet.ifindex, packet.source
        digest, place = hash(packet.payload), self._place(hash(sender))
        if self._digests[place] == digest:
            return sender not in self._waiting
        self._digests[place] = digest
        if waits:
            self._waiting[sender] = packet
        return False

    def _place(self, sender: int) -> int:
        """The place of a sender; a new one takes a place, where no last hello equals any."""
        senders = self._senders
        first, second = sender % _SENDERS, sender // _SENDERS % _SENDERS
        if senders[first] == sender:
            return first
        if senders[second] == sender:
            return second
        place = second if senders[first] and not senders[second] else first
        senders[place], self._digests[place] = sender, _NO_DIGEST
        return place

    def passed_on(self, portions: Iterable[tuple[str, list[Received]]]) -> None:
        """Record what was passed on: hellos that follow may overtake again."""
        if not self._waiting:
            return
        for proto, packets in portions:
            for packet in packets:
                sender = proto, packet.ifindex, packet.source
                if self._waiting.get(sender) is packet:
                    del self._waiting[sender]
