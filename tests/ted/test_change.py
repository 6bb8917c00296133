"""The kind of a change: a link counts only once both of its ends list it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import NodeId, ipv4_prefix
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.change import ChangeKind, change_of_prefix, lost_row
from fared.paths.ted.database import Ted
from fared.paths.ted.model import LocalLink, NodeBlock, PathType, PrefixReachability

PREFIX = PrefixReachability(ipv4_prefix(10 << 24, 24), 10)


def block(node, *neighbors, metric=10, **fields):
    count = len(neighbors)
    return NodeBlock(
        node=NodeId(node),
        neighbors=np.array(neighbors, np.int64),
        metrics=np.full(count, metric, np.int64),
        capacities=np.full(count, 1e9),
        availables=np.full(count, 1e9),
        local_ids=np.arange(count, dtype=np.int64),
        remote_ids=np.zeros(count, np.int64),
        **fields,
    )


def ted(*blocks):
    made = Ted()
    for each in blocks:
        made.put(each)
    return made


def local(neighbor):
    return LocalLink(1, "eth1", NodeId(neighbor), 0, 1, 10, None)


def test_the_first_end_of_a_link_that_comes_up_changes_no_path():
    assert ted(block(1), block(2)).put(block(1, 2)) is ChangeKind.ONE_WAY


def test_the_second_end_does():
    assert ted(block(1, 2), block(2)).put(block(2, 1)) is ChangeKind.TOPOLOGY


def test_the_first_end_of_a_link_that_fails_is_a_loss_and_the_second_is_not():
    known = ted(block(1, 2), block(2, 1))
    assert known.put(block(1)) is ChangeKind.LOSS
    assert known.put(block(2)) is ChangeKind.DROPPED


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        (block(1, 2, metric=20), ChangeKind.TOPOLOGY),
        (block(1, 2, transit=False), ChangeKind.PREFIX),
        (block(1, 2, 3, is_asbr=True), ChangeKind.TOPOLOGY),
        (block(1, 2, is_asbr=True), ChangeKind.PREFIX),
        (block(1, 2), ChangeKind.NONE),
    ],
)
def test_changes_that_one_router_decides_do_not_need_the_other_end(after, kind):
    """Metrics of links that count, overload, the E bit."""
    assert ted(block(1, 2), block(2, 1)).put(after) is kind


@pytest.mark.parametrize(
    ("before", "after", "end"),
    [
        (block(1, 2, 3, 4), block(1, 2, 4), None),  # the ids of the last link differ, too
        (block(1, 2, 3), block(1, 2), 3),
        (block(1, 3), block(1), 3),
        (block(1, 2, 3), block(1, 2, metric=20), None),
        (block(1, 2, 2), block(1, 2), None),  # a parallel link is left
        (block(1, 2, 3, 4), block(1, 2), None),
        (block(1, 2), block(1, 2, 3), None),
        (block(1, 2), block(1, 2), None),
    ],
)
def test_the_far_end_of_the_one_link_that_a_router_lost(before, after, end):
    row = lost_row(before, after)
    assert (None if row is None else before.neighbors[row]) == end


MANY = range(2, 102)
SOME = st.sets(st.sampled_from(MANY), max_size=3)


@given(gone=SOME, costlier=SOME, listing=SOME, back=st.booleans())
def test_of_many_links_those_that_differ_decide(gone, costlier, listing, back):
    """Wherever they stand among the others; ``back`` tells the changes in the other direction."""
    whole = block(1, *MANY)
    kept = np.array([end not in gone for end in MANY])
    metrics = np.array([20 if end in costlier else 10 for end in MANY])
    part = replace(
        whole,
        **{
            name: getattr(whole, name)[kept]
            for name in ("neighbors", "capacities", "availables", "local_ids", "remote_ids")
        },
        metrics=metrics[kept],
    )
    before, after = (part, whole) if back else (whole, part)
    differ = gone | costlier
    expected = ChangeKind.TOPOLOGY if back or not gone else ChangeKind.LOSS
    if not differ & listing:
        one_way = ChangeKind.ONE_WAY if back or not gone else ChangeKind.DROPPED
        expected = one_way if differ else ChangeKind.NONE
    known = ted(before, *(block(end, 1) for end in listing))
    assert known.put(after) is expected


def far(metric, path_type=PathType.INTER_AREA):
    return replace(PREFIX, metric=metric, path_type=path_type)


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (far(20), far(40), ChangeKind.LOSS),
        (far(20), None, ChangeKind.LOSS),
        (PREFIX, None, ChangeKind.LOSS),
        (far(40), far(20), ChangeKind.PREFIX),
        (None, far(20), ChangeKind.PREFIX),
        (far(20), far(20, PathType.INTRA_AREA), ChangeKind.PREFIX),
        (far(20, PathType.EXTERNAL_2), far(40, PathType.EXTERNAL_2), ChangeKind.PREFIX),
        (far(20, PathType.EXTERNAL_2), None, ChangeKind.PREFIX),
        (far(20), replace(far(20), capacity=1e9), ChangeKind.ADVERTISED),
        (far(20), far(20), ChangeKind.NONE),
        (None, None, ChangeKind.NONE),
    ],
)
def test_a_prefix_withdrawn_or_farther_away_is_a_loss(before, after, kind):
    """A failed link in another area appears as such a loss; externals are too many to be urgent."""
    assert change_of_prefix(before, after) is kind


def test_the_network_withdrawn_with_a_lost_link_is_not_a_further_loss():
    """The other end has advertised the loss before: no back-off is used up for the network."""
    solver = RouteSolver(NodeId(9), SolverSettings())
    for known in (block(1, 2, prefixes=(PREFIX,)), block(2, 1, prefixes=(PREFIX,))):
        solver.put_block(0, known.node, known)
    assert solver.put_block(0, NodeId(1), block(1)) is ChangeKind.LOSS
    assert solver.put_block(0, NodeId(2), block(2)) is ChangeKind.DROPPED


def test_routers_come_and_go():
    known = ted()
    assert known.put(block(1)) is ChangeKind.TOPOLOGY
    assert known.remove(NodeId(1)) is ChangeKind.LOSS


def test_a_full_adjacency_counts_once_the_neighbor_lists_it():
    root = NodeId(1)
    known, other = ted(block(2)), ted(block(2, 1))
    assert known.change_of_adjacencies(root, (), (local(2),)) is ChangeKind.ONE_WAY
    assert other.change_of_adjacencies(root, (), (local(2),)) is ChangeKind.TOPOLOGY
    assert other.change_of_adjacencies(root, (local(2),), ()) is ChangeKind.LOSS
