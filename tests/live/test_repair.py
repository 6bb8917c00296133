"""Damage by other programs in the kernel is repaired at once, and counted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fared.daemon.loop.health import AUDIT_INTERVAL
from tests.live.daemons import RIGHT_STUB, Pair
from tests.waiting import wait_for

pytestmark = pytest.mark.netns

SOON = AUDIT_INTERVAL / 2


def group_of(pair: Pair) -> tuple[int, list[int]]:
    """The id of the group of the far network's route, and of its members."""
    document = pair.left.show("fib")
    target = next(r["nexthop_id"] for r in document["routes"] if r["prefix"] == RIGHT_STUB)
    group = next(group for group in document["groups"] if group["id"] == target)
    return target, [member["nexthop_id"] for member in group["members"]]


def drift(pair: Pair) -> int:
    return pair.left.counters()["computations"].get("drift", 0)


def resyncs(pair: Pair) -> float:
    """How many audits another program's changes have caused."""
    return pair.left.metrics().get('fared_fib_resyncs_total{reason="foreign-change"}', 0)


def delete_route(pair: Pair) -> None:
    pair.left.netns.ip("route", "del", RIGHT_STUB)


def flush_nexthops(pair: Pair) -> None:
    pair.left.netns.ip("nexthop", "flush", "protocol", "201")


def change_weights(pair: Pair) -> None:
    target, (a, b) = group_of(pair)
    words = f"nexthop replace id {target} group {a},3/{b},5 protocol 201"
    pair.left.netns.ip(*words.split())


def change_weights_as_another(pair: Pair) -> None:
    """With its own protocol number on our object: then it is not even marked as ours."""
    target, (a, b) = group_of(pair)
    pair.left.netns.ip(*f"nexthop replace id {target} group {a},3/{b},5".split())


def redirect_route(pair: Pair) -> None:
    _, (a, _) = group_of(pair)
    words = f"route replace {RIGHT_STUB} nhid {a} protocol 201 metric 20"
    pair.left.netns.ip(*words.split())


@pytest.mark.parametrize(
    "damage",
    [delete_route, flush_nexthops, change_weights, change_weights_as_another, redirect_route],
)
def test_deleted_or_altered_routes_are_repaired_at_once(pair: Pair, damage: Callable[[Pair], None]):
    """The same routes over the same next hops with the same weights are there again.

    Because of the change, that is; the next periodic audit comes within half a minute.
    """
    before, counted, caused = pair.view.routes(), drift(pair), resyncs(pair)
    damage(pair)
    wait_for(lambda: drift(pair) > counted, SOON, "the damage is counted")
    wait_for(lambda: pair.view.routes() == before, SOON, "the routes are as they were")
    assert pair.left.cli("show", "fib", "diff").returncode == 0
    assert pair.left.settled()
    repaired = [r for r in pair.left.records() if r["event"] == "fib-drift-repaired"]
    assert repaired
    wait_for(lambda: resyncs(pair) > caused, SOON, "an audit because of the change")
    assert pair.left.complaints() == []


def test_the_number_of_objects_last_repaired_is_a_metric(pair: Pair):
    """One route of ours deleted: one object differed."""
    counted = drift(pair)
    delete_route(pair)
    wait_for(lambda: drift(pair) > counted, SOON, "the damage is counted")
    last = "fared_fib_drift_routes"
    wait_for(lambda: pair.left.metrics()[last] == 1, SOON, "it is one, not what came before")


def test_what_others_install_is_left_alone(pair: Pair):
    """A route of another protocol number to a network of ours is not touched."""
    pair.left.netns.ip(*f"route add {RIGHT_STUB} via 10.129.1.1 metric 5 protocol 99".split())
    delete = f"route del {RIGHT_STUB} metric 5 protocol 99".split()
    try:
        counted = drift(pair)
        delete_others = f"route del {RIGHT_STUB} metric 20 protocol 201".split()
        pair.left.netns.ip(*delete_others)
        wait_for(lambda: drift(pair) > counted, SOON, "the damage is counted")
        wait_for(pair.left.settled, SOON, "our route is there again")
        assert "metric 5" in pair.left.netns.ip("route", "show", RIGHT_STUB)
        assert "metric 20" in pair.left.netns.ip("route", "show", RIGHT_STUB)
    finally:
        pair.left.netns.ip(*delete)
