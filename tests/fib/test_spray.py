"""What is sprayed, by the routes and groups of the FIB, and the changes that lead there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import Prefix, parse_prefix
from fared.paths.fib.model import FibState, Member
from fared.paths.fib.settings import Granularity, SprayMatch, SpraySettings
from fared.paths.fib.spray import (
    Block,
    DeleteBlock,
    DeleteMark,
    DeleteMatch,
    DeleteRound,
    PutBlock,
    PutMark,
    PutMatch,
    PutRound,
    SprayRound,
    SprayState,
    blocks_of,
)
from fared.paths.fib.spray_planner import SMALL, SprayPlanner

A, B, C = 1001, 1002, 1003
GROUP, OTHER = 2001, 2002
PACKET = SpraySettings(Granularity.PACKET)


def hop(number: int, family: int = 4) -> tuple[int, int, int, bool]:
    return (number, family, number, False)


def fib(
    routes: dict[str, int], groups: dict[int, dict[int, int]] | None = None, family: int = 4
) -> FibState:
    wanted = groups or {GROUP: {A: 1, B: 1}}
    return FibState(
        nexthops={i: hop(i, family) for i in (A, B, C)},
        groups={g: tuple(Member(*pair) for pair in m.items()) for g, m in wanted.items()},
        routes={parse_prefix(prefix): target for prefix, target in routes.items()},
    )


def planner(settings: SpraySettings = PACKET) -> SprayPlanner:
    made = SprayPlanner(settings)
    made.adopt(SprayState())
    return made


def changes(made: SprayPlanner, state: FibState, local: tuple[str, ...] = ()) -> list[object]:
    """The operations to a state of the FIB, all of which succeed."""
    made.desire(state, state.routes, map(parse_prefix, local))
    operations = made.plan(0.0)
    if operations:
        made.answered("", None, 0.0)
    assert made.installed == made.desired
    return list(operations)


def text(blocks: dict[Block, int]) -> dict[str, int]:
    return {str(block): group_id for block, group_id in blocks.items()}


def blocks(routes: dict[str, int | None], inside: tuple[str, ...] = ()) -> dict[str, int]:
    holders = {parse_prefix(prefix): group for prefix, group in routes.items()}
    return text(blocks_of(holders, map(parse_prefix, inside)))


# --- destinations


def test_a_more_specific_prefix_divides_the_block_around_it():
    assert blocks({"10.0.0.0/8": 1, "10.1.0.0/16": 2, "10.2.0.0/16": None}) == {
        "10.0.0.0-10.0.255.255": 1,
        "10.1.0.0-10.1.255.255": 2,
        "10.3.0.0-10.255.255.255": 1,
    }


def test_a_default_route_is_sprayed_around_all_others():
    assert blocks({"::/0": 1, "2001:db8::/32": None}) == {
        "::-2001:db7:ffff:ffff:ffff:ffff:ffff:ffff": 1,
        "2001:db9::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff": 1,
    }


def test_packet_prefixes_cut_blocks_to_their_addresses():
    assert blocks({"0.0.0.0/0": 1}, ("10.1.0.0/16", "10.1.2.0/24", "10.3.0.0/24")) == {
        "10.1.0.0-10.1.255.255": 1,
        "10.3.0.0-10.3.0.255": 1,
    }
    assert blocks({"2001:db8::/32": 1}, ("10.1.0.0/16",)) == {}


PREFIXES = st.builds(
    lambda address, length: Prefix(4, address >> (8 - length) << (8 - length), 24 + length),
    st.integers(0, 255),
    st.integers(0, 8),
)


@given(
    st.dictionaries(PREFIXES, st.sampled_from([None, 1, 2]), max_size=12),
    st.sets(PREFIXES, max_size=3),
)
def test_each_address_has_the_group_of_its_longest_match(holders, inside):
    found = blocks_of(holders, inside)
    for address in range(256):
        covering = [prefix for prefix in holders if prefix.contains(address)]
        longest = max(covering, key=lambda prefix: prefix.length, default=None)
        wanted = None if longest is None else holders[longest]
        if inside and not any(prefix.contains(address) for prefix in inside):
            wanted = None
        groups = [g for block, g in found.items() if block.first <= address <= block.last]
        assert groups == ([] if wanted is None else [wanted])


# --- the desired state


def test_routes_with_one_next_hop_and_local_routes_keep_their_path():
    made = planner()
    state = fib({"10.0.0.0/8": GROUP, "10.1.0.0/16": A})
    changes(made, state, local=("10.2.0.0/16",))
    assert text(made.installed.blocks) == {
        "10.0.0.0-10.0.255.255": GROUP,
        "10.3.0.0-10.255.255.255": GROUP,
    }
    assert made.sprayed(parse_prefix("10.0.0.0/8"))
    assert not made.sprayed(parse_prefix("10.1.0.0/16"))


def test_a_group_of_one_next_hop_is_not_sprayed():
    made = planner()
    changes(made, fib({"10.0.0.0/8": GROUP}, {GROUP: {A: 1}}))
    assert made.installed.blocks == {}


def test_each_router_begins_its_rounds_elsewhere():
    orders = set()
    for phase in (0.0, 0.3, 0.8):
        made = planner(SpraySettings(Granularity.PACKET, phase=phase))
        changes(made, fib({"10.0.0.0/8": GROUP}, {GROUP: {A: 1, B: 3}}))
        orders.add(made.installed.rounds[GROUP].order)
    assert len(orders) == 3


def test_flowlets_have_a_gap_of_whole_milliseconds_and_small_packets_are_part_of_them():
    made = planner(SpraySettings(Granularity.FLOWLET, gap=0.0504))
    changes(made, fib({"10.0.0.0/8": GROUP}))
    assert made.installed.rounds[GROUP] == SprayRound((A, B), gap=50)


def test_a_round_of_a_former_version_without_small_packets_is_rewritten():
    made = planner()
    state = fib({"10.0.0.0/8": GROUP})
    changes(made, state)
    former = SprayRound((A, B))
    made.adopt(SprayState(SprayMatch(), {A: 4, B: 4}, {GROUP: former}, dict(made.installed.blocks)))
    assert changes(made, state) == [PutRound(GROUP, SprayRound((A, B), small=SMALL), former)]


# --- changes


def test_a_changed_weight_rewrites_one_round_and_nothing_else():
    made = planner()
    routes = {f"10.{n}.0.0/16": GROUP + n % 2 for n in range(200)}
    changes(made, fib(routes, {GROUP: {A: 1, B: 1}, OTHER: {A: 1, B: 2}}))
    found = changes(made, fib(routes, {GROUP: {A: 1, B: 3}, OTHER: {A: 1, B: 2}}))
    before, after = SprayRound((A, B), small=SMALL), SprayRound((B, A, B, B), small=SMALL)
    assert found == [PutRound(GROUP, after, before)]


def test_what_is_new_is_created_before_it_is_used_and_removed_after():
    made = planner()
    changes(made, fib({"10.0.0.0/8": GROUP}, {GROUP: {A: 1, B: 1}}))
    found = changes(made, fib({"10.0.0.0/8": OTHER}, {OTHER: {B: 1, C: 1}}))
    block = Block(4, 10 << 24, 11 * 2**24 - 1)
    assert found == [
        PutMark(C, 4),
        PutRound(OTHER, SprayRound((B, C), small=SMALL)),
        DeleteBlock(block),
        PutBlock(block, OTHER),
        DeleteRound(GROUP, SprayRound((A, B), small=SMALL)),
        DeleteMark(A),
    ]


def test_the_granularity_flow_removes_everything():
    made = planner()
    changes(made, fib({"10.0.0.0/8": GROUP}))
    made.settings = SpraySettings()
    found = changes(made, fib({"10.0.0.0/8": GROUP}))
    assert found == [DeleteMatch(), DeleteMark(A), DeleteMark(B)]
    assert made.installed.empty


def test_a_damaged_table_is_written_anew():
    made = planner()
    state = fib({"10.0.0.0/8": GROUP})
    changes(made, state)
    made.reconcile(SprayState(SprayMatch(), {A: 4, B: 0}, {}, {}, damaged=True))
    assert [type(operation) for operation in changes(made, state)] == [
        PutMatch,
        PutMark,
        PutMark,
        PutRound,
        PutBlock,
    ]


def test_what_another_program_removed_is_counted_and_written_again():
    made = planner()
    state = fib({"10.0.0.0/8": GROUP})
    changes(made, state)
    left = SprayState(SprayMatch(), {A: 4, B: 0}, dict(made.installed.rounds), {})
    assert made.reconcile(left) == 2
    assert [type(operation) for operation in changes(made, state)] == [PutMark, PutBlock]


def test_a_lost_link_takes_its_mark_with_it_and_a_restored_one_brings_it_back():
    made = planner()
    state = fib({"10.0.0.0/8": GROUP})
    changes(made, state)
    made.lose_marks({B: None})
    assert made.installed.marks == {A: 0, B: 4}
    assert changes(made, state) == [PutMark(A, 4)]


def test_a_mark_that_went_while_a_change_was_in_progress_is_written_again():
    made = planner()
    state = fib({"10.0.0.0/8": GROUP})
    made.desire(state, state.routes, ())
    assert made.plan(0.0)
    made.installed.marks[A] = 4
    made.lose_marks({B: None})
    made.answered("", None, 0.0)
    assert changes(made, state) == [PutMark(A, 4)]


def test_one_change_is_in_progress_at_a_time():
    made = planner()
    state = fib({"10.0.0.0/8": GROUP})
    made.desire(state, state.routes, ())
    assert made.plan(0.0)
    assert made.plan(1.0) == []


def test_nothing_is_changed_before_the_kernel_has_been_read():
    made = SprayPlanner(PACKET)
    state = fib({"10.0.0.0/8": GROUP})
    made.desire(state, state.routes, ())
    assert made.plan(0.0) == []


def test_a_refused_change_is_tried_again_after_pauses_that_double():
    made = planner()
    state = fib({"10.0.0.0/8": GROUP})
    made.desire(state, state.routes, ())
    at = []
    now = 0.0
    for _ in range(8):
        assert made.plan(now)
        made.answered("refused", SprayState(), now)
        assert made.error == "refused"
        deadline = made.next_deadline()
        assert deadline is not None
        assert made.plan(deadline - 0.1) == []
        at.append(deadline - now)
        now = deadline
    assert at == [1, 2, 4, 8, 16, 30, 30, 30]
    assert made.plan(now)
    made.answered("", None, now)
    assert (made.error, made.next_deadline()) == ("", None)


def test_marks_are_written_again_after_a_refusal():
    """Their rules were deleted, so that packets follow their flow meanwhile."""
    made = planner()
    state = fib({"10.0.0.0/8": GROUP})
    changes(made, state)
    changed = fib({"10.0.0.0/8": GROUP}, {GROUP: {A: 1, B: 3}})
    made.desire(changed, changed.routes, ())
    assert made.plan(0.0)
    made.answered("refused", None, 0.0)
    assert [type(operation) for operation in made.plan(60.0)] == [PutMark, PutMark, PutRound]


def test_ipv6_next_hops_lead_packets_of_both_families():
    made = planner()
    changes(made, fib({"2001:db8::/32": GROUP}, family=6))
    assert made.installed.marks == {A: 6, B: 6}
