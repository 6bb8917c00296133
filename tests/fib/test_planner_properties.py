"""Random histories: the kernel ends with the wanted routes; in between, no route that remains
wanted is missing, or has next hops that were not computed for it."""

import errno

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fared.paths.fib.model import DeleteGroup, DeleteNextHop, DeleteRoute, PutGroup, PutRoute
from tests.fib.helpers import Bench, hop_key, hops, prefix, route

LINKS = range(1, 6)
PREFIXES = range(8)
MANY = range(100)

weights = st.dictionaries(st.sampled_from(LINKS), st.integers(1, 3), min_size=1, max_size=4)
changes = st.dictionaries(
    st.sampled_from(PREFIXES), st.one_of(st.none(), weights), min_size=1, max_size=8
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("update"), changes),
        st.tuples(st.just("update"), changes),
        st.tuples(st.just("all"), weights),
        st.tuples(st.just("lose"), st.sampled_from(LINKS)),
        st.tuples(st.just("restore"), st.sampled_from(LINKS)),
        st.tuples(st.just("wait"), st.floats(0.1, 12.0)),
        st.tuples(st.just("restart"), st.just(None)),
        st.tuples(st.just("damage"), st.integers(0, 1000)),
        st.tuples(st.just("unnoticed"), st.sampled_from(LINKS)),
    ),
    max_size=14,
)


class History(Bench):
    """Applies one operation at a time, and checks every route after each."""

    def __init__(self, **options) -> None:
        super().__init__(**options)
        self.options = options
        self.wanted: dict[int, dict[int, int]] = {}
        self.strict = True

    def expected(self, number: int):
        """The expected next hops: None while every one of them is on a failed link."""
        usable = {
            hop_key(i): w for i, w in self.wanted[number].items() if i not in self.kernel.down
        }
        return usable or None

    def carry_out(self, operations):
        before = {n: self.kernel.path(prefix(n)) for n in PREFIXES}
        done, rounds = [], 0
        while operations:
            results = []
            for operation in operations:
                results += self.kernel.apply([operation])
                if self.strict:
                    assert results[-1].error == 0, results[-1]
                    self._look(before)
            done += operations
            operations = self.planner.results(results, self.now)
            rounds += 1
            assert rounds < 20
        return done

    def _look(self, before) -> None:
        for n in self.wanted:
            new = self.expected(n)
            if before[n] is None or new is None:
                continue
            path = self.kernel.path(prefix(n))
            assert path is not None, f"{n} is missing on the way"
            assert any(same(path, allowed) for allowed in (before[n], new))

    def check(self) -> None:
        for n in PREFIXES:
            path = self.kernel.path(prefix(n))
            if n not in self.wanted:
                assert path is None
            elif (wanted := self.expected(n)) is not None:
                assert path is not None
                assert same(path, wanted)
        assert self.planner.installed == self.kernel.dump()

    # --- steps

    def step(self, name: str, argument) -> None:
        getattr(self, f"do_{name}")(argument)

    def do_update(self, change) -> None:
        self.wanted.update({n: w for n, w in change.items() if w is not None})
        for n in [n for n, w in change.items() if w is None]:
            self.wanted.pop(n, None)
        self.update(self._routes(change))

    def do_all(self, vector) -> None:
        self.do_update(dict.fromkeys(PREFIXES, vector))

    def do_lose(self, ifindex) -> None:
        self.lose(ifindex)

    def do_restore(self, ifindex) -> None:
        self.restore(ifindex)

    def do_wait(self, seconds) -> None:
        self.wait(seconds)

    def do_unnoticed(self, ifindex) -> None:
        """A link fails, and a change is planned before the planner is notified."""
        self.kernel.link_down(ifindex)
        self.strict = False
        self.do_update({0: {1: 1, ifindex: 2}, 1: {2: 1, ifindex: 1}})
        self.lose(ifindex)
        self.carry_out(self.planner.reconcile(self.kernel.dump(), self.now)[1])
        self.wait(200.0)
        self.strict = True

    def do_restart(self, _) -> None:
        """A new process computes the same routes, link by link, and then sweeps."""
        down = set(self.kernel.down)
        fresh = Bench(self.kernel, **self.options)
        self.planner = fresh.planner
        for ifindex in down:
            self.carry_out(self.planner.link_lost(ifindex, self.now))
        self.update(self._routes(self.wanted))
        self.carry_out(self.planner.sweep(self.now))

    def do_damage(self, choice) -> None:
        """Another program deletes or rewrites one of our objects; reconcile detects it."""
        state = self.kernel.state
        harms = [DeleteRoute(p) for p in state.routes]
        harms += [DeleteGroup(g) for g in state.groups]
        harms += [DeleteNextHop(i) for i in state.nexthops]
        harms += [PutRoute(prefix(n), i) for n in PREFIXES for i in list(state.nexthops)[:1]]
        harms += [PutGroup(g, m[:1], replace=True) for g, m in state.groups.items()]
        if not harms:
            return
        self.kernel.apply([harms[choice % len(harms)]])
        _, operations = self.planner.reconcile(self.kernel.dump(), self.now)
        self.carry_out(operations)
        assert self.planner.reconcile(self.kernel.dump(), self.now) == (0, [])

    def _routes(self, change):
        return {prefix(n): None if w is None else route(n, hops(w)) for n, w in change.items()}


class BoundedHistory(History):
    """With few groups: what routes share instead of their own weights is expected."""

    def expected(self, number: int):
        known = self.planner.routes.get(prefix(number))
        if known is None:  # a new process has not computed it yet
            return None
        written = self.planner.written(known.nexthops)
        return {hop: w for hop, w in written if hop[0] not in self.kernel.down} or None

    def check(self) -> None:
        super().check()
        routes_of = self.planner.routes.values()
        vectors = {self.planner.written(known.nexthops) for known in routes_of}
        several = [vector for vector in vectors if len(vector) > 1]
        assert len(several) <= self.planner.settings.max_groups


def same(path, wanted) -> bool:
    """Compare next hops; the weight of a single one does not count."""
    return path.keys() == wanted.keys() and (len(path) == 1 or path == wanted)


@settings(max_examples=150)
@given(steps)
def test_any_history_ends_with_the_wanted_routes_and_interrupts_none(history):
    bench = History()
    for name, argument in history:
        bench.step(name, argument)
        bench.check()


@settings(max_examples=40, deadline=None)
@given(steps, st.integers(1, 3))
def test_any_history_with_few_groups_interrupts_no_route_either(history, most):
    bench = BoundedHistory(max_groups=most)
    for name, argument in history:
        bench.step(name, argument)
        bench.check()


@settings(max_examples=40)
@given(changes, weights, weights)
def test_a_change_of_all_users_at_once_is_one_replace_of_each_group(first, old, new):
    bench = Bench()
    bench.put(MANY, {**old, 1: 1, 2: 1})
    done = bench.put(MANY, {**new, 1: 1, 2: 2})
    assert sum(isinstance(op, PutGroup) for op in done) == 1
    assert not any(isinstance(op, PutRoute | DeleteRoute) for op in done)


@settings(max_examples=40)
@given(st.lists(changes, min_size=1, max_size=5))
def test_a_restart_after_any_history_writes_nothing(history):
    bench = History()
    for change in history:
        bench.do_update(change)
    bench.wait(30.0)
    after = Bench(bench.kernel)
    done = after.update(bench._routes(bench.wanted))
    done += after.carry_out(after.planner.sweep(0.0))
    assert done == []


@settings(max_examples=40)
@given(
    st.lists(changes, min_size=1, max_size=6),
    st.sets(st.sampled_from(LINKS)),
    st.sets(st.sampled_from(PREFIXES)),
)
@example(  # the planner dropped a group whose replacement was refused together with its only member
    history=[{6: {1: 1, 2: 1, 3: 1}}, {6: {1: 1}, 2: {1: 1, 2: 1}}],
    bad_links={1},
    bad_prefixes=set(),
)
def test_refusals_do_not_loop_and_are_repaired_when_the_cause_is_gone(
    history, bad_links, bad_prefixes
):
    bench = History()
    bench.strict = False
    bench.kernel.refuse = {hop_key(i): errno.EINVAL for i in bad_links}
    bench.kernel.refuse |= {prefix(n): errno.EEXIST for n in bad_prefixes}
    for change in history:
        bench.do_update(change)
        bench.wait(1.0)
    bench.kernel.refuse = {}
    bench.wait(100.0)
    bench.check()
    assert bench.planner.failed == 0
    assert bench.planner.next_deadline() is None


@pytest.mark.parametrize("same_vector", [True, False])
def test_two_lists_of_operations_may_be_in_flight_before_the_first_answer(same_vector):
    """A lost link and the routes computed from it can be planned within one turn of the loop."""
    bench = Bench()
    bench.put(range(4), {1: 1, 2: 1})
    bench.kernel.refuse[prefix(1)] = errno.EEXIST
    first = bench.planner.update({prefix(1): route(1, hops({3: 1, 4: 1}))}, 0.0)
    refused = bench.kernel.apply(first)
    bench.kernel.refuse.clear()
    vector = {3: 1, 4: 1} if same_vector else {4: 1, 5: 1}
    second = bench.planner.update({prefix(1): route(1, hops(vector))}, 0.0)
    results = bench.kernel.apply(second)
    bench.carry_out(bench.planner.results(refused, 0.0))
    bench.carry_out(bench.planner.results(results, 0.0))
    bench.wait(60.0)
    assert bench.kernel.path(prefix(1)) == {hop_key(i): 1 for i in vector}
    assert bench.planner.installed == bench.kernel.dump()
