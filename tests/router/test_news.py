"""Which news of a link is worth computing for: only what both of its ends tell of."""

from dataclasses import replace

import numpy as np
import pytest

from fared.core.ids import NodeId, ipv4_prefix
from fared.router.news import News, news_of_block, news_of_links
from fared.ted.database import Ted
from fared.ted.model import LocalLink, NodeBlock, PathType, PrefixAttachment

PREFIX = PrefixAttachment(ipv4_prefix(10 << 24, 24), 10)


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
    known = ted(block(1), block(2))
    assert news_of_block(known, block(1), block(1, 2)) is News.ONE_SIDED


def test_the_second_end_does():
    known = ted(block(1, 2), block(2))
    assert news_of_block(known, block(2), block(2, 1)) is News.TOPOLOGY


def test_the_first_end_of_a_link_that_fails_is_a_loss_and_the_second_is_not():
    assert news_of_block(ted(block(2, 1)), block(1, 2), block(1)) is News.LOSS
    assert news_of_block(ted(block(1)), block(2, 1), block(2)) is News.ONE_SIDED


@pytest.mark.parametrize(
    "after",
    [
        block(1, 2, metric=20),
        block(1, 2, transit=False),
        block(1, 2, 3, boundary=True),
        block(1, 2, prefixes=(PREFIX,)),
    ],
)
def test_other_news_is_computed_for(after):
    """Metrics of links that count, overload, prefixes: whatever one router alone decides."""
    assert news_of_block(ted(block(2, 1)), block(1, 2), after) is News.TOPOLOGY


def far(metric, path_type=PathType.INTER_AREA):
    return (replace(PREFIX, metric=metric, path_type=path_type),)


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        (far(20), far(40), News.LOSS),
        (far(20), (), News.LOSS),
        ((PREFIX,), (), News.LOSS),
        (far(40), far(20), News.TOPOLOGY),
        ((), far(20), News.TOPOLOGY),
        (far(20), far(20, PathType.INTRA_AREA), News.TOPOLOGY),
        (far(20, PathType.EXTERNAL_2), far(40, PathType.EXTERNAL_2), News.TOPOLOGY),
        (far(20, PathType.EXTERNAL_2), (), News.TOPOLOGY),
    ],
)
def test_what_is_announced_no_longer_or_farther_away_is_lost(before, after, news):
    """A link that fails in another area is heard of like that; externals are too many to hurry."""
    known = ted(block(2, 1))
    old, new = block(1, 2, prefixes=before), block(1, 2, prefixes=after)
    assert news_of_block(known, old, new) is news


def test_routers_come_and_go():
    assert news_of_block(ted(), None, block(1)) is News.TOPOLOGY
    assert news_of_block(ted(block(1)), block(1), None) is News.LOSS


def test_a_full_adjacency_counts_once_the_neighbor_tells_of_it():
    root = NodeId(1)
    assert news_of_links(ted(block(2)), root, (), (local(2),)) is News.ONE_SIDED
    assert news_of_links(ted(block(2, 1)), root, (), (local(2),)) is News.TOPOLOGY
    assert news_of_links(ted(block(2, 1)), root, (local(2),), ()) is News.LOSS
