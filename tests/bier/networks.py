"""BFRs of a fabric, each with the tables that it computes itself, and packets among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fared.paths.bier.bift import Bift, make_bifts
from fared.paths.bier.birt import BirtEntry, entry_of, make_birt
from fared.paths.bier.bit_string import bfr_ids, bit_strings
from fared.paths.bier.forwarding import forward
from tests.ted.fabrics import Fabric

LENGTH = 64


class Bfrs:
    """Every node is a BFR; ``ids``: BFR-ids by name. Tables as each node's own solver has them."""

    def __init__(self, fabric: Fabric, ids: dict[str, int], length: int = LENGTH) -> None:
        self.fabric, self.ids, self.length = fabric, ids, length
        self.birts = {name: self._birt(name) for name in fabric.names}
        self.bifts: dict[str, dict[int, Bift]] = {
            name: make_bifts(birt, length) for name, birt in self.birts.items()
        }

    def _birt(self, name: str) -> dict[int, tuple[BirtEntry, ...]]:
        solver = self.fabric.solver(name)
        solver.solve()
        return make_birt(
            entry_of(
                i, prefix, solver.routes.get(prefix), {self.fabric.id(n) for n in self.fabric.names}
            )
            for i, prefix in ((i, self.fabric.prefix(bfer)) for bfer, i in self.ids.items())
        )

    def masks(self, name: str, entropy: int = 0, set_id: int = 0) -> dict[str, int]:
        """Return the F-BMs of a node by the names of neighbors."""
        found: Counter[str] = Counter()
        for neighbor, mask in self.bifts[name][set_id].table(entropy).masks:
            found[self.fabric.name(neighbor.node)] |= mask
        return dict(found)

    def deliver(self, root: str, bfers: Iterable[str], entropy: int = 0) -> Counter[str]:
        """Send a packet; return its copies on links as ``a>b``, and deliveries by name.

        Raises AssertionError for a packet that passes a router twice on its way, for a lost bit,
        and for copies that do not have the bits of the packet.
        """
        seen: Counter[str] = Counter()
        strings = bit_strings((self.ids[bfer] for bfer in bfers), self.length)
        waiting = [(root, (root,), s, string) for s, string in strings.items()]
        while waiting:
            name, way, set_id, string = waiting.pop()
            found = forward(self.bifts[name][set_id].table(entropy), string)
            assert not found.lost, (name, list(bfr_ids(found.lost, self.length, set_id)))
            parts = [bits for _, bits in found.copies] + [found.local]
            assert sum(parts) == string == _union(parts), (name, string, parts)
            if found.local:
                assert [*bfr_ids(found.local, self.length, set_id)] == [self.ids[name]]
                seen[name] += 1
            for neighbor, bits in found.copies:
                beyond = self.fabric.name(neighbor.node)
                assert beyond not in way, f"loop: {way} {beyond}"
                seen[f"{name}>{beyond}"] += 1
                waiting.append((beyond, (*way, beyond), set_id, bits))
        return seen


def _union(strings: Iterable[int]) -> int:
    union = 0
    for string in strings:
        union |= string
    return union
