"""Links that are lost while operations are in flight, and routes replaced by other programs."""

import errno

from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import Prefix
from fared.paths.fib.model import PutRoute
from tests.fib.helpers import Bench, hop_key, prefix, routes

LINKS = (1, 2, 3, 4)
WEIGHTS = st.dictionaries(st.sampled_from(LINKS), st.integers(1, 9), min_size=1)
PARTS = st.lists(st.tuples(st.integers(0, 9), WEIGHTS), min_size=1, max_size=6)


def lose_on_the_way(bench: Bench, changed, lost, flapping=()) -> None:
    """Lose links, apply operations planned before that, then report the losses to the planner.

    Links in ``flapping`` are up again before the planner gets the kernel's answers.
    """
    for ifindex in lost:
        bench.kernel.link_down(ifindex)
    results = bench.kernel.apply(bench.planner.update(changed, bench.now))
    for ifindex in flapping:
        bench.kernel.link_up(ifindex)
    later = [op for i in lost for op in bench.planner.link_lost(i, bench.now)]
    later += [op for i in flapping for op in bench.planner.link_restored(i, bench.now)]
    later += bench.planner.results(results, bench.now, unanswered=bool(later))
    assert bench.planner.refusals == []
    bench.carry_out(later)
    assert bench.planner.refusals == []


def test_loss_of_four_links_at_once_is_not_reported_as_refusals_and_leaves_no_retries():
    """Regression: the kernel refused 27 operations, "Nexthop id does not exist"; all logged."""
    bench = Bench()
    bench.put(range(10), dict.fromkeys(LINKS, 5))
    lose_on_the_way(bench, routes(range(10), {2: 5, 3: 5, 4: 6}), LINKS)
    assert bench.planner.failed == 0
    assert bench.planner.installed.routes == {}
    assert bench.planner.reconcile(bench.kernel.dump(), 0.0) == (0, [])
    for link in LINKS:
        bench.restore(link)
    assert bench.kernel.path(prefix(3)) == {hop_key(2): 5, hop_key(3): 5, hop_key(4): 6}


def test_routes_of_a_group_that_was_removed_and_made_again_are_written_again():
    """The kernel removed it and the routes with its last link; then came its new members."""
    bench = Bench()
    bench.put([0], {1: 1})
    bench.put([1], {2: 1, 3: 1})
    lose_on_the_way(bench, routes([1], {1: 1}), [2, 3])
    assert bench.kernel.path(prefix(1)) == {hop_key(1): 1}
    assert bench.planner.reconcile(bench.kernel.dump(), 0.0) == (0, [])


def test_a_link_restored_before_the_answers_is_not_reported_as_a_refusal():
    """Regression: all uplinks flapped; "Nexthop id does not exist" was logged for the last one."""
    bench = Bench()
    bench.put(range(3), dict.fromkeys(LINKS, 5))
    lose_on_the_way(bench, routes(range(3), {2: 5}), LINKS, flapping=LINKS)
    assert bench.planner.failed == 0
    assert bench.kernel.path(prefix(1)) is not None
    bench.put(range(3), dict.fromkeys(LINKS, 5))
    assert bench.kernel.path(prefix(1)) == {hop_key(link): 5 for link in LINKS}
    assert bench.planner.reconcile(bench.kernel.dump(), 0.0) == (0, [])


def test_a_route_over_a_group_removed_with_its_only_member_is_not_reported_as_a_refusal():
    """The group is rewritten for a new route at the moment its only link is lost."""
    bench = Bench()
    bench.put([0], {1: 1, 2: 1})
    bench.put([0], {1: 1})
    lose_on_the_way(bench, routes([0, 1], dict.fromkeys(LINKS, 1)), [1])
    assert bench.planner.failed == 0
    for number in (0, 1):
        assert bench.kernel.path(prefix(number)) == dict.fromkeys(map(hop_key, (2, 3, 4)), 1)


def test_a_next_hop_that_the_kernel_goes_on_refusing_on_a_link_that_flapped_is_a_refusal():
    bench = Bench()
    bench.put([1], {1: 5, 2: 5})
    bench.lose(1)
    bench.kernel.refuse[hop_key(1)] = errno.EINVAL
    bench.restore(1)
    assert bench.planner.failed == 1
    assert (bench.kernel.path(prefix(1)) or {}).keys() == {hop_key(2)}


@given(
    before=PARTS,
    after=PARTS,
    lost=st.lists(st.sampled_from(LINKS), unique=True, min_size=1),
    flapping=st.integers(0, 4),
)
def test_after_links_are_lost_with_operations_in_flight_the_kernel_has_all_possible_routes(
    before, after, lost, flapping
):
    bench = Bench()
    for number, weights in before:
        bench.put([number], weights)
    changed = {}
    for number, weights in after:
        changed |= routes([number], weights)
    lose_on_the_way(bench, changed, lost, flapping=lost[:flapping])
    wanted = dict([*before, *after])
    lost = lost[flapping:]
    for number, weights in wanted.items():
        reached = bench.kernel.path(prefix(number)) is not None
        assert reached or not weights.keys() - lost, "a black hole until the next audit"
    bench.wait(100)
    bench.carry_out(bench.planner.reconcile(bench.kernel.dump(), bench.now)[1])
    for number, weights in wanted.items():
        left = {hop_key(link): weight for link, weight in weights.items() if link not in lost}
        found = bench.kernel.path(prefix(number))
        if left:  # otherwise any remaining next hop is better than a black hole
            assert found is not None
            assert found.keys() == left.keys()
            assert len(left) == 1 or found == left
    assert bench.planner.reconcile(bench.kernel.dump(), bench.now) == (0, [])


class Contested(Bench):
    """A bench where another program replaces routes."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: set[Prefix] = set()
        self.put(range(3), {1: 5, 2: 5})

    def carry_out(self, operations):
        done = super().carry_out(operations)
        if done:
            self.taken -= {op.prefix for op in done if isinstance(op, PutRoute)}
        return done

    def take(self, number: int):
        """Replace our route, and run the audit that detects it."""
        self.kernel.state.routes.pop(prefix(number), None)
        self.taken.add(prefix(number))
        state = self.kernel.dump()
        state.taken.update(self.taken)
        return self.carry_out(self.planner.reconcile(state, self.now)[1])


def test_a_route_replaced_by_another_program_is_restored_at_once():
    bench = Contested()
    assert len(bench.take(1)) == 1
    assert bench.kernel.path(prefix(1)) == bench.kernel.path(prefix(0))


def test_a_route_that_is_replaced_now_and_then_is_restored_at_once_each_time():
    """By a program, say, that does so with every interface that appears."""
    bench = Contested()
    for _ in range(100):
        assert len(bench.take(1)) == 1
        bench.wait(0.6)


def test_a_route_that_is_replaced_without_end_is_restored_twice_a_second_and_others_at_once():
    bench = Contested()
    restored = 0
    while bench.take(1):
        restored += 1
    assert restored == 60
    assert len(bench.take(2)) == 1
    for _ in range(3):
        assert len(bench.wait(0.5)) == 1
        assert bench.kernel.path(prefix(1)) is not None
        assert bench.take(1) == []
    bench.wait(60)
    assert len(bench.take(1)) == 1
