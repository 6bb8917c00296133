"""BIER of a whole router: advertisements, routes and links in, BIRT and BIFT out.

It is loaded where BIER runs. The BFR-prefixes that both protocols advertise are looked up in the
routing table: its next hops and weights are those of the BIRT, so that BIER takes the paths that
unicast takes (RFC 8279 §4.1, routing underlay), over areas and levels too. Hosts of this router
are neighbors of their own, one copy each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fared.core.bier import MAX_SETS, BierEncapsulation, BierInfo, BierSettings
from fared.core.ids import NodeId, Prefix, format_node, ipv4_prefix
from fared.core.links import Link
from fared.paths.bier.bift import Bift, make_bifts
from fared.paths.bier.birt import BfrNeighbor, BirtEntry, entry_of, make_birt
from fared.paths.fib.bier import BierPlanner, BierPort
from fared.paths.rib.table import RoutingTable
from fared.paths.ted.events import BierUpdated, LocalLinksChanged
from fared.paths.ted.model import LocalLink
from fared.protocols.igp import events as igp
from fared.router import events

_HOST_LENGTH = 32
_FAMILY = 4
_At = tuple[str, int, NodeId]
"""Protocol, area or level, router."""


class BierRouting:
    """Tables of one sub-domain; ``birt`` and ``bifts`` are read-only for others."""

    def __init__(
        self, settings: BierSettings, table: RoutingTable, outputs: list[events.Output]
    ) -> None:
        self.settings = settings
        self.planner = BierPlanner(settings.sub_domain, settings.length)
        self.birt: dict[int, tuple[BirtEntry, ...]] = {}
        self.bifts: dict[int, Bift] = {}
        self._table = table
        self._outputs = outputs
        self._advertised: dict[_At, BierUpdated] = {}
        self._adjacent: dict[tuple[str, int], tuple[LocalLink, ...]] = {}
        self._links: dict[int, Link] = {}
        self.refused: dict[BfrNeighbor, str] = {}
        """Neighbors with BIER that get no packets, and why."""
        self._stale = True
        self._refused = ""
        self._ambiguous: frozenset[int] = frozenset()

    # --- inputs

    def configure(self, settings: BierSettings) -> None:
        """Apply changed settings; sub-domain and length require a restart."""
        self.settings = settings
        self._stale = True

    def advertised(self, protocol: str, update: BierUpdated) -> None:
        """Take what a router advertises."""
        at = protocol, update.area, update.node
        if update.prefixes:
            self._advertised[at] = update
        else:
            self._advertised.pop(at, None)
        self._stale = True

    def links_changed(self, protocol: str, change: LocalLinksChanged) -> None:
        """Take the full adjacencies of an area; packets come over IPv4 ones only."""
        if change.family == _FAMILY:
            self._adjacent[protocol, change.area] = change.links
            self._stale = True

    def input(self, event: events.To | events.ToAll) -> None:
        """Take the state of links, which hosts and MAC addresses depend on."""
        match event:
            case events.To(_, igp.LinkChanged(link)):
                if self._links.get(link.ifindex) != link:
                    self._links[link.ifindex] = link
                    self._stale = True
            case igp.LinkRemoved(ifindex):
                self._stale |= self._links.pop(ifindex, None) is not None

    def routes_changed(self) -> None:
        """Take into account that routes may have changed."""
        self._stale = True

    def handle(self, event: events.BierInput, now: float) -> None:
        """Take what the kernel holds, or its answer."""
        match event:
            case events.BierAdopted(highest):
                self.planner.adopt(highest)
                self._stale = True
            case events.BierAudited(intact):
                if self.planner.reconcile(intact=intact):
                    self._outputs.append(igp.LogRecord("warning", "bier-drift-repaired"))
            case events.BierApplied(error):
                self.planner.answered(error, now)
                if error and error != self._refused:
                    self._outputs.append(igp.LogRecord("warning", "bier-refused", {"error": error}))
                self._refused = error

    # --- the tables

    def process(self, now: float, *, frozen: bool) -> None:
        """Compute what changed, and plan what is due; while ``frozen`` nothing is written."""
        if self._stale:
            self._stale = False
            self._compute()
        state = None if frozen else self.planner.plan(now)
        if state is not None:
            self._outputs.append(events.ApplyBier(state))

    def next_deadline(self) -> float | None:
        """When to call ``process`` at the latest."""
        return self.planner.next_deadline()

    def _compute(self) -> None:
        self._judge_neighbors()
        birt = make_birt([*self._entries(), *self._hosts()])
        self._report_ambiguous(birt)
        if birt != self.birt or not self.bifts:
            self.birt = birt
            self.bifts = make_bifts(birt, self.settings.length)
        self.planner.desire(self.bifts, self._ports(), self._popped())

    @property
    def bfrs(self) -> frozenset[NodeId]:
        """The routers that run BIER in the sub-domain, this one included."""
        inside = {node for by_router in self._prefixes().values() for node in by_router}
        return frozenset(inside & self._bfrs())

    def _entries(self) -> Iterator[BirtEntry]:
        """Yield the entry of each BFR-prefix of the sub-domain, but those of our own hosts."""
        own = {ipv4_prefix(host, _HOST_LENGTH) for host, _ in self.settings.hosts}
        refused = {neighbor.node: why for neighbor, why in self.refused.items()}
        bfrs = self._bfrs() - refused.keys()
        for prefix, by_router in sorted(self._prefixes().items()):
            if prefix in own:
                continue
            route = self._table.routes.get(prefix)
            nearest = () if route is None else route.destinations
            info = next((by_router[n] for n in nearest if n in by_router), None)
            info = info or by_router[min(by_router)]
            if not info.bfr_id:
                continue
            problem = self._unsupported(info)
            if problem:
                yield BirtEntry(info.bfr_id, prefix, problem=problem)
            else:
                yield entry_of(info.bfr_id, prefix, route, bfrs, refused)

    def _prefixes(self) -> dict[Prefix, dict[NodeId, BierInfo]]:
        found: dict[Prefix, dict[NodeId, BierInfo]] = {}
        for (_, _, node), update in self._advertised.items():
            for prefix, infos in update.prefixes.items():
                for info in infos:
                    if info.sub_domain == self.settings.sub_domain:
                        found.setdefault(prefix, {})[node] = info
        return found

    def _unsupported(self, info: BierInfo) -> str:
        """Return why packets for a BFER cannot be sent."""
        # RFC 9272 §3: paths of another algorithm are not those of ours
        if (info.bar, info.ipa) != (0, 0):
            return f"BAR {info.bar}, IPA {info.ipa}"
        if not self._has_set(info.bfr_id):
            return f"above {MAX_SETS} sets of {self.settings.length}"
        return self.settings.difference(info.encapsulations)

    def _has_set(self, bfr_id: int) -> bool:
        return bfr_id <= MAX_SETS * self.settings.length

    def _bfrs(self) -> set[NodeId]:
        return {at[2] for at, update in self._advertised.items() if update.is_bfr}

    def _judge_neighbors(self) -> None:
        """Find out which neighbors with BIER cannot get packets of ours."""
        offered: dict[NodeId, list[BierEncapsulation]] = {}
        for by_router in self._prefixes().values():
            for node, info in by_router.items():
                offered.setdefault(node, []).extend(info.encapsulations)
        crowded, bfrs = self._crowded(), self._bfrs()
        found: dict[BfrNeighbor, str] = {}
        for links in self._adjacent.values():
            for link in links:
                node = link.neighbor
                why = "several routers on one link" if node in crowded else ""
                why = why or self.settings.difference(offered.get(node, ()))
                if why and node in bfrs:
                    way = BfrNeighbor(link.ifindex, link.gateway, link.interface, node)
                    found[way] = why
        for neighbor in sorted(found.keys() - self.refused.keys()):
            fields: dict[str, object] = {
                "neighbor": format_node(neighbor.node),
                "interface": neighbor.interface,
                "reason": found[neighbor],
            }
            self._outputs.append(igp.LogRecord("warning", "bier-neighbor-refused", fields))
        self.refused = found

    def _crowded(self) -> set[NodeId]:
        """Return routers that share an interface: a copy there would reach all of them."""
        on: dict[int, set[NodeId]] = {}
        for links in self._adjacent.values():
            for link in links:
                on.setdefault(link.ifindex, set()).add(link.neighbor)
        # the two vertices of a router that runs both protocols differ in kind
        several = [nodes for nodes in on.values() if len(nodes) > len({n >> 60 for n in nodes})]
        return {node for nodes in several for node in nodes}

    def _hosts(self) -> Iterator[BirtEntry]:
        for host, bfr_id in self.settings.hosts:
            prefix = ipv4_prefix(host, _HOST_LENGTH)
            link = self._link_of(host)
            if not self._has_set(bfr_id):
                continue  # refused by the configuration
            if link is None:
                yield BirtEntry(bfr_id, prefix, problem="no interface with its subnet is up")
            elif self.settings.php:
                yield BirtEntry(bfr_id, prefix, local=True)
            else:
                way = BfrNeighbor(link.ifindex, host, link.name)
                yield BirtEntry(bfr_id, prefix, ((way, 1),))

    def _link_of(self, host: int) -> Link | None:
        for _, link in sorted(self._links.items()):
            subnets = [ipv4_prefix(a.address, a.prefix_length) for a in link.ipv4()]
            if link.up and not link.loopback and any(subnet.contains(host) for subnet in subnets):
                return link
        return None

    def _ports(self) -> set[BierPort]:
        """Return the interfaces to BFRs and hosts, and the loopback, where our own packets come."""
        wanted = {link.ifindex for links in self._adjacent.values() for link in links}
        wanted |= {
            neighbor.ifindex
            for entries in self.birt.values()
            for entry in entries
            for neighbor, _ in entry.ways
        }
        return {
            BierPort(link.ifindex, link.name, link.hardware_address)
            for link in self._links.values()
            if link.ifindex in wanted or link.loopback
        }

    def _popped(self) -> dict[int, BierPort]:
        """Return the interfaces of hosts that get payloads without header (php), by BFR-id."""
        found: dict[int, BierPort] = {}
        for host, bfr_id in self.settings.hosts if self.settings.php else ():
            link = self._link_of(host)
            if link is not None and all(entry.usable for entry in self.birt.get(bfr_id, ())):
                found[bfr_id] = BierPort(link.ifindex, link.name, link.hardware_address)
        return found

    def _report_ambiguous(self, birt: Mapping[int, tuple[BirtEntry, ...]]) -> None:
        found = frozenset(bfr_id for bfr_id, entries in birt.items() if len(entries) > 1)
        for bfr_id in sorted(found - self._ambiguous):
            prefixes = [str(entry.prefix) for entry in birt[bfr_id]]
            fields: dict[str, object] = {"bfr_id": bfr_id, "prefixes": prefixes}
            self._outputs.append(igp.LogRecord("warning", "bfr-id-not-unique", fields))
        self._ambiguous = found
