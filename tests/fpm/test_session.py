"""The session against the double: rows are the planner's groups after anything that happens."""

from __future__ import annotations

import random

import pytest

from fared.paths.rib.model import DISCARD, NextHopSet
from tests.fib.helpers import hops, prefix, prefix6, route, six
from tests.fpm.peers import NAMES, PROTOCOL, Switch, in_order

NUMBERS = range(12)
CHANGES = 200


def _some_hops(chance: random.Random) -> NextHopSet:
    if chance.random() < 0.15:
        return DISCARD
    links = chance.sample(list(NAMES), chance.randint(1, 5))
    return hops({one: chance.choice((1, 2, 3, 255, 400)) for one in links})


class Story(Switch):
    """Random changes of everything."""

    def __init__(self, seed: int, **options) -> None:
        super().__init__(**options)
        self.chance = random.Random(seed)
        self.connect()

    def change(self) -> None:
        """Change something."""
        names = ("routes", "routes", "routes", "all", "lose_link", "restore_link", "reconnect")
        more = ("restart_peer", "restart_self", "stop_reading", "partly", "calm")
        getattr(self, f"_{self.chance.choice(names + more)}")()

    def _routes(self) -> None:
        changed = {}
        for number in self.chance.sample(NUMBERS, self.chance.randint(1, 5)):
            wanted = None if self.chance.random() < 0.3 else route(number, _some_hops(self.chance))
            changed[prefix(number)] = wanted
        if self.chance.random() < 0.5:
            links = self.chance.sample(list(NAMES), 3)
            changed[prefix6(1)] = route(1, hops({six(one): one for one in links}))
        self.update(changed)

    def _all(self) -> None:
        weights = {one: self.chance.randint(1, 255) for one in (1, 2, 3)}
        self.put(NUMBERS, weights)

    def _lose_link(self) -> None:
        self.lose(self.chance.choice(list(NAMES)))

    def _restore_link(self) -> None:
        if self.kernel.down:
            self.restore(self.chance.choice(sorted(self.kernel.down)))

    def _reconnect(self) -> None:
        self.write()
        if self.client is not None:
            self.lose_connection(self.chance)
        else:
            self.connect()

    def _restart_peer(self) -> None:
        """The container's process starts again: rows stay."""
        self.write(self.chance.randint(1, 2000))
        if self.client is not None:
            self.lose_connection(self.chance)
        rows, old = self.peer.rows, self.peer
        self.peer = type(old)(self.names, old.protocols, old.suppress, old.buffer, rows)

    def _restart_self(self) -> None:
        """This process starts again, and may be told what it left."""
        self.write(self.chance.randint(1, 2000))
        if self.client is not None:
            self.lose_connection(self.chance)
        self.session = self.new_session()
        left = [p for p in (*map(prefix, NUMBERS), prefix6(1)) if str(p) in self.peer.rows]
        self.session.inherit(left)
        if self.chance.random() < 0.5:
            self.connect()
            self.write()
        self.session.bury()

    def _stop_reading(self) -> None:
        """The double takes nothing for a while; its client goes on."""
        for _ in range(3):
            self._routes()
            self.write(self.chance.randint(1, 800))

    def _partly(self) -> None:
        self._routes()
        self.write(self.chance.randint(1, 300))
        if self.client is not None and self.wire:
            size = self.chance.randint(0, len(self.wire))
            self.peer.send(self.client, self.wire[:size])
            self.wire = self.wire[size:]

    def _calm(self) -> None:
        self.wait(30.0)


@pytest.mark.parametrize("suppress", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_rows_are_the_groups_after_each_of_many_changes(seed: int, *, suppress: bool) -> None:
    story = Story(seed, suppress=suppress)
    for _ in range(CHANGES):
        for _ in range(story.chance.randint(1, 3)):
            story.change()
        story.settle()
        expected = in_order(story.expected())
        assert in_order(story.peer.rows) == expected
        if suppress:
            story.succeed()
        assert all(story.session.offloaded(p) for p in story.kernel.state.routes)
    assert not story.peer.log


def _switch(**options) -> Switch:
    switch = Switch(**options)
    switch.session.inherit(())
    switch.put(range(3), {1: 1, 2: 2})
    switch.settle()
    return switch


def test_a_route_becomes_a_blackhole_and_back_without_both_forms() -> None:
    switch = _switch()
    for nexthops in (DISCARD, hops({1: 1, 2: 2}), DISCARD):
        switch.update({prefix(0): route(0, nexthops)})
        switch.settle()
        assert in_order(switch.peer.rows) == in_order(switch.expected())


def test_a_form_that_a_lost_connection_left_in_doubt_is_deleted_first() -> None:
    switch = _switch()
    switch.update({prefix(0): route(0, DISCARD)})
    switch.settle()
    switch.peer.buffer = 0  # nothing is read from now on
    switch.update({prefix(0): route(0, hops({1: 1, 2: 2}))})
    switch.write()
    switch.lose_connection(random.Random(0))
    switch.peer.buffer = 1 << 17
    switch.settle()
    assert in_order(switch.peer.rows) == in_order(switch.expected())


def test_equal_routes_are_sent_once_and_a_change_of_all_in_one_message_each() -> None:
    switch = _switch()
    counts = switch.session.counts
    assert [counts[name] for name in ("connection", "replay", "put", "ack", "delete")] == [
        1,
        1,
        3,
        3,
        0,
    ]
    switch.put(range(3), {1: 1, 2: 2})
    switch.session.touch([prefix(number) for number in range(3)])
    switch.settle()
    assert switch.session.counts["put"] == 3
    switch.put(range(3), {1: 1, 2: 3})
    switch.put(range(3), {1: 1, 2: 4})
    switch.settle()
    assert switch.session.counts["put"] == 6
    assert switch.session.counts["delete"] == 0


def test_a_lost_link_is_followed_although_no_operation_tells_of_it() -> None:
    switch = _switch()
    assert switch.lose(1) == []
    switch.settle()
    assert {row["ifname"] for row in switch.peer.rows.values()} == {NAMES[2]}


@pytest.mark.parametrize("name", ["eth0", "docker0", "eth1-midplane", "lo", "Loopback3", None])
def test_interfaces_that_sonic_takes_for_others_are_withheld(name: str | None) -> None:
    switch = Switch()
    switch.names[1] = name
    switch.put(range(2), {1: 1, 2: 2, 3: 1})
    switch.put((5,), {1: 1})
    switch.settle()
    assert {row["ifname"] for row in switch.peer.rows.values()} == {f"{NAMES[2]},{NAMES[3]}"}
    assert set(switch.peer.rows) == {str(prefix(0)), str(prefix(1))}
    assert switch.session.withheld == {prefix(0), prefix(1), prefix(5)}
    switch.names[1] = NAMES[1]
    switch.session.links_changed()
    switch.settle()
    assert in_order(switch.peer.rows) == in_order(switch.expected())
    assert not switch.session.withheld


def test_a_route_that_fits_into_no_frame_is_withdrawn_and_named() -> None:
    switch = _switch()
    switch.names.update({number: f"Ethernet{number}" for number in range(100, 800)})
    switch.put((0,), dict.fromkeys(map(six, range(100, 800)), 1))
    switch.settle()
    assert set(switch.peer.rows) == {str(prefix(1)), str(prefix(2))}
    assert switch.session.too_long == {prefix(0)}
    switch.put((0,), {1: 1})
    switch.settle()
    assert in_order(switch.peer.rows) == in_order(switch.expected())
    assert not switch.session.too_long


def test_rows_of_a_former_process_stay_until_they_are_buried() -> None:
    switch = _switch()
    switch.lose_connection(random.Random(0))
    switch.remove((1, 2))
    switch.session = switch.new_session()
    switch.session.inherit(map(prefix, range(3)))
    switch.settle()
    assert set(switch.peer.rows) == {str(prefix(n)) for n in range(3)}
    switch.session.bury()
    switch.settle()
    assert set(switch.peer.rows) == {str(prefix(0))}


def test_an_earlier_acknowledgement_does_not_offload_a_later_route() -> None:
    switch = _switch(suppress=True)
    first = prefix(0)
    switch.succeed()
    assert switch.session.offloaded(first)
    switch.put((0,), {1: 1, 2: 5})
    switch.settle()
    switch.put((0,), {1: 1, 2: 6})
    switch.settle()
    switch.peer.succeed(PROTOCOL, str(first))
    switch.settle()
    assert not switch.session.offloaded(first)
    switch.peer.succeed(PROTOCOL, str(first))
    switch.settle()
    assert switch.session.offloaded(first)


def test_a_peer_that_acknowledges_nothing_is_at_fault_with_growing_patience() -> None:
    switch = _switch(suppress=True)
    patience = []
    for _ in range(5):
        began = switch.now
        while not switch.session.tick(switch.now):
            deadline = switch.session.next_deadline()
            assert deadline is not None
            switch.now = max(deadline, switch.now)
        patience.append(switch.now - began)
        switch.lose_connection(random.Random(0))
        switch.settle()
    assert patience == [10.0, 20.0, 40.0, 80.0, 80.0]


def test_a_route_that_the_chip_refuses_is_named_and_no_reason_to_reconnect() -> None:
    switch = _switch(suppress=True)
    others = [prefix(1), prefix(2)]
    for one in others:
        switch.peer.succeed(PROTOCOL, str(one))
    switch.settle()
    for weight in range(2, 40):
        switch.now += 3.0
        switch.put((0,), {1: 1, 2: weight})
        switch.put((1,), {1: 1, 2: weight + 1})
        switch.settle()
        switch.peer.succeed(PROTOCOL, str(others[0]))
        switch.settle()
        assert switch.session.tick(switch.now) == ""
    assert list(switch.session.acks.overdue(switch.now)) == [prefix(0)]
    switch.put((0,), {1: 1})
    switch.settle()
    switch.now += 1000.0
    assert switch.session.tick(switch.now) == ""
    assert not switch.session.offloaded(prefix(0))
    assert switch.session.offloaded(others[1])


def test_a_peer_that_stops_reading_costs_a_bounded_memory() -> None:
    switch = _switch()
    for step in range(50):
        switch.put(range(400), {1: 1, 2: 1 + step})
        switch.session.touch(switch.planner.take_touched())
        assert switch.session.waiting <= 403
    switch.remove(range(400))
    for number in range(1000, 4000):
        switch.put((number,), {1: 1})
        switch.remove((number,))
        switch.session.touch(switch.planner.take_touched())
    assert switch.session.waiting < 2500


@pytest.mark.parametrize("data", ["00010008", "0101ffff", "01010014" + "ff" * 16])
def test_bytes_that_are_no_frame_are_a_fault(data: str) -> None:
    switch = _switch()
    assert switch.session.received(bytes.fromhex(data), switch.now).startswith("bad message")
