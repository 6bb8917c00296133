"""Originating our own LSPs: the fragments that change, and their contents (ISO 10589 §7.3.6).

Events mark circuits, prefixes or headers. ``settle`` finds the fragments whose contents changed and
generates each as soon as its throttle allows, so that a burst of events results in one LSP.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from fared.core.ids import Prefix
from fared.core.timers import Timer
from fared.paths.te.announcer import Announcer, Carrier
from fared.protocols.igp.throttle import ADJACENCY_SOON
from fared.protocols.isis.addresses import borrowed_addresses
from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.ids import Level, LspId, fragment_of, lsp_id, pseudonode_of
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.origination import contents
from fared.protocols.isis.origination.advertisements import LevelAdvertisements, replace_items
from fared.protocols.isis.origination.fragment import Item, ItemKey, TlvKind, keyed
from fared.protocols.isis.origination.fragments import FragmentTable
from fared.protocols.isis.origination.lsp_generator import LspContent, LspGenerator
from fared.protocols.isis.pdu.auth import keyring_size
from fared.protocols.isis.pdu.codec import tlvs_size
from fared.protocols.isis.pdu.geninfo import GENINFO, pieces_of
from fared.protocols.isis.pdu.tlvs import IpReach
from fared.protocols.isis.settings import used_last
from fared.protocols.isis.update.flooding import Flooding

_LSP_HEADER = 27
_ROUTER = 0


class Originator:
    """The LSPs of this router and of the pseudonodes it is responsible for, in all levels."""

    def __init__(self, instance: Instance, flooding: Flooding) -> None:
        self._instance = instance
        self._process = instance.process
        self._generator = LspGenerator(instance, flooding, self._content)
        self._routers = {
            level: LevelAdvertisements(instance, level, self._room(level))
            for level in instance.databases
        }
        self._announcer: Announcer[Circuit, Level] = Announcer(
            instance.process.timers,
            lambda: instance.settings.advertise,
            self._announced_in,
        )
        instance.budgets = self._announcer.budgets
        self._networks: dict[tuple[Level, int], FragmentTable] = {}
        """By level and pseudonode number."""
        self._network_of: dict[tuple[Level, int], int] = {}
        """The pseudonode number of a circuit whose DIS we are."""
        self._dirty: dict[tuple[Level, int], None] = {}
        self._headers: set[Level] = set(instance.databases)
        self._information: dict[Level, dict[ItemKey, Item]] = {}
        self._omitted: dict[tuple[Level, int], int] = {}
        self._speaking: set[int] = set()
        self._awaited: dict[int, Timer] = {}
        """Circuits that came up and have no adjacency yet, with the timer that ends the delay."""
        self._starting = False
        self._starting_timer: Timer | None = None
        self._started = False
        self._attached = False
        self._only_way_out = False

    # What changed

    def begin(self) -> None:
        """The first input has arrived: set the overload bit for a time (RFC 3277, RFC 3787 §4)."""
        if self._started:
            return
        self._started = True
        seconds = self._instance.settings.overload_on_startup
        if seconds > 0.0:
            self._starting = True
            due = self._process.now + seconds
            self._starting_timer = self._process.timers.arm(due, self._started_up)

    def restarted(self, *, synchronized: bool) -> None:
        """A graceful restart: no overload bit, unless it ended before databases were complete."""
        self._process.timers.cancel(self._starting_timer)
        if self._starting is synchronized:
            self._starting = not synchronized
            self._headers.update(self._routers)

    def resume(self) -> None:
        """Generate our LSPs again after a restart, and purge those that are none any more."""
        mine = self._instance.system_id
        for level, database in self._instance.databases.items():
            for entry in database.between(lsp_id(mine), lsp_id(mine, 0, 0xFF)):
                self._generator.request(level, entry.lsp_id, force=not entry.purged)

    def purge_former_networks(self) -> None:
        """Purge the LSPs of pseudonodes from before a restart that are not ours any more."""
        mine = self._instance.system_id
        for level, database in self._instance.databases.items():
            for entry in database.between(lsp_id(mine, 1), lsp_id(mine, 0xFF, 0xFF)):
                if not entry.purged:
                    self._generator.request(level, entry.lsp_id)

    @property
    def overloaded(self) -> bool:
        """Whether our LSPs carry the overload bit."""
        return self._instance.settings.overload or self._starting

    @property
    def attached(self) -> bool:
        """Whether our level-1 LSP carries the attached bit."""
        used = not self.overloaded or self._only_way_out
        return self._attached and self._instance.settings.attached and used

    def set_attached(self, *, attached: bool) -> None:
        """Whether other areas are reached through level 2 (§7.2.9.2)."""
        if attached != self._attached:
            self._attached = attached
            self._headers.update(self._routers)

    def set_only_way_out(self, *, only: bool) -> None:
        """Whether routers of level 1 have no other way out of the area, or overloaded ones."""
        if only != self._only_way_out:
            self._only_way_out = only
            self._headers.update(self._routers)

    def behind(self, metric: int) -> int:
        """The metric of a prefix behind this router, which an overloaded router is asked last for.

        Others do not cross an overloaded router inside a level (ISO 10589 §7.2.8.1), but reach all
        prefixes in its LSPs, those of the other level and of other protocols, too.
        """
        return used_last(metric) if self.overloaded else metric

    def circuit_changed(self, circuit: Circuit, level: Level | None = None) -> None:
        """Adjacencies, addresses, metric or state of a circuit may have changed."""
        if level is None and self._waits(circuit):
            return
        if circuit.ifindex in self._awaited:
            self._process.timers.cancel(self._awaited.pop(circuit.ifindex))
            level = None
        for known in self._routers if level is None else (level,):
            self._dirty[known, circuit.ifindex] = None
            if circuit.loopback or level is None:
                self._headers.add(known)
        borrowed = borrowed_addresses(self._instance) if circuit.loopback else None
        if borrowed is not None and borrowed != self._instance.borrowed:
            self._instance.borrowed = borrowed
            for other in self._instance.circuits.values():
                for known in self._routers:
                    self._dirty[known, other.ifindex] = None

    def _waits(self, circuit: Circuit) -> bool:
        """Whether a circuit that came up is not advertised yet, since an adjacency is forming.

        The subnet alone would be an LSP of its own, and the next one, with the adjacency, would be
        delayed by the throttle.
        """
        ifindex = circuit.ifindex
        if circuit.broadcast or not circuit.is_active:
            self._speaking.discard(ifindex)
            return False
        if ifindex in self._speaking:
            return ifindex in self._awaited
        self._speaking.add(ifindex)
        own = lsp_id(self._instance.system_id)
        databases = self._instance.databases
        fresh = not any(own in database.entries for database in databases.values())
        if fresh or any(circuit.adjacencies(known) for known in databases):
            return False
        until = self._process.now + ADJACENCY_SOON
        action = partial(self._no_longer_awaited, circuit)
        self._awaited[ifindex] = self._process.timers.arm(until, action)
        return True

    def _no_longer_awaited(self, circuit: Circuit) -> None:
        self._awaited.pop(circuit.ifindex, None)
        self.circuit_changed(circuit)

    def circuit_removed(self, circuit: Circuit) -> None:
        """A circuit was removed."""
        self._announcer.forget(circuit)
        self.circuit_changed(circuit)

    def everything_changed(self) -> None:
        """Settings changed: reconsider everything."""
        self._generator.configure()
        self._headers.update(self._routers)
        for level, router in self._routers.items():
            for ifindex in {*self._instance.circuits, *router.circuits}:
                self._dirty[level, ifindex] = None
            router.refresh_all_prefixes()

    def bandwidth_changed(self, circuit: Circuit) -> bool:
        """Advertise a changed capacity or load of a link if due; return whether to ``settle``."""
        return self._announcer.offer(circuit, self._process.now)

    def loads_measured(self, loads: Mapping[int, float | None]) -> bool:
        """Store the loads of links, bytes/s; None: unknown. Return whether to ``settle``."""
        return self._announcer.measured(loads, self._instance.circuits, self._process.now)

    def lsp_changed(self, level: Level, entry: StoredLsp, previous: StoredLsp | None) -> None:
        """Count the link ends that are advertised in a level, for its budget."""
        known = self._announcer.budget(level).ends
        if previous is not None and entry.renewed is not None:
            before, after = previous.lsp.tlvs, entry.lsp.tlvs
            more = [
                contents.link_ends((after[place],)) - contents.link_ends((before[place],))
                for place in entry.renewed
            ]
            if not any(more):
                return
        ends = 0 if entry.purged else contents.link_ends(entry.lsp.tlvs)
        known.put(entry.lsp_id, ends, self._process.now, own=entry.own)

    def _announced_in(self, circuit: Circuit) -> list[Carrier[Level]]:
        """The levels and fragments in which the bandwidth of a link is advertised."""
        return [
            Carrier(level, number)
            for level, router in self._routers.items()
            for number in router.fragments_of(circuit.ifindex)
        ]

    def leak(self, level: Level, prefix: Prefix, reach: IpReach | None) -> None:
        """Advertise a prefix of the other level in this one, or withdraw it (RFC 5302)."""
        self._routers[level].leak(prefix, reach)

    def carrier_of(self, prefix: Prefix) -> tuple[int, ...]:
        """The fragments, by level, that a redistributed prefix is advertised in."""
        return tuple([router.fragment_of(prefix) for router in self._routers.values()])

    def redistribute(self, level: Level, prefix: Prefix, reach: IpReach | None) -> None:
        """Advertise a prefix of another source in a level, or withdraw it."""
        self._routers[level].redistribute(prefix, reach)

    def offer(self, items: Mapping[int, bytes], only: Mapping[int, Mapping[int, bytes]]) -> None:
        """Advertise information of an application, instead of the former one.

        ``items`` in all levels, those of ``only`` in one each.
        """
        application = self._instance.settings.information_application
        if application is None:
            return
        kind = TlvKind(GENINFO, application)
        for level, router in self._routers.items():
            wanted = {
                keyed(kind, (item, number)): Item(kind, piece, len(piece))
                for item, value in {**items, **only.get(level, {})}.items()
                for number, piece in pieces_of(item, value)
            }
            replace_items(router.table, self._information.get(level, ()), wanted)
            self._information[level] = wanted

    def renew(self, level: Level, identifier: LspId) -> None:
        """Generate an LSP again, since it expires or others have a newer one; or purge it."""
        self._generator.request(level, identifier, force=True)

    def forget(self, level: Level, identifier: LspId) -> None:
        """The header of a purged LSP of ours left the database."""
        self._generator.removed(level, identifier)

    def purge_all(self) -> None:
        """Purge all our LSPs."""
        self._generator.purge_all()

    # What goes out

    def settle(self) -> None:
        """Bring our LSPs up to date as far as throttles allow."""
        if self._instance.keeps_lsps:
            return
        for circuit in self._announcer.settle(self._process.now):
            for level in self._routers:
                self._dirty[level, circuit.ifindex] = None
        dirty, self._dirty = self._dirty, {}
        for level, ifindex in dirty:
            running = self._routers[level].update_circuit(ifindex)
            self._update_pseudonode(level, ifindex, running)
        headers, self._headers = self._headers, set()
        for level in sorted(headers):
            self._renew_header(level)
        for level, router in self._routers.items():
            self._settle_table(level, _ROUTER, router.table)
        for (level, number), table in list(self._networks.items()):
            self._settle_table(level, number, table)
        self._generator.settle()

    def _settle_table(self, level: Level, pseudonode: int, table: FragmentTable) -> None:
        if table.settled:
            return
        # §7.3.4: only fragments whose entries changed are generated
        for fragment in sorted(table.settle()):
            self._generator.request(level, lsp_id(self._instance.system_id, pseudonode, fragment))
        key = level, pseudonode
        if table.omitted and self._omitted.get(key, 0) == 0:
            self._process.log(
                "error", "isis-lsp-full", database=level.label, omitted=table.omitted, fragments=256
            )
        self._omitted[key] = table.omitted

    def _update_pseudonode(self, level: Level, ifindex: int, circuit: Circuit | None) -> None:
        """The pseudonode LSP of a LAN, while this router is its DIS and not alone (§7.3.8)."""
        instance = self._instance
        number = None if circuit is None else contents.pseudonode_number(circuit, level)
        old = self._network_of.get((level, ifindex))
        # §8.4.5: purge the pseudonode LSPs on resigning; also if alone, or under another number
        if old is not None and old != number:
            self._drop_network(level, ifindex)
        if circuit is None or number is None:
            return
        key = level, number
        if key not in self._networks:
            self._networks[key] = FragmentTable(self._room(level))
            self._network_of[level, ifindex] = number
        wanted = dict(contents.pseudonode_items(instance, circuit, level))
        replace_items(self._networks[key], self._networks[key].items.keys(), wanted)

    def _drop_network(self, level: Level, ifindex: int) -> None:
        number = self._network_of.pop((level, ifindex))
        table = self._networks.pop((level, number))
        self._omitted.pop((level, number), None)
        for fragment in table.numbers():
            identifier = lsp_id(self._instance.system_id, number, fragment)
            self._generator.request(level, identifier)

    def _renew_header(self, level: Level) -> None:
        attached = level is Level.ONE and self.attached
        tlvs = contents.header(self._instance, overload=self.overloaded, attached=attached)
        room = self._room(level)
        table = self._routers[level].table
        table.set_header(tlvs, tlvs_size(tlvs), room)
        for network in (t for (known, _), t in self._networks.items() if known is level):
            network.set_header((), 0, room)
        # The overload and attached bits are in the fixed header of fragment 0.
        self._generator.request(level, lsp_id(self._instance.system_id))

    def _content(self, level: Level, identifier: LspId) -> LspContent | None:
        """The contents of an LSP of ours; None: there is to be none of this id."""
        number, fragment = pseudonode_of(identifier), fragment_of(identifier)
        table = self._networks.get((level, number)) if number else self._routers[level].table
        tlvs = None if table is None else table.contents(fragment)
        if tlvs is None:
            return None
        # RFC 3787 §4, ISO 10589 §7.2.9.2: both bits are in LSP number 0 of the router only
        first = number == 0 and fragment == 0
        attached = first and level is Level.ONE and self.attached
        return LspContent(tlvs, overload=first and self.overloaded, attached=attached)

    def _started_up(self) -> None:
        self._starting = False
        self._headers.update(self._routers)

    def _room(self, level: Level) -> int:
        """Bytes of TLVs in one LSP, the largest possible authentication subtracted."""
        settings = self._instance.settings
        return settings.lsp_mtu - _LSP_HEADER - keyring_size(settings.lsp_keys(level))
