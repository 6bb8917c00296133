"""What a computation was about, by router and link; and the links that a database once had."""

import pytest

from fared.core.ids import ISIS_NODE
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, FabricBuilder, clos3
from fared.extensions.sim.levels import clos3_isis
from fared.extensions.sim.network import Network
from fared.router.compared import DatabaseChange
from fared.router.lost import KEPT, MOST, LostLink, LostLinks

BOTH = pytest.mark.parametrize("build", [clos3, clos3_isis], ids=["ospf", "isis"])
_SYSTEM_ID_SHIFT = 8


def settled(fabric: Fabric, seconds: float = 3.0) -> None:
    fabric.network.run_until_quiet(fabric.network.now + 120.0, quiet=seconds)


def started(build=clos3) -> Fabric:
    fabric = build(2, 3)
    fabric.network.start_all()
    settled(fabric)
    return fabric


class Teller:
    """What one router tells since a moment, with the names of the fabric."""

    def __init__(self, fabric: Fabric, name: str) -> None:
        self.fabric = fabric
        self.router = fabric.network.nodes[name].running
        list(self.router.changes.settled())
        self.seen = len(self.router.changes.happened)

    def name(self, node: int) -> str:
        isis = node & ISIS_NODE
        return self.fabric.name_of((node ^ isis) >> _SYSTEM_ID_SHIFT if isis else node)

    def since(self) -> list[tuple]:
        settled(self.fabric)
        list(self.router.changes.settled())
        changes = [c for h in self.router.changes.happened[self.seen :] for c in h.changes]
        self.seen = len(self.router.changes.happened)
        return [self.words(change) for change in changes]

    def words(self, change: DatabaseChange) -> tuple:
        ends = [self.name(node) for node in (change.node, change.end) if node]
        pair = change.what in ("lost", "new", "back")
        return (change.what, *(sorted(ends) if pair else ends))

    def lost(self) -> list[tuple[str, str]]:
        return [
            tuple(sorted((self.name(link.a), self.name(link.b))))
            for link in self.router.changes.lost.present(self.fabric.network.now)
        ]


@BOTH
def test_a_link_is_lost_once_and_comes_back(build):
    fabric = started(build)
    told = Teller(fabric, "L1")
    fabric.network.set_link("S2", "L3", up=False)
    assert ("lost", "L3", "S2") in told.since()
    assert told.lost() == [("L3", "S2")]
    fabric.network.set_link("S2", "L3", up=True)
    assert ("back", "L3", "S2") in told.since()
    assert told.lost() == []


@BOTH
def test_a_capacity_changes_in_one_direction(build):
    fabric = started(build)
    told = Teller(fabric, "L1")
    fabric.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    assert told.since() == [("capacity", "S1", "L2")]
    change = told.router.changes.happened[-1].changes[0]
    assert (change.before, change.after) == pytest.approx((DEFAULT_CAPACITY, DEFAULT_CAPACITY / 4))


@BOTH
def test_a_router_that_ends_has_left_and_one_that_starts_again_returns(build):
    fabric = started(build)
    told = Teller(fabric, "L1")
    fabric.network.kill("L3")
    fabric.network.run_for(60.0)
    assert ("left", "L3") in told.since()
    assert sorted(told.lost()) == [("L3", "S1"), ("L3", "S2")]
    fabric.network.start("L3")
    fabric.network.run_for(60.0)
    assert ("returned", "L3") in told.since()
    assert told.lost() == []


def test_a_lost_link_is_all_that_is_told_of_it():
    """Its TE LSAs go too, and the network between; the second end loses its own prefix later."""
    fabric = started()
    told = Teller(fabric, "L1")
    fabric.network.set_link("S2", "L3", up=False)
    first, *later = told.since()
    assert first == ("lost", "L3", "S2")
    assert {what for what, *_ in later} <= {"prefixes"}


def test_the_computation_of_a_change_finds_what_it_was_about():
    """The second end of a link brings no change of its own."""
    fabric = started()
    told = Teller(fabric, "L1")
    fabric.network.set_link("S2", "L3", up=False)
    told.since()
    (happened,) = [h for h in told.router.changes.happened if h.changes[0].what == "lost"]
    assert happened.at in [run.at for run in told.router.journal.spf_runs]


def test_a_network_of_two_routers_is_a_link_between_them():
    builder = FabricBuilder(Network(seed=3))
    for name in ("R1", "R2", "R3"):
        builder.router(name)
        builder.hosts(name)
    builder.lan("R1", "R2")
    builder.link("R1", "R3")
    builder.link("R2", "R3")
    fabric = builder.fabric
    fabric.network.start_all()
    settled(fabric, 20.0)
    told = Teller(fabric, "R3")
    fabric.network.kill("R2")
    fabric.network.run_for(60.0)
    told.since()
    assert ("R1", "R2") in told.lost()


def a_lost(number: int, since: float) -> LostLink:
    return LostLink("ospf", 0, number, number + 1, 1, since, ("a", "b"))


def test_a_lost_link_stays_known_for_a_day():
    lost = LostLinks()
    lost.lose(a_lost(1, 10.0), network=False)
    lost.lose(a_lost(5, 20.0), network=False)
    assert len(lost.present(10.0 + KEPT)) == 2
    assert [link.a for link in lost.present(15.0 + KEPT)] == [5]


def test_parallel_links_are_counted():
    lost = LostLinks()
    lost.lose(a_lost(1, 10.0), network=False)
    lost.lose(a_lost(1, 30.0), network=False)
    (link,) = lost.present(40.0)
    assert (link.links, link.since) == (2, 30.0)
    assert lost.find("ospf", 0, 2, 1, 1)
    assert [link.links for link in lost.present(40.0)] == [1]
    assert lost.find("ospf", 0, 1, 2, 1)
    assert not lost.find("ospf", 0, 1, 2, 1)


def test_the_number_of_lost_links_is_bounded():
    lost = LostLinks()
    for number in range(0, 2 * MOST + 20, 2):
        lost.lose(a_lost(number, float(number)), network=False)
    found = lost.present(20.0 * MOST)
    assert (len(found), found[0].a) == (MOST, 20)


def test_those_of_a_former_process_are_the_earlier_ones():
    lost = LostLinks()
    lost.lose(a_lost(1, 10.0), network=False)
    lost.restore([a_lost(7, -100.0), a_lost(1, -50.0)])
    assert [(link.a, link.since) for link in lost.present(11.0)] == [(7, -100.0), (1, 10.0)]
