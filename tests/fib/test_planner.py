"""The operations of the planner, and changes that need none."""

import errno
import sys
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import ipv4_prefix
from fared.paths.fib.model import (
    DeleteGroup,
    DeleteNextHop,
    DeleteRoute,
    FibState,
    ForeignChanges,
    Member,
    PutGroup,
    PutNextHop,
    PutRoute,
)
from fared.paths.fib.simulated import SimulatedFib
from fared.paths.rib.model import DISCARD
from tests.fib.helpers import Bench, hop_key, hops, prefix, route, routes


def kinds(operations):
    return Counter(type(op).__name__ for op in operations)


def test_routes_with_the_same_weights_share_one_group():
    bench = Bench()
    done = bench.put(range(100), {1: 10, 2: 10, 3: 5})
    assert kinds(done) == {"PutNextHop": 3, "PutGroup": 1, "PutRoute": 100}
    assert [type(op).__name__ for op in done[:4]] == ["PutNextHop"] * 3 + ["PutGroup"]
    assert bench.kernel.path(prefix(7)) == {hop_key(1): 10, hop_key(2): 10, hop_key(3): 5}


def test_a_capacity_change_of_all_users_is_one_group_replace_and_no_route():
    bench = Bench()
    bench.put(range(1000), {1: 10, 2: 10, 3: 10, 4: 10})
    done = bench.put(range(1000), {1: 10, 2: 10, 3: 10, 4: 2})
    assert kinds(done) == {"PutGroup": 1}
    assert done[0].replace
    assert bench.planner.counters["group-rewrite"] == 1


def test_operations_are_logged_with_addresses_and_prefixes():
    """A refused operation is logged with addresses and prefixes, not integers."""
    bench = Bench()
    done = bench.put([1], {1: 10, 2: 5})
    first, second, group, route_of_it = map(str, done)
    ids = [operation.nexthop_id for operation in done[:2]]
    assert first == f"put next hop {ids[0]}: 10.0.0.1 on interface 1"
    assert second == f"put next hop {ids[1]}: 10.0.0.2 on interface 2"
    put = done[2]
    members = ", ".join(f"{m.nexthop_id} weight {m.weight}" for m in put.members)
    assert group == f"put group {put.group_id}: {members}"
    assert route_of_it == f"put route 192.0.1.0/24: next hop {put.group_id}"
    assert str(DeleteRoute(prefix(1))) == "delete route 192.0.1.0/24"
    assert str(PutNextHop(7, DISCARD.hops[0].hop_key)) == "put next hop 7: discard"


def test_an_update_without_a_change_writes_nothing():
    bench = Bench()
    bench.put(range(10), {1: 3, 2: 1})
    assert bench.put(range(10), {1: 3, 2: 1}) == []


def test_when_users_split_the_larger_part_keeps_the_group():
    bench = Bench()
    bench.put(range(10), {1: 1, 2: 1})
    group = bench.kernel.state.routes[prefix(0)]
    done = bench.put(range(7), {1: 1, 2: 3})
    assert kinds(done) == {"PutGroup": 2, "PutRoute": 3}
    assert bench.kernel.state.routes[prefix(0)] == group
    assert [type(op).__name__ for op in done] == ["PutGroup"] + ["PutRoute"] * 3 + ["PutGroup"]
    assert bench.kernel.path(prefix(9)) == {hop_key(1): 1, hop_key(2): 1}


def test_when_users_split_at_a_tie_the_part_that_stays_keeps_the_group():
    bench = Bench()
    bench.put(range(10), {1: 1, 2: 1})
    group = bench.kernel.state.routes[prefix(9)]
    done = bench.put(range(5), {1: 1, 2: 3})
    assert kinds(done) == {"PutGroup": 1, "PutRoute": 5}
    assert bench.kernel.state.routes[prefix(9)] == group


def test_routes_that_change_join_an_existing_group_with_their_weights():
    bench = Bench()
    bench.put(range(10), {1: 1, 2: 1})
    bench.put(range(10, 20), {1: 1, 2: 3})
    assert kinds(bench.put(range(3), {1: 1, 2: 3})) == {"PutRoute": 3}


def test_identical_groups_are_merged_only_after_a_quiet_time():
    bench = Bench()
    bench.put(range(10), {1: 1, 2: 1})
    bench.put(range(10, 14), {1: 1, 2: 3})
    assert kinds(bench.put(range(10), {1: 1, 2: 3})) == {"PutGroup": 1}
    assert len(bench.kernel.state.groups) == 2
    assert kinds(bench.wait(5.1)) == {"PutRoute": 4, "DeleteGroup": 1}
    assert len(bench.kernel.state.groups) == 1
    assert bench.planner.counters["coalesced-group"] == 1


def test_constant_changes_delay_the_merging_of_groups_to_a_limit():
    bench = Bench()
    bench.put(range(4), {1: 1, 2: 1})
    bench.put(range(4, 6), {1: 1, 2: 2})
    for step in range(40):
        bench.put(range(6), {1: 1, 2: 10 + step})
        bench.wait(1.0)
    assert len(bench.kernel.state.groups) == 1


def test_four_one_four_next_hops_never_touches_a_route():
    bench = Bench()
    bench.put(range(500), {1: 1, 2: 1, 3: 1, 4: 1})
    done = bench.put(range(500), {3: 1})
    done += bench.wait(60.0)
    done += bench.put(range(500), {1: 1, 2: 1, 3: 1, 4: 1})
    assert kinds(done)["PutRoute"] == 0
    assert kinds(done)["PutGroup"] == 2


def test_few_routes_leave_a_group_instead_of_waiting_for_its_replacement():
    """Only a change of weights is written into it."""
    bench = Bench()
    bench.put(range(3), {1: 1, 2: 1, 3: 1, 4: 1})
    done = bench.put(range(3), {1: 1, 2: 1, 3: 1})
    assert kinds(done) == {"PutGroup": 1, "PutRoute": 3}
    assert not done[0].replace
    assert kinds(bench.put(range(3), {1: 1, 2: 1, 3: 1, 4: 1})) == {"PutRoute": 3}
    done = bench.put(range(3), {1: 2, 2: 1, 3: 1, 4: 1})
    assert kinds(done) == {"PutGroup": 1}
    assert done[0].replace
    assert kinds(bench.wait(5.1)) == {"DeleteGroup": 1}


def test_of_few_routes_those_to_networks_of_hosts_are_written_first():
    """Before those to links, and to routers, which the other end of a lost link lists with them."""
    bench = Bench()
    lengths = (31, 32, 24)
    prefixes = [ipv4_prefix(0xC0000000 + (number << 8), n) for number, n in enumerate(lengths)]
    for links in ({1: 1, 2: 1, 3: 1}, {1: 1, 2: 1}):
        shared = hops(links)
        done = bench.update({prefix: route(0, shared) for prefix in prefixes})
        written = [op.prefix.length for op in done if isinstance(op, PutRoute)]
        assert written == [24, 31, 32]


def test_few_routes_stay_in_a_resilient_group_which_keeps_their_flows():
    bench = Bench(resilient=True)
    bench.put(range(3), {1: 1, 2: 1, 3: 1})
    assert kinds(bench.put(range(3), {1: 1, 2: 1})) == {"PutGroup": 1}


def test_routes_that_discard_share_one_object_and_a_successor_adopts_it():
    """A discard route has interface 0; the loss of no link removes it."""
    bench = Bench()
    nowhere = {prefix(n): route(n, DISCARD) for n in (1, 2)}
    assert kinds(bench.update(nowhere)) == {"PutNextHop": 1, "PutRoute": 2}
    assert bench.kernel.path(prefix(1)) == {(0, 4, 0, False): 1}
    assert bench.lose(1) == []
    successor = Bench(bench.kernel)
    assert successor.update(nowhere) == []
    assert successor.carry_out(successor.planner.sweep(0.0)) == []
    assert kinds(successor.remove((1, 2))) == {"DeleteRoute": 2}


def test_a_weighted_route_that_becomes_a_discard_and_comes_back():
    bench = Bench()
    bench.put([1], {1: 1, 2: 3})
    bench.update({prefix(1): route(1, DISCARD)})
    assert bench.kernel.path(prefix(1)) == {(0, 4, 0, False): 1}
    bench.put([1], {1: 1, 2: 3})
    assert bench.kernel.path(prefix(1)) == {hop_key(1): 1, hop_key(2): 3}


def test_a_new_route_with_one_next_hop_needs_no_group():
    bench = Bench()
    assert kinds(bench.put([1], {3: 7})) == {"PutNextHop": 1, "PutRoute": 1}
    assert bench.kernel.state.groups == {}


def test_routes_are_removed_at_once_and_unused_objects_after_a_quiet_time():
    bench = Bench()
    bench.put(range(3), {1: 1, 2: 1})
    assert kinds(bench.remove(range(3))) == {"DeleteRoute": 3}
    done = bench.wait(5.1)
    assert [type(op) for op in done] == [DeleteGroup, DeleteNextHop, DeleteNextHop]
    assert bench.kernel.dump() == FibState()
    assert bench.planner.next_deadline() is None


def test_a_lost_link_needs_no_operation_and_the_planner_knows_what_remains():
    """The kernel removes members from groups itself; the routes computed later agree with that."""
    bench = Bench()
    bench.put(range(10), {1: 5, 2: 5, 3: 5})
    bench.put([10], {3: 1})
    assert bench.lose(3) == []
    assert bench.kernel.path(prefix(1)) == {hop_key(1): 5, hop_key(2): 5}
    assert bench.put(range(10), {1: 5, 2: 5}) == []
    assert bench.planner.reconcile(bench.kernel.dump(), 0.0) == (0, [])


def test_a_returning_link_gets_its_next_hops_groups_and_routes_back():
    bench = Bench()
    bench.put(range(10), {1: 5, 2: 5, 3: 5})
    bench.put([10], {3: 1})
    bench.lose(3)
    done = bench.restore(3)
    assert kinds(done) == {"PutNextHop": 1, "PutGroup": 1, "PutRoute": 1}
    assert bench.kernel.path(prefix(10)) == {hop_key(3): 1}
    assert bench.kernel.path(prefix(1)) == {hop_key(1): 5, hop_key(2): 5, hop_key(3): 5}


def test_a_group_that_the_kernel_removed_is_created_again_with_its_routes():
    bench = Bench()
    bench.put(range(10), {1: 5, 2: 5})
    bench.lose(1)
    bench.lose(2)
    assert bench.kernel.state.routes == {}
    bench.restore(2)
    assert bench.kernel.path(prefix(3)) == {hop_key(2): 1}


def test_a_restart_into_an_unchanged_network_writes_nothing():
    before = Bench()
    before.put(range(10), {1: 5, 2: 5, 3: 5})
    before.put(range(10, 20), {1: 1, 3: 5})
    before.put([20], {2: 1})
    after = Bench(before.kernel)
    assert after.put(range(10, 20), {1: 1, 3: 5}) == []
    assert after.put(range(10), {1: 5, 2: 5, 3: 5}) == []
    assert after.put([20], {2: 1}) == []
    assert after.carry_out(after.planner.sweep(1.0)) == []
    assert after.wait(100.0) == []


def test_sweep_removes_what_a_former_process_left_and_nothing_before_it():
    before = Bench()
    before.put(range(10), {1: 5, 2: 5, 3: 5})
    before.put(range(10, 20), {1: 1, 4: 5})
    after = Bench(before.kernel)
    after.put(range(10), {1: 5, 2: 5, 3: 5})
    assert after.wait(60.0) == []
    assert len(after.kernel.state.routes) == 20
    done = after.carry_out(after.planner.sweep(after.now))
    assert kinds(done) == {"DeleteRoute": 10, "DeleteGroup": 1, "DeleteNextHop": 1}


def test_groups_of_the_other_type_are_replaced_by_new_ones():
    """The kernel refuses to change a group between hash-threshold and resilient."""
    before = Bench()
    before.put(range(10), {1: 5, 2: 5})
    after = Bench(before.kernel, resilient=True)
    done = after.put(range(10), {1: 5, 2: 5})
    assert kinds(done) == {"PutGroup": 1, "PutRoute": 10}
    assert kinds(after.carry_out(after.planner.sweep(0.0))) == {"DeleteGroup": 1}
    assert after.planner.failed == 0


def test_ids_taken_by_others_are_not_used():
    kernel = SimulatedFib()
    bench = Bench(kernel)
    base, groups = bench.planner.settings.id_base, bench.planner.settings.group_base
    kernel.state.reserved = {base, groups}
    bench.planner.adopt(kernel.dump())
    bench.put([1], {1: 1, 2: 1})
    assert base not in kernel.state.nexthops
    assert groups not in kernel.state.groups


def test_reconcile_counts_and_repairs_what_others_broke():
    bench = Bench()
    bench.put(range(10), {1: 5, 2: 5, 3: 5})
    group = bench.kernel.state.routes[prefix(0)]
    bench.kernel.apply([DeleteGroup(group)])
    drift, operations = bench.planner.reconcile(bench.kernel.dump(), 0.0)
    assert drift == 11
    bench.carry_out(operations)
    assert len(bench.kernel.state.routes) == 10
    assert bench.planner.reconcile(bench.kernel.dump(), 0.0) == (0, [])


@given(st.data())
def test_what_others_delete_is_written_again_from_the_notification(data):
    """Groups, next hops and routes in any order: everything is as it was, without a dump."""
    bench = Bench()
    bench.put(range(4), {1: 5, 2: 5, 3: 5})
    bench.put(range(4, 7), {1: 5, 2: 3})
    bench.put([7], {4: 1})
    before = [bench.kernel.path(prefix(number)) for number in range(8)]
    for _ in range(3):
        state = bench.kernel.state
        objects = data.draw(st.sets(st.sampled_from([*state.nexthops, *state.groups])))
        routes = data.draw(st.sets(st.sampled_from([*state.routes])))
        bench.kernel.apply([DeleteRoute(at) for at in routes])
        bench.kernel.apply([DeleteGroup(g) for g in objects & state.groups.keys()])
        bench.kernel.apply([DeleteNextHop(n) for n in objects & state.nexthops.keys()])
        drift, operations = bench.planner.mend(
            ForeignChanges(deleted=tuple(objects), routes=tuple(routes)), bench.now
        )
        assert drift >= len(objects | routes) > 0 or not (objects or routes)
        bench.carry_out(operations)
        assert [bench.kernel.path(prefix(number)) for number in range(8)] == before
    assert bench.planner.reconcile(bench.kernel.dump(), 0.0) == (0, [])


def test_what_others_change_is_written_again_from_the_notification():
    """Without a route being written: a group, and a next hop, keep those that point at them."""
    bench = Bench()
    bench.put(range(100), {1: 5, 2: 5})
    state = bench.kernel.state
    first, second = state.nexthops
    group = state.routes[prefix(0)]
    state.groups[group] = (Member(first, 9), Member(second, 5))
    state.nexthops[first] = hop_key(8)
    drift, operations = bench.planner.mend(ForeignChanges(changed=(first, group)), 0.0)
    assert drift == 2
    assert kinds(bench.carry_out(operations)) == {"PutNextHop": 1, "PutGroup": 1}
    assert bench.kernel.path(prefix(0)) == {hop_key(1): 5, hop_key(2): 5}


def test_a_notification_that_comes_late_does_no_harm():
    """Of objects that are there again, or that nobody needs any more."""
    bench = Bench()
    bench.put(range(4), {1: 5, 2: 5})
    state = bench.kernel.state
    stale = ForeignChanges((*state.nexthops, *state.groups, 7), (8,), (prefix(1), prefix(99)))
    bench.carry_out(bench.planner.mend(stale, 0.0)[1])
    assert bench.kernel.path(prefix(1)) == {hop_key(1): 5, hop_key(2): 5}
    bench.carry_out(bench.planner.reconcile(bench.kernel.dump(), 0.0)[1])
    bench.wait(60)
    assert len(bench.kernel.state.groups) == 1


def test_reconcile_removes_objects_that_no_route_needs():
    bench = Bench()
    bench.put(range(2), {1: 5, 2: 5})
    nexthop = next(iter(bench.kernel.state.nexthops))
    bench.kernel.apply([PutRoute(prefix(77), nexthop)])
    drift, operations = bench.planner.reconcile(bench.kernel.dump(), 0.0)
    assert drift == 1
    bench.carry_out(operations)
    assert prefix(77) not in bench.kernel.state.routes


def test_reconcile_restores_changed_weights_and_next_hops():
    bench = Bench()
    bench.put(range(2), {1: 5, 2: 5})
    state = bench.kernel.state
    first, second = state.nexthops
    group = state.routes[prefix(0)]
    state.groups[group] = (Member(first, 9), Member(second, 5))
    state.nexthops[first] = hop_key(8)
    drift, operations = bench.planner.reconcile(bench.kernel.dump(), 0.0)
    bench.carry_out(operations)
    assert drift == 2
    assert bench.kernel.path(prefix(0)) == {hop_key(1): 5, hop_key(2): 5}


def test_a_refused_next_hop_is_left_out_and_retried_with_growing_pauses():
    """The link may lose its carrier before the planner is notified."""
    bench = Bench()
    bench.kernel.down.add(2)
    bench.put(range(3), {1: 5, 2: 5, 3: 5})
    assert bench.kernel.path(prefix(0)) == {hop_key(1): 5, hop_key(3): 5}
    assert bench.planner.next_deadline() == 1.0
    bench.wait(1.5)
    assert bench.planner.next_deadline() == 3.0
    bench.kernel.down.clear()
    bench.wait(2.0)
    assert bench.kernel.path(prefix(0)) == {hop_key(1): 5, hop_key(2): 5, hop_key(3): 5}
    assert bench.planner.failed == 0


def test_a_refused_route_keeps_what_it_had_and_is_retried():
    bench = Bench()
    bench.put(range(4), {1: 5, 2: 5})
    bench.kernel.refuse[prefix(1)] = errno.EEXIST
    bench.put([1], {3: 5, 4: 5})
    assert bench.kernel.path(prefix(1)) == {hop_key(1): 5, hop_key(2): 5}
    bench.wait(20.0)
    assert prefix(1) in bench.kernel.state.routes
    del bench.kernel.refuse[prefix(1)]
    bench.wait(40.0)
    assert bench.kernel.path(prefix(1)) == {hop_key(3): 5, hop_key(4): 5}


def test_a_group_found_without_some_members_is_repaired_at_once():
    bench = Bench()
    bench.put(range(4), {1: 5, 2: 5, 3: 5})
    third = max(bench.kernel.state.nexthops)
    bench.kernel.apply([DeleteNextHop(third)])
    bench.put(range(4), {1: 5, 2: 5, 3: 4})
    assert bench.kernel.path(prefix(0)) == {hop_key(1): 5, hop_key(2): 5, hop_key(3): 4}


def test_a_group_that_is_always_refused_is_not_retried_in_a_loop():
    bench = Bench()
    bench.kernel.refuse[bench.planner.settings.group_base] = errno.ENOMEM
    bench.put(range(4), {1: 5, 2: 5, 3: 5})
    bench.kernel.applied = 0
    bench.wait(100.0)
    assert bench.kernel.applied < 100
    bench.kernel.refuse.clear()
    bench.wait(31.0)
    assert len(bench.kernel.state.routes) == 4
    assert bench.planner.failed == 0


def test_withdraw_removes_routes_first_and_leaves_nothing():
    bench = Bench()
    bench.put(range(5), {1: 5, 2: 5, 3: 5})
    done = bench.carry_out(bench.planner.withdraw())
    names = [type(op).__name__ for op in done]
    assert names == ["DeleteRoute"] * 5 + ["DeleteGroup"] + ["DeleteNextHop"] * 3
    assert bench.kernel.dump() == FibState()


def test_two_neighbors_behind_the_same_next_hop_add_up():
    """The kernel refuses the same member twice."""
    bench = Bench()
    twice = hops({1: 2})
    both = type(twice)(twice.hops + twice.hops + hops({2: 3}).hops)
    bench.update({prefix(1): route(1, both)})
    assert bench.kernel.path(prefix(1)) == {hop_key(1): 4, hop_key(2): 3}


def test_swapped_vectors_never_send_a_route_the_wrong_way():
    """The minorities of two groups swap: a group is rewritten only after its routes left it."""
    bench = Bench()
    bench.put(range(10), {1: 1, 2: 1})
    bench.put(range(10, 20), {3: 1, 4: 1})
    change = {**routes(range(8), {3: 1, 4: 1}), **routes(range(10, 18), {1: 1, 2: 1})}
    operations = bench.planner.update(change, 0.0)
    ways = ({hop_key(1): 1, hop_key(2): 1}, {hop_key(3): 1, hop_key(4): 1})
    for operation in operations:
        bench.kernel.apply([operation])
        for n in (8, 9):
            assert bench.kernel.path(prefix(n)) == ways[0]
        for n in (18, 19):
            assert bench.kernel.path(prefix(n)) == ways[1]
    assert bench.kernel.path(prefix(0)) == ways[1]
    assert bench.kernel.path(prefix(10)) == ways[0]
    assert sum(isinstance(op, PutGroup) for op in operations) <= 4


def test_routes_that_were_answered_leave_no_table_behind():
    bench = Bench()
    bench.put(range(10_000), {1: 10, 2: 10})
    assert sys.getsizeof(bench.planner._answers.previous) == sys.getsizeof({})
