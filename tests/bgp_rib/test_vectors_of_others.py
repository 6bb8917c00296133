"""Weights that others expect: OpenConfig's RT-1.52 and RT-7.5, FRR's topotests, Meta's vectors.

Of these only the topologies and figures are taken. Where a peer rounds to percent, or to 255, the
test has the ratio that it rounds.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from fared.protocols.bgp.packet.attributes import ExtendedCommunities
from fared.protocols.bgp.packet.communities import LinkBandwidth, read_link_bandwidth
from fared.protocols.bgp.rib.paths import with_communities
from tests.bgp_rib.routers import GBPS, NET, Router, attributes, peer

WIDE = 10_000.0
"""Of links that limit nothing, Gbit/s."""


def two(*values: float | None, missing: str = "link") -> list[int]:
    """Weights by two neighbors that announce values in bytes/s, over equal links."""
    router = Router()
    for number, value in enumerate(values, 1):
        one = peer(number, missing=missing)
        router.add(one, WIDE)
        router.path(one, raw=value)
    router.solve()
    return router.weights()


@pytest.mark.parametrize(
    ("values", "shares"),
    [((10e3, 5e3), (66, 33)), ((10e3, 10e3), (50, 50)), ((10e3, None), (50, 50))],
    ids=["RT-1.52.1", "RT-1.52.2", "RT-1.52.3"],
)
def test_rt_1_52_shares_follow_the_communities_within_5_percent(values, shares):
    weights = two(*values, missing="ecmp")
    for weight, share in zip(weights, shares, strict=True):
        assert 100 * weight / sum(weights) == pytest.approx(share, abs=5)


def test_rt_7_5_the_value_is_set_and_deleted_whatever_as_it_has():
    """AS 23456, the own one, or any other: it has no meaning."""
    router, one, other = Router(), peer(1), peer(2)
    for each in (one, other):
        router.add(each, 400)
        router.path(each, gbps=400)
    plain = attributes(one.remote_as, 65100)
    for number in (23456, one.remote_as, 7):
        value = LinkBandwidth(number, 100 * GBPS).raw
        router.announce(one, [NET], with_communities(plain, (value,)))
        router.solve()
        assert router.weights() == [1, 4]
        router.announce(one, [NET], plain)
        router.solve()
        assert router.weights() == [1, 1]


MANY = (337, 67, 22, 389, 150, 135, 124, 81, 387, 62, 356, 389, 466, 289, 54)
"""Of topotest ``bgp_multiple_link_bandwidth_communities``, Mbit/s; non-transitive."""


@pytest.mark.rfc("RFC 10005 §4")
def test_of_fifteen_communities_the_lowest_counts():
    router = Router()
    for number, order in ((1, MANY), (2, MANY[::-1])):
        one = peer(number)
        router.add(one, WIDE)
        values = [LinkBandwidth(65000, mbps * 125e3, transitive=False).raw for mbps in order]
        what = with_communities(attributes(one.remote_as), tuple(values))
        router.announce(one, [NET], what)
    router.solve()
    assert router.weights() == [1, 1]
    (chosen,) = router.rib.chosen.values()
    assert chosen.total == pytest.approx(2 * 22 * 125e3)


def told_to(router: Router, number: int) -> float | None:
    """The bandwidth that a neighbor is told of the prefix, bytes/s."""
    found = router.told(peer(number)).get(NET)
    communities = None if found is None else found.find(ExtendedCommunities)
    if communities is None:
        return None
    (value,) = communities.communities
    read = read_link_bandwidth(value)
    assert read is not None
    return read.bandwidth


@pytest.mark.parametrize(("first", "second"), [(30.0, 100.0), (1.0, 800.0)])
def test_a_router_announces_the_sum_of_internal_paths(first, second):
    """Topotest ``bgp_link_bandwidth_cumulative``: values above 34.4 Gbit/s are no others."""
    router = Router()
    for number, gbps in ((1, first), (2, second)):
        one = peer(number, remote_as=65001, internal=True)
        router.add(one, WIDE)
        router.announce(one, [NET], attributes(gbps=gbps))
    router.add(peer(3), WIDE)
    router.solve()
    assert told_to(router, 3) == pytest.approx((first + second) * GBPS, rel=1e-6)


class Anycast:
    """Topotest ``bgp_link_bw_ip``: servers of one address below two leaves of one pod, and another.

    A leaf announces the number of its servers, a spine and the super-spine the sum of that.
    """

    def __init__(self) -> None:
        self.spine, self.top = Router(), Router()
        self.leaves = {"r4": peer(1), "r5": peer(2)}
        self.spines = {"r2": peer(1), "r3": peer(2)}
        for one in self.leaves.values():
            self.spine.add(one, WIDE)
        self.spine.add(peer(9), WIDE)
        for one in self.spines.values():
            self.top.add(one, WIDE)

    def servers(self, r4: int, r5: int, r6: int) -> None:
        """Announce so many servers below each leaf; a server is 1 Mbit/s, as in FRR."""
        for one, count in zip(self.leaves.values(), (r4, r5), strict=True):
            self._path(self.spine, one, count * 125e3, 65301)
        self.spine.solve()
        of_pod = told_to(self.spine, 9)
        self._path(self.top, self.spines["r2"], of_pod or self._before(r4 + r5), 65201)
        self._path(self.top, self.spines["r3"], r6 * 125e3, 65202)
        self.top.solve()

    def _before(self, count: int) -> float:
        (chosen,) = self.spine.rib.chosen.values()
        assert chosen.total == pytest.approx(count * 125e3)
        return chosen.total

    @staticmethod
    def _path(router: Router, one, raw: float, behind: int) -> None:
        if raw:
            router.announce(one, [NET], attributes(one.remote_as, behind, raw=raw))
        else:
            router.rib.table.withdraw(one.number, [NET])


def test_a_super_spine_weighs_pods_by_their_servers():
    fabric = Anycast()
    fabric.servers(2, 1, 1)
    assert fabric.spine.weights() == [2, 1]
    assert fabric.top.weights() == [3, 1]
    fabric.servers(2, 0, 1)
    assert fabric.top.weights() == [2, 1]
    fabric.servers(2, 1, 1)
    assert fabric.top.weights() == [3, 1]
    fabric.servers(2, 1, 0)
    assert fabric.top.weights() == [1]


ALL, SIX = (36,) * 8, (6,) * 8
PLANES = {
    "remote rack": ((SIX, (6, 4, 5, 3, 1, 2, 5, 6), ALL), (6, 4, 5, 3, 1, 2, 5, 6)),
    "here and there": (
        ((6, 5, 5, 6, 6, 6, 6, 6), (6, 4, 6, 6, 6, 6, 6, 6), (36, 34, 35, *ALL[3:])),
        (6, 4, 5, 6, 6, 6, 6, 6),
    ),
    "spines, in shares of paths": (
        (SIX, SIX, (36, 29, 23, 33, 6, 1, 36, 36)),
        (36, 29, 23, 33, 6, 1, 36, 36),
    ),
}
"""Paths of a plane: of the own rack, of the remote one, and of the spines for six of them."""


@pytest.mark.parametrize("name", PLANES)
def test_planes_weigh_as_the_paths_that_metas_agent_keeps(name):
    """Exactly where it keeps whole paths; lost spines it rounds: 6:4:3:5:1:0:6:6."""
    paths, expected = PLANES[name]
    router = Router()
    for number, (here, there, spines) in enumerate(zip(*paths, strict=True), 1):
        router.add(peer(number), 100 * here)
        router.path(peer(number), gbps=100 * min(there, spines / 6))
    router.solve()
    weights = router.weights()
    assert [Fraction(one, sum(weights)) for one in weights] == [
        Fraction(one, sum(expected)) for one in expected
    ]
