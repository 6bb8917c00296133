"""What this router passes on between its areas, if it is a border router that sums."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from fared.core.ids import NodeId
from fared.extensions.ina.control.advert import JobAdvert, SumCapability
from fared.extensions.ina.control.areas import Areas, JobArea
from fared.extensions.ina.control.membership import WORKERS_KEY
from fared.extensions.ina.control.passing import (
    MOST_PASSED,
    AreaView,
    Passed,
    PassedAdvert,
    PassedItems,
    PassedReport,
    Way,
)
from fared.extensions.ina.control.places import Demand, RouterPlaces, admitted
from fared.extensions.ina.plan.flow import shortest_paths_only
from fared.extensions.ina.plan.model import Capacities, Vertex
from fared.extensions.ina.plan.trees import widest_paths

Wanted = dict[tuple[Way, str], Passed]


class JobsHere(NamedTuple):
    """What a router knows of jobs: who sums here, with what is left for jobs of other areas.

    ``hosts`` are the routers of workers in its own areas, ``adverts`` the jobs of several areas,
    ``names`` the hostnames of routers.
    """

    able: Mapping[NodeId, SumCapability]
    hosts: Mapping[str, NodeId]
    adverts: Iterable[tuple[NodeId, JobAdvert]]
    names: Mapping[NodeId, str]

    def named(self, routers: Iterable[int]) -> dict[int, str]:
        """Return the hostnames of some routers."""
        known = ((router, self.names.get(NodeId(router))) for router in routers)
        return {router: name for router, name in known if name}


class _Crossing(msgspec.Struct):
    """A job of several areas: in which of them it is led or wanted, and its adverts."""

    who: NodeId
    addresses: tuple[str, ...]
    asked: set[int]
    adverts: list[tuple[NodeId, JobAdvert]]


class JobBorder:
    """What this router tells each of its areas of the others."""

    def __init__(self, areas: Areas, limit: int) -> None:
        self._areas, self._limit = areas, limit
        self.wishes: dict[str, tuple[str, ...]] = {}
        """Addresses of workers of jobs that are to be created here, by name."""
        self._items: dict[int, PassedItems] = {}
        self._wished = PassedItems(limit)
        self._sides: dict[tuple[NodeId, str], set[int]] = {}
        """The areas in which heads flood jobs, or have flooded those that have no head now."""

    def wished(self) -> dict[int, bytes]:
        """Return what this router asks for, in all areas."""
        return self._wished.items(
            {
                ("wish", name): Passed("wish", name, 0, asked=True, addresses=addresses)
                for name, addresses in self.wishes.items()
            }
        )

    @property
    def backbone(self) -> JobArea | None:
        """The backbone, if this router joins it and another area."""
        areas = [a for a in self._areas.areas.values() if len(a.network.reachable) > 1]
        found = next((area for area in areas if area.backbone), None)
        return found if len(areas) > 1 else None

    def addresses(self, here: JobsHere) -> set[str]:
        """Return the workers whose routers in our own areas are needed."""
        if self.backbone is None:
            return set()
        return {address for one in self._crossing(here).values() for address in one.addresses}

    def passed(self, here: JobsHere | None) -> dict[int, dict[int, bytes]]:
        """Return what to flood in one area each; None: there is no job of several areas."""
        backbone = self.backbone
        wanted: dict[int, Wanted] = {}
        if here is not None and backbone is not None and self._areas.node in here.able:
            for name, job in self._crossing(here).items():
                for number, passed in self._passed(name, job, backbone, here):
                    wanted.setdefault(number, {})[passed.way, passed.job] = passed
        found: dict[int, dict[int, bytes]] = {}
        for number in {*wanted, *self._items}:
            items = self._items.setdefault(number, PassedItems(self._limit))
            found[number] = items.items(wanted.get(number, {}))
        return {number: items for number, items in found.items() if items}

    # -- which jobs -----------------------------------------------------------------------------

    def _crossing(self, here: JobsHere) -> dict[str, _Crossing]:
        """Return the jobs by name, in the order of names; of very many each head has its part."""
        found: dict[str, _Crossing] = {}
        for number, node, one in self._areas.passed():
            if one.way == "wish" or (one.way == "up" and one.asked):
                _note(found, one.job, node, one.addresses).asked.add(number)
        adverts = list(here.adverts)
        sides = self._sides = {
            at: self._flooded_in(head, advert.key) or self._sides.get(at, set())
            for head, advert in adverts
            for at in [(head, advert.job.name)]
        }
        for head, advert in adverts:
            members = advert.job.members
            workers = tuple(members[at].address for at in sorted(members, reverse=True) if at < 0)
            job = _note(found, advert.job.name, head, workers)
            job.adverts.append((head, advert))
            job.asked |= sides[head, advert.job.name]
        names = sorted(found)
        demands = [Demand(found[name].who, at, 0) for at, name in enumerate(names)]
        chosen = admitted(demands, RouterPlaces(MOST_PASSED, 0))
        return {name: found[name] for at, name in enumerate(names) if at in chosen}

    def _flooded_in(self, head: NodeId, key: int) -> set[int]:
        """Return the areas in which the head itself floods an advert."""
        if head == self._areas.node:
            return set(self._areas.areas)
        return set(self._areas.native.get((head, key), ()))

    # -- what is told ---------------------------------------------------------------------------

    def _passed(
        self, name: str, job: _Crossing, backbone: JobArea, here: JobsHere
    ) -> Iterator[tuple[int, Passed]]:
        """Yield what is told of a job, with the area in which; nothing where it has no workers."""
        for number, area in sorted(self._areas.areas.items()):
            hosts = {at: here.hosts[at] for at in job.addresses if at in here.hosts}
            inside = {at: leaf for at, leaf in hosts.items() if leaf in area.network.reachable}
            if area.backbone or not inside:
                continue
            asked = number in job.asked
            if asked or backbone.number in job.asked:
                view = self._inside(area, inside, here)
                up = Passed("up", name, 0, asked, job.addresses, view)
                yield backbone.number, self._with_items(up, job, number)
            outside = {at: leaf for at, leaf in hosts.items() if at not in inside}
            down = self._beyond(name, backbone, set(inside), outside, here)
            if down.view.hosts:
                down = replace(down, addresses=job.addresses)
                yield number, self._with_items(down, job, backbone.number, but=number)

    def _with_items(
        self, passed: Passed, job: _Crossing, area: int, but: int | None = None
    ) -> Passed:
        """Add adverts and reports that routers flood in an area, and drop those of another one.

        Ours are flooded in all of our areas.
        """
        adverts = {(at.head, at.key): at for at in passed.adverts}
        reports = {(at.router, at.key): at for at in passed.reports}
        for head, advert in job.adverts:
            if (value := self._native(head, advert.key).get(area)) is not None:
                adverts[head, advert.key] = PassedAdvert(head, advert.key, value)
            key = WORKERS_KEY + advert.job.setup.job_id
            for leaf in sorted({*advert.leaves.values()}):
                if (value := self._native(leaf, key).get(area)) is not None:
                    reports[leaf, key] = PassedReport(leaf, key, value)
        return replace(
            passed,
            adverts=tuple(one for at, one in adverts.items() if but not in self._native(*at)),
            reports=tuple(one for at, one in reports.items() if but not in self._native(*at)),
        )

    def _native(self, node: int, key: int) -> Mapping[int, bytes]:
        """Return what a router itself floods with a key, by area."""
        return self._areas.native.get((NodeId(node), key), {})

    def _inside(self, area: JobArea, hosts: Mapping[str, NodeId], here: JobsHere) -> AreaView:
        """Return workers, their routers, and the widest shortest way to each."""
        able = here.able
        node, links = self._areas.node, area.network.links
        network = Capacities(links, frozenset())
        hops = widest_paths(network, network.neighbors(), node, len(area.network.reachable))
        used: set[tuple[Vertex, Vertex]] = set()
        reached = {at: leaf for at, leaf in hosts.items() if leaf in able}
        for leaf in {*reached.values()} & hops.keys():
            at: Vertex = leaf
            while at != node:
                used |= {(at, hops[at]), (hops[at], at)}
                at = hops[at]
        routers = {int(router): able[router] for router in {node, *reached.values()}}
        told = [(*link, links[link]) for link in sorted(used)]
        bfrs = self._areas.bfrs & {node, *itertools.chain(*used)}
        return AreaView({**reached}, routers, told, here.named(routers), sorted(bfrs))

    def _beyond(
        self,
        job: str,
        backbone: JobArea,
        inside: set[str],
        outside: Mapping[str, NodeId],
        here: JobsHere,
    ) -> Passed:
        """Return the backbone's part between us and others, with what these tell of their areas."""
        node, links = self._areas.node, backbone.network.links
        able = here.able
        hosts: dict[str, int] = {at: leaf for at, leaf in outside.items() if leaf in able}
        routers: dict[int, SumCapability] = {}
        names: dict[int, str] = {}
        rates: dict[tuple[Vertex, Vertex], float] = {}
        adverts: dict[tuple[int, int], PassedAdvert] = {}
        reports: dict[tuple[int, int], PassedReport] = {}
        bfrs: set[int] = set()
        targets = {*hosts.values()}
        for _, other, one in self._areas.passed():
            if one.job != job or one.way != "up" or inside & one.view.hosts.keys():
                continue
            targets.add(other)
            hosts |= one.view.hosts
            routers |= one.view.routers
            names |= one.view.names
            rates |= {(tail, head): rate for tail, head, rate in one.view.links}
            bfrs |= {*one.view.bfrs}
            adverts |= {(advert.head, advert.key): advert for advert in one.adverts}
            reports |= {(report.router, report.key): report for report in one.reports}
        for target in targets - {node}:
            for tail, head in shortest_paths_only(links, node, target):
                rates[tail, head] = links[tail, head]
                rates[head, tail] = links.get((head, tail), 0.0)
        on_the_way = {NodeId(vertex) for link in rates for vertex in link} | {node}
        routers |= {router: able[router] for router in on_the_way & able.keys()}
        told = [(*link, rate) for link, rate in sorted(rates.items())]
        names |= here.named(routers)
        bfrs |= on_the_way & self._areas.bfrs
        view = AreaView(hosts, routers, told, names, sorted(bfrs))
        items = tuple(adverts.values()), tuple(reports.values())
        return Passed("down", job, 0, False, (), view, *items)


def _note(
    found: dict[str, _Crossing], name: str, who: NodeId, addresses: tuple[str, ...]
) -> _Crossing:
    return found.setdefault(name, _Crossing(who, addresses, set(), []))
