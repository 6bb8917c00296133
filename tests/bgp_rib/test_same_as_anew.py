"""After any changes routes, and what neighbors know, are those of a router that starts now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fared.core.ids import Prefix
from fared.protocols.bgp.packet.messages import Update
from tests.bgp_rib.routers import Router, limits, link, nets, peer

PREFIXES = nets(3)
PEERS = {
    1: peer(1),
    2: peer(2),
    3: peer(3, remote_as=65200, identifier=peer(2).identifier),
    4: peer(4, missing="ecmp"),
}
_number = st.sampled_from(list(PEERS))
_some = st.sampled_from([PREFIXES, PREFIXES[:1], PREFIXES[1:]])
_gbps = st.sampled_from([100, 200, None, 0])
_named = st.lists(
    st.sampled_from([(9, 50), (9, 150, 170), (9, 150, 300), (8, 200)]),
    max_size=2,
    unique_by=lambda one: one[0],
).map(tuple)
_path = st.tuples(st.just("path"), _number, _some, _gbps, _named)
_solve = st.tuples(st.just("solve"))
_actions = st.one_of(
    _path,
    _path,
    st.tuples(st.just("path"), _number, st.just(PREFIXES), _gbps, _named),
    _solve,
    _solve,
    st.tuples(st.just("settle"), st.integers(1, 3)),
    st.tuples(st.just("withdraw"), _number, _some),
    st.tuples(st.just("link"), _number, st.sampled_from([100, 400, None])),
    st.tuples(st.just("lose"), _number),
    st.tuples(st.just("own"), _some),
    st.tuples(st.just("foreign"), _some),
)


Named = tuple[tuple[int, float], ...]
"""Routers that all paths of a neighbor pass through, and what they carry."""


class Changing:
    """A router, and all that it would be told if it began now."""

    def __init__(self) -> None:
        self.router = Router()
        self.links: dict[int, float | None] = {}
        self.paths: dict[tuple[int, Prefix], tuple[float | None, Named]] = {}
        self.passing: set[int] = set()
        """Neighbors that have told a path of others since they came."""
        self.own: set[Prefix] = set()
        self.known: dict[int, dict[Prefix, Any]] = {}

    def link(self, number: int, gbps: float | None) -> None:
        if number in self.links:
            self.router.rib.set_link(number, link(PEERS[number], gbps))
        else:
            self.router.add(PEERS[number], gbps)
            self.known[number] = {}
        self.links[number] = gbps

    def path(self, number: int, some: Sequence[Prefix], gbps: float | None, named: Named) -> None:
        if number not in self.links:
            self.link(number, 400)
        self.router.path(PEERS[number], *some, gbps=gbps, more=limits(*named))
        self.paths.update({(number, prefix): (gbps, named) for prefix in some})
        self.passing.add(number)

    def withdraw(self, number: int, some: Sequence[Prefix]) -> None:
        if number in self.links:
            self.router.rib.update(number, Update(withdrawn=tuple(some)))
            for prefix in some:
                self.paths.pop((number, prefix), None)

    def lose(self, number: int) -> None:
        if self.links.pop(number, 0) != 0:
            self.router.rib.lose(number)
            self.passing.discard(number)
            self.paths = {key: gbps for key, gbps in self.paths.items() if key[0] != number}

    def own_prefixes(self, some: Sequence[Prefix]) -> None:
        self.router.rib.originate(some)
        self.own.update(some)

    def foreign_prefixes(self, some: Sequence[Prefix]) -> None:
        self.router.rib.withdraw(some)
        self.own.difference_update(some)

    def settle(self, limit: int) -> None:
        """One portion of work, and one for each neighbor."""
        self.router.rib.settle(limit)
        for number in self.links:
            for update in self.router.rib.outs[number].take(self.router.rib.table, limit):
                self._hear(number, update)

    def _hear(self, number: int, update: Update) -> None:
        for prefix in update.withdrawn:
            del self.known[number][prefix]
        for group in update.routes:
            self.known[number].update(dict.fromkeys(group.prefixes, update.attributes))

    def solve(self) -> None:
        while not self.router.rib.settled:
            self.settle(2)
        self.router.solve()
        while any(self.router.rib.outs[number].due for number in self.links):
            self.settle(2)

    def anew(self) -> Changing:
        other = Changing()
        for number, gbps in self.links.items():
            other.link(number, gbps)
        for number in self.passing:
            other.path(number, PREFIXES, None, ())
            other.withdraw(number, PREFIXES)
        if self.own:
            other.own_prefixes(sorted(self.own))
        for (number, prefix), (gbps, named) in self.paths.items():
            other.path(number, [prefix], gbps, named)
        other.solve()
        return other

    def seen(self) -> tuple[dict[Prefix, Any], dict[int, dict[Prefix, Any]]]:
        """What all paths carry, weights by interface; routes by neighbor and prefix."""
        routes = self.router.solver.routes
        weights = {
            prefix: (
                self.router.solver.path_capacity(prefix),
                {hop.interface: hop.weight for hop in route.nexthops.hops},
            )
            for prefix, route in routes.items()
        }
        return weights, {number: self.known[number] for number in self.links}


@settings(max_examples=80, deadline=None)
@given(st.lists(_actions, min_size=12, max_size=30))
def test_any_changes_lead_to_what_a_new_start_leads_to(actions):
    changing = Changing()
    names = {"own": "own_prefixes", "foreign": "foreign_prefixes"}
    for name, *values in actions:
        getattr(changing, names.get(name, name))(*values)
    changing.solve()
    assert changing.seen() == changing.anew().seen()
