"""Claims beside a plain set, the room that they take, and lists in which a prefix comes twice."""

import errno
import sys
from itertools import compress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.core.ids import Prefix
from fared.kernel.claims import Claims
from fared.kernel.fib import KernelFib
from fared.kernel.netlink import NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, RequestFailure
from fared.kernel.rtnetlink import RTM_DELROUTE, route_body
from fared.paths.fib.model import DeleteRoute, PutRoute

MANY = 100_000
REPLACE = NLM_F_CREATE | NLM_F_REPLACE
EXCLUSIVE = NLM_F_CREATE | NLM_F_EXCL

# The least and the greatest prefix, several lengths of a network, and the same numbers in IPv6.
NUMBERS = [(0, 0), (0, 32), (10 << 24, 8), (10 << 24, 24), (10 << 24, 32), (11 << 24, 8)]
NUMBERS += [((10 << 24) + 1, 32), ((1 << 32) - 1, 32)]
UNIVERSE = [Prefix(family, *number) for number in NUMBERS for family in (4, 6)]
UNIVERSE += [Prefix(6, 0xFD01 << 112, 64), Prefix(6, (1 << 128) - 1, 128)]

prefixes = st.sampled_from(UNIVERSE)
several = st.lists(prefixes, max_size=30)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("claim"), several),
        st.tuples(st.just("release"), several),
        st.tuples(st.just("update"), several),
    ),
    max_size=25,
)


def v4(n: int) -> Prefix:
    return Prefix(4, (10 << 24) + (n << 8), 24)


def room(claims: Claims) -> int:
    """Bytes that the places take, besides the prefixes, which the routes hold as well."""
    array = claims._sorted
    assert array.base is None  # no part of a larger one
    sets = (claims._added, claims._removed, claims._six)
    return array.nbytes + sum(map(sys.getsizeof, sets))


def here(claims: Claims, asked: list[Prefix]) -> set[Prefix]:
    return {*compress(asked, claims.known(asked))}


@settings(max_examples=300)
@given(st.integers(0, 6), steps)
def test_claims_are_what_a_set_would_be(recent, steps):
    claims, model = Claims(recent), set()
    for kind, argument in steps:
        match kind:
            case "claim":
                before = [at in model.union(argument[:n]) for n, at in enumerate(argument)]
                assert claims.claim(argument) == before
                model.update(argument)
            case "release":
                claims.release(argument)
                model.difference_update(argument)
            case "update":
                claims.update(iter(argument))
                model.update(argument)
        assert here(claims, UNIVERSE) == model
        assert {prefix for prefix in UNIVERSE if prefix in claims} == model
        assert len(claims._added) + len(claims._removed) <= recent
        assert len(claims._sorted) + len(claims._added) - len(claims._removed) == sum(
            prefix.family == 4 for prefix in model
        )


@pytest.mark.parametrize("count", [3, 10_000])
@pytest.mark.parametrize("more", [v4(1), Prefix(6, 1 << 64, 64)])
def test_a_list_of_new_places_in_which_one_comes_twice(count, more):
    claims = Claims()
    asked = [*map(v4, range(count)), more, more]
    assert claims.claim(asked) == [False] * count + [more == v4(1), True]
    assert here(claims, asked) == {*asked}
    assert len(claims._sorted) == (count if count > 4096 else 0)


@pytest.mark.parametrize("size", [1, 10, 1000])
def test_many_places_take_few_bytes_and_what_is_given_up_none(size):
    """In lists of a few and of many, and in another order than the numbers'."""
    claims = Claims()
    places = [v4(n) for n in range(MANY)]
    Random(size).shuffle(places)
    begin = 0 if size > 1 else MANY - 20_000
    claims.update(places[:begin])
    for n in range(begin, MANY, size):
        claims.claim(places[n : n + size])
    assert room(claims) < 10 * MANY
    assert len(claims._sorted) > MANY * 0.9

    Random(size + 1).shuffle(places)
    end = MANY if size > 1 else 20_000
    for n in range(0, end, size):
        claims.release(places[n : n + size])
    assert room(claims) < 10 * (MANY - end) + (300 << 10)
    claims.release(places)
    assert room(claims) < 2000
    assert not any(claims.known(places))


def test_few_places_are_a_set():
    claims = Claims()
    claims.update(map(v4, range(4096)))
    assert len(claims._added) == 4096
    assert not len(claims._sorted)


def test_places_that_are_here_take_no_more_room():
    claims = Claims()
    six = 38 * 4096  # so many that a set would make room for more of them
    places = [*map(v4, range(MANY)), *(Prefix(6, n << 64, 64) for n in range(six))]
    claims.update(places)
    before = room(claims)
    claims.update(places)
    assert room(claims) == before
    assert len(claims._six) == six


def test_places_of_ipv6_give_back_their_room():
    claims = Claims()
    six = [Prefix(6, n << 64, 64) for n in range(MANY)]
    claims.update(six)
    for n in range(0, MANY, 1000):
        claims.release(six[n : n + 1000])
    assert room(claims) < 2000


@pytest.fixture
def merges(monkeypatch):
    """One entry for each merge."""
    merges = []
    merge = Claims._merge
    monkeypatch.setattr(Claims, "_merge", lambda self: merges.append(1) or merge(self))
    return merges


def test_a_place_that_was_given_up_and_not_yet_merged_comes_back():
    claims = Claims()
    places = [v4(n) for n in range(5000)]
    claims.update(places)
    claims.release(places[:100])
    claims.update(places[:50])
    claims.claim([places[50]])
    assert here(claims, places) == {*places[:51], *places[100:]}
    assert not claims._added


def test_changes_of_one_place_are_merged_seldom(merges):
    claims = Claims()
    for n in range(0, MANY, 100):
        claims.claim([v4(n + i) for i in range(100)])
    assert len(merges) < 30
    merges.clear()
    for n in range(8192):
        claims.release([v4(n)])
    for n in range(8192):
        claims.claim([v4(n)])
    assert len(merges) < 5


def test_the_larger_the_array_the_more_changes_wait(merges):
    claims = Claims(recent=64)
    for n in range(0, MANY, 100):
        claims.claim([v4(n + i) for i in range(100)])
    assert len(merges) < 150  # every list is merged at first


@pytest.fixture
def fib():
    fib = KernelFib()
    yield fib
    fib.close()


def flags(fib: KernelFib, operations) -> list[int | None]:
    requests, _ = fib._encode_all(operations)
    return [None if kind == RTM_DELROUTE else flags for kind, flags, _ in requests]


@pytest.mark.parametrize("held", [0, 20, 10_000])
def test_each_operation_sees_those_before_it_in_the_list(fib, held):
    """``held``: places of ours, the first of which the list concerns; it begins without it."""
    put, delete, other = PutRoute(v4(0), 7), DeleteRoute(v4(0)), PutRoute(v4(20_000), 7)
    flags(fib, [PutRoute(v4(n), 7) for n in range(held)])
    first = REPLACE if held else EXCLUSIVE
    assert flags(fib, [put, delete, put, put, other]) == [
        first, None, EXCLUSIVE, REPLACE, EXCLUSIVE,
    ]  # fmt: skip
    assert flags(fib, [put, other, delete]) == [REPLACE, REPLACE, None]
    assert flags(fib, [delete, put, delete]) == [None, EXCLUSIVE, None]
    assert flags(fib, [put]) == [EXCLUSIVE]
    assert flags(fib, [delete]) == [None]
    assert flags(fib, [put]) == [EXCLUSIVE]
    rest = [PutRoute(v4(n), 7) for n in range(1, held)]
    assert flags(fib, rest) == [REPLACE] * len(rest)


def test_what_the_kernel_refuses_changes_no_claim(fib):
    put, delete = PutRoute(v4(0), 7), DeleteRoute(v4(0))
    flags(fib, [put])
    fib._failed(put, RequestFailure(errno.EEXIST, ""), EXCLUSIVE)
    assert flags(fib, [put]) == [EXCLUSIVE]
    fib._failed(put, RequestFailure(errno.EINVAL, ""), REPLACE)
    assert flags(fib, [put, delete]) == [REPLACE, None]
    fib._failed(delete, RequestFailure(errno.ESRCH, ""), 0)  # it was gone already
    assert flags(fib, [put, delete]) == [EXCLUSIVE, None]
    fib._failed(delete, RequestFailure(errno.EBUSY, ""), 0)
    assert flags(fib, [put]) == [REPLACE]


@pytest.mark.parametrize("prefix", [v4(0), Prefix(4, 0, 0), Prefix(6, 10 << 24, 24)])
@pytest.mark.parametrize("held", [0, 10_000])
def test_a_route_of_another_program_takes_only_a_place_of_ours(fib, prefix, held):
    flags(fib, [PutRoute(v4(n), 7) for n in range(1, held)])
    body = route_body(prefix, 254, 188, 20, None)
    assert not fib.taken(body)
    flags(fib, [PutRoute(prefix, 7)])
    assert fib.taken(body)
    assert fib.foreign == {prefix: 188}
    flags(fib, [DeleteRoute(prefix)])
    assert not fib.taken(body)
    assert fib.foreign == {}
