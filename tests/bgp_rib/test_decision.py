"""The decision process, against RFC 4271 §9.1 written down pair by pair."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.core.routes import ORIGIN_TAGS, RouteSource
from fared.protocols.bgp.packet.as_path import sequence
from fared.protocols.bgp.packet.attributes import AsPath, LocalPref, Med, Origin, attributes_of
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.rib.decision import DecisionSettings, PeerPath, choose
from fared.protocols.bgp.rib.origins import with_origin
from fared.protocols.bgp.rib.paths import OWN, REDISTRIBUTED, BgpPeer, make_path
from tests.bgp_rib.routers import attributes, peer

few = st.integers(0, 2)


@st.composite
def candidate(draw, number: int) -> PeerPath:
    path = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    items = [Origin(draw(few)), AsPath(sequence(*path))]
    items += [cls(draw(few)) for cls in (Med, LocalPref) if draw(st.booleans())]
    peer = BgpPeer(number, path[0], draw(few) + 1, number, internal=draw(st.booleans()))
    return PeerPath(peer, make_path(attributes_of(items), BgpNextHop(4, number)), draw(few))


@st.composite
def vectors(draw) -> list[PeerPath]:
    count = draw(st.integers(1, 6))
    return [draw(candidate(number)) for number in range(1, count + 1)]


def length(one: PeerPath) -> int:
    return len(one.path.attributes.find(AsPath).path[0].numbers)


def value(one: PeerPath, kind, missing: int) -> int:
    (found,) = [
        getattr(item, name)
        for item in one.path.attributes.items
        for name in kind.__struct_fields__
        if type(item) is kind
    ] or [missing]
    return found


def beats(a: PeerPath, b: PeerPath, rule: int) -> bool:
    """Whether one path removes another by one rule of §9.1.2 and §9.1.2.2."""
    if rule == 3:
        same = a.path.neighbor_as == b.path.neighbor_as
        return same and value(a, Med, 0) < value(b, Med, 0)
    ranks = [
        (
            -value(one, LocalPref, 100),
            length(one),
            value(one, Origin, 2),
            0,
            one.peer.internal,
            one.metric,
            one.peer.identifier,
            one.peer.address,
        )
        for one in (a, b)
    ]
    return ranks[0][rule] < ranks[1][rule]


def naive(paths: list[PeerPath], rules: range) -> list[PeerPath]:
    left = list(paths)
    for rule in rules:
        left = [b for b in left if not any(beats(a, b, rule) for a in left)]
    return left


@pytest.mark.rfc("RFC 4271 §9.1.2", "RFC 4271 §9.1.2.2")
@settings(max_examples=80, deadline=None)
@given(vectors(), st.randoms())
def test_the_rules_remove_paths_one_after_the_other(paths, random):
    (best,) = naive(paths, range(8))
    equal = naive(paths, range(6))
    random.shuffle(paths)
    found = choose(paths, DecisionSettings())
    assert found[0] == best
    assert sorted(one.peer.number for one in found) == sorted(one.peer.number for one in equal)


@settings(max_examples=20, deadline=None)
@given(vectors(), st.integers(1, 3))
def test_fewer_paths_are_the_first_ones(paths, most):
    assert choose(paths, DecisionSettings(most)) == choose(paths, DecisionSettings())[:most]


def path_of(number: int, *path: int, med: int | None = None, identifier: int = 0) -> PeerPath:
    items = [Origin(0), AsPath(sequence(*path))] + ([] if med is None else [Med(med)])
    peer = BgpPeer(number, path[0] if path else 0, identifier or number, number)
    return PeerPath(peer, make_path(attributes_of(items), BgpNextHop(4, number)))


@pytest.mark.rfc("RFC 4271 §9.1.2.2 (c)")
def test_med_is_compared_only_among_paths_of_one_neighboring_as():
    """Path 3 has the lowest identifier, and loses to 1 by MED, which 2 of another AS does not."""
    one = path_of(1, 100, 9, med=10, identifier=7)
    two = path_of(2, 200, 9, med=0, identifier=5)
    three = path_of(3, 100, 9, med=20, identifier=3)
    for order in ([one, two, three], [three, two, one], [two, three, one]):
        assert [each.peer.number for each in choose(order, DecisionSettings())] == [2, 1]


@pytest.mark.rfc("RFC 7938 §6.2")
def test_relax_compares_lengths_of_as_paths_only():
    paths = [path_of(1, 100, 9), path_of(2, 200, 9), path_of(3, 100, 9)]
    numbers = [
        [one.peer.number for one in choose(paths, DecisionSettings(relax=relax))]
        for relax in (True, False)
    ]
    assert numbers == [[1, 2, 3], [1, 3]]


def test_what_this_router_originates_comes_first():
    assert choose([path_of(1, 100), path_of(OWN)], DecisionSettings())[0].peer.number == OWN
    assert choose([], DecisionSettings()) == ()


def test_a_route_that_borders_redistributed_comes_after_one_of_bgp_itself():
    """Whatever the AS path; and this router's own redistribution comes between both."""
    tag = ORIGIN_TAGS[RouteSource.OSPF]
    far = make_path(with_origin(attributes(65100), tag), BgpNextHop(4, 1))
    near = make_path(attributes(65200, 1, 2, 3), BgpNextHop(4, 2))
    here = make_path(with_origin(attributes(), tag), BgpNextHop(4, 0))
    border, native = PeerPath(peer(1), far), PeerPath(peer(2), near)
    ours = PeerPath(peer(REDISTRIBUTED), here)
    rules = DecisionSettings()
    assert choose([border, native, ours], rules) == (native,)
    assert choose([border, ours], rules) == (ours,)
    assert choose([border], rules) == (border,)
