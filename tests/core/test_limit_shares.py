"""Room beyond the limit of a database, divided by the neighbors that lead to originators."""

from __future__ import annotations

from collections import Counter

from fared.protocols.igp.limit_shares import Paths, Shares

ROOT, LIAR, HONEST = 1, 2, 3


def paths(*links: tuple[int, int], one_way: tuple[tuple[int, int], ...] = ()) -> Paths:
    """The paths from ROOT over these links."""
    listed: dict[int, set[int]] = {}
    for near, far in (*links, *[(far, near) for near, far in links], *one_way):
        listed.setdefault(near, set()).add(far)
    found = Paths()
    found.add(ROOT, lambda router: listed.get(router, set()))
    return found


FORK = ((ROOT, LIAR), (ROOT, HONEST))


def through(found: Paths, router: int) -> set[int]:
    """The neighbors that lead to a router."""
    bits = {next(found.first_hops(hop)): hop for hop in (LIAR, HONEST)}
    return {bits[bit] for bit in found.first_hops(router)}


def granted(shares: Shares, found: Paths, originators: range, room: int) -> int:
    return sum(shares.grant(one, found, 1, room, 0) for one in originators)


def test_a_router_is_reached_through_the_neighbors_that_are_nearest_to_it():
    found = paths(*FORK, (LIAR, 10), (HONEST, 11), (LIAR, 12), (HONEST, 12), (11, 13), (12, 13))
    assert [through(found, router) for router in (10, 11, 12, 13)] == [
        {LIAR},
        {HONEST},
        {LIAR, HONEST},
        {LIAR, HONEST},
    ]


def test_a_neighbor_that_only_lists_a_router_does_not_take_it_from_another():
    claims = (LIAR, 11), (LIAR, 14), (HONEST, 14)
    found = paths(*FORK, (HONEST, 11), one_way=claims)
    assert through(found, 11) == {HONEST}
    assert through(found, 14) == {LIAR, HONEST}, "its LSA is not here yet"


def test_inventions_behind_one_neighbor_leave_room_for_routers_behind_another():
    inventions = range(100, 200)
    found = paths(*FORK, *((LIAR, one) for one in inventions), (HONEST, 11), (HONEST, 12))
    shares = Shares()
    assert granted(shares, found, inventions, 20) == 10
    assert granted(shares, found, range(11, 13), 20) == 2


def test_the_only_neighbor_has_all_the_room():
    found = paths((ROOT, HONEST), *((HONEST, one) for one in range(100, 200)))
    assert granted(Shares(), found, range(100, 200), 20) == 20


def test_routers_behind_several_neighbors_have_the_shares_of_all():
    leaves = range(100, 200)
    found = paths(*FORK, *((spine, leaf) for leaf in leaves for spine in (LIAR, HONEST)))
    assert granted(Shares(), found, leaves, 20) == 20


def test_what_was_granted_and_not_used_is_granted_again():
    found = paths(*FORK, *((HONEST, one) for one in range(100, 200)))
    shares, entries = Shares(), Counter({100: 1})
    assert granted(shares, found, range(100, 110), 20) == 10
    shares.refresh(entries.__getitem__)
    assert granted(shares, found, range(110, 130), 20) == 9
