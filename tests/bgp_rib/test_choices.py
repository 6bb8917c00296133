"""Choices that are remembered by the kinds of paths are those of the decision."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.protocols.bgp.packet.attributes import LocalPref, Med
from fared.protocols.bgp.rib.decision import DecisionSettings, choose
from tests.bgp_rib.routers import Router, attributes, nets, peer

PREFIXES = nets(4)
PEERS = [
    peer(1),
    peer(2),
    peer(3, remote_as=65200, identifier=peer(2).identifier),
    peer(4, internal=True),
]
_peers = st.sampled_from(PEERS)
_told = st.tuples(
    _peers,
    st.sets(st.sampled_from(PREFIXES), min_size=1),
    st.sampled_from([(), (LEAF := 65100,), (LEAF, 65101)]),
    st.sampled_from([None, 100, 200]),
    st.sampled_from([(), (Med(5),), (LocalPref(50),)]),
)


@pytest.mark.rfc("RFC 4271 §9.1")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(_told, _told, _peers), min_size=3, max_size=25), st.booleans())
def test_a_remembered_choice_is_that_of_the_decision(actions, relax):
    """After any announcements, and neighbors that are lost and return."""
    router = Router(DecisionSettings(max_paths=3, relax=relax))
    for one in PEERS:
        router.add(one)
    for action in actions:
        if isinstance(action, tuple):
            one, prefixes, path, gbps, more = action
            first = () if one.internal else (one.remote_as,)
            what = attributes(*first, *path, gbps=gbps, more=more)
            router.announce(one, sorted(prefixes), what)
        else:
            router.rib.lose(action.number)
            router.settle()
            router.add(action)
        router.settle()
        for group, found in router.rib.chosen.items():
            assert found.paths == choose(router.rib.table.candidates(group), router.rib.settings)
