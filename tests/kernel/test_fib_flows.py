"""The number of flows that change their next hop when weights change, in the real kernel."""

import pytest

from fared.kernel.fib import KernelFib
from fared.paths.fib.settings import FibSettings
from tests.fib.helpers import PlannerOfRoutes
from tests.kernel.flows import FLOWS, fewest, moved, placed
from tests.kernel.netns import inside, run
from tests.kernel.test_fib import Box

pytestmark = pytest.mark.netns
TARGET = "198.18.0.9"
EVEN, SLOW = dict.fromkeys(range(4), 100), {0: 20, 1: 100, 2: 100, 3: 100}


class Mover:
    """A namespace with four links, and a planner that writes its groups."""

    def __init__(self, namespaces, *, idle_timer=0.0, **settings):
        self.box = Box(namespaces)
        self.box.fib.close()
        run("sysctl -qw net.ipv4.fib_multipath_hash_policy=1", self.box.name)
        wanted = FibSettings(**settings)
        with inside(self.box.name):
            self.fib = KernelFib(settings=wanted, idle_timer=idle_timer)
        self.planner = PlannerOfRoutes(wanted)

    def weigh(self, weights: dict[int, int]) -> list[str]:
        """Set the weights; return the interface of each flow."""
        operations = self.planner.update(self.box.routes(1, weights), 0.0)
        done = self.box.carry_out(self.planner, operations, self.fib)
        assert self.planner.failed == 0
        assert done
        return placed(self.box.name, TARGET)


@pytest.mark.parametrize("after", [SLOW, {0: 100, 2: 100, 3: 100}, {0: 100, 1: 95, 2: 100, 3: 100}])
def test_a_resilient_group_moves_the_minimal_number_of_flows(namespaces, after):
    mover = Mover(namespaces, resilient=True)
    before, later = mover.weigh(EVEN), mover.weigh(after)
    assert moved(before, later) == pytest.approx(fewest(before, later), abs=0.002)
    for number, weight in after.items():
        share = later.count(f"e{number}") / FLOWS
        assert share == pytest.approx(weight / sum(after.values()), abs=0.03)
    back = mover.weigh(EVEN)
    assert moved(later, back) == pytest.approx(fewest(later, back), abs=0.002)
    assert mover.planner.counters["group-rewrite"] == 2


def test_a_threshold_group_moves_more(namespaces):
    """The same change moves twice as many; the change back restores the former distribution."""
    mover = Mover(namespaces)
    before, later = mover.weigh(EVEN), mover.weigh(SLOW)
    assert 0.3 < moved(before, later) < 0.45
    assert fewest(before, later) < 0.22
    assert mover.weigh(EVEN) == before


def test_members_stay_in_order_when_weights_change(namespaces):
    """Groups list next hops by id, in any order of computation."""
    mover = Mover(namespaces)
    mover.weigh({3: 5, 1: 2})
    listed = [[m.nexthop_id for m in next(iter(mover.fib.dump().groups.values()))]]
    for weights in ({1: 7, 3: 1, 0: 2, 2: 9}, {0: 1, 1: 1, 2: 1, 3: 3}, {3: 1, 2: 2, 1: 3, 0: 4}):
        mover.weigh(weights)
        listed.append([m.nexthop_id for m in next(iter(mover.fib.dump().groups.values()))])
    assert listed[1] == listed[2] == listed[3] == sorted(listed[1])
    assert set(listed[0]) < set(listed[1])


def test_buckets_are_divided_by_dhondt_and_tiny_changes_rewrite_nothing(namespaces):
    mover = Mover(namespaces, resilient=True, buckets=128)
    mover.weigh({0: 333, 1: 400, 2: 123, 3: 398})
    (group,) = mover.fib.dump().groups
    lines = run(f"ip nexthop bucket show id {group}", mover.box.name).splitlines()
    counted = [
        sum(f" nhid {m.nexthop_id} " in f"{line} " for line in lines) for m in _members(mover)
    ]
    assert counted == [34, 41, 12, 41]
    routes = mover.box.routes(1, {0: 334, 1: 400, 2: 123, 3: 398})
    assert mover.planner.update(routes, 1.0) == []
    assert mover.planner.counters["group-rewrite"] == 0


def _members(mover: Mover):
    return next(iter(mover.fib.dump().groups.values()))


def test_a_member_worth_less_than_a_bucket_gets_no_flows(namespaces):
    mover = Mover(namespaces, resilient=True, buckets=64)
    flows = mover.weigh({0: 60000, 1: 60000, 2: 1})
    assert set(flows) == {"e0", "e1"}


def test_with_the_idle_timer_of_the_kernel_busy_flows_would_never_move(namespaces):
    """With an idle timer, new weights have no effect while all buckets are in use; our groups
    have none."""
    mover = Mover(namespaces, idle_timer=60.0, resilient=True, buckets=64)
    before = mover.weigh(EVEN)
    assert mover.weigh(SLOW) == before
