"""What this router advertises of itself in one level: adjacencies, prefixes, information.

``Originator`` tells it what changed; its table of fragments finds the LSPs that change with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from fared.core.ids import Prefix
from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.ids import Level
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.neighbors import runs_level
from fared.protocols.isis.origination import contents
from fared.protocols.isis.origination.fragment import ALONE, Item, ItemKey
from fared.protocols.isis.origination.fragments import FragmentTable
from fared.protocols.isis.pdu.tlvs import IpReach


class LevelAdvertisements:
    """The entries of the LSPs of this router in one level."""

    def __init__(self, instance: Instance, level: Level, room: int) -> None:
        self._instance = instance
        self._level = level
        self.table = FragmentTable(room)
        self._adjacent: dict[int, dict[ItemKey, Item]] = {}
        """The adjacencies of each circuit."""
        self._connected: dict[Prefix, dict[int, IpReach]] = {}
        """Each prefix as advertised by each circuit."""
        self._prefixes: dict[int, tuple[Prefix, ...]] = {}
        self._redistributed: dict[Prefix, IpReach] = {}
        self._leaked: dict[Prefix, IpReach] = {}

    @property
    def circuits(self) -> set[int]:
        """The circuits of which something is advertised."""
        return {*self._adjacent, *self._prefixes}

    def fragments_of(self, ifindex: int) -> set[int]:
        """Return the numbers of the fragments that have the adjacencies of a circuit."""
        numbers = map(self.table.number_of, self._adjacent.get(ifindex, ()))
        return {number for number in numbers if number is not None}

    def fragment_of(self, prefix: Prefix) -> int:
        """Return the number of the fragment that has a prefix, -1 without one."""
        key, _ = contents.prefix_keys(self._instance, prefix)
        number = self.table.number_of(key)
        return -1 if number is None else number

    def update_circuit(self, ifindex: int) -> Circuit | None:
        """Update the entries of a circuit (§7.3.7, §7.3.9); return it if it runs this level."""
        circuit = self._instance.circuits.get(ifindex)
        runs = circuit is not None and runs_level(self._instance, circuit, self._level)
        adjacent: dict[ItemKey, Item] = {}
        prefixes: dict[Prefix, IpReach] = {}
        if circuit is not None and runs:
            adjacent = dict(contents.adjacency_items(self._instance, circuit, self._level))
            prefixes = self._prefixes_of(circuit)
        replace_items(self.table, self._adjacent.get(ifindex, {}), adjacent)
        self._adjacent[ifindex] = adjacent
        self._connect(ifindex, prefixes)
        if circuit is None:
            del self._adjacent[ifindex], self._prefixes[ifindex]
        return circuit if runs else None

    def leak(self, prefix: Prefix, reach: IpReach | None) -> None:
        """Advertise a prefix of the other level, or withdraw it (RFC 5302)."""
        self._put(self._leaked, prefix, reach)

    def redistribute(self, prefix: Prefix, reach: IpReach | None) -> None:
        """Advertise a prefix of another source, or withdraw it."""
        self._put(self._redistributed, prefix, reach)

    def refresh_all_prefixes(self) -> None:
        """Reconsider all prefixes, since settings changed."""
        self._refresh([*self._connected, *self._redistributed, *self._leaked])

    def _prefixes_of(self, circuit: Circuit) -> dict[Prefix, IpReach]:
        found: dict[Prefix, IpReach] = {}
        for family in self._instance.settings.families:
            found.update(contents.connected(circuit, family))
        settings = self._instance.settings.bier
        if settings is None:
            return found
        from fared.protocols.isis.origination.bier import with_bier  # noqa: PLC0415 - where BIER runs

        return with_bier(self._instance, settings, circuit, found)

    def _connect(self, ifindex: int, prefixes: dict[Prefix, IpReach]) -> None:
        """Replace the prefixes of a circuit; one may be on several circuits."""
        before = self._prefixes.get(ifindex, ())
        for prefix in before:
            known = self._connected[prefix]
            known.pop(ifindex, None)
            if not known:
                del self._connected[prefix]
        for prefix, reach in prefixes.items():
            self._connected.setdefault(prefix, {})[ifindex] = reach
        self._prefixes[ifindex] = tuple(prefixes)
        self._refresh(dict.fromkeys((*before, *prefixes)))

    def _put(self, known: dict[Prefix, IpReach], prefix: Prefix, reach: IpReach | None) -> None:
        if reach is None:
            known.pop(prefix, None)
        else:
            known[prefix] = reach
        self._refresh((prefix,))

    def _refresh(self, prefixes: Iterable[Prefix]) -> None:
        """Update prefixes in the LSP: connected ones first, then redistributed, then leaked."""
        instance = self._instance
        for prefix in prefixes:
            key, stale = contents.prefix_keys(instance, prefix)
            self.table.remove(stale)
            own = self._connected.get(prefix)
            other = self._redistributed.get(prefix) or self._leaked.get(prefix)
            if own:  # the lowest metric is advertised
                group, reach = min(own.items(), key=lambda known: (known[1].metric, known[0]))
                self.table.put(key, contents.prefix_item(instance, reach, group))
            elif other is not None:
                self.table.put(key, contents.prefix_item(instance, other, ALONE))
            else:
                self.table.remove(key)


def replace_items(
    table: FragmentTable, before: Iterable[ItemKey], wanted: dict[ItemKey, Item]
) -> None:
    """Replace entries in a table."""
    for key in list(before):
        if key not in wanted:
            table.remove(key)
    for key, item in wanted.items():
        table.put(key, item)
