"""IPv6 routes beside IPv4 ones, and IPv4 routes over IPv6 next hops: links without addresses.

The kernel bars IPv4 next hops from IPv6 routes and from the groups those use, so where both
families share a group, the order of writing matters.
"""

import errno
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from fared.paths.fib.model import DeleteGroup, DeleteNextHop, PutGroup, PutNextHop, PutRoute
from fared.paths.rib.model import Route
from fared.paths.ted.model import PathType
from tests.fib.helpers import Bench, hop_key, hops, prefix, prefix6, six


def routes(prefixes, weights):
    shared = hops(weights)
    return {p: Route(10, PathType.LEVEL_2, 2, shared, (1,)) for p in prefixes}


def four(*numbers):
    return [prefix(n) for n in numbers]


def both(*numbers):
    return four(*numbers) + [prefix6(n) for n in numbers]


def kinds(operations):
    return Counter(type(op).__name__ for op in operations)


def test_both_families_share_next_hops_and_groups_where_links_have_no_ipv4_address():
    bench = Bench()
    done = bench.update(routes(both(1, 2, 3), {six(1): 4, six(2): 1}))
    assert kinds(done) == {"PutNextHop": 2, "PutGroup": 1, "PutRoute": 6}
    assert bench.kernel.path(prefix(1)) == bench.kernel.path(prefix6(1))
    done = bench.update(routes(both(1, 2, 3), {six(1): 4, six(2): 2}))
    assert kinds(done) == {"PutGroup": 1}


def test_each_family_has_its_own_next_hops_where_links_have_addresses_of_both():
    bench = Bench()
    bench.update(routes(four(1), {1: 1, 2: 1}) | routes([prefix6(1)], {six(1): 1, six(2): 1}))
    assert bench.kernel.path(prefix(1)) == {hop_key(1): 1, hop_key(2): 1}
    assert bench.kernel.path(prefix6(1)) == {hop_key(six(1)): 1, hop_key(six(2)): 1}
    assert len(bench.kernel.state.groups) == 2


def test_an_ipv4_route_may_use_links_with_and_without_ipv4_addresses_at_once():
    bench = Bench()
    bench.update(routes(four(1), {1: 3, six(2): 5}))
    assert bench.kernel.path(prefix(1)) == {hop_key(1): 3, hop_key(six(2)): 5}


def test_a_lost_link_takes_next_hops_of_both_families_and_gives_them_back():
    bench = Bench()
    bench.update(routes(four(1), {1: 3, 2: 5}) | routes(both(2)[1:], {six(1): 3, six(2): 5}))
    bench.update(routes(both(3), {six(2): 1}))
    full = bench.kernel.dump()
    assert bench.lose(2) == []
    assert bench.kernel.path(prefix(1)) == {hop_key(1): 3}
    assert bench.kernel.path(prefix6(2)) == {hop_key(six(1)): 3}
    assert bench.kernel.path(prefix(3)) is None
    assert bench.planner.reconcile(bench.kernel.dump(), 0.0) == (0, [])
    bench.restore(2)
    assert bench.kernel.dump() == full


def test_when_links_get_ipv4_addresses_ipv6_routes_leave_the_group_before_it_is_rewritten():
    bench = Bench()
    bench.update(routes([*four(1, 2, 3), prefix6(1)], {six(1): 1, six(2): 1}))
    done = bench.update(routes(four(1, 2, 3), {1: 1, 2: 1}))
    assert bench.planner.failed == 0
    assert [type(op).__name__ for op in done] == [
        *["PutNextHop"] * 2,
        "PutGroup",
        "PutRoute",
        "PutGroup",
    ]
    assert done[-2].prefix == prefix6(1)
    assert bench.kernel.path(prefix6(1)) == {hop_key(six(1)): 1, hop_key(six(2)): 1}


def test_withdrawn_ipv6_routes_do_not_stand_in_the_way_of_ipv4_next_hops():
    bench = Bench()
    bench.update(routes([*four(1, 2, 3), prefix6(1)], {six(1): 1, six(2): 1}))
    refused = bench.planner.counters["failed-put-group"]
    bench.update({prefix6(1): None, **routes(four(1, 2, 3), {1: 1, 2: 1})})
    assert bench.planner.counters["failed-put-group"] == refused == 0
    assert bench.kernel.path(prefix(1)) == {hop_key(1): 1, hop_key(2): 1}
    assert prefix6(1) not in bench.kernel.state.routes


def test_without_ipv6_in_the_kernel_ipv4_is_programmed():
    bench = Bench()
    bench.kernel.without_ipv6 = {2}
    bench.update(routes(four(1), {1: 1, 2: 1}) | routes([prefix6(1)], {six(1): 1, six(2): 1}))
    assert bench.kernel.path(prefix(1)) == {hop_key(1): 1, hop_key(2): 1}
    assert bench.kernel.path(prefix6(1)) == {hop_key(six(1)): 1}
    bench.kernel.without_ipv6 = set()
    bench.wait(2.0)
    assert bench.kernel.path(prefix6(1)) == {hop_key(six(1)): 1, hop_key(six(2)): 1}


def test_a_restart_adopts_both_families_and_sweeps_stale_objects():
    before = Bench()
    wanted = routes(both(1, 2), {six(1): 4, six(2): 1})
    before.update({**wanted, **routes([prefix6(9)], {six(3): 1, six(2): 1})})
    after = Bench(before.kernel)
    assert after.update(wanted) == []
    done = after.carry_out(after.planner.sweep(0.0))
    assert kinds(done) == {"DeleteRoute": 1, "DeleteGroup": 1, "DeleteNextHop": 1}


def test_the_simulated_kernel_bars_ipv4_next_hops_from_ipv6_routes():
    """As Linux does: EINVAL, "IPv6 routes can not use an IPv4 nexthop"."""
    bench = Bench()
    bench.update(routes([prefix6(1)], {six(1): 1, six(2): 1}) | routes(four(1), {1: 1, 2: 1}))
    state = bench.kernel.state
    of_six, of_four = state.routes[prefix6(1)], state.routes[prefix(1)]
    first = state.groups[of_six][0].nexthop_id
    refused = [
        PutRoute(prefix6(2), of_four),
        PutRoute(prefix6(2), state.groups[of_four][0].nexthop_id),
        PutGroup(of_six, state.groups[of_four], replace=True),
        PutNextHop(first, hop_key(1)),
    ]
    assert [r.error for r in bench.kernel.apply(refused)] == [errno.EINVAL] * 4


LINKS = range(1, 4)
NUMBERS = range(4)
weights6 = st.dictionaries(st.sampled_from(LINKS), st.integers(1, 3), min_size=1).map(
    lambda found: {six(link): weight for link, weight in found.items()}
)
weights4 = st.dictionaries(st.sampled_from([*LINKS, six(1), six(2)]), st.integers(1, 3), min_size=1)
change = st.tuples(
    st.dictionaries(st.sampled_from(NUMBERS), st.one_of(st.none(), weights4, weights6), min_size=1),
    st.dictionaries(st.sampled_from(NUMBERS), st.one_of(st.none(), weights6), min_size=1),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("update"), change),
        st.tuples(st.just("update"), change),
        st.tuples(st.just("together"), weights6),
        st.tuples(st.just("lose"), st.sampled_from(LINKS)),
        st.tuples(st.just("restore"), st.sampled_from(LINKS)),
        st.tuples(st.just("wait"), st.floats(0.1, 12.0)),
        st.tuples(st.just("damage"), st.integers(0, 1000)),
        st.tuples(st.just("restart"), st.just(None)),
    ),
    max_size=12,
)


class History(Bench):
    """Random changes of both families; the kernel must accept every operation."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted = {}

    def carry_out(self, operations):
        done = super().carry_out(operations)
        failed = {k: v for k, v in self.planner.counters.items() if k.startswith("failed")}
        assert failed == {}
        return done

    def step(self, name, argument) -> None:
        match name:
            case "update":
                fours, sixes = argument
                change = {prefix(n): weights for n, weights in fours.items()}
                self.change(change | {prefix6(n): weights for n, weights in sixes.items()})
            case "together":
                self.change(dict.fromkeys(both(*NUMBERS), argument))
            case "restart":
                down = set(self.kernel.down)
                self.planner = Bench(self.kernel).planner
                for ifindex in down:
                    self.carry_out(self.planner.link_lost(ifindex, self.now))
                self.change(self.wanted)
                self.carry_out(self.planner.sweep(self.now))
            case "damage":
                self.damage(argument)
            case _:
                getattr(self, name)(argument)

    def change(self, wanted) -> None:
        update = {}
        for p, weights in list(wanted.items()):
            update[p] = None if weights is None else routes([p], weights)[p]
            if weights is None:
                self.wanted.pop(p, None)
            else:
                self.wanted[p] = weights
        self.update(update)

    def damage(self, choice) -> None:
        state = self.kernel.state
        harms = [DeleteGroup(g) for g in state.groups]
        harms += [DeleteNextHop(i) for i in state.nexthops]
        if harms:
            self.kernel.apply([harms[choice % len(harms)]])
        self.carry_out(self.planner.reconcile(self.kernel.dump(), self.now)[1])

    def check(self) -> None:
        assert self.planner.installed == self.kernel.dump()
        for p in both(*NUMBERS):
            weights = {hop_key(n): w for n, w in self.wanted.get(p, {}).items()}
            usable = {hop: w for hop, w in weights.items() if hop[0] not in self.kernel.down}
            path = self.kernel.path(p)
            if not weights:
                assert path is None
            elif usable:
                assert path is not None
                assert path.keys() == usable.keys()
                assert len(path) == 1 or path == usable


@settings(max_examples=80)
@given(steps)
def test_any_history_of_both_families_ends_with_the_wanted_routes_and_no_refusal(history):
    bench = History()
    for name, argument in history:
        bench.step(name, argument)
        bench.check()
