"""Link state ids of summary and AS-external LSAs (RFC 2328 appendix E), and their opaque ids."""

from __future__ import annotations

from fared.core.ids import Prefix, length_mask

_WORD = 0xFFFFFFFF
_TRIES = 64


class SummaryIds:
    """Assigns link state ids to the advertised prefixes of one area.

    Of two prefixes with the same network address the second has host bits set in its id, which
    receivers mask. In appendix E the shorter one always has the address; here a prefix keeps its
    id, so that fewer LSAs change. But a host route, without host bits, takes the id of a shorter
    prefix. If no id is left (a /31 with two host routes), a prefix is not advertised.
    """

    def __init__(self) -> None:
        self._id_of: dict[Prefix, int] = {}
        self._by_id: dict[int, Prefix] = {}
        self._number_of: dict[Prefix, int] = {}
        self._by_number: dict[int, Prefix] = {}
        self._free: list[int] = []

    def prefix_of_id(self, link_state_id: int) -> Prefix | None:
        """The prefix that a summary LSA describes."""
        return self._by_id.get(link_state_id)

    def prefix_of_number(self, number: int) -> Prefix | None:
        """The prefix that an extended prefix LSA describes."""
        return self._by_number.get(number)

    def assign(self, prefix: Prefix) -> tuple[list[int], int]:
        """Assign ids: the link state ids whose LSA may have changed, and the opaque id."""
        if prefix in self._number_of:
            known = self._id_of.get(prefix)
            return ([] if known is None else [known]), self._number_of[prefix]
        number = self._free.pop() if self._free else len(self._number_of) + 1
        self._number_of[prefix] = number
        self._by_number[number] = prefix
        return self._place(prefix), number

    def release(self, prefix: Prefix) -> tuple[list[int], int]:
        """Release a prefix's ids: those whose LSA may have changed, and the opaque id."""
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
            # Appendix E: the network address, then all host bits set; then downward from there.
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
