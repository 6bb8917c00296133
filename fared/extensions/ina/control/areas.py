"""Areas and levels as one router sees them: what is flooded in each, and what border routers tell.

Adverts and reports that a border router passes on count as if their router had flooded them here;
those that it floods here itself come first. What border routers tell counts while they are
reachable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from fared.core.ids import NodeId
from fared.core.wire import DecodeError
from fared.extensions.ina.control.advert import CAPABILITY_KEY, SumCapability, decode_capability
from fared.extensions.ina.control.network import JobNetwork, reachable_from
from fared.extensions.ina.control.passing import MOST_PASSED, PASSED_KEY, Passed, decode_passed
from fared.extensions.ina.plan.model import Direction

Native = tuple[NodeId, int]
"""Who floods an item, and its key."""


class JobArea(msgspec.Struct, frozen=True):
    """One area or level: its links (bytes/s). ``backbone``: area 0, or level 2."""

    number: int
    backbone: bool
    network: JobNetwork


class Areas:
    """What is flooded in all areas of a router ``node``."""

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.areas: dict[int, JobArea] = {}
        self.native: dict[Native, dict[int, bytes]] = {}
        """Items other than passed ones, by area."""
        self._passed: dict[tuple[int, NodeId], dict[int, Passed]] = {}
        self._whole = JobNetwork({}, frozenset({node}))
        self._given: dict[Native, bytes] = {}
        """What counts, as it was last returned."""
        self._touched: set[Native] = set()

    # -- inputs ---------------------------------------------------------------------------------

    def network_changed(self, areas: Iterable[JobArea], whole: JobNetwork) -> None:
        """Take the links of all areas."""
        self.areas = {area.number: area for area in areas}
        self._whole = whole

    def learned(self, area: int, node: NodeId, key: int, value: bytes | None) -> None:
        """Take what a router floods in an area; None: it withdrew that. Raises DecodeError."""
        if key >= PASSED_KEY:
            found = self._passed.setdefault((area, node), {})
            found.pop(key, None)
            if value is not None and len(found) < 2 * MOST_PASSED:
                found[key] = decode_passed(value)
            if not found:
                del self._passed[area, node]
            return
        found_in = self.native.setdefault((node, key), {})
        found_in.pop(area, None)
        if value is not None:
            found_in[area] = value
        if not found_in:
            del self.native[node, key]
        self._touched.add((node, key))

    def take_changes(self) -> list[tuple[NodeId, int, bytes | None]]:
        """Return who floods, or has withdrawn (None), what, since the last time."""
        passed = self._passed_items()
        changed: list[tuple[NodeId, int, bytes | None]] = []
        for what in self._touched | passed.keys() | (self._given.keys() - self.native.keys()):
            here = self.native.get(what)
            now = passed.get(what) if here is None else here[max(here)]
            if now == self._given.get(what) and what not in self._touched:
                continue
            self._given.pop(what, None)
            if now is not None:
                self._given[what] = now
            changed.append((*what, now))
        self._touched.clear()
        # An epoch has another key than the one before, which no head withdraws without it.
        return sorted(changed, key=lambda one: (one[2] is None, one[:2]))

    # -- what is known --------------------------------------------------------------------------

    @property
    def here(self) -> frozenset[NodeId]:
        """The routers that our areas connect."""
        return self._whole.reachable

    @property
    def alone(self) -> bool:
        """Whether nobody passes on, or asks for, anything."""
        return not self._passed

    def passed(self) -> Iterator[tuple[int, NodeId, Passed]]:
        """Yield area, router and content of what counts: the last version, of reachable routers.

        Up in the backbone only, and down elsewhere only.
        """
        for (number, node), items in sorted(self._passed.items()):
            area = self.areas.get(number)
            if area is None or node not in area.network.reachable:
                continue
            last: dict[tuple[str, str], Passed] = {}
            for one in items.values():
                known = last.get((one.way, one.job))
                if known is None or one.version > known.version:
                    last[one.way, one.job] = one
            allowed = ("wish", "up" if area.backbone else "down")
            for one in last.values():
                if one.way in allowed:
                    yield number, node, one

    def views(self) -> Iterator[tuple[NodeId, Passed]]:
        """Yield what border routers tell of other areas."""
        for _, node, one in self.passed():
            if one.way != "wish":
                yield node, one

    def _passed_items(self) -> dict[Native, bytes]:
        found: dict[Native, bytes] = {}
        for _, one in self.views():
            items = [(advert.head, advert.key, advert.value) for advert in one.adverts]
            items += [(report.router, report.key, report.value) for report in one.reports]
            for node, key, value in items:
                if node not in self.here:  # a router of our areas floods its own itself
                    found[NodeId(node), key] = value
        return found

    def hosts(self) -> dict[str, NodeId]:
        """Return the routers of workers in other areas, by address."""
        found: dict[str, NodeId] = {}
        for _, one in self.views():
            found |= {address: NodeId(leaf) for address, leaf in one.view.hosts.items()}
        return found

    def capabilities(self) -> dict[NodeId, SumCapability]:
        """Return the routers of other areas that sum."""
        found: dict[NodeId, SumCapability] = {}
        for _, one in self.views():
            found |= {NodeId(router): told for router, told in one.view.routers.items()}
        return {router: told for router, told in found.items() if router not in self.here}

    def names(self) -> dict[NodeId, str]:
        """Return the hostnames of routers of other areas."""
        found: dict[NodeId, str] = {}
        for _, one in self.views():
            found |= {NodeId(router): name for router, name in one.view.names.items()}
        return found

    @property
    def bfrs(self) -> frozenset[int]:
        """The routers of our areas that run BIER."""
        return self._whole.bfrs

    def whole(self) -> JobNetwork:
        """Return the network with all that border routers tell."""
        links: dict[Direction, float] = dict(self._whole.links)
        bfrs = set(self.bfrs)
        more = False
        for _, one in self.views():
            for tail, head, rate in one.view.links:
                links[tail, head] = max(links.get((tail, head), 0.0), rate)
                more = True
            bfrs |= set(one.view.bfrs)
        if not more:
            return self._whole
        return JobNetwork(links, reachable_from(links, self.node), frozenset(bfrs))

    def tellers(self, address: str, router: int) -> set[NodeId]:
        """Return who tells that an address is at a router: itself, as it sums, or border routers.

        The address may be in another area, to which they lead.
        """
        found = set()
        for value in self.native.get((NodeId(router), CAPABILITY_KEY), {}).values():
            try:
                if decode_capability(value).address == address:
                    found.add(NodeId(router))
            except DecodeError:
                continue
        for node, one in self.views():
            told = one.view.routers.get(router)
            if one.view.hosts.get(address) == router or (told and told.address == address):
                found.add(node)
        return found
