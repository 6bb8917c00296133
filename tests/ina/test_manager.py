"""Which router leads a job, and when an epoch begins, on a virtual clock with flooding."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import NodeId, format_node
from fared.core.wire import DecodeError
from fared.extensions.ina.by_bier import BierWay
from fared.extensions.ina.control import planning
from fared.extensions.ina.control.advert import (
    SumCapability,
    decode_capability,
    decode_job,
    encode_capability,
    encode_job,
)
from fared.extensions.ina.control.adverts import JobAdverts
from fared.extensions.ina.control.creation import NewJob, WorkerPlace
from fared.extensions.ina.control.errors import ManagerError
from fared.extensions.ina.control.leading import hops_of, shapes_of
from fared.extensions.ina.control.manager import JobManager
from fared.extensions.ina.control.membership import WorkerReport, decode_report
from fared.extensions.ina.control.network import JobNetwork
from fared.extensions.ina.plan.model import GivenTree
from fared.extensions.ina.plan.planner import plan_jobs
from fared.extensions.ina.plan.trees import routers_below
from fared.extensions.ina.slots.setup import TreeSetup
from tests.ina.fabrics import both, clos, leaf

LEAVES = [NodeId(leaf(number)) for number in (1, 2, 3)]
SPINES = [NodeId(1), NodeId(2)]
LIMIT = 60_000


class PromptManager(JobManager):
    """Considers at once what it takes, which a process coalesces."""

    def process_found(self, capability: SumCapability | None, now: float) -> None:
        super().process_found(capability)
        self.consider(now)

    def workers_found(self, reports, joined: frozenset[int], now: float) -> None:
        super().workers_found(reports, joined)
        self.consider(now)

    def network_changed(self, network: JobNetwork, now: float) -> None:
        super().network_changed(network)
        self.consider(now)

    def learned(self, node: NodeId, key: int, value: bytes | None, now: float) -> None:
        super().learned(node, key, value)
        self.consider(now)


class Flooded:
    """Managers of two spines and three leaves; ``exchange`` floods until nothing changes."""

    def __init__(self, leaves: int = 3, memory: int = 1 << 20) -> None:
        self.now, self.memory = 100.0, memory
        self.leaves = [NodeId(leaf(number)) for number in range(1, leaves + 1)]
        self.alive = {*SPINES, *self.leaves}
        self.managers = {node: PromptManager(node, LIMIT) for node in self.alive}
        self.seen: dict[NodeId, dict[int, bytes]] = {node: {} for node in self.alive}
        self.changes: dict[tuple[int, int], float] = {}
        self.bfrs: frozenset[NodeId] = frozenset()
        for node in self.alive:
            self.begin_process(node, 1)
        self.route()

    def begin_process(self, node: NodeId, instance: int | None) -> None:
        found = (
            None
            if instance is None
            else SumCapability(
                f"10.9.0.{node}", 54200, instance, self.memory, bier=node in self.bfrs
            )
        )
        self.managers[node].process_found(found, self.now)

    def route(self) -> None:
        links = clos(2, len(self.leaves), self.changes).links
        up = {pair: rate for pair, rate in links.items() if {*pair} <= self.alive}
        for node in self.alive:
            network = JobNetwork(up, frozenset(self.alive), self.bfrs)
            self.managers[node].network_changed(network, self.now)
        self.exchange()

    def run_bier(self, nodes: Collection[NodeId]) -> None:
        """These routers run BIER, and their processes send by it."""
        self.bfrs = frozenset(nodes)
        for node in self.alive:
            self.begin_process(node, 1)
        self.route()
        self.run(5)

    def exchange(self) -> None:
        for _ in range(20):
            changed = False
            for node in sorted(self.alive):
                items, before = self.managers[node].items(), self.seen[node]
                self.seen[node] = items
                for key in sorted({*items, *before}):
                    if items.get(key) != before.get(key):
                        changed = True
                        for other in self.alive - {node}:
                            self.managers[other].learned(node, key, items.get(key), self.now)
            if not changed:
                return
        raise AssertionError("adverts do not come to rest")

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while True:
            dues = [self.managers[node].next_deadline() for node in self.alive]
            due = min((due for due in dues if due is not None), default=end)
            if due > end:
                break
            self.now = max(self.now, due)
            for node in sorted(self.alive):
                self.managers[node].consider(self.now)
            self.exchange()
            if due == end:
                break
            self.now += 0.01
        self.now = end

    def create(self, name: str = "job", leaves: tuple[int, ...] = (), **given: object) -> None:
        """Create a job with a worker at each of some leaves, by default all."""
        numbers = leaves or range(1, len(self.leaves) + 1)
        places = [WorkerPlace(f"10.0.{at}.2", NodeId(leaf(at))) for at in numbers]
        new = NewJob(name, places, 1408, 8, **given)
        self.managers[places[0].leaf].create(new, self.now)
        self.exchange()
        self.join()

    def join(self, leaves: Collection[NodeId] | None = None) -> None:
        """A worker of each job is connected to these leaves, by default all."""
        for node in self.leaves:
            manager = self.managers[node]
            here = leaves is None or node in leaves
            manager.workers_found({}, frozenset(manager.jobs if here else ()), self.now)

    def report(self, number: int, **told: tuple[int, ...]) -> None:
        """What ``fared-ina`` of a leaf tells of its workers."""
        ((job_id, _),) = self.managers[self.leaves[number - 1]].jobs.items()
        reports = {job_id: WorkerReport(**told)}
        self.managers[self.leaves[number - 1]].workers_found(reports, frozenset(reports), self.now)
        self.exchange()

    def job(self, node: NodeId = SPINES[1]):
        ((head, advert),) = self.managers[node].jobs.values()
        return head, advert.job

    def roots(self) -> set[int]:
        return {tree.root for tree in self.job()[1].setup.trees}

    def agreed(self) -> bool:
        found = {self.job(node)[1].setup.epoch for node in self.alive}
        return len(found) == 1


@pytest.fixture
def net() -> Flooded:
    made = Flooded()
    made.create()
    return made


def test_all_members_install_the_job_of_its_head(net):
    head, job = net.job()
    assert (head, job.setup.epoch, net.roots()) == (LEAVES[0], 1, {1, 2})
    assert all(net.managers[node].wanted() for node in net.alive)
    assert {v for v in job.members if v > 0} == {*SPINES, *LEAVES}


def test_a_job_tells_which_processes_were_there_when_it_was_created(net):
    """A later one cannot know who has been a worker."""
    net.begin_process(LEAVES[1], 7)
    net.exchange()
    net.begin_process(SPINES[0], 7)
    net.exchange()
    assert net.job()[1].setup.epoch == 2
    assert net.job()[1].doors == dict.fromkeys(LEAVES, 1)


def test_a_lost_link_begins_an_epoch_at_once(net):
    net.changes = both(1, 2, 0.0)
    net.route()
    assert (net.job()[1].setup.epoch, net.roots()) == (2, {2})
    assert "no link to" in net.job()[1].reason


def test_a_spine_whose_links_are_lost_together_is_told_like_one_that_loses_them_one_by_one(net):
    """Its capability is not withdrawn: it may still sum, but nobody reaches it."""
    net.alive.remove(SPINES[0])
    net.route()
    assert (net.job()[1].setup.epoch, net.roots()) == (2, {2})
    assert net.job()[1].reason == f"no link to {format_node(SPINES[0])}"


def test_results_go_by_bier_while_all_routers_of_the_trees_have_it():
    net, way = Flooded(), BierWay(1, 64, {1: 5, 2: 6, 3: 7})
    with pytest.raises(ManagerError, match=r"cannot go by BIER: 0\.0\.0\.1 does not send them"):
        net.create(results=way, forced=True)
    net.run_bier(net.alive)
    net.create(results=way, forced=True)
    assert (net.job()[1].bier, net.job()[1].unicast) == (way, "")
    net.run_bier(net.alive - {SPINES[1]})
    assert net.job()[1].bier is None
    assert net.job()[1].reason.startswith("results by unicast: 0.0.0.2 does not send them by BIER")
    net.run_bier(net.alive)
    assert (net.job()[1].bier, net.job()[1].reason) == (way, "results by BIER")
    assert net.agreed()


def test_a_job_has_its_given_tree_while_that_works():
    net = Flooded()
    with pytest.raises(ManagerError, match=r"no such tree: 0\.0\.0\.9 does not sum"):
        net.create(tree=GivenTree(9, {}))
    given = GivenTree(1, {leaf(2): 1})
    net.create(tree=given)
    (tree,) = net.job()[1].setup.trees
    assert (tree.root, tree.parents) == (1, {-1: 1, -2: leaf(2), leaf(2): 1, -3: 1})
    net.changes = both(1, 1, 0.0) | both(1, 2, 0.0) | both(1, 3, 0.0)
    net.route()
    assert (net.job()[1].setup.epoch, net.roots()) == (2, {2})
    net.changes = {}
    net.route()
    net.run(5)
    assert (net.roots(), net.job()[1].setup.trees[0].parents) == ({1}, tree.parents)
    assert net.agreed()


def test_a_relay_is_flooded_and_the_loss_of_one_of_its_links_begins_an_epoch_at_once(net):
    net.changes = both(1, 2, 0.25) | both(2, 3, 0.25)
    net.route()
    net.run(5)
    trees = net.job()[1].setup.trees
    (relay,) = (tree for tree in trees if tree.above)
    assert (relay.root, relay.above) == (1, {-1: leaf(1), -2: 2, 2: leaf(1), leaf(1): 1})
    epoch = net.job()[1].setup.epoch
    net.run(5)
    assert (net.job()[1].setup.epoch, net.agreed()) == (epoch, True)
    net.changes = net.changes | {(2, leaf(1)): 0.0}
    net.route()
    assert net.job()[1].setup.epoch == epoch + 1
    assert net.roots() == {1}
    hops = hops_of(net.job()[1].setup.trees, {at: leaf(at) for at in (1, 2, 3)}, clos(2, 3).links)
    assert (2, leaf(1)) not in hops


def test_a_link_that_only_a_relay_needs_begins_an_epoch_at_once():
    """S1 and S2 stay roots, and only the way of a relay between two other routers is cut."""
    leaves = {-1: 11, -2: 12}
    relay = TreeSetup(0, 1, 1, 2, {-1: 1, -2: 2, 2: 11, 11: 1}, {-2: 2, 2: 11, 11: 1})
    links = dict.fromkeys([(11, 1), (1, 11), (12, 2), (2, 12), (2, 11), (11, 2)], 1.0)
    found = hops_of([relay], {-worker: at for worker, at in leaves.items()}, links)
    assert found == set(links)
    star = TreeSetup(0, 1, 1, 2, {-1: 1, -2: 1})
    assert hops_of([star], {1: 11, 2: 12}, links) == {(11, 1), (1, 11)}
    assert shapes_of([relay]) != shapes_of([star])


def test_a_capacity_that_changes_again_and_again_begins_few_epochs(net):
    for step in range(20):
        net.changes = both(1, 2, 0.25 + 0.1 * (step % 3))
        net.route()
        net.run(0.1)
    assert net.job()[1].setup.epoch <= 3
    net.run(5)
    assert net.job()[1].reason == "capacities changed"
    assert net.agreed()


def test_a_process_that_started_again_has_lost_its_slots(net):
    net.begin_process(SPINES[0], 2)
    net.exchange()
    assert (net.job()[1].setup.epoch, net.roots()) == (2, {1, 2})
    assert "started again" in net.job()[1].reason


def test_a_process_that_ended_is_planned_around(net):
    net.begin_process(SPINES[0], None)
    net.exchange()
    assert (net.job()[1].setup.epoch, net.roots()) == (2, {2})


def test_a_head_that_restarts_has_lost_the_job_and_the_next_leaf_leads_it(net):
    net.managers[LEAVES[0]] = PromptManager(LEAVES[0], LIMIT)
    net.begin_process(LEAVES[0], 1)
    net.route()  # its former adverts are flushed
    for node in net.alive - {LEAVES[0]}:
        for peer in net.alive - {LEAVES[0], node}:
            for key, value in net.seen[peer].items():
                net.managers[LEAVES[0]].learned(peer, key, value, net.now)
    net.run(1)
    assert net.job()[0] == LEAVES[1]
    assert net.job(LEAVES[0])[0] == LEAVES[1]
    assert net.job()[1].setup.epoch == 2
    assert net.agreed()


def test_a_router_of_a_worker_gets_epochs_that_began_while_it_did_not_sum(net):
    """Its daemon starts again, while ``fared-ina`` and the workers run on."""
    net.managers[LEAVES[1]] = PromptManager(LEAVES[1], LIMIT)
    net.route()
    net.changes = both(1, 3, 0.0)
    net.route()
    epoch, job = net.job()[1].setup.epoch, net.managers[LEAVES[1]].wanted()
    assert epoch == 2
    assert [one.job.setup.epoch for one in job.values()] == [2]
    assert LEAVES[1] in net.job()[1].members


def test_a_head_that_is_cut_off_is_replaced_and_comes_back_as_a_follower(net):
    net.alive.discard(LEAVES[0])
    net.route()
    net.run(3)
    assert net.job()[0] == LEAVES[0], "without its worker no tree is possible"
    net.alive.add(LEAVES[0])
    net.route()
    net.run(3)
    assert net.agreed()


def test_an_ended_job_is_forgotten_and_does_not_come_back(net):
    former = net.seen[LEAVES[0]]
    with pytest.raises(ManagerError, match="its head"):
        net.managers[LEAVES[1]].delete("job", net.now)
    net.managers[LEAVES[0]].delete("job", net.now)
    net.exchange()
    assert not any(net.managers[node].jobs for node in net.alive)
    net.run(60)
    assert not any(key for items in net.seen.values() for key in items)
    for key, value in former.items():
        net.managers[SPINES[0]].learned(LEAVES[2], key, value, net.now)
    assert not net.managers[SPINES[0]].jobs
    net.create()
    assert net.job()[1].setup.epoch == 1


def silenced(net: Flooded, *, withdrawn: bool) -> None:
    """The head ends, and is forgotten by its neighbors at once or when its LSAs are too old."""
    net.alive.discard(LEAVES[0])
    if withdrawn:
        for key in net.seen[LEAVES[0]]:
            for node in net.alive:
                net.managers[node].learned(LEAVES[0], key, None, net.now)
    net.route()


@pytest.mark.parametrize("withdrawn", [True, False])
def test_a_job_ends_with_its_head_if_no_worker_has_joined(withdrawn):
    net = Flooded()
    net.create()
    net.join(())
    silenced(net, withdrawn=withdrawn)
    net.run(60)
    assert not any(net.managers[node].jobs for node in net.alive)
    assert not any(key for node in net.alive for key in net.managers[node].items())


def test_a_job_that_ended_with_its_head_goes_on_when_the_head_was_cut_off_only():
    net = Flooded()
    net.create()
    net.join(())
    silenced(net, withdrawn=False)
    net.run(60)
    net.alive.add(LEAVES[0])
    net.route()
    assert net.agreed()
    assert net.job()[0] == LEAVES[0]


def test_a_job_without_a_head_is_led_where_a_worker_is_connected(net):
    """L2 comes first, but only L3 has one."""
    net.join(LEAVES[2:])
    net.managers[LEAVES[0]] = PromptManager(LEAVES[0], LIMIT)
    net.begin_process(LEAVES[0], 1)
    net.route()
    net.run(60)
    assert net.job()[0] == LEAVES[2]


def test_a_job_that_had_two_heads_ends_for_good(net):
    """The first head restarted: what it flooded before is withdrawn, but known to the others."""
    net.managers[LEAVES[0]] = PromptManager(LEAVES[0], LIMIT)
    net.begin_process(LEAVES[0], 1)
    net.route()
    net.run(1)
    assert net.job()[0] == LEAVES[1]
    net.managers[LEAVES[1]].delete("job", net.now)
    net.exchange()
    net.run(60)
    assert not any(net.managers[node].jobs for node in net.alive)
    assert not any(key for items in net.seen.values() for key in items)


def test_an_heir_that_took_a_job_over_while_it_ended_does_not_lead_it_later(net):
    """The withdrawal of the last epoch came long before the end: both heads have epoch 2."""
    key = next(key for key in net.seen[LEAVES[0]] if key)
    net.managers[LEAVES[1]].learned(LEAVES[0], key, None, net.now)
    net.now += 0.2
    net.managers[LEAVES[1]].consider(net.now)
    assert net.managers[LEAVES[1]].items().keys() > {0}, "it leads the job"
    net.managers[LEAVES[0]].delete("job", net.now)
    net.exchange()
    net.run(60)
    assert not any(net.managers[node].jobs for node in net.alive)
    assert not any(key for items in net.seen.values() for key in items)


def test_jobs_that_cannot_be_are_refused_with_the_reason():
    net = Flooded()
    manager = net.managers[LEAVES[0]]
    here, there = WorkerPlace("10.0.1.2", LEAVES[0]), WorkerPlace("10.0.2.2", LEAVES[1])
    for places, told in (
        ([here], "1 workers"),
        ([there, here], "create it at"),
        ([here, WorkerPlace("10.0.9.2", NodeId(999))], "does not sum"),
    ):
        with pytest.raises(ManagerError, match=told):
            manager.create(NewJob("x", places, 1408, 8), net.now)
    manager.create(NewJob("x", [here, there], 1408, 8), net.now)
    with pytest.raises(ManagerError, match="exists"):
        manager.create(NewJob("x", [here, there], 1408, 8), net.now)
    other = manager.create(NewJob("y", [here, there], 1408, 8), net.now)
    assert other.members[-1].port == 54202, "both jobs have a worker at one host"


# -- without a tree ---------------------------------------------------------------------------


def test_workers_form_a_ring_while_no_spine_sums():
    net = Flooded(leaves=4)
    net.create()
    for spine in SPINES:
        net.begin_process(spine, None)
        net.exchange()
    job = net.job()[1]
    assert (job.setup.epoch, job.setup.trees) == (3, ())
    assert "does not sum any more: no aggregation tree, workers form a ring" in job.reason
    assert all(job.setup.job_id in net.managers[node].wanted() for node in net.leaves)
    assert net.managers[LEAVES[0]].next_deadline() is not None
    net.run(10)
    assert net.job()[1].setup.epoch == 3
    assert net.managers[LEAVES[0]].next_deadline() is None, "nothing is due in a ring"
    net.begin_process(SPINES[1], 2)
    net.exchange()
    assert (net.job()[1].setup.epoch, net.roots()) == (4, {2})
    assert net.job()[1].reason == "there is an aggregation tree again"


def test_a_tree_that_comes_and_goes_begins_few_epochs():
    net = Flooded(leaves=4)
    net.create()
    net.begin_process(SPINES[0], None)
    net.exchange()
    for turn in range(20):
        net.begin_process(SPINES[1], None if turn % 2 == 0 else turn + 2)
        net.exchange()
        net.run(0.1)
    assert net.job()[1].setup.epoch <= 6
    assert net.agreed()


def test_a_job_begins_as_a_ring_where_only_leaves_sum():
    """One leaf would get the arrays of three others; a ring of them carries half of that."""
    net = Flooded(leaves=4)
    for spine in SPINES:
        net.begin_process(spine, None)
        net.exchange()
    net.create()
    assert net.job()[1].setup.trees == ()
    assert net.job()[1].reason == "created: no aggregation tree, workers form a ring"


def test_two_leaves_need_no_spine_that_sums():
    net = Flooded(leaves=2)
    for spine in SPINES:
        net.begin_process(spine, None)
        net.exchange()
    net.create()
    assert net.roots() == {leaf(1)}


def test_routers_without_memory_for_a_tree_do_not_sum():
    """A tree of S = 8 takes 17 slots, 44 kB: there is room for one job, not for two."""
    net = Flooded(leaves=4, memory=60_000)
    net.create()
    assert net.roots() == {1, 2}
    net.create("second")
    trees = {one.job.name: one.job.setup.trees for _, one in net.managers[1].jobs.values()}
    assert trees["second"] == ()
    net.managers[LEAVES[0]].delete("job", net.now)
    net.exchange()
    net.run(5)
    assert len(net.job()[1].setup.trees) == 2


def forge(net: Flooded, count: int, head: NodeId = LEAVES[2]) -> None:
    """A router floods jobs without number, all of which have a worker at each leaf."""
    places = [WorkerPlace(f"10.0.{at}.2", NodeId(leaf(at))) for at in (3, 1, 2)]
    known = JobAdverts()
    for number in range(count):
        first = NewJob(f"forged{number}", places, 1408, 8).advert(known)
        known.put(head, first)
        job = replace(first.job, setup=replace(first.job.setup, epoch=1))
        value = encode_job(replace(first, job=job))
        for node in net.alive - {head}:
            net.managers[node].learned(head, 2 * first.job.setup.job_id + 1, value, net.now)


def test_jobs_without_number_of_one_head_leave_places_for_others():
    net = Flooded(leaves=4)
    forge(net, 40)
    net.create("honest", (1, 2, 4))
    for node in LEAVES[:2]:
        names = [advert.job.name for advert in net.managers[node].wanted().values()]
        assert ("honest" in names, len(names)) == (True, 16)
    trees = next(
        a.job.setup.trees for _, a in net.managers[1].jobs.values() if a.job.name == "honest"
    )
    assert {tree.root for tree in trees} <= set(SPINES)
    assert all(net.managers[tree.root].wanted() for tree in trees)


def test_a_job_for_which_a_router_has_no_place_is_not_created():
    net = Flooded()
    for number in range(16):
        net.create(f"job{number}")
    with pytest.raises(ManagerError, match="no place"):
        net.create("one more")


def test_adverts_without_number_of_one_head_leave_room_for_others(monkeypatch):
    monkeypatch.setattr("fared.extensions.ina.control.adverts.MOST_JOBS", 20)
    net = Flooded(leaves=4)
    forge(net, 40)
    net.create("honest", (1, 2, 4))
    assert len(net.managers[1].jobs) == 20
    assert "honest" in {advert.job.name for _, advert in net.managers[1].jobs.values()}


def test_a_head_is_the_router_of_a_worker():
    net = Flooded()
    with pytest.raises(DecodeError, match="its head has no worker"):
        forge(net, 1, SPINES[0])


def test_a_leaf_that_is_cut_off_makes_no_ring(net):
    links = clos(2, 3, both(1, 3, 0.0) | both(2, 3, 0.0)).links
    for manager in net.managers.values():
        manager.network_changed(JobNetwork(links, frozenset(net.alive - {LEAVES[2]})), net.now)
    net.exchange()
    assert (net.job()[1].setup.epoch, len(net.job()[1].setup.trees)) == (1, 2)


# -- several jobs -----------------------------------------------------------------------------


def weights_of(net: Flooded, node: NodeId = SPINES[0]) -> dict[str, dict[int, int]]:
    """The weight of each tree of each job, by root."""
    return {
        advert.job.name: {tree.root: tree.weight for tree in advert.job.setup.trees}
        for _, advert in net.managers[node].jobs.values()
    }


def test_jobs_with_different_heads_share_links_and_get_all_back():
    net = Flooded(leaves=4)
    net.create("first", (1, 2, 3))
    net.create("second", (2, 3, 4))
    net.run(5)
    found = weights_of(net)
    assert [len(roots) for roots in found.values()] == [1, 1]
    assert not found["first"].keys() & found["second"].keys()
    epochs = {advert.job.setup.epoch for _, advert in net.managers[1].jobs.values()}
    net.run(60)
    assert {a.job.setup.epoch for _, a in net.managers[1].jobs.values()} == epochs, "both stay"
    job_id = next(i for i, (_, a) in net.managers[1].jobs.items() if a.job.name == "first")
    rate = net.managers[LEAVES[0]].reasons(job_id).trees[0].rate
    assert (rate, len(net.managers[LEAVES[0]].reasons(job_id).trees)) == (1.0, 1)
    (other,) = net.managers[1].reasons(job_id).others
    assert "with which this job shares links" in other.reason
    net.managers[LEAVES[1]].delete("second", net.now)
    net.exchange()
    net.run(5)
    assert weights_of(net) == {"first": {1: 1, 2: 1}}


def test_a_job_with_three_times_the_share_gets_three_times_the_rate():
    net = Flooded(leaves=4)
    net.create("large", share=3.0)
    net.create("small")
    net.run(5)
    jobs = {a.job.name: (i, a) for i, (_, a) in net.managers[1].jobs.items()}
    rates = {
        name: sum(tree.rate for tree in net.managers[LEAVES[2]].reasons(job_id).trees)
        for name, (job_id, _) in jobs.items()
    }
    assert rates == {"large": pytest.approx(1.5, rel=0.05), "small": pytest.approx(0.5, rel=0.05)}
    assert len(weights_of(net)["large"]) == 2, "a part of the other spine, too"


def test_jobs_at_different_leaves_do_not_meet():
    net = Flooded(leaves=4)
    net.create("first", (1, 2))
    net.create("second", (3, 4))
    net.run(5)
    assert weights_of(net) == {"first": {1: 1, 2: 1}, "second": {1: 1, 2: 1}}


def test_jobs_of_three_heads_come_to_rest_whatever_the_memory_of_routers():
    """What a job can use depends on the trees of others, which depend on it."""
    for memory in (30_000, 60_000, 100_000):
        net = Flooded(leaves=4, memory=memory)
        for name, leaves in (("a", (1, 2, 3)), ("b", (2, 3, 4)), ("c", (3, 1, 4))):
            net.create(name, leaves)
        net.run(20)
        before = weights_of(net), [a.job.setup.epoch for _, a in net.managers[1].jobs.values()]
        net.run(60)
        after = weights_of(net), [a.job.setup.epoch for _, a in net.managers[1].jobs.values()]
        assert before == after, memory


def test_a_plan_is_made_once_while_jobs_and_links_are_the_same(monkeypatch):
    made = []

    def counted(of):
        return lambda network, given: made.append(of) or of(network, given)

    for of in (plan_jobs, routers_below):
        monkeypatch.setattr(planning, of.__name__, counted(of))
    net = Flooded(leaves=4)
    net.create("first")
    net.create("second")
    net.run(10)
    count = len(made)
    for _ in range(10):
        net.begin_process(LEAVES[0], 1)  # fared-ina answers once a second
        net.run(1.0)
    assert len(made) == count
    net.changes = both(1, 2, 0.5)
    net.route()
    assert made[count:] == [routers_below, routers_below, plan_jobs]


def test_a_share_that_is_none_is_refused():
    net = Flooded(leaves=4)
    for share in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ManagerError, match="share"):
            net.create("x", share=share)


# -- elastic jobs -----------------------------------------------------------------------------


@pytest.fixture
def elastic() -> Flooded:
    made = Flooded(leaves=4)
    made.create(elastic=True)
    return made


def test_an_elastic_job_goes_on_without_a_worker_that_is_lost(elastic):
    elastic.report(3, lost=(3,))
    head, job = elastic.job()
    assert (head, job.setup.epoch, job.reason) == (LEAVES[0], 2, "rank 2 is lost")
    assert (job.setup.workers, job.setup.since, job.lost_ranks) == ((1, 2, 4), 2, [2])
    assert all(-3 not in tree.parents and -4 in tree.parents for tree in job.setup.trees)
    assert job.ranks == {1: 0, 2: 1, 3: 2, 4: 3}, "others keep their ranks"
    assert elastic.managers[LEAVES[2]].wanted(), "the worker may come back there"
    elastic.run(10)
    assert elastic.job()[1].setup.epoch == 2


def test_a_worker_that_wants_to_come_back_is_one_in_a_later_epoch(elastic):
    elastic.report(3, lost=(3,))
    elastic.report(3, returning=(3,))
    job = elastic.job()[1]
    assert (job.setup.epoch, job.setup.since, job.reason) == (3, 3, "rank 2 is back")
    assert (job.setup.workers, job.lost_ranks) == ((1, 2, 3, 4), [])
    elastic.report(3)
    elastic.run(10)
    assert elastic.job()[1].setup.epoch == 3
    assert elastic.agreed()
    elastic.report(3, lost=(3,))
    assert elastic.job()[1].setup.workers == (1, 2, 4)


def test_other_epochs_leave_the_workers_of_an_elastic_job_as_they_are(elastic):
    elastic.report(3, lost=(3,))
    elastic.changes = both(1, 1, 0.0)
    elastic.route()
    job = elastic.job()[1]
    assert (job.setup.epoch, job.setup.since, job.setup.workers) == (3, 2, (1, 2, 4))
    for spine in SPINES:
        elastic.begin_process(spine, None)
        elastic.exchange()
    job = elastic.job()[1]
    assert (job.setup.since, job.setup.workers) == (2, (1, 2, 4))
    elastic.report(4, lost=(4,))
    job = elastic.job()[1]
    assert (job.setup.since, job.setup.workers) == (job.setup.epoch, (1, 2))


def test_the_next_head_knows_who_is_lost_and_leads_on(elastic):
    """Adverts of epochs have keys in turn: L1 sees that L2 withdraws one before it has the next."""
    elastic.managers[LEAVES[0]] = PromptManager(LEAVES[0], LIMIT)
    elastic.begin_process(LEAVES[0], 1)
    elastic.route()
    elastic.run(2)
    epoch = elastic.job()[1].setup.epoch
    elastic.report(3, lost=(3,))
    elastic.run(5)
    head, job = elastic.job()
    assert (head, job.setup.epoch, job.lost_ranks) == (LEAVES[1], epoch + 1, [2])


def test_an_elastic_job_ends_with_the_reason_where_one_worker_is_left(elastic):
    for number in (2, 3, 4):
        elastic.report(number, lost=(number,))
    assert not any(elastic.managers[node].jobs for node in elastic.alive)
    ((head, last),) = [
        elastic.managers[SPINES[0]]._adverts.best(job_id)
        for job_id in elastic.managers[SPINES[0]]._adverts._adverts
    ]
    assert (head, last.ended) == (LEAVES[0], True)
    assert elastic.managers[SPINES[0]].why_ended(last.job.setup.job_id) == (
        "rank 3 is lost: 2 workers are needed"
    )
    elastic.run(60)
    assert not any(key for node in elastic.alive for key in elastic.managers[node].items())


def test_who_left_in_good_order_is_not_missed_but_no_worker_of_a_later_epoch(elastic):
    elastic.report(4, left=(4,))
    assert elastic.job()[1].setup.epoch == 1
    elastic.report(3, lost=(3,))
    assert elastic.job()[1].setup.workers == (1, 2)


def test_a_router_tells_of_its_own_workers_only(elastic):
    elastic.report(2, lost=(1, 3, 4))
    assert (elastic.job()[1].setup.epoch, elastic.job()[1].lost_ranks) == (1, [])


def test_a_job_that_is_not_elastic_has_no_other_workers():
    net = Flooded(leaves=4)
    net.create()
    net.report(3, lost=(3,))
    assert (net.job()[1].setup.epoch, net.job()[1].setup.workers) == (1, (1, 2, 3, 4))
    assert len(net.seen[LEAVES[2]]) == 1, "nothing but its capability is flooded"


# -- what is flooded --------------------------------------------------------------------------


def test_adverts_survive_encoding(net):
    ((_, advert),) = net.managers[SPINES[0]].jobs.values()
    assert decode_job(encode_job(advert)) == advert
    found = SumCapability("10.255.0.1", 54200, 7, 1 << 26, bier=True)
    assert decode_capability(encode_capability(found)) == found


@given(st.binary(max_size=200), st.integers(0, 120))
def test_any_bytes_give_an_advert_or_an_error(data, at):
    net = Flooded()
    net.create()
    good = bytearray(next(v for k, v in net.seen[LEAVES[0]].items() if k))
    good[at : at + len(data)] = data
    for value in (data, bytes(good)):
        for decode in (decode_capability, decode_job, decode_report):
            try:
                decode(value)
            except DecodeError:
                continue
