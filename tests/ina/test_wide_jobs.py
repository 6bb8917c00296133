"""Jobs whose workers are in several areas: PoDs are areas, planes partitions of the backbone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import NodeId, format_node
from fared.core.wire import DecodeError
from fared.extensions.ina.by_bier import BierWay
from fared.extensions.ina.control.advert import SumCapability
from fared.extensions.ina.control.areas import JobArea
from fared.extensions.ina.control.creation import NewJob, WorkerPlace
from fared.extensions.ina.control.errors import ManagerError
from fared.extensions.ina.control.manager import JobManager
from fared.extensions.ina.control.membership import WorkerReport
from fared.extensions.ina.control.network import JobNetwork, reachable_from
from fared.extensions.ina.control.passing import MOST_PASSED, PASSED_KEY, decode_passed
from fared.extensions.ina.control.wide import WideJobs
from fared.extensions.ina.plan.bounds import least_cut
from fared.extensions.ina.plan.model import Capacities, GivenTree, SummingJob
from fared.extensions.ina.slots.packet import PacketKind
from fared.extensions.lab import topology
from fared.extensions.lab.addressing import make_plan
from fared.extensions.lab.ina_job import LabJob
from tests.ina.network import VirtualJob

ROOT = Path(__file__).parents[2]
Direction = tuple[int, int]
PODS, PLANES, SUPERS, LEAVES = 2, 2, 2, 2
BACKBONE = 0


def super_spine(plane: int, number: int) -> NodeId:
    return NodeId(1000 + 10 * plane + number)


def spine(pod: int, plane: int) -> NodeId:
    return NodeId(100 * pod + 10 + plane)


def leaf(pod: int, number: int) -> NodeId:
    return NodeId(100 * pod + number)


HEAD = leaf(1, 1)


def address(pod: int, number: int) -> str:
    return f"10.{pod}.{number}.2"


def clos5(pods: int = PODS) -> dict[int, dict[Direction, float]]:
    """The links of each area."""
    found: dict[int, dict[Direction, float]] = {BACKBONE: {}}
    for pod in range(1, pods + 1):
        found[pod] = {}
        for plane in range(1, PLANES + 1):
            for number in range(1, LEAVES + 1):
                _join(found[pod], spine(pod, plane), leaf(pod, number))
            for number in range(1, SUPERS + 1):
                _join(found[BACKBONE], super_spine(plane, number), spine(pod, plane))
    return found


def _join(links: dict[Direction, float], a: int, b: int, rate: float = 1.0) -> None:
    links[a, b] = links[b, a] = rate


class FloodedAreas:
    """Managers of all routers; ``exchange`` floods in each area what changed, until nothing does.

    An item reaches the routers that its area connects with who floods it, as in OSPF.
    """

    def __init__(self, pods: int = PODS) -> None:
        self.now = 100.0
        self.links = clos5(pods)
        self.pods = pods
        self.alive = {NodeId(v) for links in self.links.values() for link in links for v in link}
        self.managers: dict[NodeId, JobManager] = {}
        self.wide: dict[NodeId, WideJobs] = {}
        self.seen: dict[tuple[NodeId, int], dict[int, bytes]] = {}
        self.floodings: Counter[int] = Counter()
        self.bfrs: set[NodeId] = set()
        """The routers that run BIER, and send results by it."""
        self.instances: dict[NodeId, int] = {}
        for node in sorted(self.alive):
            self.start(node)
        self.route()

    def start(self, node: NodeId, instance: int = 1) -> None:
        """Start the daemon of a router."""
        self.managers[node] = manager = JobManager(node, 60_000)
        self.wide[node] = WideJobs(node, 60_000, manager)
        manager.process_found(self.capability(node, instance))
        self.instances[node] = instance

    def capability(self, node: NodeId, instance: int | None = None) -> SumCapability:
        """What ``fared-ina`` of a router tells."""
        at = self.instances[node] if instance is None else instance
        address = f"10.9.{node // 256}.{node % 256}"
        return SumCapability(address, 54200, at, 1 << 22, bier=node in self.bfrs)

    def areas_of(self, node: NodeId) -> list[JobArea]:
        """Return the areas of a router, with what is reachable in each."""
        found = []
        for number, links in self.links.items():
            if not any(node in link for link in links):
                continue
            up = {link: rate for link, rate in links.items() if {*link} <= self.alive}
            near = reachable_from(up, node)
            own = {link: rate for link, rate in up.items() if {*link} <= near}
            found.append(JobArea(number, number == BACKBONE, JobNetwork(own, near)))
        return found

    def route(self) -> None:
        for node in sorted(self.alive):
            areas = self.areas_of(node)
            links = {link: rate for area in areas for link, rate in area.network.links.items()}
            near = reachable_from(links, node)
            whole = JobNetwork(links, near, frozenset(map(int, near & self.bfrs)))
            self.managers[node].process_found(self.capability(node))
            self.wide[node].network_changed(areas, whole)
            self.wide[node].hostnames = {at: f"r{at}" for at in whole.reachable}
        self.consider()
        self.exchange()

    def consider(self) -> None:
        for node in sorted(self.alive):
            self.wide[node].tell_manager(_raise)
            self.managers[node].consider(self.now)

    def find(self, node: NodeId, addresses: Iterable[str]) -> dict[str, NodeId | None]:
        """Return the router of each address, if it is in an area of ``node``."""
        near = {v for area in self.areas_of(node) for v in area.network.reachable}
        hosts = {
            address(pod, n): leaf(pod, n)
            for pod in range(1, self.pods + 1)
            for n in range(1, LEAVES + 1)
        }
        return {at: hosts[at] if hosts.get(at) in near else None for at in addresses}

    def exchange(self) -> None:
        for _ in range(40):
            changed = False
            for node in sorted(self.alive):
                wide = self.wide[node]
                wide.found(self.find(node, wide.to_find()))
                items, only = wide.flooded()
                for area in self.areas_of(node):
                    now = items | only.get(area.number, {})
                    before = self.seen.get((node, area.number), {})
                    self.seen[node, area.number] = now
                    for key in sorted({*now, *before}):
                        if now.get(key) == before.get(key):
                            continue
                        changed = True
                        self.floodings[key] += 1
                        for other in area.network.reachable - {node}:
                            self.wide[other].learned(area.number, node, key, now.get(key))
            self.consider()
            if not changed:
                return
        raise AssertionError("what is passed on does not come to rest")

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while True:
            dues = [self.managers[node].next_deadline() for node in self.alive]
            due = min((due for due in dues if due is not None), default=end)
            if due > end:
                break
            self.now = max(self.now, due)
            self.consider()
            self.exchange()
            if due == end:
                break
            self.now += 0.01
        self.now = end

    def create(self, *places: tuple[int, int], name: str = "job", **given: object) -> None:
        """Create a job at the leaf of the first worker, as ``fared-jobs`` does."""
        head = leaf(*places[0])
        wide = self.wide[head]
        wide.border.wishes[name] = tuple(address(*place) for place in places)
        self.exchange()
        own = self.find(head, wide.border.wishes[name])
        routers = [own[address(*p)] or wide.router_of(address(*p)) for p in places]
        del wide.border.wishes[name]
        found = [WorkerPlace(address(*p), at) for p, at in zip(places, routers, strict=True)]
        given = {"results": "no BIER", "wide": True} | given
        new = NewJob(name, found, 1408, 8, **given)
        self.managers[head].create(new, self.now)
        self.exchange()

    def join(self, *leaves: NodeId) -> None:
        """Workers of each job are connected to these leaves."""
        for node in leaves:
            self.managers[node].workers_found({}, frozenset(self.managers[node].jobs))

    def lose(self, *nodes: NodeId) -> None:
        self.alive -= {*nodes}
        self.route()

    def epochs(self) -> dict[NodeId, int]:
        """The epoch of the job as each router that knows it sees it."""
        return {
            node: advert.job.setup.epoch
            for node in sorted(self.alive)
            for _, advert in self.managers[node].jobs.values()
        }

    def job(self, node: NodeId = HEAD):
        ((head, advert),) = self.managers[node].jobs.values()
        return head, advert.job

    def roots(self, node: NodeId = HEAD) -> set[int]:
        return {tree.root for tree in self.job(node)[1].setup.trees}

    def passed(self) -> dict[tuple[NodeId, int], list[str]]:
        """What is passed on: who tells it in which area, and the ways."""
        return {
            at: [decode_passed(items[key]).way for key in items if key >= PASSED_KEY]
            for at, items in self.seen.items()
            if at[0] in self.alive and any(key >= PASSED_KEY for key in items)
        }


def _raise(node: NodeId, error: DecodeError) -> None:
    raise error


ALL = [(1, 1), (1, 2), (2, 1), (2, 2)]
SUPER_SPINES = {super_spine(plane, n) for plane in (1, 2) for n in (1, 2)}
SPINES = [spine(pod, plane) for pod in (1, 2) for plane in (1, 2)]


@pytest.fixture(scope="module")
def created() -> FloodedAreas:
    made = FloodedAreas()
    made.create(*ALL)
    return made


def test_the_spines_sum_their_pod_and_a_super_spine_the_pods(created):
    """Each plane carries one array up and one down; its two super-spines divide it."""
    head, job = created.job()
    assert (head, job.setup.epoch) == (leaf(1, 1), 1)
    assert created.roots() <= SUPER_SPINES
    assert {root // 10 for root in created.roots()} == {101, 102}, "a root in each plane"
    for tree in job.setup.trees:
        plane = tree.root // 10 - 100
        own = {spine(pod, plane): tree.root for pod in (1, 2)}
        workers = {-1: spine(1, plane), -2: spine(1, plane), -3: spine(2, plane)}
        assert tree.parents == own | workers | {-4: spine(2, plane)}
        assert tree.above == tree.parents, "results are copied where sums were made"
    members = {tree.root for tree in job.setup.trees} | {*SPINES}
    for node in members | {leaf(*place) for place in ALL}:
        assert created.managers[node].wanted(), node
    names = created.wide[HEAD].areas.names()
    assert {names[at] for at in (leaf(2, 1), spine(2, 2), super_spine(1, 1))} == {
        "r201",
        "r212",
        "r1011",
    }


def test_sums_go_through_slots_of_all_tree_nodes_once(created):
    setup = created.job()[1].setup
    for loss in (0.0, 0.2):
        run = VirtualJob(setup, seed=3, loss=loss, double=loss)
        run.call(60)
        run.run()
        if not loss:
            results, chunks = run.kinds[PacketKind.RESULT], 60
            assert results == chunks * (2 + 4), "one for each spine, and one for each worker"


def planned(net: FloodedAreas) -> float:
    """The rate that the head plans."""
    ((job_id, _),) = net.managers[HEAD].jobs.items()
    return sum(tree.rate for tree in net.managers[HEAD].reasons(job_id).trees)


@pytest.mark.parametrize(
    ("damaged", "rate"),
    [
        ({}, 2.0),
        ({2: (leaf(2, 1), spine(2, 1), 0.25)}, 1.25),
        ({BACKBONE: (super_spine(1, 1), spine(2, 1), 0.25)}, 2.0),
        ({BACKBONE: (super_spine(1, 1), spine(2, 1), 0.0)}, 2.0),
        ({1: (leaf(1, 2), spine(1, 1), 0.0)}, 1.0),
    ],
)
def test_the_head_plans_the_bound_from_what_it_is_told(damaged, rate):
    """No all-reduce beats the least cut of the whole fabric, which no router knows."""
    net = FloodedAreas()
    for area, (a, b, left) in damaged.items():
        _join(net.links[area], a, b, left)
    net.route()
    net.create(*ALL)
    whole = {link: rate for links in net.links.values() for link, rate in links.items()}
    job = SummingJob("job", {at: leaf(*place) for at, place in enumerate(ALL, 1)})
    assert least_cut(Capacities(whole, frozenset()), job) == rate
    assert planned(net) == pytest.approx(rate)


def test_a_link_of_another_pod_that_recovers_begins_an_epoch():
    net = FloodedAreas()
    _join(net.links[2], leaf(2, 1), spine(2, 1), 0.25)
    net.route()
    net.create(*ALL)
    _join(net.links[2], leaf(2, 1), spine(2, 1))
    net.route()
    net.run(5)
    assert (planned(net), net.job()[1].reason) == (2.0, "capacities changed")
    before = net.epochs()
    net.run(60)
    assert net.epochs() == before


def test_one_head_that_asks_without_end_leaves_room_for_others():
    net = FloodedAreas()
    both = (address(1, 2), address(2, 1))
    net.wide[leaf(1, 2)].border.wishes = {f"forged{number}": both for number in range(90)}
    net.create(*ALL)
    told = net.seen[spine(1, 1), BACKBONE]
    assert sum(key >= PASSED_KEY for key in told) == MOST_PASSED
    assert set(net.epochs().values()) == {1}


def test_every_router_with_a_part_has_the_same_epoch_and_no_other_pod_hears_of_it():
    net = FloodedAreas(pods=3)
    net.create(*ALL)
    third = {leaf(3, 1), leaf(3, 2)}
    known = net.epochs()
    assert set(known.values()) == {1}
    assert third.isdisjoint(known)
    assert not {at for at in net.passed() if at[1] == 3 or 300 <= at[0] < 400}


def test_nothing_is_passed_on_for_jobs_of_one_area():
    net = FloodedAreas()
    places = [WorkerPlace(address(1, n), leaf(1, n)) for n in (1, 2)]
    net.managers[leaf(1, 1)].create(NewJob("job", places, 1408, 8), net.now)
    net.exchange()
    assert net.passed() == {}
    assert set(net.epochs()) == {leaf(1, 1), leaf(1, 2), spine(1, 1), spine(1, 2)}
    assert net.roots() == {spine(1, 1), spine(1, 2)}


def test_what_comes_down_does_not_go_up_again(created):
    for (node, area), ways in created.passed().items():
        assert {*ways} == ({"up"} if area == BACKBONE else {"down"}), (node, area)


def test_a_lost_border_router_begins_an_epoch_without_its_plane():
    net = FloodedAreas()
    net.create(*ALL)
    net.join(*(leaf(*place) for place in ALL))
    net.lose(spine(2, 1))
    net.run(5)
    assert {root // 10 for root in net.roots()} == {102}
    assert net.job()[0] == leaf(1, 1), "the head goes on"
    part = {leaf(*place) for place in ALL} | {spine(1, 2), spine(2, 2)} | net.roots()
    assert len({net.epochs()[node] for node in part}) == 1


def test_a_lost_head_is_replaced_by_a_leaf_of_another_pod():
    """Its daemon starts again and has lost the job; only workers of PoD 2 have joined."""
    net = FloodedAreas()
    net.create(*ALL)
    net.join(leaf(2, 1))
    net.start(leaf(1, 1))
    for area in net.areas_of(leaf(1, 1)):  # its neighbors send their databases
        for node in area.network.reachable - {leaf(1, 1)}:
            for key, value in net.seen.get((node, area.number), {}).items():
                net.wide[leaf(1, 1)].learned(area.number, node, key, value)
    net.route()
    net.run(5)
    assert net.job()[0] == leaf(2, 1)
    assert len({net.epochs()[leaf(*place)] for place in ALL}) == 1
    net.managers[leaf(2, 1)].delete("job", net.now)
    net.exchange()
    net.run(60)
    assert (net.epochs(), net.passed()) == ({}, {})


def test_a_job_whose_head_is_lost_without_workers_ends_everywhere():
    net = FloodedAreas()
    net.create(*ALL)
    net.lose(leaf(1, 1))
    net.run(60)
    assert (net.epochs(), net.passed()) == ({}, {})


def test_an_ended_job_is_withdrawn_everywhere():
    net = FloodedAreas()
    net.create(*ALL)
    net.managers[leaf(1, 1)].delete("job", net.now)
    net.exchange()
    assert net.epochs() == {}
    net.run(60)
    assert net.passed() == {}
    assert not any(key for items in net.seen.values() for key in items)


def test_workers_that_nobody_tells_of_are_refused_with_the_reason():
    net = FloodedAreas()
    with pytest.raises(ManagerError, match=r"10\.9\.9\.2 is in another area .* no border router"):
        net.create((1, 1), (9, 9))
    assert net.epochs() == {}


BY_BIER = BierWay(1, 64, {bfr_id: 40 + bfr_id for bfr_id in range(1, 5)})


def test_results_go_by_bier_across_areas_where_all_routers_of_the_trees_run_it():
    """Border routers tell who runs BIER; the root sends each result once, and nobody copies it."""
    net = FloodedAreas()
    net.bfrs = {*net.alive}
    net.route()
    net.create(*ALL, results=BY_BIER, forced=True)
    _, job = net.job()
    assert (job.bier, job.unicast) == (BY_BIER, "")
    assert net.roots() <= SUPER_SPINES
    assert all(not tree.above for tree in job.setup.trees)
    assert all(net.job(leaf(*place))[1].bier == BY_BIER for place in ALL)

    net.bfrs.discard(spine(2, 1))
    net.route()
    net.run(5)
    _, job = net.job()
    assert job.unicast == f"{format_node(spine(2, 1))} does not run BIER"
    assert all(tree.above == tree.parents for tree in job.setup.trees)


def test_a_job_that_wants_bier_is_refused_where_a_router_of_another_area_has_none():
    net = FloodedAreas()
    net.bfrs = net.alive - {spine(2, 1)}
    net.route()
    why = f"results cannot go by BIER: {format_node(spine(2, 1))} does not run BIER"
    with pytest.raises(ManagerError, match=why):
        net.create(*ALL, results=BY_BIER, forced=True)


@pytest.mark.parametrize(
    ("tree", "parents"),
    [
        # VAT nodes of both PoDs below a super-spine, as fared plans it
        (
            GivenTree(super_spine(1, 1), dict.fromkeys((spine(1, 1), spine(2, 1)), 1011)),
            {-1: 111, -2: 111, -3: 211, -4: 211, 111: 1011, 211: 1011},
        ),
        # a root in the other PoD: those of PoD 1 are summed before
        (
            GivenTree(spine(2, 2), {spine(1, 2): 212}),
            {-1: 112, -2: 112, -3: 212, -4: 212, 112: 212},
        ),
    ],
)
def test_a_given_tree_may_have_routers_of_several_areas(tree, parents):
    """Results go by unicast from its root, as within one area."""
    net = FloodedAreas()
    net.create(*ALL, tree=tree)
    _, job = net.job()
    (setup,) = job.setup.trees
    assert (setup.root, setup.parents, setup.above) == (tree.root, parents, {})
    for node in {*tree.nodes} | {leaf(*place) for place in ALL}:
        assert net.managers[NodeId(node)].wanted(), node

    net.lose(NodeId(tree.root))
    net.run(5)
    assert net.roots() <= SUPER_SPINES - {tree.root}, "planned trees, while it cannot work"


def test_a_given_tree_is_refused_with_a_router_that_no_worker_needs():
    net = FloodedAreas()
    with pytest.raises(ManagerError, match="would sum nothing"):
        net.create(*ALL, tree=GivenTree(super_spine(1, 1), {spine(1, 2): super_spine(1, 1)}))


def test_an_elastic_job_goes_on_without_a_worker_of_another_area_and_takes_it_back():
    """Border routers pass on what its router reports: up to the backbone, and down from it."""
    net = FloodedAreas(pods=3)
    net.create(*ALL, elastic=True)
    job_id = net.job()[1].setup.job_id

    def report(**found: tuple[int, ...]) -> None:
        told = {job_id: WorkerReport(**found)}
        net.managers[leaf(2, 1)].workers_found(told, frozenset({job_id}))
        net.consider()
        net.exchange()

    report(lost=(3,))
    setup = net.job()[1].setup
    assert (setup.workers, net.job()[1].reason) == ((1, 2, 4), "rank 2 is lost")
    assert {tuple(sorted(tree.parents)) for tree in setup.trees} >= {(-4, -2, -1, 111, 211)}
    assert {net.job(leaf(*place))[1].setup.workers for place in ALL} == {(1, 2, 4)}
    report(returning=(3,))
    assert (net.job()[1].setup.workers, net.job()[1].reason) == ((1, 2, 3, 4), "rank 2 is back")
    report()
    before = net.epochs()
    net.run(60)
    assert net.epochs() == before
    assert not {at for at in net.passed() if at[1] == 3}, "nobody else hears of it"


def test_a_report_counts_for_its_own_router_only_and_ends_with_the_job():
    net = FloodedAreas()
    net.create(*ALL, elastic=True)
    job_id = net.job()[1].setup.job_id
    net.managers[leaf(2, 1)].workers_found({job_id: WorkerReport(lost=(1,))}, frozenset())
    net.exchange()
    assert net.job()[1].setup.workers == (1, 2, 3, 4), "it has no such worker"
    net.managers[HEAD].delete("job", net.now)
    net.exchange()
    net.run(60)
    assert (net.epochs(), net.passed()) == ({}, {})


def test_a_leaf_that_is_weak_at_a_spine_relays_over_a_leaf_of_another_pod():
    """Two leaves of PoD 2 are weak at different spines; stars alone would waste both planes.

    The only other way of one is down into PoD 1, whose first leaf sums for it.
    """
    net = FloodedAreas()
    _join(net.links[2], leaf(2, 1), spine(2, 1), 0.25)
    _join(net.links[2], leaf(2, 2), spine(2, 2), 0.25)
    net.route()
    net.create(*ALL)
    whole = {link: rate for links in net.links.values() for link, rate in links.items()}
    job = SummingJob("job", {at: leaf(*place) for at, place in enumerate(ALL, 1)})
    cut = least_cut(Capacities(whole, frozenset()), job)
    assert planned(net) == pytest.approx(cut) == pytest.approx(1.25), "stars have 0.25 each"
    setup = net.job()[1].setup
    (relay,) = (tree for tree in setup.trees if leaf(1, 1) in tree.parents)
    way = [-3, spine(2, 2), super_spine(2, 1), spine(1, 2), leaf(1, 1), spine(1, 1), relay.root]
    assert [relay.parents[at] for at in way[:-1]] == way[1:]
    assert [relay.above[at] for at in way[:-1]] == way[1:], "results take the way back"
    for node in {*relay.nodes} | {leaf(*place) for place in ALL}:
        assert net.managers[NodeId(node)].wanted(), node
    for loss in (0.0, 0.2):
        run = VirtualJob(setup, seed=3, loss=loss, double=loss)
        run.call(60)
        run.run()


def test_a_leaf_is_no_border_router_whatever_it_tells():
    """What is told up counts in the backbone only: a leaf cannot tell of other PoDs there."""
    net = FloodedAreas()
    net.create(*ALL)
    up = next(
        value
        for (node, area), items in net.seen.items()
        for key, value in items.items()
        if key >= PASSED_KEY and area == BACKBONE and node == spine(2, 1)
    )
    before = net.wide[leaf(1, 2)].areas.hosts()
    net.wide[leaf(1, 2)].learned(1, leaf(1, 1), PASSED_KEY, up)
    assert net.wide[leaf(1, 2)].areas.hosts() == before


@given(st.binary(max_size=100))
def test_any_bytes_are_something_passed_on_or_an_error(data):
    for value in (data, b"\x01" + data):
        try:
            decode_passed(value)
        except DecodeError:
            continue


@pytest.mark.parametrize("name", ["clos5", "clos5-isis"])
def test_a_job_of_a_lab_is_wide_where_its_hosts_are_in_several_pods(name):
    plan = make_plan(topology.load(ROOT / "containerlab" / f"{name}.clab.yml"))
    for hosts, wide in ((["p1-h1", "p2-h1"], True), (["p1-h1", "p1-h2"], False)):
        job = LabJob(SimpleNamespace(plan=plan), "job", 1, hosts)
        assert job.wanted(bier=None, tree=None).wide == wide
