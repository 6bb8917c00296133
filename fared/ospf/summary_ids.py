"""Link state ids of summary LSAs, and opaque ids of what goes with them (RFC 2328 appendix E)."""

from __future__ import annotations

from fared.core.ids import Prefix, length_mask

_WORD = 0xFFFFFFFF
_TRIES = 64


class SummaryIds:
    """Gives each prefix announced into one area an id of its own, and keeps it.

    Two prefixes may have one network address: the second gets an id with some of its host bits
    set, which receivers mask away. A host route has no such bits, so the shorter one has to give
    way. A prefix for which no id is left (both halves of a /31 are host routes) stays unsaid.
    """

    def __init__(self) -> None:
        self._id_of: dict[Prefix, int] = {}
        self._by_id: dict[int, Prefix] = {}
        self._number_of: dict[Prefix, int] = {}
        self._by_number: dict[int, Prefix] = {}
        self._free: list[int] = []

    def prefix_of_id(self, link_state_id: int) -> Prefix | None:
        """What a summary LSA describes."""
        return self._by_id.get(link_state_id)

    def prefix_of_number(self, number: int) -> Prefix | None:
        """What an extended prefix LSA describes."""
        return self._by_number.get(number)

    def assign(self, prefix: Prefix) -> tuple[list[int], int]:
        """Link state ids whose LSA may read differently now, and the opaque id."""
        if prefix in self._number_of:
            known = self._id_of.get(prefix)
            return ([] if known is None else [known]), self._number_of[prefix]
        number = self._free.pop() if self._free else len(self._number_of) + 1
        self._number_of[prefix] = number
        self._by_number[number] = prefix
        return self._place(prefix), number

    def release(self, prefix: Prefix) -> tuple[list[int], int]:
        """Forget a prefix; return the same."""
        number = self._number_of.pop(prefix)
        del self._by_number[number]
        self._free.append(number)
        link_state_id = self._id_of.pop(prefix, None)
        if link_state_id is None:
            return [], number
        del self._by_id[link_state_id]
        return [link_state_id], number

    def _place(self, prefix: Prefix) -> list[int]:
        host_bits = _WORD & ~length_mask(prefix.length)
        for at in range(min(host_bits, _TRIES) + 1):
            # The network address, then from the highest host address down.
            candidate = prefix.network | (host_bits - at + 1 if at else 0)
            if candidate not in self._by_id:
                self._take(prefix, candidate)
                return [candidate]
        evicted = self._by_id[prefix.network]
        if evicted.length >= prefix.length:
            return []
        del self._id_of[evicted]
        self._take(prefix, prefix.network)
        return [prefix.network, *self._place(evicted)]

    def _take(self, prefix: Prefix, link_state_id: int) -> None:
        self._id_of[prefix] = link_state_id
        self._by_id[link_state_id] = prefix
